package dispatch

import (
	"time"

	"dcs-tui/jobs"
)

// snapshot copies what a screen may show. Its size depends on the number of
// hosts, never on the number of jobs.
func (e *engine) snapshot() *Snapshot {
	t := e.core.Table()
	now := e.now()
	s := &Snapshot{
		At: now.Wall.Time(), Counts: t.Counts, Total: len(t.Jobs), Retries: e.retries, More: e.more,
		Hosts: e.core.Hosts(), Rate: e.rate.perSecond(now.Mono), Paused: e.loop.Paused(),
		Finished: e.finish != nil, Deleted: e.deleted,
	}
	if err := e.problem(now); err != nil {
		s.Problem = err.Error()
	}
	s.ETA, _, _ = e.core.ETA(now)
	return s
}

// rate counts finished jobs: a second each over the last minute, ten seconds each
// over the last ten minutes.
type rate struct {
	seconds counts
	tens    counts
}

// counts are 60 numbers, one for each span of time.
type counts struct {
	n  [60]int
	at int64 // the span that the newest number stands for
}

func (c *counts) forward(now int64) {
	for s := max(c.at+1, now-59); s <= now; s++ {
		c.n[s%60] = 0
	}
	c.at = max(c.at, now)
}

// add counts a job that ended at an instant of the past, Time.Mono; what was before
// this dispatcher is not counted.
func (r *rate) add(mono, ended time.Duration) {
	r.forward(mono)
	if ended >= 0 {
		r.seconds.add(int64(ended / time.Second))
		r.tens.add(int64(ended / (10 * time.Second)))
	}
}

func (c *counts) add(span int64) {
	if span > c.at-60 && span <= c.at {
		c.n[span%60]++
	}
}

func (r *rate) forward(mono time.Duration) {
	r.seconds.forward(int64(mono / time.Second))
	r.tens.forward(int64(mono / (10 * time.Second)))
}

// perSecond is the mean over the last minute, or since the start when that is
// shorter; 0 before the first job has finished.
func (r *rate) perSecond(mono time.Duration) float64 {
	r.forward(mono)
	sum := 0
	for _, n := range r.seconds.n {
		sum += n
	}
	return float64(sum) / max(1, min(60, mono.Seconds()))
}

// history is the rate of each whole ten seconds of the last ten minutes, oldest first.
func (r *rate) history(mono time.Duration) []float64 {
	r.forward(mono)
	last := r.tens.at // this one is not over
	var rates []float64
	for s := max(0, last-59); s < last; s++ {
		rates = append(rates, float64(r.tens.n[s%60])/10)
	}
	return rates
}

// endedAt is when the outcome in a record came about, Time.Mono: by its host's clock as
// that stood when the host came up, not before the attempt can have ended and not later
// than now. What came late, from a host that was away or of another dispatcher's time,
// was not done just now.
func (e *engine) endedAt(r *jobs.Record) time.Duration {
	now := e.now()
	o := r.Outcome
	a := e.core.Table().Attempt(r.Attempt())
	if o == nil || o.Ended == 0 || a == nil {
		return now.Mono
	}
	ended := o.Ended - jobs.Stamp(e.ahead[a.Host])
	ended = min(max(ended, a.Launched+jobs.Stamp(max(0, o.Elapsed()))), now.Wall)
	return now.Mono - now.Wall.Sub(ended)
}
