package sched

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"dcs-tui/jobs"
	"dcs-tui/jobs/action"
)

// Request is an action that a person asks for, under a unique name. Every record that it causes
// carries that name. The last of them, of kind KindRequest, is the answer. If the same request is
// sent again, it is ignored if its answer is in the table. Otherwise it is carried out again, which
// has no further effect on the jobs that it has changed already. A request for very many jobs takes
// several Steps, and nothing is launched until it is answered.
type Request struct {
	Name    string
	Text    string  // what is asked and by whom, for the event log; "": no event
	Do      []Event // carried out in this order: events about jobs, and those that control handles
	Spare   action.Spare
	Epoch   int    // epoch of the dispatcher that the request is for; others refuse it; 0: any
	Refused string // why the request cannot be carried out; it is only answered then; "": it can

	First jobs.ID // first of the Count jobs that a Submit before this request added; 0: none
	Count int
}

// spares reports whether a request leaves a job alone, which may have changed since the person saw the
// run.
func (r *Request) spares(j *jobs.Job) bool {
	switch r.Spare {
	case action.SpareSucceeded:
		return j.State == jobs.Succeeded
	case action.SpareStarted: // those that are known to run
		return j.State == jobs.Running && slices.ContainsFunc(j.Attempts,
			func(a *jobs.Attempt) bool { return a.State == jobs.AttemptRunning })
	}
	return false
}

// Edit changes jobs. A queued job is changed and gets all its tries again. A finished job is
// changed and begins a new round. A job that runs, or that may have a live attempt, is left alone.
type Edit struct {
	Jobs   []jobs.ID
	Change jobs.Change
}

// pendingRequest is a request that is being carried out.
type pendingRequest struct {
	Request
	hasBegun     bool
	eventIndex   int  // index into Do
	jobIndex     int  // index into the jobs of that event
	numChanged   int  // number of jobs and other events on which the request had an effect
	numUnchanged int  // number of the others, and of jobs that do not exist
	cancelsAll   bool // it cancels the whole run

	changer jobs.Changer // one for all parts, so that options are shared
}

// namesJobs reports whether an event applies to jobs. Such an event may take several Steps.
func namesJobs(ev Event) bool {
	switch ev.(type) {
	case Cancel, Requeue, Edit, SetPriority:
		return true
	}
	return false
}

// apply accepts a request unless it is known already.
func (r Request) apply(c *Core) {
	isSame := func(a *pendingRequest) bool { return a.Name == r.Name }
	if r.Name == "" || c.table.Requests[r.Name] || slices.ContainsFunc(c.requests, isSame) {
		return
	}
	if r.Epoch != 0 && r.Epoch != c.table.Epoch {
		r.Refused = cmp.Or(r.Refused,
			fmt.Sprintf("it is for the dispatcher of epoch %d, and this is epoch %d", r.Epoch, c.table.Epoch))
	}
	if r.Refused != "" {
		r.Do, r.First, r.Count = nil, 0, 0
	}
	c.startRequest(&pendingRequest{Request: r})
}

func (e Cancel) apply(c *Core)          { c.startUnnamed(e) }
func (e Requeue) apply(c *Core)         { c.startUnnamed(e) }
func (e Edit) apply(c *Core)            { c.startUnnamed(e) }
func (e SetPriority) apply(c *Core)     { c.startUnnamed(e) }
func (e Pause) apply(c *Core)           { c.startUnnamed(e) }
func (e Drain) apply(c *Core)           { c.startUnnamed(e) }
func (e EndDrain) apply(c *Core)        { c.startUnnamed(e) }
func (e Stop) apply(c *Core)            { c.startUnnamed(e) }
func (e DrainHost) apply(c *Core)       { c.startUnnamed(e) }
func (e SetSlots) apply(c *Core)        { c.startUnnamed(e) }
func (e ChangeInventory) apply(c *Core) { c.startUnnamed(e) }

// startUnnamed carries out an event that no Request contains.
func (c *Core) startUnnamed(ev Event) {
	c.startRequest(&pendingRequest{Request: Request{Do: []Event{ev}}})
}

// startRequest carries a request out, or queues it if it names jobs. A pause or a stop thus does
// not wait for earlier requests.
func (c *Core) startRequest(a *pendingRequest) {
	if slices.ContainsFunc(a.Do, namesJobs) {
		c.requests = append(c.requests, a)
		return
	}
	c.announce(a)
	for _, ev := range a.Do {
		c.carryOutControl(a, ev)
	}
	c.answer(a)
}

// announce makes a request the cause of the following records, and reports it once.
func (c *Core) announce(a *pendingRequest) {
	c.cause = a.Name
	if !a.hasBegun && a.Text != "" {
		c.logf("", 0, "%s", a.Text)
	}
	a.hasBegun = true
}

// answer records that a request has been carried out. Events without a name are not answered.
func (c *Core) answer(a *pendingRequest) {
	if a.Name != "" {
		r := jobs.Record{Kind: jobs.KindRequest, Job: a.First, Request: a.Name, Count: a.numChanged + a.Count,
			N: a.numUnchanged}
		if r.Count == 0 {
			r.Reason = a.Refused
		}
		if a.cancelsAll {
			r.How = jobs.CanceledAll
		}
		c.emit(r)
	}
	c.cause = ""
}

// controlEvent is a request about a host or the whole run.
type controlEvent interface {
	// carryOut returns the reason if it has no effect, or "".
	carryOut(c *Core) (refused string)
}

// carryOutControl carries out an event that does not name jobs.
func (c *Core) carryOutControl(a *pendingRequest, ev Event) {
	refused := ""
	if x, ok := ev.(controlEvent); ok {
		refused = x.carryOut(c)
	} else {
		refused = fmt.Sprintf("%T cannot be asked for", ev)
	}
	if refused == "" {
		a.numChanged++
	} else {
		a.Refused = cmp.Or(a.Refused, refused)
	}
}

// maxPerStep bounds the number of jobs that one Step changes for requests, because the records of a
// million jobs would take more memory than the jobs.
const maxPerStep = 20_000

// PendingRequests returns the number of requests that are not carried out yet. Until they are, no
// job is launched, skipped, or stopped for its hardness.
func (c *Core) PendingRequests() int { return len(c.requests) }

// continueRequests continues the pending requests, for at most maxPerStep jobs.
func (c *Core) continueRequests() {
	for budget := maxPerStep; len(c.requests) > 0 && budget > 0; {
		a := c.requests[0]
		c.announce(a)
		for a.eventIndex < len(a.Do) && budget > 0 && !c.mustDelayRequest() {
			budget -= c.advance(a, budget)
		}
		if a.eventIndex < len(a.Do) {
			break
		}
		c.requests = c.requests[1:]
		c.answer(a)
	}
	c.cause = ""
}

// DelayRequests sets whether requests for jobs wait, because many records are not durable yet.
func (c *Core) DelayRequests(delay bool) { c.requestsDelayed = delay }

// mustDelayRequest reports whether the first request must wait, for DelayRequests, or because its next
// event is an Edit and the hosts have not listed their attempts. An attempt of the old specification
// that is found later would count.
func (c *Core) mustDelayRequest() bool {
	if c.requestsDelayed || c.reconcileUntil == 0 || len(c.requests) == 0 {
		return c.requestsDelayed
	}
	a := c.requests[0]
	if a.eventIndex >= len(a.Do) {
		return false
	}
	_, isEdit := a.Do[a.eventIndex].(Edit)
	return isEdit
}

// advance carries out the current event of a request for at most n jobs and returns for how many.
func (c *Core) advance(a *pendingRequest, n int) int {
	var ids []jobs.ID
	var do func(id jobs.ID, j *jobs.Job) bool // reports whether it has an effect
	// The first reason why a job cannot be edited as requested.
	var invalid error
	switch e := a.Do[a.eventIndex].(type) {
	case Cancel:
		if e.All {
			e.Jobs, e.All, a.cancelsAll = make([]jobs.ID, c.table.NumJobs()), false, true
			for i := range e.Jobs {
				e.Jobs[i] = jobs.ID(i + 1)
			}
			a.Do = slices.Clone(a.Do) // the caller's slice stays as it was
			a.Do[a.eventIndex] = e
		}
		ids, do = e.Jobs, func(id jobs.ID, j *jobs.Job) bool {
			return c.cancelJob(id, j, cmp.Or(e.Why, "canceled"), e.ReasonKind)
		}
	case Requeue:
		ids, do = e.Jobs, c.requeueJob
	case SetPriority:
		ids, do = e.Jobs, func(id jobs.ID, j *jobs.Job) bool { return c.setPriority(id, j, e) }
	case Edit:
		ids, do = e.Jobs, func(id jobs.ID, j *jobs.Job) bool {
			did, err := c.editJob(id, j, &e.Change, &a.changer)
			invalid = cmp.Or(invalid, err)
			return did
		}
	default:
		c.carryOutControl(a, e)
		a.eventIndex++
		return 1
	}
	ids = ids[a.jobIndex:]
	part := ids[:min(len(ids), n)]
	c.asBatch(func() {
		for _, id := range part {
			if j := c.table.Job(id); j != nil && !a.spares(j) && do(id, j) {
				a.numChanged++
			} else {
				a.numUnchanged++
			}
		}
	})
	if invalid != nil {
		c.logf("", 0, "not changed: %v", invalid)
	}
	a.jobIndex += len(part)
	if len(part) == len(ids) {
		a.eventIndex, a.jobIndex = a.eventIndex+1, 0
	}
	return max(1, len(part))
}

// cancelJob cancels a job, and reports whether it was open. A queued job ends immediately. A job
// with open attempts ends when those do, and stays marked until then.
func (c *Core) cancelJob(id jobs.ID, j *jobs.Job, why string, kind jobs.ReasonKind) bool {
	switch {
	case j.State.Terminal():
		return false
	case c.isCancelPending(id) && !c.table.Requeues[id]:
		return true
	case j.State == jobs.Queued:
		c.emit(jobs.Record{Kind: jobs.KindJob, Job: id, Next: jobs.Canceled, Reason: why, How: string(kind)})
		return true
	}
	if c.emit(jobs.Record{Kind: jobs.KindCanceling, Job: id, Reason: why, How: string(kind)}) {
		for _, a := range j.Attempts {
			if f := c.inFlight[a.ID]; f != nil {
				c.killAttempt(f, why)
			}
		}
	}
	return true
}

// isCancelPending reports whether a cancel of the job waits for an attempt to end.
func (c *Core) isCancelPending(id jobs.ID) bool {
	_, ok := c.table.Cancels[id]
	return ok
}

// requeueJob opens the next round of a finished job. For a job that is being canceled, it does so
// when the job has ended. A job that waits for silent hosts waits no longer. It reports whether the
// job is one of these.
func (c *Core) requeueJob(id jobs.ID, j *jobs.Job) bool {
	switch {
	case j.State.Terminal():
		c.finished = false
		c.emit(jobs.Record{Kind: jobs.KindRound, Job: id, Reason: "requeued"})
		return true
	case c.isCancelPending(id):
		if !c.table.Requeues[id] {
			c.emit(jobs.Record{Kind: jobs.KindCanceling, Job: id, How: jobs.ThenRequeue})
		}
		return true
	}
	return c.abandonJob(j)
}

// reopenIfRequested opens the next round of a job that has just ended, if that was requested while
// it was being canceled. It reports whether it did.
func (c *Core) reopenIfRequested(id jobs.ID) bool {
	return c.table.Requeues[id] && c.table.Job(id).State == jobs.Canceled &&
		c.emit(jobs.Record{Kind: jobs.KindRound, Job: id, Reason: "requeued"})
}

// setPriority changes the priority of an open job, and reports whether the job is open. It adds a
// relative change once, even if an earlier dispatcher has carried out a part of the request.
func (c *Core) setPriority(id jobs.ID, j *jobs.Job, e SetPriority) bool {
	switch {
	case j.State.Terminal():
		return false
	case e.Relative && c.table.Adjusted[c.cause].Has(id):
		return true
	}
	p := e.Priority
	if e.Relative {
		p += int(j.Priority)
	}
	p = min(max(p, math.MinInt32), math.MaxInt32)
	if int(j.Priority) != p {
		c.emit(jobs.Record{Kind: jobs.KindPriority, Job: id, Priority: p})
	}
	return true
}

// editJob changes a job. It reports whether it did, or the job already has the requested values.
// The error explains to people why the change is not valid for this job.
func (c *Core) editJob(id jobs.ID, j *jobs.Job, change *jobs.Change, by *jobs.Changer) (bool, error) {
	if j.State == jobs.Running || hasOtherOpen(j, 0) { // an attempt may be alive
		return false, nil
	}
	s, err := by.Apply(change, j.Spec)
	if err != nil {
		return false, err
	}
	isFinished, round := j.State.Terminal(), int(j.Round)
	if isFinished {
		round++
	} else if s.Equal(j.Spec) {
		return true, nil // requested twice
	}
	c.queue.hasStaleEntries = true
	if !c.emit(jobs.Record{Kind: jobs.KindEdited, Job: id, Spec: s, Count: round, Reason: "edited"}) {
		return false, nil
	}
	if isFinished {
		c.finished = false
	}
	return true, nil
}

// asBatch calls do, and queues the jobs that do makes ready only after it returns. A job and its
// dependencies may thus be changed in any order.
func (c *Core) asBatch(do func()) {
	c.handleDependents()
	c.deferring = true
	do()
	c.deferring = false
	slices.Sort(c.deferred)
	for _, id := range c.deferred {
		c.enqueue(id)
	}
	c.deferred = c.deferred[:0]
	if c.allSubmitted {
		c.failImpossibleDependencies()
	}
}
