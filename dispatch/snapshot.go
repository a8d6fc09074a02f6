package dispatch

import "time"

// snapshot copies what a screen may show. Its size depends on the number of
// hosts, never on the number of jobs.
func (e *engine) snapshot() *Snapshot {
	t := e.core.Table()
	now := e.now()
	s := &Snapshot{
		At: now.Wall.Time(), Counts: t.Counts, Total: len(t.Jobs), More: e.more,
		Hosts: e.core.Hosts(), Rate: e.rate.perSecond(now.Mono), Paused: e.ring.Paused(),
		Finished: e.finish != nil,
	}
	if err := e.ring.Problem(now); err != nil {
		s.Problem = err.Error()
	}
	if s.Rate > 0 {
		s.ETA = time.Duration(float64(t.Unfinished()) / s.Rate * float64(time.Second))
	}
	return s
}

// rate counts finished jobs over the last minute.
type rate struct {
	buckets [60]int // one a second
	at      int64   // the second that the newest bucket stands for
}

func (r *rate) add(mono time.Duration) {
	r.forward(mono)
	r.buckets[r.at%60]++
}

func (r *rate) forward(mono time.Duration) {
	now := int64(mono / time.Second)
	for s := max(r.at+1, now-59); s <= now; s++ {
		r.buckets[s%60] = 0
	}
	r.at = max(r.at, now)
}

// perSecond is the mean over the last minute, or since the start when that is
// shorter; 0 before the first job has finished.
func (r *rate) perSecond(mono time.Duration) float64 {
	r.forward(mono)
	sum := 0
	for _, n := range r.buckets {
		sum += n
	}
	return float64(sum) / max(1, min(60, mono.Seconds()))
}
