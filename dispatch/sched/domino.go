package sched

import (
	"time"

	"dcs-tui/jobs"
)

// The domino effect of hardness.go. All of it follows from the table: what has timed
// out is written there, and a dispatcher that begins goes on where the last one ended.

// knowsHardness enters a job that is new, or that is another one after an edit.
func (c *Core) knowsHardness(id jobs.ID) {
	j := c.table.Job(id)
	t := c.tupleOf(j.Spec)
	if t == nil {
		return
	}
	t.jobs = append(t.jobs, uint32(id))
	if j.State == jobs.TimedOut {
		c.timedOut(id, j)
	}
	c.looksAgain(id, j)
}

// looksAgain has a job looked at that is to wait, or runs, though it is too hard.
func (c *Core) looksAgain(id jobs.ID, j *jobs.Job) {
	if c.tooHard(j) && !j.State.Terminal() {
		c.hard.todo = append(c.hard.todo, uint32(id))
	}
}

// hardnessMoves follows a job from one state to another. What has not timed out for
// good says nothing: with --retry-timeouts it is the last try that counts.
func (c *Core) hardnessMoves(id jobs.ID, j *jobs.Job, was jobs.JobState, edited bool) {
	if len(j.Spec.Hardness) == 0 {
		return
	}
	if was == jobs.TimedOut && j.State != was {
		c.hard.stale, c.tupleOf(j.Spec).f.stale = true, true
	}
	switch {
	case edited:
		c.knowsHardness(id)
	case j.State == jobs.TimedOut && was != j.State:
		c.timedOut(id, j)
	}
}

func (c *Core) timedOut(id jobs.ID, j *jobs.Job) {
	t := c.tupleOf(j.Spec)
	c.hard.add(t.f, bar{t.at, c.timeItHad(j), id})
}

// timeout returns how long a job may run; 0: as long as it likes.
func (c *Core) timeout(s *jobs.Spec) time.Duration {
	if s.Timeout > 0 {
		return s.Timeout
	}
	return c.cfg.Timeout
}

// timeItHad returns how much time a job had that has timed out. The run's own timeout
// may have been raised since: then it ran for less than that, by more than clocks are slewed.
func (c *Core) timeItHad(j *jobs.Job) time.Duration {
	limit := grown(c.timeout(j.Spec), c.cfg.TimeoutGrowth, j)
	if c.cfg.TimeoutGrowth > 1 && j.Failures > 0 {
		limit = time.Duration(float64(limit) / c.cfg.TimeoutGrowth) // the last failure was this timeout
	}
	for i := len(j.Attempts) - 1; i >= 0 && j.Spec.Timeout == 0; i-- {
		if o := j.Attempts[i].Outcome; o != nil && o.TimedOut {
			if ran := o.Elapsed(); limit == 0 || ran < limit-limit/1000-time.Second {
				return ran
			}
			break
		}
	}
	return limit
}

// tooHard says that a job need not be tried.
func (c *Core) tooHard(j *jobs.Job) bool {
	t := c.tupleOf(j.Spec)
	return t != nil && t.by != 0
}

// whyTooHard says which timeout it is that a job need not be tried for.
func (c *Core) whyTooHard(j *jobs.Job) string {
	t := c.tupleOf(j.Spec)
	if t.why == "" {
		t.why = jobs.TooHard(c.table.Job(t.by).Spec, t.ran)
	}
	if j.Round > 1 {
		return t.why + "; it can run with more time, or when that job is requeued too"
	}
	return t.why
}

// skipsWait says that jobs must not be skipped yet: people are just changing which of
// them begin again, or what the hosts have may count for more.
func (c *Core) skipsWait() bool {
	return len(c.asked) > 0 || c.sweep.pending() || c.reconcileBy > 0 && c.table.Damaged
}

// hardnessPending says that jobs are still to be skipped. Nothing is launched until then.
func (c *Core) hardnessPending() bool { return c.hard.stale || c.hard.done < len(c.hard.todo) }

// skipHarder skips the queued jobs that need not be tried any more, and stops those
// that run; many of them over several steps.
func (c *Core) skipHarder() {
	if !c.hardnessPending() || c.skipsWait() {
		return
	}
	h := &c.hard
	for _, f := range h.list {
		if h.stale && f.stale {
			c.workOut(f)
		}
	}
	h.stale = false
	for n := 0; h.done < len(h.todo) && n < mostAStep; n++ {
		c.skipIfHarder(jobs.ID(h.todo[h.done]))
		h.done++
	}
	if h.done == len(h.todo) {
		h.todo, h.done = nil, 0
	}
}

// workOut finds out anew what the timeouts of a batch say.
func (c *Core) workOut(f *family) {
	f.bars, f.stale = nil, false
	for _, t := range f.list {
		t.by = 0
	}
	for _, t := range f.list {
		for _, n := range t.jobs {
			id := jobs.ID(n)
			if j := c.table.Job(id); j.State == jobs.TimedOut && c.tupleOf(j.Spec) == t {
				c.timedOut(id, j)
			}
		}
	}
}

func (c *Core) skipIfHarder(id jobs.ID) {
	j := c.table.Job(id)
	if j.State.Terminal() || c.cancelled(id) || !c.tooHard(j) {
		return
	}
	why := c.whyTooHard(j)
	if j.State == jobs.Queued {
		c.emit(jobs.Record{Kind: jobs.KindJob, Job: id, Next: jobs.Skipped, Reason: why})
	} else { // it is skipped when it is over
		for _, a := range j.Attempts {
			if f := c.flights[a.ID]; f != nil && !f.killed {
				c.killFlight(f, why)
			}
		}
	}
}
