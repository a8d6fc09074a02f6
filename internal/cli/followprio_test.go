package cli

import (
	"testing"
	"time"

	"dcs-tui/jobs"
	"dcs-tui/jobs/rundir"
	"dcs-tui/jobs/runview"
)

// K2: a relative priority asked of a run that nobody dispatches comes to the same
// however often it is carried out, and adds to what was asked before it.
func TestRelativePrioritiesWithoutADispatcher(t *testing.T) {
	s := &runScreen{app: newApp(), run: over(t)}
	if _, err := s.run.FileRequest(&rundir.Request{Do: rundir.DoPriority, Jobs: jobs.One(1), Priority: 7, At: time.Now()}); err != nil {
		t.Fatal(err)
	}
	table := &jobs.Table{Jobs: []jobs.Job{{State: jobs.Queued}}}
	if err := applyWaiting(s.run, table); err != nil {
		t.Fatal(err)
	}
	list, err := runview.Requests(runview.Action{Do: runview.Priority, Jobs: jobs.One(1), Number: -1, Relative: true}, table, nil)
	if err != nil || len(list) != 1 || list[0].Priority != 6 {
		t.Errorf("%+v, %v; want one request with priority 6", list, err)
	}
}
