package dispatch

import (
	"time"

	"dcs-tui/jobs"
)

// snapshot returns a copy of the state. Its size depends on the number of hosts, not on that of
// jobs.
func (e *engine) snapshot() *Snapshot {
	t := e.core.Table()
	now := e.now()
	s := &Snapshot{
		Counts: t.Counts, Total: t.NumJobs(), Retries: e.retries, InputOpen: e.inputOpen,
		Hosts: e.core.Hosts(), Rate: e.rate.perSecond(now.Mono), Paused: t.Paused,
		Finished: e.finish != nil, Deleted: e.deleted,
	}
	if err := e.launchProblem(now); err != nil {
		s.Problem = err.Error()
	}
	s.ETA, _, _ = e.core.ETA(now)
	return s
}

// rate counts finished jobs per second over the last minute, and per ten seconds over the last ten
// minutes.
type rate struct {
	seconds counts
	tens    counts
}

// counts is a ring buffer of numbers, one for each span of time.
type counts struct {
	numbers    [60]int
	newestSpan int64 // time span of the newest number
}

func (c *counts) advance(now int64) {
	for s := max(c.newestSpan+1, now-59); s <= now; s++ {
		c.numbers[s%60] = 0
	}
	c.newestSpan = max(c.newestSpan, now)
}

// add counts a job that ended at Time.Mono ended. Jobs that ended before this dispatcher began
// are not counted.
func (r *rate) add(mono, ended time.Duration) {
	r.advance(mono)
	if ended >= 0 {
		r.seconds.add(int64(ended / time.Second))
		r.tens.add(int64(ended / (10 * time.Second)))
	}
}

func (c *counts) add(span int64) {
	if span > c.newestSpan-60 && span <= c.newestSpan {
		c.numbers[span%60]++
	}
}

func (r *rate) advance(mono time.Duration) {
	r.seconds.advance(int64(mono / time.Second))
	r.tens.advance(int64(mono / (10 * time.Second)))
}

// perSecond returns the mean rate over the last minute, or since the start if that is shorter.
func (r *rate) perSecond(mono time.Duration) float64 {
	r.advance(mono)
	sum := 0
	for _, n := range r.seconds.numbers {
		sum += n
	}
	return float64(sum) / max(1, min(60, mono.Seconds()))
}

// history returns the rates of the complete ten-second spans of the last ten minutes, oldest first.
func (r *rate) history(mono time.Duration) []float64 {
	r.advance(mono)
	last := r.tens.newestSpan // this span is not complete
	var rates []float64
	for s := max(0, last-59); s < last; s++ {
		rates = append(rates, float64(r.tens.numbers[s%60])/10)
	}
	return rates
}

// endedAt returns the Time.Mono at which the attempt of a record ended. It converts the time of the
// host by the offset of its clock when the host came up, and limits it to the time between the
// launch and now. A result that arrives late therefore does not count as done just now.
func (e *engine) endedAt(r *jobs.Record) time.Duration {
	now := e.now()
	o := r.Outcome
	a := e.core.Table().Attempt(r.Attempt())
	if o == nil || o.Ended == 0 || a == nil {
		return now.Mono
	}
	ended := o.Ended - jobs.Stamp(e.clockOffsets[a.Host])
	ended = min(max(ended, a.Launched+jobs.Stamp(max(0, o.Elapsed()))), now.Wall)
	return now.Mono - now.Wall.Sub(ended)
}
