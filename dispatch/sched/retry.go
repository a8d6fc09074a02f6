package sched

import "dcs-tui/jobs"

// tries returns how many attempts a job has in all (D2).
func (c *Core) tries(j *jobs.Job) int {
	if j.Spec.Tries > 0 {
		return j.Spec.Tries
	}
	return c.cfg.Tries
}

// fail completes the record of an attempt that failed by itself. A timeout is
// final unless the run says otherwise (E1); anything else is tried again until
// the tries are used up (D2). A failure that is the host's fault is not charged.
func (c *Core) fail(r *jobs.Record, j *jobs.Job, charged bool) {
	o := r.Outcome
	r.Charged = charged
	r.Reason = o.Error
	n := int(j.Failures)
	if charged {
		n++
	}
	switch {
	case o.TimedOut && !c.cfg.RetryTimeouts:
		r.Next = jobs.TimedOut
	case otherOpen(j, r.N):
		r.Next = jobs.Running // it decides
	case n >= c.tries(j) && o.TimedOut:
		r.Next = jobs.TimedOut
	case n >= c.tries(j):
		r.Next = jobs.Failed
	default:
		r.Next = jobs.Queued
		if charged {
			r.Retry = c.now.Wall + jobs.Stamp(c.retryPause(n))
		} else if o.DiskFull {
			r.Reason = "its disk was full"
		} else {
			r.Reason = "it failed on a host where jobs fail fast that succeed elsewhere"
		}
	}
}
