package sched

import (
	"slices"

	"dcs-tui/jobs"
)

// An attempt that was given up as lost may come back: its host was only out of
// reach. What it brings counts if the job has no result in this round yet.

// lateEnd decides about the outcome of a lost attempt.
func (c *Core) lateEnd(a *jobs.Attempt, slot int, o *jobs.Outcome) {
	news := c.astray[a.ID]
	j := c.table.Job(a.ID.Job)
	c.correct(a, j, o)
	c.forget(a.ID)
	if j.State.Terminal() || a.Round != j.Round || o.Stopped {
		if news {
			c.say(a.Host, a.ID.Job, "%s, given up as lost, has ended on %s; it does not count: its job %s", a.ID, a.Host, whyNot(j, a, o))
		}
		return
	}
	r := jobs.Record{Kind: jobs.KindExited, Job: a.ID.Job, N: a.ID.N, Host: a.Host, Slot: slot, Outcome: o}
	switch {
	case o.OK():
		r.Next = jobs.Succeeded
	case c.cancelled(r.Job):
		if news {
			c.say(a.Host, a.ID.Job, "%s, given up as lost, has ended on %s; it does not count: its job is being cancelled", a.ID, a.Host)
		}
		return
	default:
		c.fail(&r, j, true)
	}
	c.close(r, c.hostOf(a.Host, a.Machine), o)
}

// whyNot says why the outcome of a lost attempt is not taken, to follow "its job".
func whyNot(j *jobs.Job, a *jobs.Attempt, o *jobs.Outcome) string {
	switch {
	case j.State.Terminal():
		return became(j.State) + " already"
	case a.Round != j.Round:
		return "was requeued or changed since"
	}
	return "has another attempt, and this one was stopped"
}

// stopReturned ends an attempt that came back and is not wanted; said once.
func (c *Core) stopReturned(h *host, a *jobs.Attempt, why string) {
	h.kill(a.ID, why)
	if !c.unwanted[a.ID] {
		c.unwanted[a.ID] = true
		c.say(a.Host, a.ID.Job, "%s is still alive on %s and is stopped: %s", a.ID, a.Host, why)
	}
}

// returned decides about an attempt that runs though it is not open: it is kept
// or stopped, whichever wastes less (DESIGN 7).
func (c *Core) returned(a *jobs.Attempt, slot int, at jobs.Stamp) {
	h := c.byName[a.Host]
	if h == nil {
		return
	}
	j := c.table.Job(a.ID.Job)
	switch {
	case a.State == jobs.AttemptExited || a.State == jobs.AttemptCancelled || a.Outcome != nil:
		return // an old message
	case a.State != jobs.AttemptLost || j.State.Terminal() || a.Round != j.Round || c.cancelled(a.ID.Job):
		c.stopReturned(h, a, "its job has a result or another attempt")
		return
	}
	at = c.stamp(at)
	if !c.outlasts(a.ID, j, at) {
		c.stopReturned(h, a, "a newer attempt has run longer")
		return
	}
	was := c.lostUse[a.ID]
	c.forget(a.ID)
	if c.emit(jobs.Record{Kind: jobs.KindRunning, Job: a.ID.Job, N: a.ID.N, Host: a.Host, Slot: slot, Started: at,
		Reason: "it had been given up as lost"}) {
		f := c.fly(h, a.ID, j.Spec)
		f.started, f.startedAt, f.ran = true, c.now.Mono, c.ranBefore(a)
		c.moves(f, f.ran)
		f.stats.turn.used = max(0, f.stats.turn.used-was) // until it was given up
		h.count(f)
	}
}

// outlasts says whether an attempt that has turned up has run for longer than the
// others of its job, which are then ended.
func (c *Core) outlasts(id jobs.AttemptID, j *jobs.Job, at jobs.Stamp) bool {
	for _, o := range j.Attempts {
		f := c.flights[o.ID]
		if f == nil || !o.State.Open() || o.ID == id {
			continue
		}
		if f.started && o.Started <= at {
			return false
		}
		c.killFlight(f, "an earlier attempt came back that has run longer")
	}
	return true
}

// forget drops a lost attempt whose fate is settled from the list of those to ask about.
func (c *Core) forget(id jobs.AttemptID) {
	delete(c.unwanted, id)
	if !c.astray[id] {
		return
	}
	c.leave(id.Job) // its host may get it again: another class
	delete(c.astray, id)
	delete(c.lostUse, id)
	if a := c.table.Attempt(id); c.hostWith(a.Host, a.Machine) != nil {
		h := c.hostWith(a.Host, a.Machine)
		if i := slices.Index(h.missing, id); i >= 0 {
			h.missing = slices.Delete(h.missing, i, i+1)
		}
	}
	c.enqueue(id.Job)
}
