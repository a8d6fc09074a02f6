package rundir

import (
	"errors"
	"fmt"
	"io/fs"

	"dcs-tui/jobs"
)

// Effect is what becomes of a request. The variable kinds declares it for each kind of request.
type Effect uint8

// The effects. Nothing is written for a request that IsRefused or IsFulfilled.
const (
	// The dispatcher carries the request out. Without one, the program that makes the request takes
	// the run over to do that.
	IsCarriedOut Effect = iota
	IsLeft              // it waits in the run directory for the next resume
	IsFulfilled         // what it asks for is so already
	IsRefused           // it could do nothing
)

// Target is the state of the run that a request is for.
type Target struct {
	IsDispatched bool // somebody dispatches the run
	// Nobody does, all jobs have ended, and neither the input nor a waiting request adds more.
	IsFinished bool
}

// EffectOn returns what becomes of the request.
func (q *Request) EffectOn(t Target) Effect {
	k := kinds[q.Do]
	switch {
	case t.IsDispatched:
		return IsCarriedOut
	case t.IsFinished:
		return k.finished
	case q.Do == DoSlots && q.Relative: // the number of slots is known only when the host is connected
		return IsRefused
	}
	return k.stopped
}

// WhyRefused returns why a request that IsRefused could do nothing.
func (q *Request) WhyRefused(t Target) string {
	k := kinds[q.Do]
	switch {
	case k.stopped == IsRefused:
		return k.whyStopped
	case t.IsFinished:
		return fmt.Sprintf("all jobs of the run have ended: %q would have no effect", k.text(q))
	}
	return fmt.Sprintf("nobody dispatches the run, so the slots of %s are not known; ask for a number instead", q.Host)
}

// AddsJobs reports whether a request may give a finished run jobs to run.
func (q *Request) AddsJobs() bool { return kinds[q.Do].addsJobs }

// WaitingRequests returns the requests that wait for the next resume and that it can carry out, in
// their order. A request that cannot be read now is an error.
func (r *Run) WaitingRequests(table *jobs.Table) (list []*Request, err error) {
	names, _, err := r.RequestNames()
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if table.Requests[name] {
			continue // only its file has to be removed
		}
		q, err := r.ReadRequest(name)
		var refused *RefusedError
		switch {
		case errors.As(err, &refused), errors.Is(err, fs.ErrNotExist): // it has no effect
		case err != nil:
			return nil, err
		default:
			list = append(list, q)
		}
	}
	target := Target{IsFinished: r.hasEnded(table, list)}
	for i := 0; i < len(list); {
		if e := list[i].EffectOn(target); e == IsRefused || e == IsFulfilled {
			list = append(list[:i], list[i+1:]...)
		} else {
			i++
		}
	}
	return list, nil
}

// hasEnded reports whether nothing can give the run jobs to run any more.
func (r *Run) hasEnded(table *jobs.Table, waiting []*Request) bool {
	input, err := r.ReadInput()
	if err != nil || input.State == InputOpen || table.Unfinished() > 0 {
		return false
	}
	for _, q := range waiting {
		if q.AddsJobs() {
			return false
		}
	}
	return true
}

// UndispatchedTarget returns the state of a run that nobody dispatches. The table has its stored
// jobs, too.
func (r *Run) UndispatchedTarget(table *jobs.Table) (Target, error) {
	waiting, err := r.WaitingRequests(table)
	return Target{IsFinished: err == nil && r.hasEnded(table, waiting)}, err
}
