package sched

import (
	"strings"
	"time"

	"dcs-tui/jobs"
)

// started handles the report that an attempt runs. Repeats are normal.
func (c *Core) started(id jobs.AttemptID, slot int, at jobs.Stamp) {
	a := c.table.Attempt(id)
	if a == nil {
		return
	}
	slot = boundedSlot(slot)
	if f := c.flights[id]; f != nil {
		f.undated = at == 0 && (f.undated || !f.started)
		if a.State == jobs.AttemptRunning {
			return
		}
		if c.emit(jobs.Record{Kind: jobs.KindRunning, Job: id.Job, N: id.N, Host: a.Host, Slot: slot, Started: c.stamp(at)}) {
			c.begins(f)
		}
		return
	}
	c.returned(a, slot, at) // attempt.go
}

// stamp gives a start that the host could not date the time of hearing of it.
func (c *Core) stamp(at jobs.Stamp) jobs.Stamp {
	if at == 0 {
		return c.now.Wall
	}
	return at
}

// ended handles the outcome of an attempt, and decides what becomes
// of its job. Repeats change nothing.
func (c *Core) ended(id jobs.AttemptID, slot int, o *jobs.Outcome) {
	a := c.table.Attempt(id)
	f := c.flights[id]
	slot = boundedSlot(slot)
	delete(c.unwanted, id)
	switch {
	case a == nil:
	case f != nil:
		c.closeEnded(f, a, slot, o)
	case a.State == jobs.AttemptLost:
		c.lateEnd(a, slot, o)
	}
}

func (c *Core) closeEnded(f *flight, a *jobs.Attempt, slot int, o *jobs.Outcome) {
	j := c.table.Job(f.id.Job)
	h := f.h
	f.over = true
	h.rest.refusals = 0
	others := otherOpen(j, f.id.N)
	r := jobs.Record{Kind: jobs.KindExited, Job: f.id.Job, N: f.id.N, Host: h.spec.Name, Slot: slot, Outcome: o}
	switch {
	case j.State.Terminal() || a.Round != j.Round:
		r.Kind, r.Next, r.Reason = jobs.KindSuperseded, c.without(j, a), "its job had its result already"
	case o.OK():
		r.Next = jobs.Succeeded
	case c.canceled(r.Job):
		r.Kind, r.Next, r.Reason = jobs.KindCanceled, jobs.Canceled, c.table.Cancels[r.Job].Reason
		if others {
			r.Next = jobs.Running
		}
	case o.Stopped && f.requeue:
		r.Kind, r.Next, r.Reason = jobs.KindCanceled, c.without(j, a), "stopped there to run elsewhere"
	case o.Stopped && others:
		r.Kind, r.Next, r.Reason = jobs.KindSuperseded, jobs.Running, "another attempt continues"
	case o.Stopped && c.tooHard(j):
		r.Kind, r.Next, r.Reason = jobs.KindCanceled, c.without(j, a), "stopped: "+c.whyTooHard(j)
	case o.Stopped:
		// Not by this dispatcher: by an earlier one, which emptied the host (a wish to end
		// the job would be in the journal), or on the host.
		r.Kind, r.Next, r.Reason = jobs.KindCanceled, c.without(j, a), "killed by an unknown process"
	case c.preempts(h, j, o):
		r.Kind, r.Next, r.Reason = jobs.KindCanceled, c.without(j, a), "ended by SIGTERM, with which an allocation ends"
	default:
		c.fail(&r, j, !c.postpones(j, o) && c.blames(h, j, f.id, o))
	}
	if f.over = c.close(r, h, o); f.over {
		if o.Elapsed() > 0 {
			f.took = min(o.Elapsed(), c.mostElapsed(j))
			f.cpu = boundedCPU(o.CPU, h.cores(), f.took)
		}
		c.land(f) // only now: a flight without a record would be asked about no more
	}
}

// mayTell reports whether a host's word about an attempt counts: only that of the
// machine which has it.
func (c *Core) mayTell(name string, id jobs.AttemptID) bool {
	a, h := c.table.Attempt(id), c.byName[name]
	if a == nil || a.Host == name {
		return a != nil && h != nil && h.has(a)
	}
	if h != nil && !h.lied {
		h.lied = true
		c.say(name, id.Job, "%s reports on attempt %s, which is on %s: its reports about attempts of other hosts are ignored", name, id, a.Host)
	}
	return false
}

// close emits the end of an attempt that has an outcome and draws what follows
// from it: statistics, the other attempts of a job that has its result. False: the
// record did not fit.
func (c *Core) close(r jobs.Record, h *host, o *jobs.Outcome) bool {
	id := r.Job
	j := c.table.Job(id)
	was := j.State.Terminal()
	if !c.emit(r) {
		return false
	}
	c.keepsOutput(r.Host, r.Attempt())
	if r.Kind == jobs.KindExited {
		c.observe(h, j, o)
		if h != nil && o.OK() {
			h.succeeded++
		} else if h != nil {
			h.failed++
		}
	}
	if was || !j.State.Terminal() {
		return true
	}
	for _, a := range j.Attempts {
		if f := c.flights[a.ID]; f != nil && a.State.Open() {
			c.killFlight(f, "another attempt of the job has ended with its result")
		}
	}
	return true
}

// neverStarted handles the report that an attempt was refused or withdrawn, or that its claim
// is ours: it will not start there. Nobody is charged.
func (c *Core) neverStarted(id jobs.AttemptID, why string) {
	f := c.flights[id]
	if f == nil {
		c.forget(id)
		return
	}
	j := c.table.Job(id.Job)
	r := jobs.Record{Kind: jobs.KindSuperseded, Job: id.Job, N: id.N, Host: f.h.spec.Name, Reason: why}
	r.Next = c.without(j, j.Attempts[id.N-1])
	if r.Next == jobs.Canceled {
		r.Kind, r.Reason = jobs.KindCanceled, c.table.Cancels[id.Job].Reason
	}
	c.land(f)
	c.emit(r)
}

// without returns what a job becomes when one of its attempts is gone without a
// result of its own.
func (c *Core) without(j *jobs.Job, a *jobs.Attempt) jobs.JobState {
	switch {
	case j.State.Terminal():
		return j.State
	case otherOpen(j, a.ID.N):
		return jobs.Running
	case c.canceled(a.ID.Job):
		return jobs.Canceled
	case int(j.Failures) >= c.tries(j):
		return jobs.Failed
	}
	return jobs.Queued
}

// runTimes are the mean run times of a queue's jobs, the recent ones weighing more.
type runTimes struct{ queues map[string]*mean }

type mean struct {
	n        int
	all, oks float64 // seconds; of every job, of those that succeeded
	nOK      int
}

func newRunTimes() runTimes { return runTimes{make(map[string]*mean)} }

// recent is how many jobs the means remember.
const recent = 16

func (t runTimes) add(queue string, d time.Duration, ok bool) {
	m := t.queues[queue]
	if m == nil {
		m = &mean{}
		t.queues[queue] = m
	}
	s := d.Seconds()
	m.n = min(m.n+1, recent)
	m.all += (s - m.all) / float64(m.n)
	if ok {
		m.nOK = min(m.nOK+1, recent)
		m.oks += (s - m.oks) / float64(m.nOK)
	}
}

// of returns the mean in seconds; false while no job of the queue has ended.
func (t runTimes) of(queue string) (float64, bool) {
	if m := t.queues[queue]; m != nil && m.n > 0 {
		return m.all, true
	}
	return 0, false
}

// ok returns the mean of those that succeeded, 0 if none has.
func (t runTimes) ok(queue string) float64 {
	if m := t.queues[queue]; m != nil {
		return m.oks
	}
	return 0
}

// became describes what happened to a job, to follow its name.
func became(s jobs.JobState) string {
	switch s {
	case jobs.Succeeded, jobs.Failed:
		return "has " + s.String()
	case jobs.TimedOut:
		return "has timed out"
	case jobs.Canceled, jobs.Skipped:
		return "was " + s.String()
	}
	return "is " + s.String()
}

// withoutName takes a host's name off the front of a reason that follows the name
// anyway: errors of links begin with it.
func withoutName(reason, name string) string {
	return strings.TrimPrefix(reason, name+": ")
}
