package sim

import (
	"fmt"
	"slices"
	"time"

	"dcs-tui/dispatch/sched"
	"dcs-tui/jobs"
	"dcs-tui/jobs/action"
)

// people are the users, who submit jobs and change their minds.
type people struct {
	numEdits int
	canceled map[jobs.ID]bool // jobs that somebody asked to cancel
	requests []sched.Request
	removed  map[string]bool // requests whose files were removed, because their answers were durable
}

// recordCancel records the jobs of a cancel.
func (p *people) recordCancel(l *dispatcher, c sched.Cancel) {
	for _, id := range c.Jobs {
		p.canceled[id] = true
	}
	if c.All {
		for i := range l.core.Table().NumJobs() {
			p.canceled[jobs.ID(i+1)] = true
		}
	}
}

// hasCanceled reports whether somebody asked to cancel a job. A request to cancel all jobs is also
// about those that are accepted before it is carried out.
func (w *World) hasCanceled(id jobs.ID) bool {
	return w.people.canceled[id] || slices.ContainsFunc(w.people.requests, func(r sched.Request) bool {
		c, ok := r.Do[0].(sched.Cancel)
		return ok && c.All && !w.people.removed[r.Name]
	})
}

// feed submits the jobs in small batches, so that there is work while there are faults.
func (w *World) feed() {
	w.after(w.within(w.size.feedGap), func() {
		if l := w.owner(); l != nil {
			w.feedRest(l)
		}
		w.feed()
	})
}

// feedRest submits the jobs that are stored but not accepted, and some new ones. The last call
// announces that no more will come.
func (w *World) feedRest(l *dispatcher) {
	l.enqueue(func() {
		t := l.core.Table()
		var rest []*jobs.Spec
		for id := jobs.ID(t.NumJobs() + 1); int(id) <= t.NumSpecs(); id++ {
			rest = append(rest, t.Spec(id))
		}
		if len(rest) > 0 {
			l.step(sched.Submit{Specs: rest})
		}
		stored := t.NumSpecs()
		n := min(len(w.specs)-stored, 1+w.choices.Draw(3))
		if w.faultsAreOver() || w.blame != nil {
			n = len(w.specs) - stored
		}
		if n > 0 {
			fresh := w.specs[stored : stored+n]
			if err := l.run.AppendSpecs(fresh); err != nil {
				w.logf("%d jobs could not be stored: %v", n, err)
				return
			}
			w.numSubmitted = stored + n
			l.step(sched.Submit{Specs: fresh})
		}
		if w.faultsAreOver() && !l.allSubmitted && t.NumJobs() == len(w.specs) {
			l.allSubmitted = true
			l.step(sched.Submit{Last: true})
		}
	})
}

// someJobs returns one to three of the existing jobs.
func (w *World) someJobs(l *dispatcher) []jobs.ID {
	n := l.core.Table().NumJobs()
	if n == 0 {
		return nil
	}
	ids := []jobs.ID{jobs.ID(1 + w.choices.Draw(n))}
	for range w.choices.Draw(3) {
		ids = append(ids, jobs.ID(1+w.choices.Draw(n)))
	}
	return ids
}

// asks makes a fault of a request: the events that do returns. Without any, it is not possible now.
func asks(do func(w *World, l *dispatcher) []sched.Event) func(*World) bool {
	return onDispatcher(func(w *World, l *dispatcher) bool {
		r := sched.Request{Text: "asked for", Do: do(w, l)}
		if len(r.Do) == 0 {
			return false
		}
		switch r.Do[0].(type) {
		case sched.Drain, sched.Stop: // of this dispatcher, or of an earlier one
			r.Epoch = max(1, l.epoch-w.choices.Draw(3)/2)
		default:
			r.Spare = spareChoices[len(w.people.requests)%len(spareChoices)]
		}
		w.leaveRequest(l, r)
		return true
	})
}

var spareChoices = []action.Spare{action.SpareNone, action.SpareSucceeded, action.SpareStarted}

// leaveRequest names a request and leaves it in the run directory. Every dispatcher gets it until the
// journal records its answer.
func (w *World) leaveRequest(l *dispatcher, r sched.Request) {
	r.Name = fmt.Sprintf("request%d", len(w.people.requests)+1)
	w.people.requests = append(w.people.requests, r)
	w.readRequests(l)
	if w.choices.OneIn(4) {
		w.readRequests(l)
	}
}

// jobActions are the requests about jobs. There is a job.
var jobActions = []func(w *World, l *dispatcher) sched.Event{
	func(w *World, l *dispatcher) sched.Event {
		ids := w.someJobs(l)
		if w.choices.OneIn(3) { // and the person wants them after all
			w.after(w.between(0, 3*time.Second), func() {
				if !l.leaving { // a leaving dispatcher would answer that it is too late
					l.queueReport(sched.Requeue{Jobs: ids})
				}
			})
		}
		return sched.Cancel{Jobs: ids, Why: "by a person"}
	},
	func(w *World, l *dispatcher) sched.Event { return sched.Requeue{Jobs: w.someJobs(l)} },
	func(w *World, l *dispatcher) sched.Event {
		return sched.SetPriority{Jobs: w.someJobs(l), Priority: w.choices.Draw(5) - 2}
	},
	func(w *World, l *dispatcher) sched.Event {
		ids := w.someJobs(l)
		// Jobs whose attempts were given up are those where a mistake is most likely.
		for j := range l.core.Table().Rows() {
			if j.State == jobs.Queued && len(j.Attempts) > 0 && w.choices.OneIn(2) {
				ids = append(ids, j.Spec.ID)
			}
		}
		return sched.Edit{Jobs: ids, Change: w.someChange()}
	},
}

// changeJobs asks for one or two actions on jobs, of a kind each.
func changeJobs(w *World, l *dispatcher) (do []sched.Event) {
	for n := 1 + w.choices.Draw(5)/4; n > 0 && l.core.Table().NumJobs() > 0; n-- {
		do = append(do, jobActions[w.choices.Draw(len(jobActions))](w, l))
	}
	return do
}

func cancelAll(w *World, _ *dispatcher) []sched.Event {
	if w.choices.Draw(3) > 0 {
		return nil
	}
	return []sched.Event{sched.Cancel{All: true}}
}

func stopRun(*World, *dispatcher) []sched.Event { return []sched.Event{sched.Stop{Why: "by a person"}} }

// drainRun drains the run. Every second time, a person cancels the drain later, unless the run has
// ended by then.
func drainRun(w *World, l *dispatcher) []sched.Event {
	if w.choices.Draw(2) == 0 {
		w.after(w.between(time.Second, 40*time.Second), func() { l.queueReport(sched.EndDrain{Why: "by a person"}) })
	}
	return []sched.Event{sched.Drain{Why: "by a person"}}
}

// What people ask of hosts, and a pause, remain in force when dispatchers die, until people take them
// back.

func pauseRun(w *World, _ *dispatcher) []sched.Event {
	if w.choices.Draw(4) == 0 {
		return []sched.Event{sched.EndDrain{Why: "by a person"}, sched.Pause{}}
	}
	w.withdrawLater(sched.Pause{}, func(t *jobs.Table) bool { return !t.Paused })
	return []sched.Event{sched.Pause{On: true}}
}

func drainHost(w *World, _ *dispatcher) []sched.Event {
	name, now := w.anyHost().name, w.choices.Draw(2) == 1
	w.withdrawLater(sched.DrainHost{Host: name}, func(t *jobs.Table) bool { return t.Hosts[name].Use == jobs.HostUsed })
	return []sched.Event{sched.DrainHost{Host: name, On: w.choices.Draw(5) > 0, Now: now}}
}

// setSlots overrides a host's slots for a time.
func setSlots(w *World, _ *dispatcher) []sched.Event {
	name, n := w.anyHost().name, 1+w.choices.Draw(8)
	w.withdrawLater(sched.SetSlots{Host: name}, func(t *jobs.Table) bool { return t.Hosts[name].Slots == 0 })
	return []sched.Event{sched.SetSlots{Host: name, Slots: n}}
}

// withdrawLater tells the current dispatcher to withdraw a setting. It repeats this until neither
// the dispatcher nor the journal has the setting. It keeps checking, because the next dispatcher
// may find a record of the setting that was never durable, and damage may destroy the record that
// took it back.
func (w *World) withdrawLater(ev sched.Event, gone func(*jobs.Table) bool) {
	var withdraw func()
	withdraw = func() {
		again := 5 * time.Second
		if l := w.runningDispatcher(); l != nil && l.epoch == w.ledger.epoch && gone(l.core.Table()) &&
			gone(w.ledger.table) {
			again = time.Minute
		} else if l != nil {
			l.queueReport(ev)
		}
		w.after(again, withdraw)
	}
	w.after(w.between(time.Second, 90*time.Second), withdraw)
}

// someChange returns a change that suits every job, or now and then one that no host can run.
func (w *World) someChange() jobs.Change {
	w.people.numEdits++
	c := jobs.Change{Command: new(fmt.Sprintf("true %d", w.people.numEdits))}
	switch w.choices.Draw(6) {
	case 0:
		c.Tries = new(1 + w.choices.Draw(3))
	case 1:
		c.Slots, c.GPUs, c.Tags = new(1), new(jobs.GPUs(0)), new([]string(nil))
	case 2:
		c.Slots = new(1 + w.choices.Draw(3))
	case 3:
		c.Timeout = new(time.Duration(w.choices.Draw(3)) * 10 * time.Second)
	case 4:
		c.Tags = new([]string{"big"})
	}
	return c
}

// applyAnswer applies the durable answer to a request. It checks that there is only one, and that a
// request for another dispatcher is refused.
func (w *World) applyAnswer(r *jobs.Record) {
	g := &w.ledger
	g.requests[r.Request]++
	w.people.removed[r.Request] = true
	if g.requests[r.Request] > 1 {
		w.fail(RequestsOnce, "%s is taken in again", r.Request)
	}
	for _, q := range w.people.requests {
		if q.Name == r.Request && q.Epoch != 0 && q.Epoch != g.epoch && (r.Count > 0 || r.Reason == "") {
			w.fail(RequestsExpire, "%s is for epoch %d and is carried out in epoch %d", r.Request, q.Epoch, g.epoch)
		}
		if q.Name == r.Request && q.Epoch == 0 && r.Count > 0 && w.isKept(&q) && g.caused[r.Request] != 1 &&
			!w.damaged {
			w.fail(RequestsOnce, "%s is carried out, and %d records say what it did", r.Request, g.caused[r.Request])
		}
	}
}

// countCaused counts the records with which a request changes lasting state.
func (w *World) countCaused(r *jobs.Record) {
	if r.Request == "" {
		return
	}
	g := &w.ledger
	g.caused[r.Request]++
	if g.caused[r.Request] > 1 && !w.damaged {
		w.fail(RequestsOnce, "%s changes twice what it asks for: %s", r.Request, r.Kind)
	}
}

// isKept reports whether a request is about a host or a pause, both of which the journal keeps.
func (w *World) isKept(q *sched.Request) bool {
	switch q.Do[0].(type) {
	case sched.Pause, sched.DrainHost, sched.SetSlots:
		return true
	}
	return false
}

// readRequests sends a dispatcher the requests in the run directory that are not answered yet.
func (w *World) readRequests(l *dispatcher) {
	for _, r := range w.people.requests {
		if !w.people.removed[r.Name] {
			l.queueReport(r)
		}
	}
}

// applyHostSetting applies the durable record of a setting without jobs.Fold.
func (w *World) applyHostSetting(r *jobs.Record) {
	w.ledger.hostSettings[r.Host] = jobs.HostSetting{Use: jobs.HostUse(r.Count), Slots: int32(r.Slot)}
	w.ledger.hostSettingChanged = true
}

// inheritRequests initializes a dispatcher's state from what people asked of hosts before.
func (l *dispatcher) inheritRequests() {
	l.drained, l.slotsByPeople = map[string]bool{}, map[string]int{}
	for name, setting := range l.w.ledger.hostSettings {
		l.drained[name] = setting.Use != jobs.HostUsed
		if setting.Slots > 0 {
			l.slotsByPeople[name] = int(setting.Slots)
		}
	}
	l.pausedByPeople = l.w.ledger.paused
	l.w.ledger.hostSettingChanged = true
}

// noteHostRequest records what people ask of hosts.
func (l *dispatcher) noteHostRequest(ev sched.Event) {
	known := func(name string) bool { // a request about an unknown host is refused
		return l.isHost(name) && slices.ContainsFunc(l.core.Hosts(),
			func(h sched.HostView) bool { return h.Name == name })
	}
	switch ev := ev.(type) {
	case sched.SetSlots:
		if !known(ev.Host) {
			return
		}
		l.slotsByPeople[ev.Host] = ev.Slots
		l.w.maxGivenSlots[ev.Host] = max(l.w.maxGivenSlots[ev.Host], ev.Slots)
	case sched.DrainHost:
		if !known(ev.Host) {
			return
		}
		l.drained[ev.Host] = ev.On
	}
}

// checkHostSettings compares the core's state of its hosts with what people asked for according to
// the journal. It does so after each change and when a dispatcher begins.
func (w *World) checkHostSettings(l *dispatcher) {
	g := &w.ledger
	if !g.hostSettingChanged {
		return
	}
	g.hostSettingChanged = false
	for _, v := range l.core.Hosts() {
		if !l.isHost(v.Name) {
			continue
		}
		if want := g.hostSettings[v.Name]; v.Asked != want {
			w.fail(HostSettingsHold, "%s: %+v, and it was asked for %+v", v.Name, v.Asked, want)
		}
	}
}
