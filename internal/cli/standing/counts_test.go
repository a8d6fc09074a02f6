package standing

import (
	"strings"
	"testing"
	"time"

	"dcs-tui/jobs"
	"dcs-tui/jobs/runview"
)

// Of a run that nobody dispatches nobody knows what runs, nor for how long: no clock goes
// on, and a job that was handed over may have begun.
func TestWhatMayRun(t *testing.T) {
	spec := func(id jobs.ID, command string) *jobs.Spec { return &jobs.Spec{ID: id, Command: command} }
	table := &jobs.Table{Jobs: []jobs.Job{
		{Spec: spec(1, "one"), State: jobs.Running, Attempts: []*jobs.Attempt{{ID: jobs.AttemptID{Job: 1, N: 1}, Host: "a", State: jobs.AttemptRunning,
			Started: jobs.StampOf(time.Now().Add(-time.Hour))}}},
		{Spec: spec(2, "two"), State: jobs.Running, Attempts: []*jobs.Attempt{{ID: jobs.AttemptID{Job: 2, N: 1}, Host: "a", State: jobs.AttemptLaunching}}},
	}}
	table.Counts[jobs.Running] = 2
	live, left := strings.Join(openLines(table, true), "\n"), strings.Join(openLines(table, false), "\n")
	for _, want := range []string{"running\n", "1.1     a  1h 00m  one", "2.1     a  handed over  two"} {
		if !strings.Contains(live, want) {
			t.Errorf("dispatched: %q is missing in\n%s", want, live)
		}
	}
	began := table.Jobs[0].Attempts[0].Started.Time().Local().Format("2006-01-02 15:04:05")
	for _, want := range []string{"may run: nobody watches them\n", "1.1     a  since " + began + "  one", "2.1     a  may have begun  two"} {
		if !strings.Contains(left, want) {
			t.Errorf("left: %q is missing in\n%s", want, left)
		}
	}
	if got := runview.Counts(table, false); got != "0 of 2 ok, 2 may run" {
		t.Error(got)
	}
	if got := runview.Counts(table, true); got != "0 of 2 ok, 1 running, 1 handed over" {
		t.Error(got)
	}
}
