package cli

import (
	"errors"
	"io/fs"
	"math"
	"slices"
	"time"

	"dcs-tui/dispatch"
	"dcs-tui/internal/cli/standing"
	"dcs-tui/jobs"
	"dcs-tui/jobs/rundir"
	"dcs-tui/jobs/runview"
)

// mostPriorities is how many requests a relative change of priorities may become.
const mostPriorities = 100

// prioritise leaves a change of priorities for the next resume. A relative one is left as
// what it comes to: a request that was carried out in part when its dispatcher died is
// carried out anew, and must come to the same then.
func (f *follower) prioritise(a *runview.Action) (*runview.Answer, error) {
	requests := []*rundir.Request{requestOf(a)}
	if a.Relative {
		table, err := standing.WholeTable(f.run)
		if err != nil {
			return nil, err
		}
		waiting, err := waitingRequests(f.run, table)
		if err != nil {
			return nil, err
		}
		if requests = absolute(table, waiting, a); len(requests) > mostPriorities {
			return nil, &runview.Refused{Why: "nobody dispatches the run, and those jobs have too many different priorities; resume it first, or say which priority"}
		}
	}
	n := 0
	for _, q := range requests {
		if _, err := f.run.FileRequest(q); err != nil {
			return nil, err
		}
		n += q.Jobs.Count()
	}
	if n == 0 {
		return &runview.Answer{Text: "the priority of what is over does not matter any more"}, nil
	}
	return &runview.Answer{Done: n, Text: "noted for the next resume"}, nil
}

// waitingRequests reads what has been asked for and not been taken in, in its order.
func waitingRequests(run *rundir.Run, t *jobs.Table) (waiting []*rundir.Request, err error) {
	names, _, err := run.RequestNames()
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if t.Requests[name] {
			continue
		}
		q, err := run.ReadRequest(name)
		var refused *rundir.RefusedError
		switch {
		case errors.As(err, &refused), errors.Is(err, fs.ErrNotExist): // comes to nothing
		case err != nil:
			return nil, err
		default:
			waiting = append(waiting, q)
		}
	}
	return waiting, nil
}

// absolute returns what a relative change of priorities comes to, once what waits has
// been carried out: a request for each priority.
func absolute(t *jobs.Table, waiting []*rundir.Request, a *runview.Action) []*rundir.Request {
	of := map[int][]jobs.ID{}
	for _, id := range a.Jobs.IDs(jobs.ID(len(t.Jobs))) {
		j := t.Job(id)
		if j.State.Terminal() {
			continue
		}
		p := int(j.Priority)
		for _, q := range waiting {
			if q.Do == rundir.DoPriority && q.Jobs.Has(id) {
				p = q.Priority
			}
		}
		p = min(max(p+a.Number, math.MinInt32), math.MaxInt32)
		of[p] = append(of[p], id)
	}
	var list []*rundir.Request
	at := time.Now()
	for p, ids := range of {
		list = append(list, &rundir.Request{Do: rundir.DoPriority, Jobs: jobs.RangesOf(ids), Priority: p, Why: a.Why, By: dispatch.Asker(), At: at})
	}
	slices.SortFunc(list, func(a, b *rundir.Request) int { return a.Priority - b.Priority })
	return list
}
