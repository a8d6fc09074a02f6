package sched

import (
	"time"

	"dcs-tui/jobs"
)

// The domino effect: the jobs that are too hard (package hardness) are skipped, or stopped if they
// run.

// timeout returns the time limit of a job, or 0 if there is none.
func (c *Core) timeout(s *jobs.Spec) time.Duration {
	return orDefault(s.Timeout, c.cfg.Timeout)
}

// timeoutUsed returns the time limit of a job that has timed out. The run's own timeout may have
// been raised since. In that case the job ran for less than the current limit, and the difference
// exceeds the error of clocks.
func (c *Core) timeoutUsed(j *jobs.Job) time.Duration {
	limit := grownLimit(c.timeout(j.Spec), c.cfg.TimeoutGrowth, j)
	if c.cfg.TimeoutGrowth > 1 && j.Failures > 0 {
		// The last failure was this timeout.
		limit = time.Duration(float64(limit) / c.cfg.TimeoutGrowth)
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

// mustDelaySkipping reports whether jobs must not be skipped yet. Pending requests may start some
// of them again, or the attempts that hosts report may change which timeouts count.
func (c *Core) mustDelaySkipping() bool {
	return len(c.requests) > 0 || c.reconcileUntil > 0 && c.table.Damaged
}

// skipTooHard skips the queued jobs that are too hard, and stops those that run, at most maxPerStep
// in a Step.
func (c *Core) skipTooHard() {
	if !c.hardness.IsPending() || c.mustDelaySkipping() {
		return
	}
	for range maxPerStep {
		id, ok := c.hardness.Next()
		if !ok {
			return
		}
		c.skipIfTooHard(id)
	}
}

func (c *Core) skipIfTooHard(id jobs.ID) {
	j := c.table.Job(id)
	if j.State.Terminal() || c.isCancelPending(id) || !c.hardness.IsTooHard(j) {
		return
	}
	why := c.hardness.Why(j)
	if j.State == jobs.Queued {
		c.emit(jobs.Record{Kind: jobs.KindJob, Job: id, Next: jobs.Skipped, Reason: why,
			How: string(jobs.ReasonTooHard)})
	} else { // it is skipped when it has ended
		for _, a := range j.Attempts {
			if f := c.inFlight[a.ID]; f != nil && !f.killed {
				c.killAttempt(f, why)
			}
		}
	}
}
