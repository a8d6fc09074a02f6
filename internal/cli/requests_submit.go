package cli

import (
	"errors"

	"dcs-tui/dispatch/sched"
	"dcs-tui/internal/cli/standing"
	"dcs-tui/jobs"
	"dcs-tui/jobs/rundir"
)

// stored says how many jobs of each request the run has, and which is the first: a
// dispatcher may have died after it had stored them and before it had said so.
type stored struct {
	first jobs.ID
	n     int
}

// storedRequests looks for jobs of requests that wait; there is nothing to look for
// when none does.
func storedRequests(o *owned) map[string]stored {
	if names, _, err := o.run.RequestNames(); err == nil && len(names) == 0 {
		return nil
	}
	found := map[string]stored{}
	for _, list := range [][]*jobs.Spec{o.table.Specs, o.waiting} {
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

// fromSource counts the jobs that a run has from its own source; those that were
// submitted later are no part of that.
func (o *owned) fromSource() int {
	n := 0
	if o.run.Asked.Options[standing.OptionSource] == nil {
		return len(o.table.Jobs) + len(o.waiting) // nobody asks
	}
	for _, list := range [][]*jobs.Spec{o.table.Specs[:len(o.table.Jobs)], o.waiting} {
		for _, s := range list {
			if s == nil || s.Options == nil || s.Request == "" {
				n++
			}
		}
	}
	return n
}

// submit adds the jobs of a request to the run, each once; false when that is to be
// tried again.
func (t *requestTaker) submit(name string, q *rundir.Request) bool {
	if t.s.endsOnly {
		return true // it waits for the next resume
	}
	refuse := func(why string) bool {
		refused := rundir.RefusedError{Name: name, Why: why}
		t.given[name] = true
		t.trouble(t.s.run.SetRequestAside(name))
		t.s.d.Do(sched.Request{Name: name, Text: refused.Error()})
		return true
	}
	specs, err := q.NewJobs()
	if err != nil {
		return refuse(err.Error())
	}
	if t.s.cancelled.Load() {
		return refuse("the run was cancelled")
	}
	r := sched.Request{Name: name, Text: q.Text()}
	if had := t.stored[name]; had.n > 0 {
		r.First, r.Count = had.first, min(had.n, len(specs))
		if specs = specs[r.Count:]; len(specs) == 0 {
			t.given[name] = true
			t.s.d.Do(r)
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
	case <-t.s.d.Finished():
		return false // this dispatcher is leaving: they wait for the next one
	default:
	}
	relative := cwdResolver{cwd: t.s.run.Asked.Cwd}
	for _, s := range specs {
		relative.resolve(s)
	}
	if err := t.s.d.SubmitRequested(r, specs); err != nil {
		t.trouble(errors.Join(errors.New("the jobs of a request cannot be stored; they wait"), err))
		return false
	}
	t.given[name] = true
	return true
}
