package sched

import (
	"time"

	"dcs-tui/jobs"
)

// A straggler has run for more than twice the time that jobs of its queue take (D4). It
// is flagged, and is among the first to be copied (copies.go).
const (
	stragglerAt = 2
	// judgeEvery is how often the running jobs are looked at: all of them each time.
	judgeEvery = TickEvery
	// stragglerLeast is the age below which nobody is told of a job: a hiccup of a second
	// among jobs of milliseconds is nothing to look into.
	stragglerLeast = 5 * time.Second
)

// judge looks at what runs.
func (c *Core) judge() {
	if c.now.Mono < c.judgeAt {
		return
	}
	c.judgeAt = c.now.Mono + judgeEvery
	for _, st := range c.queues {
		st.censored = censored{}
	}
	for _, h := range c.hosts {
		for f := h.head; f != nil; f = f.next {
			if f.judged() {
				f.stats.runs(f.age(c.now.Mono).Seconds())
			}
		}
	}
	for _, h := range c.hosts {
		for f := h.head; f != nil; f = f.next {
			if age := f.age(c.now.Mono); !f.straggles && age >= stragglerLeast && f.judged() {
				c.judgeOne(f, age)
			}
		}
	}
}

// judged says that the age of an attempt means something: it runs, its host is heard,
// and nobody is ending it.
func (f *flight) judged() bool { return f.started && f.h.linked && !f.killed && !f.over }

func (c *Core) judgeOne(f *flight, age time.Duration) {
	expected, ok := f.expected(age)
	if !ok || age <= stragglerAt*expected {
		return
	}
	f.straggles = true
	c.straggling++
	than := "jobs of its queue take " + short(expected) + " at most, as a rule"
	if f.spec.Estimate > 0 {
		than = "it was estimated at " + short(expected)
	}
	c.say(f.h.spec.Name, f.id.Job, "job %d is a straggler: it has run for %s on %s, and %s", f.id.Job, short(age), f.h.spec.Name, than)
}

// expected is how long it should take: as its user said, or as others of its queue
// took.
func (f *flight) expected(age time.Duration) (time.Duration, bool) {
	if f.spec.Estimate > 0 {
		return f.spec.Estimate, true
	}
	s, ok := f.stats.estimate(age.Seconds())
	return seconds(s), ok
}

// seconds converts without overflow.
func seconds(s float64) time.Duration {
	const most = 100 * 365 * 24 * 3600
	return time.Duration(min(max(s, 0), most) * float64(time.Second))
}

// Estimate returns how long a job takes at most, as a rule: what its user said, or mean
// and two standard deviations of its queue. 0: not known.
func (c *Core) Estimate(id jobs.ID) time.Duration {
	j := c.table.Job(id)
	if j == nil {
		return 0
	}
	if f := c.flightOf(j); f != nil && f.started {
		d, _ := f.expected(f.age(c.now.Mono))
		return d
	}
	if j.Spec.Estimate > 0 {
		return j.Spec.Estimate
	}
	s := 0.0
	if st := c.stats[j.Spec.Queue]; st != nil {
		s, _ = st.estimate(0)
	}
	return seconds(s)
}

// Straggler says whether a job runs far longer than others of its queue (D4).
func (c *Core) Straggler(id jobs.ID) bool {
	j := c.table.Job(id)
	if j == nil || j.State != jobs.Running {
		return false
	}
	f := c.flightOf(j)
	return f != nil && f.straggles
}

// Stragglers returns how many attempts are.
func (c *Core) Stragglers() int { return c.straggling }

// flightOf returns the newest open attempt of a job, nil if there is none.
func (c *Core) flightOf(j *jobs.Job) *flight {
	for i := len(j.Attempts) - 1; i >= 0; i-- {
		if f := c.flights[j.Attempts[i].ID]; f != nil {
			return f
		}
	}
	return nil
}
