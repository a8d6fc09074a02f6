package sched

import (
	"cmp"
	"errors"
	"fmt"
	"math"
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
// before, and what happened to a job in the meantime may be all that was wanted.
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
	at    int  // index into Do
	next  int  // index into the jobs of that event
	did   int  // open jobs (Cancel, SetPriority), terminal ones (Requeue), changed ones (Edit), other events
	left  int  // the others, and those that do not exist
	all   bool // it cancels the whole run

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
	if a.all {
		r.How = jobs.CanceledAll
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

// editWaits reports whether the first request is to change jobs and must wait: see editJob.
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
			e.All, a.all = false, true
			a.Do = slices.Clone(a.Do) // the caller's stays as it was
			a.Do[a.at] = e
		}
		ids = part(e.Jobs, a.next, n)
		for _, id := range c.unspared(a, ids) {
			j := c.table.Job(id)
			a.counted(j != nil && !j.State.Terminal())
			c.cancelJob(id, reasonOr(e.Why, "canceled"))
		}
		a.forward(len(ids), len(e.Jobs))
	case Requeue:
		ids = part(e.Jobs, a.next, n)
		again := c.unspared(a, ids)
		for _, id := range again {
			j := c.table.Job(id)
			a.counted(j != nil && (j.State.Terminal() || c.canceled(id)))
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

// cancel ends jobs. A queued one is over at once; one with open attempts is
// over when they are, and stays marked until then, through lost links as well.
func (c *Core) cancel(e Cancel) {
	why := reasonOr(e.Why, "canceled")
	if e.All {
		c.sweep = sweep{from: 1, to: jobs.ID(len(c.table.Jobs)), why: why}
		return
	}
	for _, id := range e.Jobs {
		c.cancelJob(id, why)
	}
}

// mostAStep bounds the records of one step: a million at once would take more
// memory than a million queued jobs do.
const mostAStep = 20_000

// sweep is a cancel of all jobs that there were, some of them each step. Nothing
// is launched until it is through.
type sweep struct {
	from, to jobs.ID // still to do; none when from > to or to is 0
	why      string
}

func (s *sweep) pending() bool { return s.to > 0 && s.from <= s.to }

func (c *Core) cancelSome() {
	s := &c.sweep
	for n := 0; s.pending() && n < mostAStep; n++ {
		c.cancelJob(s.from, s.why)
		s.from++
	}
}

func (c *Core) cancelJob(id jobs.ID, why string) {
	j := c.table.Job(id)
	delete(c.again, id)
	if j == nil || j.State.Terminal() || c.canceled(id) {
		return
	}
	if j.State == jobs.Queued {
		c.emit(jobs.Record{Kind: jobs.KindJob, Job: id, Next: jobs.Canceled, Reason: why})
		return
	}
	if !c.emit(jobs.Record{Kind: jobs.KindCanceling, Job: id, Reason: why}) {
		return
	}
	for _, a := range j.Attempts {
		if f := c.flights[a.ID]; f != nil {
			c.killFlight(f, why)
		}
	}
}

// canceled reports whether a cancel of the job waits for an attempt to end.
func (c *Core) canceled(id jobs.ID) bool {
	_, ok := c.table.Cancels[id]
	return ok
}

// requeue opens a new round for terminal jobs. One that is being ended begins it when it
// is over.
func (c *Core) requeue(ids []jobs.ID) {
	c.atOnce(func() {
		for _, id := range ids {
			j := c.table.Job(id)
			if j != nil && c.canceled(id) && !j.State.Terminal() {
				c.again[id] = true
			}
			if j != nil && j.State.Terminal() {
				c.finished = c.finished && c.drain != ""
				c.emit(jobs.Record{Kind: jobs.KindRound, Job: id, Reason: "requeued"})
			}
		}
	})
}

func (c *Core) setPriority(e SetPriority) {
	p := min(max(e.Priority, math.MinInt32), math.MaxInt32)
	for _, id := range e.Jobs {
		j := c.table.Job(id)
		if j != nil && int(j.Priority) != p {
			c.emit(jobs.Record{Kind: jobs.KindPriority, Job: id, Priority: p})
		}
	}
}

// revives reports whether a person wants a job again that is still being ended, and opens its
// next round now that it has ended.
func (c *Core) revives(id jobs.ID) bool {
	if !c.again[id] {
		return false
	}
	delete(c.again, id)
	if c.table.Job(id).State != jobs.Canceled {
		return false
	}
	return c.emit(jobs.Record{Kind: jobs.KindRound, Job: id, Reason: "requeued"})
}

// Edit changes jobs: a queued one is changed, with all its tries again;
// one that is over is changed and begins a new round; one that runs, or of which an
// attempt may be alive, is left alone.
type Edit struct {
	Jobs   []jobs.ID
	Change jobs.Change
}

func (Edit) event() {}

// edit tells counted, if that is not nil, of each job whether it was changed.
func (c *Core) edit(e *Edit, by *jobs.Changer, counted func(bool)) {
	var wrong error // the first reason for leaving a job alone that a person should hear of
	c.atOnce(func() {
		for _, id := range e.Jobs {
			did, err := c.editJob(id, &e.Change, by)
			if wrong == nil {
				wrong = err
			}
			if counted != nil {
				counted(did)
			}
		}
	})
	if wrong != nil {
		c.say("", 0, "not changed: %v", wrong)
	}
}

func (c *Core) editJob(id jobs.ID, change *jobs.Change, by *jobs.Changer) (bool, error) {
	j := c.table.Job(id)
	switch {
	case j == nil || !c.editable(j):
		return false, nil
	case c.reconcileBy > 0: // what is found would count, whatever it ran
		return false, errors.New("the hosts have not listed their attempts of this run yet; try again in a moment")
	}
	s, err := by.Apply(change, j.Spec)
	if err != nil {
		return false, err
	}
	over, round := j.State.Terminal(), int(j.Round)
	if over {
		round++
	}
	if !over && s.Same(j.Spec) {
		return true, nil // asked for twice
	}
	c.queue.edits = true
	if !c.emit(jobs.Record{Kind: jobs.KindEdited, Job: id, Spec: s, Count: round, Reason: "edited"}) {
		return false, nil
	}
	if over {
		c.finished = c.finished && c.drain != ""
	}
	return true, nil
}

// editable reports whether nothing of the job is alive as far as we know.
func (c *Core) editable(j *jobs.Job) bool {
	return j.State != jobs.Running && !otherOpen(j, 0)
}

// atOnce queues what do makes ready only when all of it is known, so that a job and
// the one it comes after may be named in any order.
func (c *Core) atOnce(do func()) {
	c.settle()
	c.holding = true
	do()
	c.holding = false
	slices.Sort(c.held)
	for _, id := range c.held {
		c.enqueue(id)
	}
	c.held = c.held[:0]
	if c.last {
		c.refuseImpossibleOrder()
	}
}
