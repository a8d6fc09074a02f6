package standing

import (
	"time"

	"dcs-tui/jobs"
	"dcs-tui/jobs/rundir"
	"dcs-tui/jobs/runview"
)

// statusJSON is what `status --json` prints.
type statusJSON struct {
	V       int               `json:"v"`
	Run     string            `json:"run"`
	UID     string            `json:"uid"`
	Dir     string            `json:"dir"`
	Created time.Time         `json:"created"`
	Owner   *string           `json:"owner"` // null when nobody dispatches it
	Epoch   int               `json:"epoch"`
	Jobs    map[string]int    `json:"jobs"` // by state
	Total   int               `json:"total"`
	Handed  int               `json:"handed_over"` // of the running ones, those not known to have started
	Hosts   []hostCount       `json:"hosts"`
	Queues  []*queueCount     `json:"queues"`
	Ended   bool              `json:"ended"`
	Problem string            `json:"problem,omitempty"`  // what keeps its dispatcher from launching
	Asked   int               `json:"requests,omitempty"` // that wait for a dispatcher
	Input   rundir.InputState `json:"input,omitempty"`    // open, done or bad; of a run whose jobs come from standard input
}

// JSON is what `status --json` prints of it.
func (l *Look) JSON() statusJSON {
	s := statusJSON{
		V: 1, Run: l.Run.Name(), UID: l.Run.UID(), Dir: l.Run.Dir, Created: l.Run.Asked.Created, Epoch: l.Table.Epoch,
		Jobs: map[string]int{}, Total: len(l.Table.Jobs), Handed: runview.HandedOver(l.Table), Hosts: l.hosts(), Queues: queuesIn(l.Table), Ended: l.Table.Ended,
		Input: l.Input.State, Asked: l.Asked,
	}
	for st, n := range l.Table.Counts {
		s.Jobs[jobs.JobState(st).String()] = n
	}
	if l.Alive() {
		text := l.Owner.String()
		s.Owner, s.Problem = &text, l.Owner.Problem
	}
	return s
}
