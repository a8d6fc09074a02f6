package inbox

import (
	"dcs-tui/dispatch/sched"
	"dcs-tui/jobs"
	"dcs-tui/jobs/rundir"
)

// events maps each kind of request to the events of the core that carry it out. A new
// kind needs an entry here and one in the table of package rundir. total is the number of
// jobs of the run.
var events = map[string]func(q *rundir.Request, total jobs.ID) []sched.Event{
	rundir.DoCancel: func(q *rundir.Request, total jobs.ID) []sched.Event {
		return []sched.Event{sched.Cancel{Jobs: q.Jobs.IDs(total), All: q.All, Why: reason(q, "cancelled by a person")}}
	},
	rundir.DoRequeue: func(q *rundir.Request, total jobs.ID) []sched.Event {
		return []sched.Event{sched.Requeue{Jobs: q.Jobs.IDs(total)}}
	},
	rundir.DoPriority: func(q *rundir.Request, total jobs.ID) []sched.Event {
		return []sched.Event{sched.SetPriority{Jobs: q.Jobs.IDs(total), Priority: q.Priority}}
	},
	rundir.DoEdit: func(q *rundir.Request, total jobs.ID) []sched.Event {
		return []sched.Event{sched.Edit{Jobs: q.Jobs.IDs(total), Change: *q.Edit}}
	},
	rundir.DoSubmit: func(*rundir.Request, jobs.ID) []sched.Event { return nil }, // see submit
	rundir.DoPause:  func(*rundir.Request, jobs.ID) []sched.Event { return []sched.Event{sched.Pause{On: true}} },
	rundir.DoContinue: func(q *rundir.Request, _ jobs.ID) []sched.Event {
		return []sched.Event{sched.EndDrain{Why: reason(q, byPerson)}, sched.Pause{}}
	},
	rundir.DoDrainHost: func(q *rundir.Request, _ jobs.ID) []sched.Event {
		return []sched.Event{sched.DrainHost{Host: q.Host, On: true}}
	},
	rundir.DoStopHost: func(q *rundir.Request, _ jobs.ID) []sched.Event {
		return []sched.Event{sched.DrainHost{Host: q.Host, On: true, Now: true}}
	},
	rundir.DoUseHost: func(q *rundir.Request, _ jobs.ID) []sched.Event {
		return []sched.Event{sched.DrainHost{Host: q.Host}}
	},
	rundir.DoSlots: func(q *rundir.Request, _ jobs.ID) []sched.Event {
		return []sched.Event{sched.SetSlots{Host: q.Host, Slots: q.Number}}
	},
	rundir.DoAddHost: func(q *rundir.Request, _ jobs.ID) []sched.Event {
		return []sched.Event{sched.ChangeInventory{Host: q.Host, Change: jobs.HostAdded, Options: q.Options}}
	},
	rundir.DoRemoveHost: func(q *rundir.Request, _ jobs.ID) []sched.Event {
		return []sched.Event{sched.ChangeInventory{Host: q.Host, Change: jobs.HostRemoved}}
	},
	rundir.DoReloadHosts: func(*rundir.Request, jobs.ID) []sched.Event { return nil }, // see inventoryRefuses
	rundir.DoEndInput:    func(*rundir.Request, jobs.ID) []sched.Event { return nil }, // see prepare
	rundir.DoDrain: func(q *rundir.Request, _ jobs.ID) []sched.Event {
		return []sched.Event{sched.Drain{Why: reason(q, byPerson)}}
	},
	rundir.DoStop: func(q *rundir.Request, _ jobs.ID) []sched.Event {
		return []sched.Event{sched.Stop{Why: reason(q, byPerson)}}
	},
}

const byPerson = "asked for by a person"

// reason returns why something is asked for.
func reason(q *rundir.Request, otherwise string) string {
	switch {
	case q.Why != "":
		return q.Why
	case q.By != "" && q.Do != rundir.DoCancel: // the reason of a cancel becomes that of each job
		return "asked for by " + q.By
	}
	return otherwise
}
