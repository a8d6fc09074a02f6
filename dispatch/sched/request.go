package sched

import (
	"cmp"
	"fmt"
	"slices"

	"dcs-tui/jobs"
)

// Request is what a person asks for, under a unique name. Its effects and the record
// KindRequest, which is the answer, come out of one Step, that record last: a request
// that is given again after a crash is either unknown and carried out (again, for the
// part that was torn off; nothing of it hurts twice) or known and ignored. One of very
// many jobs takes several Steps, during which nothing is launched. Every record that it
// causes carries its name.
type Request struct {
	Name    string
	Text    string  // what is asked and by whom: an event for people; "": none
	Do      []Event // carried out in this order: events about jobs, or Pause, Drain, EndDrain, Stop, DrainHost, SetSlots
	Spare   Spare   // the jobs that it leaves alone, as they stand when it is carried out
	Epoch   int     // of the dispatcher that is asked: another one refuses; 0: any
	Refused string  // why it cannot be carried out: it is only answered; "": it can

	First jobs.ID // of the Count jobs that were submitted with it, in a Submit before it; 0: none were
	Count int
}

func (Request) event() {}

// Spare names the jobs that a request leaves alone. Whoever asked has looked at the run
// before, and what has become of a job meanwhile may be all that was wanted.
type Spare string

// What can be spared; "" is nothing.
const (
	SpareSucceeded Spare = "succeeded" // by Edit and Requeue, which would run them again
	SpareStarted   Spare = "started"   // by Cancel: those that are known to run
)

// asking is a request that is being carried out.
type asking struct {
	Request
	begun bool
	at    int // index into Do
	next  int // index into the jobs of that event
	did   int // open jobs (Cancel, SetPriority), terminal ones (Requeue), changed ones (Edit), other events
	left  int // the others, and those that do not exist

	changer jobs.Changer // one for all parts, so that options are shared
}

// aboutJobs reports whether an event names jobs: it may take several Steps.
func aboutJobs(ev Event) bool {
	switch ev.(type) {
	case Cancel, Requeue, Edit, SetPriority:
		return true
	}
	return false
}

// ask takes a request in. One that is not about jobs is carried out at once: a pause or
// a stop does not wait for the requests before it.
func (c *Core) ask(r Request) {
	known := func(a *asking) bool { return a.Name == r.Name }
	if r.Name == "" || c.table.Requests[r.Name] || slices.ContainsFunc(c.asked, known) {
		return
	}
	if r.Epoch != 0 && r.Epoch != c.table.Epoch {
		r.Refused = cmp.Or(r.Refused, fmt.Sprintf("it is for the dispatcher of epoch %d, and this is epoch %d", r.Epoch, c.table.Epoch))
	}
	if r.Refused != "" {
		r.Do, r.First, r.Count = nil, 0, 0
	}
	a := &asking{Request: r}
	if slices.ContainsFunc(r.Do, aboutJobs) {
		c.asked = append(c.asked, a)
		return
	}
	c.cause = a.Name
	c.announce(a)
	for _, ev := range a.Do {
		c.control(a, ev)
	}
	c.answer(a)
}

// announce reports what is asked, once.
func (c *Core) announce(a *asking) {
	if !a.begun && a.Text != "" {
		c.say("", 0, "%s", a.Text)
	}
	a.begun = true
}

// answer records that a request is answered.
func (c *Core) answer(a *asking) {
	r := jobs.Record{Kind: jobs.KindRequest, Job: a.First, Request: a.Name, Count: a.did + a.Count, N: a.left}
	if r.Count == 0 {
		r.Reason = a.Refused
	}
	c.emit(r)
	c.cause = ""
}

// control carries out an event that is not about jobs.
func (c *Core) control(a *asking, ev Event) {
	why := ""
	switch e := ev.(type) {
	case Pause:
		why = c.pauseRun(e.On)
	case Drain:
		why = c.startDrain(e.Why)
	case EndDrain:
		why = c.endDrain(e)
	case Stop:
		why = c.stop(e.Why)
	case DrainHost:
		why = c.drainHost(e)
	case SetSlots:
		why = c.setSlots(e)
	case ChangeInventory:
		why = c.changeInventory(e)
	default:
		why = fmt.Sprintf("%T cannot be asked for", ev)
	}
	if why == "" {
		a.did++
	} else {
		a.Refused = cmp.Or(a.Refused, why)
	}
}

// carryOut does what was asked for jobs, so much of it that a step stays bounded.
func (c *Core) carryOut() {
	for budget := mostAStep; len(c.asked) > 0 && budget > 0; {
		a := c.asked[0]
		c.cause = a.Name
		c.announce(a)
		for a.at < len(a.Do) && budget > 0 && !c.editWaits() {
			budget -= c.advance(a, budget)
		}
		if a.at < len(a.Do) {
			break
		}
		c.asked = c.asked[1:]
		c.answer(a)
	}
	c.cause = ""
}

// editWaits says that the first request is to change jobs and must wait: see editJob.
func (c *Core) editWaits() bool {
	if c.reconcileBy == 0 || len(c.asked) == 0 {
		return false
	}
	a := c.asked[0]
	if a.at >= len(a.Do) {
		return false
	}
	_, edit := a.Do[a.at].(Edit)
	return edit
}

// advance does at most n jobs of the present event and returns how many it did.
func (c *Core) advance(a *asking, n int) int {
	var ids []jobs.ID
	switch e := a.Do[a.at].(type) {
	case Cancel:
		if e.All {
			e.Jobs = make([]jobs.ID, 0, len(c.table.Jobs))
			for i := range c.table.Jobs {
				e.Jobs = append(e.Jobs, jobs.ID(i+1))
			}
			e.All = false
			a.Do = slices.Clone(a.Do) // the caller's stays as it was
			a.Do[a.at] = e
		}
		ids = part(e.Jobs, a.next, n)
		for _, id := range c.unspared(a, ids) {
			j := c.table.Job(id)
			a.counted(j != nil && !j.State.Terminal())
			c.cancelJob(id, reasonOr(e.Why, "cancelled"))
		}
		a.forward(len(ids), len(e.Jobs))
	case Requeue:
		ids = part(e.Jobs, a.next, n)
		again := c.unspared(a, ids)
		for _, id := range again {
			j := c.table.Job(id)
			a.counted(j != nil && (j.State.Terminal() || c.cancelled(id)))
		}
		c.requeue(again)
		a.forward(len(ids), len(e.Jobs))
	case Edit:
		ids = part(e.Jobs, a.next, n)
		c.edit(&Edit{c.unspared(a, ids), e.Change}, &a.changer, func(did bool) { a.counted(did) })
		a.forward(len(ids), len(e.Jobs))
	case SetPriority:
		ids = part(e.Jobs, a.next, n)
		for _, id := range ids {
			j := c.table.Job(id)
			open := j != nil && !j.State.Terminal()
			if a.counted(open); open {
				c.setPriority(SetPriority{[]jobs.ID{id}, e.Priority})
			}
		}
		a.forward(len(ids), len(e.Jobs))
	default:
		c.control(a, e)
		a.at++
	}
	return max(1, len(ids))
}

// unspared returns the jobs that the request does not spare, and counts the others as left
// alone.
func (c *Core) unspared(a *asking, ids []jobs.ID) []jobs.ID {
	if a.Spare == "" {
		return ids
	}
	return slices.DeleteFunc(slices.Clone(ids), func(id jobs.ID) bool {
		spared := a.Spare.has(c.table.Job(id))
		if spared {
			a.counted(false)
		}
		return spared
	})
}

func (s Spare) has(j *jobs.Job) bool {
	switch {
	case j == nil:
	case s == SpareSucceeded:
		return j.State == jobs.Succeeded
	case s == SpareStarted:
		return j.State == jobs.Running && slices.ContainsFunc(j.Attempts, func(t *jobs.Attempt) bool { return t.State == jobs.AttemptRunning })
	}
	return false
}

func part(ids []jobs.ID, from, n int) []jobs.ID { return ids[from:min(len(ids), from+n)] }

func (a *asking) counted(did bool) {
	if did {
		a.did++
	} else {
		a.left++
	}
}

func (a *asking) forward(n, of int) {
	if a.next += n; a.next >= of {
		a.at, a.next = a.at+1, 0
	}
}
