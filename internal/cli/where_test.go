package cli

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"dcs-tui/internal/cli/console"
	"dcs-tui/jobs"
	"dcs-tui/jobs/journal"
	"dcs-tui/jobs/query"
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
	a := &app{con: console.New(os.Stderr)}
	which := func(where []string) string {
		filters, err := parseEach("where", where, query.Parse)
		if err != nil {
			return err.Error()
		}
		found, err := a.jobsWhere(t.Context(), run, table, filters)
		if err != nil {
			return err.Error()
		}
		return jobs.RangesOf(slices.Sorted(maps.Keys(found))).String()
	}
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
		{[]string{"[acc]>=0.001 and [loss]<2"}, "2"},
		{[]string{"state=failed", "gamma=0"}, ""},
		{[]string{"colour=red"}, `--where: character 1: there is no column "colour"; there are `},
		{[]string{"exit=300"}, `--where: character 6: no exit code is 300`},
	} {
		if got := which(c.where); got != c.want && !(strings.HasPrefix(c.want, "--where") && strings.HasPrefix(got, c.want)) {
			t.Errorf("%q: %s, want %s", c.where, got, c.want)
		}
	}
	// A figure that is called like a fact.
	run.Asked.Options["results"] = []string{"acc", "host=key:acc"}
	for where, want := range map[string]string{"host=0.001": "2", "[host]=0.002": "3", "dcs.host=melon1 and job<3": "1-2"} {
		if got := which([]string{where}); got != want {
			t.Errorf("%q: %s, want %s", where, got, want)
		}
	}
}
