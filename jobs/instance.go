package jobs

import (
	"fmt"
	"time"
)

// Instance is a host that a provider created for the run.
type Instance struct {
	Provider string
	State    InstanceState
	Created  Stamp // when its creation was recorded
	Up       Stamp // when it first answered; 0: never
	Gone     Stamp // 0: it may exist
}

// InstanceState is how far an instance has come, in Record.How.
type InstanceState string

// The states of an instance. Each is recorded before what it says is done.
const (
	InstanceCreating    InstanceState = "creating"    // the create command is about to run, or has run
	InstanceUp          InstanceState = "up"          // it has answered
	InstanceTerminating InstanceState = "terminating" // the terminate command is about to run, or has run
	InstanceGone        InstanceState = "gone"        // it does not exist any more, or never did
)

// Lasted returns how long the instance has existed, as far as is known.
func (i Instance) Lasted(now Stamp) time.Duration {
	if i.Gone != 0 {
		now = i.Gone
	}
	return max(0, now.Sub(i.Created))
}

// instance applies a record of an instance. A name is never used twice, but an instance
// that was taken for gone may be found again.
func (t *Table) instance(r *Record) error {
	i, known := t.Instances[r.Host]
	state := InstanceState(r.How)
	switch {
	case r.Host == "":
		return fmt.Errorf("an instance without a name is %q", r.How)
	case known != (state != InstanceCreating), state == InstanceUp && i.State != InstanceCreating && i.State != InstanceGone, state == InstanceGone && i.State == InstanceGone:
		return fmt.Errorf("the instance %s is %q and cannot become %q", r.Host, i.State, r.How)
	}
	switch i.State = state; state {
	case InstanceCreating:
		i.Provider, i.Created = r.Reason, r.At
	case InstanceUp:
		i.Gone = 0
		if i.Up == 0 {
			i.Up = r.At
		}
	case InstanceTerminating:
		i.Gone = 0
	case InstanceGone:
		i.Gone = r.At
	default:
		return fmt.Errorf("no instance is %q", r.How)
	}
	if t.Instances == nil {
		t.Instances = map[string]Instance{}
	}
	t.Instances[r.Host] = i
	return nil
}

// InstanceText describes a record of an instance in a sentence.
func (r *Record) InstanceText() string {
	text := "the instance " + r.Host
	switch InstanceState(r.How) {
	case InstanceCreating:
		return text + " of provider " + r.Reason + " is being created"
	case InstanceTerminating:
		text += " is being terminated"
	default:
		text += " is " + r.How
	}
	if r.Reason != "" {
		text += ": " + r.Reason
	}
	return text
}
