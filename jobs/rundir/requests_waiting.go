package rundir

import (
	"errors"
	"io/fs"
	"slices"

	"dcs-tui/jobs"
	"dcs-tui/jobs/action"
)

// WaitingRequests returns the requests that wait for the next resume and that it can carry out, in
// their order. A request that cannot be read now is an error.
func (r *Run) WaitingRequests(table *jobs.Table) (list []*action.Request, err error) {
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
	target := action.Target{IsFinished: r.hasEnded(table, list)}
	return slices.DeleteFunc(list, func(q *action.Request) bool {
		e := q.EffectOn(target)
		return e == action.IsRefused || e == action.IsFulfilled
	}), nil
}

// hasEnded reports whether nothing can give the run jobs to run any more.
func (r *Run) hasEnded(table *jobs.Table, waiting []*action.Request) bool {
	input, err := r.ReadInput()
	return err == nil && input.State != InputOpen && table.Unfinished() == 0 &&
		!slices.ContainsFunc(waiting, (*action.Request).AddsJobs)
}

// UndispatchedTarget returns the state of a run that nobody dispatches. The table has its stored
// jobs, too.
func (r *Run) UndispatchedTarget(table *jobs.Table) (action.Target, error) {
	waiting, err := r.WaitingRequests(table)
	return action.Target{IsFinished: err == nil && r.hasEnded(table, waiting)}, err
}
