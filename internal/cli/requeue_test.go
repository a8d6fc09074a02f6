package cli

import (
	"testing"

	"dcs-tui/jobs"
	"dcs-tui/jobs/rundir"
)

// requeue runs no job again that has succeeded meanwhile, unless such are asked for
// (promise 1).
func TestRequeueSpares(t *testing.T) {
	table := &jobs.Table{Jobs: []jobs.Job{{State: jobs.Failed}, {State: jobs.Skipped}, {State: jobs.Succeeded}}}
	if got := spared(table, []jobs.ID{1, 2}); got != rundir.SpareSucceeded {
		t.Errorf("spared %q", got)
	}
	if got := spared(table, []jobs.ID{1, 3}); got != "" {
		t.Errorf("jobs that have succeeded are asked for, and %q is spared", got)
	}
}
