package sched

import (
	"cmp"
	"slices"
	"time"

	"dcs-tui/dispatch/sched/blame"
	"dcs-tui/internal/text"
	"dcs-tui/jobs"
)

// stragglers holds when running jobs are checked.
type stragglers struct {
	stragglerCheckAt time.Duration    // next check for stragglers
	copyCheckAt      time.Duration    // next check for copies
	numStragglers    blame.KindCounts // number of attempts that are stragglers
}

// A straggler has run for more than twice the time that jobs of its queue take, or another multiple
// (Config.StragglerFactor, or else that of its host). It is flagged, and is among the first to be
// copied (copies.go).
const (
	defaultStragglerFactor = 2
	// stragglerInterval is the interval at which all running jobs are checked.
	stragglerInterval = TickInterval
	// minStragglerInterval bounds the cost of checks if the user sets a smaller age.
	minStragglerInterval = 100 * time.Millisecond
	// defaultStragglerAge is the age below which a job is not reported: a delay of a second among
	// jobs of milliseconds does not matter.
	defaultStragglerAge = 5 * time.Second
)

// updateStragglers looks for stragglers among the running attempts.
func (c *Core) updateStragglers() {
	if c.now.Mono < c.stragglerCheckAt {
		return
	}
	least := defaultStragglerAge // of any host
	for _, st := range c.queues {
		st.ForgetRunning()
	}
	for h := range c.everyHost() {
		least = min(least, c.stragglerAge(h))
		for f := h.oldest; f != nil; f = f.nextOnHost {
			if f.hasMeaningfulAge() {
				f.stats.AddRunning(h.spec.Name, f.age(c.now.Mono).Seconds())
			}
		}
	}
	for h := range c.everyHost() {
		for f := h.oldest; f != nil; f = f.nextOnHost {
			if age := f.age(c.now.Mono); !f.isStraggler && age >= c.stragglerAge(h) && f.hasMeaningfulAge() {
				c.checkStraggler(f, age)
			}
		}
	}
	c.stragglerCheckAt = c.now.Mono + min(stragglerInterval, max(minStragglerInterval, least))
}

// stragglerAge returns the age below which no job of a host is a straggler.
func (c *Core) stragglerAge(h *host) time.Duration {
	return cmp.Or(c.cfg.StragglerAge, h.spec.StragglerAge, defaultStragglerAge)
}

// stragglerFactor returns the multiple of its expected run time from which on a job of a host is a
// straggler.
func (c *Core) stragglerFactor(h *host) float64 {
	return cmp.Or(c.cfg.StragglerFactor, h.spec.StragglerFactor, defaultStragglerFactor)
}

// hasMeaningfulAge reports whether the age of an attempt is meaningful: it runs, its host responds,
// and it is not being ended.
func (f *inFlight) hasMeaningfulAge() bool {
	return f.started && f.host.linked && !f.killed && !f.hasOutcome
}

func (c *Core) checkStraggler(f *inFlight, age time.Duration) {
	expected, ok := f.expectedRunTime(age)
	if !ok || float64(age) <= c.stragglerFactor(f.host)*float64(expected) {
		return
	}
	f.isStraggler = true
	c.numStragglers.Add(f.kind, 1)
	than := "jobs of its queue take " + text.Span(expected) + " at most, as a rule"
	if f.spec.Estimate > 0 {
		than = "it was estimated at " + text.Span(expected)
	}
	c.logf(f.host.spec.Name, f.id.Job, "job %d is a straggler: it has run for %s on %s, and %s", f.id.Job,
		text.Span(age), f.host.spec.Name, than)
}

// expectedRunTime returns how long the attempt should take: by its user's estimate, or by the run
// times of its queue, in which its host is compared with the others.
func (f *inFlight) expectedRunTime(age time.Duration) (time.Duration, bool) {
	if f.spec.Estimate > 0 {
		return f.spec.Estimate, true
	}
	numElsewhere := f.stats.numGoodHosts
	if q := f.host.records[f.stats]; q != nil && q.Succeeded > 0 {
		numElsewhere--
	}
	s, ok := f.stats.Estimate(f.host.spec.Name, numElsewhere == 0, age.Seconds())
	return durationOfSeconds(s), ok
}

// durationOfSeconds converts s to a duration without overflow.
func durationOfSeconds(s float64) time.Duration {
	const most = 100 * 365 * 24 * 3600
	return time.Duration(min(max(s, 0), most) * float64(time.Second))
}

// inFlightOf returns the newest open attempt of a job, or nil.
func (c *Core) inFlightOf(j *jobs.Job) *inFlight {
	for _, a := range slices.Backward(j.Attempts) {
		if f := c.inFlight[a.ID]; f != nil {
			return f
		}
	}
	return nil
}
