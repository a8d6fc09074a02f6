package cli

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"dcs-tui/jobs"
	"dcs-tui/jobs/journal"
	"dcs-tui/jobs/rundir"
)

// X7: --where means the same wherever it is given: parameters, facts and figures of jobs,
// over or not.
func TestJobsWhere(t *testing.T) {
	run := gridRun(t, t.TempDir(), 6)
	table, _, err := journal.Replay(run)
	if err != nil {
		t.Fatal(err)
	}
	over := func(j *jobs.Job, state jobs.JobState, o *jobs.Outcome) {
		j.State = state
		j.Last().Outcome = o
	}
	over(table.Job(3), jobs.Failed, &jobs.Outcome{Started: 1, Exit: 137})
	over(table.Job(4), jobs.TimedOut, &jobs.Outcome{Started: 1, Signal: "SIGKILL", TimedOut: true})
	table.Job(5).State, table.Job(5).Reason, table.Job(5).Attempts = jobs.Skipped, "as hard as job 4", nil
	over(table.Job(6), jobs.Queued, &jobs.Outcome{Started: 1, Exit: 3})
	a := &app{con: newConsole(os.Stderr)}
	for _, c := range []struct {
		where []string
		want  string
	}{
		{nil, "1-6"},
		{[]string{"state=timed_out or state=skipped"}, "4-5"},
		{[]string{"exit=137, host=melon*"}, "3-4"}, // 128 + SIGKILL, too
		{[]string{"exit=137, signal=''"}, "3"},
		{[]string{"exit=3"}, "6"}, // its last attempt; it waits for the next
		{[]string{"signal=SIG*"}, "4"},
		{[]string{"cause~'as hard'"}, "5"},
		{[]string{"gamma>=3", "state!=skipped"}, "4,6"},
		{[]string{"acc>=0.001 and loss<2"}, "2"}, // declared, read from the outputs
		{[]string{"state=failed", "gamma=0"}, ""},
		{[]string{"colour=red"}, `--where: the filter, character 1: there is no column "colour"; there are `},
		{[]string{"exit=300"}, `--where: the filter, character 1: no exit code is "300"`},
	} {
		var got string
		filters, err := parseWhere(c.where)
		if err == nil {
			var which map[jobs.ID]bool
			which, err = a.jobsWhere(t.Context(), run, table, filters)
			got = rundir.RangesOf(slices.Sorted(maps.Keys(which))).String()
		}
		if err != nil {
			got = err.Error()
		}
		if got != c.want && (err == nil || !strings.HasPrefix(got, c.want)) {
			t.Errorf("%q: %s, want %s", c.where, got, c.want)
		}
	}
}
