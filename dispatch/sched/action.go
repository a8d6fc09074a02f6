package sched

import (
	"dcs-tui/jobs"
	"dcs-tui/jobs/action"
)

// RequestFor returns the core's request for q, under a name. Actions that the core does not carry out
// have no events: action.Submit, action.EndInput, and action.ReloadHosts. total is the number of jobs
// of the run.
func RequestFor(name string, q *action.Request, total jobs.ID) Request {
	return Request{Name: name, Text: q.Text(), Spare: q.Spare, Epoch: q.Epoch, Do: eventsFor(q, q.Jobs.IDs(total))}
}

// eventsFor returns the events that carry out a request for these jobs.
func eventsFor(q *action.Request, which []jobs.ID) []Event {
	switch q.Do {
	case action.Cancel:
		return []Event{Cancel{Jobs: which, All: q.All, Why: q.Reason()}}
	case action.Requeue:
		return []Event{Requeue{which}}
	case action.Priority:
		return []Event{SetPriority{Jobs: which, Priority: q.Priority, Relative: q.Relative}}
	case action.Edit:
		return []Event{Edit{which, *q.Edit}}
	case action.Pause:
		return []Event{Pause{On: true}}
	case action.Continue:
		if q.ByFile {
			return []Event{EndDrain{OnlyByFile: true, Why: q.Reason()}}
		}
		return []Event{EndDrain{Why: q.Reason()}, Pause{}}
	case action.DrainHost:
		return []Event{DrainHost{Host: q.Host, On: true}}
	case action.StopHost:
		return []Event{DrainHost{Host: q.Host, On: true, Now: true}}
	case action.UseHost:
		return []Event{DrainHost{Host: q.Host}}
	case action.Slots:
		return []Event{SetSlots{Host: q.Host, Slots: q.Number, Relative: q.Relative}}
	case action.AddHost:
		return []Event{ChangeInventory{Host: q.Host, Change: jobs.HostAdded, Options: q.Options}}
	case action.RemoveHost:
		return []Event{ChangeInventory{Host: q.Host, Change: jobs.HostRemoved}}
	case action.DrainRun:
		cause := DrainAsked
		if q.ByFile {
			cause = DrainByFile
		}
		return []Event{Drain{Why: q.Reason(), Cause: cause}}
	case action.StopRun:
		return []Event{Stop{Why: q.Reason()}}
	}
	return nil
}
