package requests

import (
	"errors"

	"dcs-tui/dispatch/sched"
	"dcs-tui/jobs"
	"dcs-tui/jobs/rundir"
)

// Stored says how many jobs of each request the run has, and which is the first: a
// dispatcher may have died after it had stored them and before it had said so.
type Stored struct {
	first jobs.ID
	n     int
}

// FindStored looks for jobs of requests that wait among those of a run, which are not
// the dispatcher's yet; there is nothing to look for when none does.
func FindStored(run *rundir.Run, specs, waiting []*jobs.Spec) map[string]Stored {
	if names, _, err := run.RequestNames(); err == nil && len(names) == 0 {
		return nil
	}
	found := map[string]Stored{}
	for _, list := range [][]*jobs.Spec{specs, waiting} {
		for _, s := range list {
			if s == nil || s.Options == nil || s.Request == "" {
				continue
			}
			of := found[s.Request]
			if of.n++; of.first == 0 {
				of.first = s.ID
			}
			found[s.Request] = of
		}
	}
	return found
}

// submit adds the jobs of a request to the run, each once; false when that is to be
// tried again.
func (t *Taker) submit(name string, q *rundir.Request) bool {
	if t.EndsOnly() {
		return true // it waits for the next resume
	}
	refuse := func(why string) bool {
		refused := rundir.RefusedError{Name: name, Why: why}
		t.given[name] = true
		t.trouble(t.Run.SetRequestAside(name))
		t.Dispatcher.Do(sched.Request{Name: name, Text: refused.Error()})
		return true
	}
	specs, err := q.NewJobs()
	if err != nil {
		return refuse(err.Error())
	}
	if t.Cancelled() {
		return refuse("the run was cancelled")
	}
	r := sched.Request{Name: name, Text: q.Text()}
	if had := t.Stored[name]; had.n > 0 {
		r.First, r.Count = had.first, min(had.n, len(specs))
		if specs = specs[r.Count:]; len(specs) == 0 {
			t.given[name] = true
			t.Dispatcher.Do(r)
			return true
		}
		for i, s := range specs { // the rest of a block that was cut off, numbered anew
			if len(s.After) > 0 {
				return refuse("its jobs were stored in part, and the rest come after some of those: submit them again")
			}
			s.ID = jobs.ID(i + 1)
		}
	}
	select {
	case <-t.Dispatcher.Finished():
		return false // this dispatcher is leaving: they wait for the next one
	default:
	}
	t.Place(specs)
	if err := t.Dispatcher.SubmitRequested(r, specs); err != nil {
		t.trouble(errors.Join(errors.New("the jobs of a request cannot be stored; they wait"), err))
		return false
	}
	t.given[name] = true
	return true
}
