package inbox

import (
	"errors"
	"slices"
	"sync"

	"dcs-tui/dispatch/sched"
	"dcs-tui/jobs"
	"dcs-tui/jobs/action"
	"dcs-tui/jobs/rundir"
)

// Stored describes the jobs of a request that the run has already, because a dispatcher died after
// it had stored them and before it had answered.
type Stored struct {
	first jobs.ID
	n     int
}

// FindStored finds the jobs of requests without an answer, by name of the request. waiting are the
// specifications that are not part of the table yet. It must be called before the dispatcher owns
// the table.
func FindStored(t *jobs.Table, waiting []*jobs.Spec) map[string]Stored {
	found := map[string]Stored{}
	add := func(s *jobs.Spec) {
		if s == nil || s.Options == nil || s.Request == "" || t.Requests[s.Request] {
			return
		}
		of := found[s.Request]
		of.n++
		if of.first == 0 {
			of.first = s.ID
		}
		found[s.Request] = of
	}
	for s := range t.SpecsWithOptions() {
		add(s)
	}
	for _, s := range waiting {
		add(s)
	}
	return found
}

// submit adds the jobs of a request to the run, each once. It returns false if that is to be tried
// again.
func (b *Inbox) submit(name string, q *action.Request) bool {
	if b.LeavesSubmits() {
		return true // it waits for the next dispatcher
	}
	refuse := func(why string) bool {
		b.refuse(name, q, why)
		return true
	}
	specs, err := q.NewJobs()
	if err != nil {
		return refuse(err.Error())
	}
	if b.IsCanceled() {
		return refuse("the run was canceled")
	}
	r := sched.Request{Name: name, Text: q.Text()}
	if had := b.Stored[name]; had.n > 0 {
		r.First, r.Count = had.first, min(had.n, len(specs))
		specs = specs[r.Count:]
		if len(specs) == 0 {
			b.Dispatcher.Do(r)
			return true
		}
		for i, s := range specs { // the jobs that were not stored, numbered from 1
			if len(s.After()) > 0 {
				return refuse("its jobs were stored in part, and the rest come after some of those: submit them again")
			}
			s.ID = jobs.ID(i + 1)
		}
	}
	if isClosed(b.Dispatcher.Finished()) {
		return false // they wait for the next dispatcher
	}
	b.MakeDirsAbsolute(specs)
	if err := b.Dispatcher.SubmitRequested(r, specs); err != nil {
		b.reportProblem(errors.Join(errors.New("the jobs of a request cannot be stored; they wait"), err))
		return false
	}
	return true
}

// Reasons for the effects of STOP files.
const (
	whyStop    = "the file " + rundir.StopFile
	whyStopNow = "the file " + rundir.StopNowFile
)

// stopSource begins the names of the requests that STOP files become.
const stopSource = "stop-file"

// stopFiles is the result of the last poll.
type stopFiles struct {
	mu        sync.Mutex      // held while the files are listed or removed
	strongest string          // the name of the stronger of the two files, "" if there is none
	reported  map[string]bool // messages about ignored files
}

// removeAndEnd calls remove, which removes the file STOP for a person who continues the run. The
// next poll then does not end that drain again, which would refuse the person's own request to end
// it.
func (s *stopFiles) removeAndEnd(remove func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	remove()
	if s.strongest == rundir.StopFile {
		s.strongest = ""
	}
}

// pollStopFiles turns STOP files into requests, each once. When STOP was removed, it ends the
// drain.
func (b *Inbox) pollStopFiles() {
	b.stop.mu.Lock()
	defer b.stop.mu.Unlock()
	names, refused, err := b.Run.StopFiles()
	if err != nil {
		return // the engine reports that the run directory does not respond
	}
	for _, r := range refused {
		text := r.Error()
		if !b.stop.reported[text] {
			jobs.Insert(&b.stop.reported, text, true)
			b.Print(func() string { return text })
		}
	}
	asks, was := "", b.stop.strongest
	for _, name := range []string{rundir.StopFile, rundir.StopNowFile} {
		if slices.Contains(names, name) {
			asks = name
		}
	}
	b.stop.strongest = asks
	if asks == was {
		return
	}
	switch {
	case asks == rundir.StopFile:
		b.Ask(stopSource, &action.Request{Do: action.DrainRun, Why: whyStop, ByFile: true})
	case asks == rundir.StopNowFile:
		b.Ask(stopSource, &action.Request{Do: action.Cancel, All: true, Why: whyStopNow})
	case was == rundir.StopFile:
		b.Ask(stopSource, &action.Request{Do: action.Continue, Why: whyStop + " was removed", ByFile: true})
	}
}
