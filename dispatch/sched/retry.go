package sched

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"dcs-tui/dispatch/sched/blame"
	"dcs-tui/internal/text"
	"dcs-tui/jobs"
)

// maxTries returns how many attempts a job may have.
func (c *Core) maxTries(j *jobs.Job) int {
	return orDefault(j.Spec.Tries, c.cfg.Tries)
}

// completeFailure completes the record of an attempt that failed by itself on a host, which is nil
// if it is not known any more. A postponement uses up no try. After a final failure the job is not
// tried again. After any other it is, until its tries are used up and the job is at fault.
func (c *Core) completeFailure(r *jobs.Record, j *jobs.Job, h *host) {
	o := r.Outcome
	if c.isPostponed(j, o) {
		c.postpone(r, j)
		return
	}
	c.recordFailure(h, j, r.Attempt(), o)
	r.Charged = c.isCharged(h, j, o)
	r.Reason = cmp.Or(o.Error, c.memoryReason(j, o))
	n := int(j.Failures)
	if r.Charged {
		n++
	}
	switch {
	case o.TimedOut && c.isFinal(o):
		r.Next = jobs.TimedOut
	case hasOtherOpen(j, r.N):
		r.Next = jobs.Running // another attempt determines the state
	case r.Charged && c.isFinal(o):
		r.Next = jobs.Failed
		r.Reason = cmp.Or(r.Reason, "the run does not try again after such a failure (--retry-on, --no-retry-on)")
	case n >= c.maxTries(j) && o.TimedOut:
		r.Next = jobs.TimedOut
	case n >= c.maxTries(j):
		c.completeLastTry(r, j)
	case r.Charged:
		r.Next = jobs.Queued
		if d := c.retryDelay(j, o, n); d > 0 && !c.hasOtherHost(j, h) {
			r.Retry = c.now.Wall + jobs.Stamp(d)
		}
	default:
		r.Next = jobs.Queued
		r.Reason = "no job of its queue has succeeded on " + r.Host + ", and jobs succeed elsewhere"
		switch {
		case o.IsHostFull():
			r.Reason = whyHostFull(o)
		case h.probation.isOnProbationFor(c.kinds.KindOf(j.Spec)):
			r.Reason = whyUncharged(h)
		}
	}
}

// completeLastTry completes the record of a failure with which the tries of the job are used up. If
// its hosts may be at fault, the failure is not charged, and the job runs once more.
func (c *Core) completeLastTry(r *jobs.Record, j *jobs.Job) {
	v := c.judge(j, r.N)
	if v == atFault {
		r.Next = jobs.Failed
		if c.forgives(j) { // otherwise nothing shows that it is
			c.explainFailures(j)
		}
		return
	}
	r.Charged, r.Next = false, jobs.Queued
	r.Reason = "its hosts may be at fault: no other job has succeeded there since"
	if v == undecided {
		r.Retry = c.now.Wall + jobs.Stamp(evidenceTime)
	}
}

// endEvidenceTime fails a job whose verdict waited, unless jobs have succeeded, or still run, on
// hosts where it has not failed. It reports whether it did.
func (c *Core) endEvidenceTime(id jobs.ID, j *jobs.Job) bool {
	n := 0
	for range c.ownFailures(j, 0) {
		n++
	}
	last := j.CountedAttempt()
	if n < c.maxTries(j) || last == nil || !last.Failed() || last.Charged || c.judge(j, 0) == runElsewhere {
		return false
	}
	c.explainFailures(j)
	why := fmt.Sprintf("it failed %d times, and no job has succeeded on another host since", n)
	c.emit(jobs.Record{Kind: jobs.KindJob, Job: id, Next: jobs.Failed, Reason: why})
	return true
}

// isFinal reports whether a job is not retried after an outcome. By default only a timeout is
// final.
func (c *Core) isFinal(o *jobs.Outcome) bool {
	if c.cfg.IsFinal != nil {
		return c.cfg.IsFinal(o)
	}
	return o.TimedOut && !c.cfg.RetryTimeouts
}

// isPostponed reports whether a failure uses up no try because the job asked to run later.
func (c *Core) isPostponed(j *jobs.Job, o *jobs.Outcome) bool {
	return o.AsksToRunLater() && c.numPostponed(j) < c.cfg.MaxPostpone
}

// numPostponed returns how often the job was postponed in this round.
func (c *Core) numPostponed(j *jobs.Job) int {
	return numAttempts(j, func(a *jobs.Attempt) bool {
		return a.State == jobs.AttemptExited && a.Postponed()
	})
}

// postpone completes the record of an attempt after which the job runs again later. The delay is
// about a second at first, doubles each time, and is at most a minute.
func (c *Core) postpone(r *jobs.Record, j *jobs.Job) {
	n := c.numPostponed(j)
	r.Reason = fmt.Sprintf("it asks to be run again later (exit code %d)", jobs.ExitRunLater)
	r.Next = jobs.Queued
	if hasOtherOpen(j, r.N) {
		r.Next = jobs.Running
		return
	}
	d := c.jitter(min(time.Second<<min(n, 30), maxRetryDelay))
	if asked := c.askedDelay(j); asked != nil {
		d = *asked
	}
	r.Retry = c.now.Wall + jobs.Stamp(d)
}

// grownLimit returns a limit for the job's next try: multiplied by factor for each failure. A
// factor below 1 stands for 1.
func grownLimit[T int64 | time.Duration](limit T, factor float64, j *jobs.Job) T {
	const most = 1 << 62
	if factor <= 1 || j.Failures == 0 || limit <= 0 {
		return limit
	}
	return T(min(float64(limit)*math.Pow(factor, float64(j.Failures)), most))
}

// memoryReason explains that an attempt was ended because of its memory, or returns "".
func (c *Core) memoryReason(j *jobs.Job, o *jobs.Outcome) string {
	switch o.Memory {
	case jobs.MemoryLimit:
		return fmt.Sprintf("it used %s of memory and asked for %s (mem=)", text.Size(o.MaxRSSBytes),
			text.Size(c.memoryRequest(j)))
	case jobs.OutOfMemory:
		return "the kernel ended it because the host had no memory left"
	}
	return ""
}

// memoryRequest returns the memory that a job currently requests. It grows at most to that of the
// largest host. Otherwise the job could not run any more.
func (c *Core) memoryRequest(j *jobs.Job) int64 {
	asked := j.Spec.MemBytes
	if asked == 0 || j.Failures == 0 || c.cfg.MemGrowth <= 1 {
		return asked
	}
	most := asked
	for h := range c.everyHost() {
		if h.hello != nil {
			most = max(most, h.hello.MemBytes)
		}
	}
	return min(grownLimit(asked, c.cfg.MemGrowth, j), most)
}

const (
	// maxRunCounted is the maximum run time of a failed attempt that counts for the delay before
	// the next one.
	maxRunCounted    = time.Second
	maxRetryDelay    = time.Minute // maximum delay that is derived from the run time
	maxAvoidanceTime = 10 * time.Second
)

// retryDelay returns how long a job waits after its nth failure, n >= 1, before it is tried again
// on a host where it failed. Unless a delay was set, it is random(0.5, 1) x 2^(n-1) x the run time
// of the attempt, so waiting never costs much more than trying. At most a second of the run time
// counts, and a second if the run time is unknown.
func (c *Core) retryDelay(j *jobs.Job, o *jobs.Outcome, n int) time.Duration {
	if d := c.askedDelay(j); d != nil {
		return *d
	}
	ran := min(failedRunTime(o), maxRunCounted)
	return c.jitter(min(ran<<min(n-1, 30), maxRetryDelay))
}

// failedRunTime returns how long a failed attempt ran, or an hour if that is unknown.
func failedRunTime(o *jobs.Outcome) time.Duration {
	if o == nil || o.Error != "" && !o.Unreturned || o.Started == 0 {
		return time.Hour
	}
	return o.Elapsed()
}

// avoidanceTime returns how long a job that failed or was lost waits for a slot on another host
// before it may return to a host where that happened, if it may (mayReturn). It is five times the
// run time of the attempt, at most 10 s, and not less than a delay that was set.
func (c *Core) avoidanceTime(j *jobs.Job) time.Duration {
	for _, a := range slices.Backward(j.Attempts) {
		switch {
		case a.Round != j.Round:
		case a.State == jobs.AttemptLost:
			return maxAvoidanceTime
		case a.State == jobs.AttemptExited:
			wait := max(5*min(failedRunTime(a.Outcome), maxAvoidanceTime/5), time.Millisecond)
			if d := c.askedDelay(j); d != nil {
				wait = max(wait, *d)
			}
			return wait
		}
	}
	return maxAvoidanceTime
}

// nextSlot returns the host where the job has not failed that is expected to have a slot for it
// first, and in how long. The host is nil if there is none. The time is a guess of ten seconds if
// nothing is known.
func (c *Core) nextSlot(j *jobs.Job) (best *host, in time.Duration) {
	for h := range c.untriedHosts(j, nil) {
		if d := c.expectedWait(h, c.kinds.KindOf(j.Spec)); best == nil || d < in {
			best, in = h, d
		}
	}
	return best, in
}

// expectedWait returns in how long a host is expected to have a free slot for jobs of a kind.
func (c *Core) expectedWait(h *host, kind blame.Kinds) time.Duration {
	switch {
	case !h.linked:
		return max(0, h.lostAt()-c.now.Mono)
	case h.probation.paused:
		return max(0, h.probation.until-c.now.Mono)
	case h.probation.isResting(kind, c.now.Mono) && !c.isBeingTried(h):
		return h.probation.restsUntil - c.now.Mono
	case h.freeSlots() > 0:
		return 0
	}
	wait := maxAvoidanceTime
	known := false
	for f := h.oldest; f != nil; f = f.nextOnHost {
		if !f.started {
			continue
		}
		age := f.age(c.now.Mono)
		if d, ok := f.expectedRunTime(age); ok && (!known || d-age < wait) {
			wait, known = max(0, d-age), true
		}
	}
	return wait
}

// mayReturn reports whether a job that has waited for another host may run on a host where it
// failed. It may not while it is not known whether that host is at fault.
func (c *Core) mayReturn(j *jobs.Job) bool {
	return !j.HasFailed() || !c.forgives(j) || c.isIncriminated(j) || c.areJobsAtFault(c.statsOf(j.Spec))
}

// askedDelay returns the delay that the job or the run sets, or nil.
func (c *Core) askedDelay(j *jobs.Job) *time.Duration {
	return cmp.Or(j.Spec.RetryDelay, c.cfg.RetryDelay)
}

// longestDelay returns the longest time that the job may still have to wait. It limits the wait if
// the clock was set back after the delay began.
func (c *Core) longestDelay(j *jobs.Job) time.Duration {
	if d := c.askedDelay(j); d != nil {
		return *d
	}
	return maxRetryDelay
}

// hasOtherHost reports whether a job that has just failed on a host can be tried again on another
// host, where it has not failed in this round.
func (c *Core) hasOtherHost(j *jobs.Job, failedOn *host) bool {
	for range c.untriedHosts(j, failedOn) {
		return true
	}
	return false
}
