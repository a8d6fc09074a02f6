package sched

import (
	"cmp"
	"slices"

	"dcs-tui/jobs"
)

func (e AttemptsStarted) apply(c *Core) {
	for _, s := range e.Msg.Jobs {
		c.resetRefusals(s.Attempt)
		c.handleStarted(s.Attempt, s.Slot, s.At)
	}
}

func (e AttemptsEnded) apply(c *Core) {
	for i := range e.Msg.Jobs {
		x := &e.Msg.Jobs[i]
		c.handleEnded(x.Attempt, x.Slot, &x.Outcome)
	}
}

func (e AttemptsWithdrawn) apply(c *Core) {
	isReturned := slices.ContainsFunc(e.Msg.Attempts, c.isReturned)
	for _, id := range e.Msg.Attempts {
		c.handleNeverStarted(id, e.Msg.Why)
	}
	if h := c.byName[e.Host]; h != nil && isReturned {
		c.countReturned(h, e.Msg.Why)
	}
}

// handleStarted handles a report that an attempt runs. Repeats change nothing.
func (c *Core) handleStarted(id jobs.AttemptID, slot int, at jobs.Stamp) {
	a := c.table.Attempt(id)
	if a == nil {
		return
	}
	slot = boundedSlot(slot)
	if f := c.inFlight[id]; f != nil {
		f.isAlive = f.host.linked
		if a.State == jobs.AttemptRunning {
			return
		}
		r := jobs.Record{Kind: jobs.KindRunning, Job: id.Job, N: id.N, Host: a.Host, Slot: slot,
			Started: c.startTime(at)}
		if j := c.table.Job(id.Job); j.State.Terminal() {
			r.Next = j.State
		}
		if c.emit(r) {
			c.markStarted(f)
		}
		return
	}
	c.handleReturned(a, slot, at) // attempt.go
}

// startTime returns the current time for a start that the host could not date.
func (c *Core) startTime(at jobs.Stamp) jobs.Stamp { return cmp.Or(at, c.now.Wall) }

// handleEnded handles the outcome of an attempt. Repeats change nothing.
func (c *Core) handleEnded(id jobs.AttemptID, slot int, o *jobs.Outcome) {
	a := c.table.Attempt(id)
	f := c.inFlight[id]
	slot = boundedSlot(slot)
	delete(c.toKill, id)
	switch {
	case a == nil:
	case f != nil:
		c.handleOutcome(f, a, slot, o)
	case a.State == jobs.AttemptLost:
		c.handleLateOutcome(a, slot, o)
	}
}

// handleOutcome closes an open attempt that has an outcome, and decides what becomes of its job.
func (c *Core) handleOutcome(f *inFlight, a *jobs.Attempt, slot int, o *jobs.Outcome) {
	j := c.table.Job(f.id.Job)
	h := f.host
	f.hasOutcome = true
	h.probation.refusals = 0
	others := hasOtherOpen(j, f.id.N)
	r := jobs.Record{Kind: jobs.KindExited, Job: f.id.Job, N: f.id.N, Host: h.spec.Name, Slot: slot, Outcome: o}
	switch {
	case j.State.Terminal() || a.Round != j.Round:
		r.Kind, r.Next, r.Reason = jobs.KindSuperseded, c.stateWithoutResult(j, a), "its job had its result already"
	case o.OK():
		r.Next = jobs.Succeeded
	case c.isCancelPending(r.Job):
		r.Kind, r.Next, r.Reason = jobs.KindCanceled, jobs.Canceled, c.table.Cancels[r.Job].Reason
		if others {
			r.Next = jobs.Running
		}
	case o.Stopped && f.runElsewhere:
		r.Kind, r.Next, r.Reason = jobs.KindCanceled, c.stateWithoutResult(j, a), "stopped there to run elsewhere"
	case o.Stopped && others:
		r.Kind, r.Next, r.Reason = jobs.KindSuperseded, jobs.Running, "another attempt continues"
	case o.Stopped && c.hardness.IsTooHard(j):
		r.Kind, r.Next, r.Reason = jobs.KindCanceled, c.stateWithoutResult(j, a), "stopped: "+c.hardness.Why(j)
	case o.Stopped:
		// This dispatcher did not end it. An earlier one did so when it emptied the host (a request
		// to end the job would be in the journal), or someone on the host.
		r.Kind, r.Next, r.Reason = jobs.KindCanceled, c.stateWithoutResult(j, a), "killed by an unknown process"
	case c.mayBePreempted(h, j, o):
		r.Kind, r.Next = jobs.KindCanceled, c.stateWithoutResult(j, a)
		r.Reason = "ended by SIGTERM, with which an allocation ends"
	default:
		c.completeFailure(&r, j, h)
	}
	f.hasOutcome = c.recordEnd(r, h, o)
	if f.hasOutcome {
		if o.Elapsed() > 0 {
			f.runTime = min(o.Elapsed(), c.maxElapsed(j))
			f.cpuTime = boundedCPU(o.CPU, h.cores(), f.runTime)
		}
		c.untrack(f) // not earlier: without a record the host must be asked about it again
	}
}

// recordEnd records the end of an attempt that has an outcome. It updates the statistics, and ends
// the other attempts of a job that has its result. It returns false if the record does not fit.
func (c *Core) recordEnd(r jobs.Record, h *host, o *jobs.Outcome) bool {
	id := r.Job
	j := c.table.Job(id)
	was := j.State.Terminal()
	if !c.emit(r) {
		return false
	}
	c.keepClaim(r.Attempt(), c.inFlight[r.Attempt()], o)
	c.recordOutput(r.Host, r.Attempt())
	if r.Kind == jobs.KindExited {
		c.learnFromOutcome(h, j, r.Attempt(), o)
		if h != nil && o.OK() {
			h.succeeded++
		} else if h != nil && j.Attempts[r.N-1].Failed() {
			h.failed++
		}
	}
	if was || !j.State.Terminal() {
		return true
	}
	for _, a := range j.Attempts {
		if f := c.inFlight[a.ID]; f != nil && a.State.Open() {
			c.killAttempt(f, "another attempt of the job has ended with its result")
		}
	}
	return true
}

// handleNeverStarted handles an attempt that will not start, because it was refused or withdrawn,
// or its claim is a tombstone. No try is charged.
func (c *Core) handleNeverStarted(id jobs.AttemptID, why string) {
	f := c.inFlight[id]
	if f == nil {
		c.settleOrphan(id)
		return
	}
	j := c.table.Job(id.Job)
	r := jobs.Record{Kind: jobs.KindSuperseded, Job: id.Job, N: id.N, Host: f.host.spec.Name, Reason: why}
	r.Next = c.stateWithoutResult(j, j.Attempts[id.N-1])
	if r.Next == jobs.Canceled {
		r.Kind, r.Reason = jobs.KindCanceled, c.table.Cancels[id.Job].Reason
	}
	c.untrack(f)
	c.emit(r)
}

// stateWithoutResult returns the state of a job after one of its attempts has ended without a
// result.
func (c *Core) stateWithoutResult(j *jobs.Job, a *jobs.Attempt) jobs.JobState {
	switch {
	case j.State.Terminal():
		return j.State
	case hasOtherOpen(j, a.ID.N):
		return jobs.Running
	case c.isCancelPending(a.ID.Job):
		return jobs.Canceled
	case int(j.Failures) >= c.maxTries(j):
		return jobs.Failed
	}
	return jobs.Queued
}
