package cli

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"dcs-tui/jobs"
	"dcs-tui/jobs/journal"
	"dcs-tui/jobs/query"
	"dcs-tui/jobs/rundir"
)

// TestWhereMeansTheSameInEveryCommand checks that --where has the same meaning in every command,
// for parameters, facts, and metrics of jobs, over or not (X7).
func TestWhereMeansTheSameInEveryCommand(t *testing.T) {
	run := newGridRun(t, t.TempDir(), 6)
	f := journal.Follow(run)
	_, err := f.Poll(journal.Limit{End: true}, nil)
	must(t, err)
	table := f.Table() // not packed, so its rows can be changed
	over := func(j *jobs.Job, state jobs.JobState, o *jobs.Outcome) {
		j.State = state
		j.Last().Outcome = o
	}
	over(table.Job(3), jobs.Failed, &jobs.Outcome{Started: 1, Exit: 137})
	over(table.Job(4), jobs.TimedOut, &jobs.Outcome{Started: 1, Signal: "SIGKILL", TimedOut: true})
	table.Job(5).State, table.Job(5).Reason, table.Job(5).Attempts = jobs.Skipped, "as hard as job 4", nil
	table.Job(5).Counted = 0
	over(table.Job(6), jobs.Queued, &jobs.Outcome{Started: 1, Exit: 3})
	a := &app{con: newConsole(os.Stderr)}
	which := func(where []string) string {
		found, err := a.matchingJobs(t.Context(), run, table, queries(t, where...))
		if err != nil {
			return err.Error()
		}
		var ids []jobs.ID
		for id, is := range found {
			if is {
				ids = append(ids, jobs.ID(id))
			}
		}
		return jobs.RangesOf(ids).String()
	}
	for _, c := range []struct {
		where []string
		want  string
	}{
		{nil, "1-6"},
		{[]string{"state=timed_out or state=skipped"}, "4-5"},
		{[]string{"exit=137, host=melon*"}, "3-4"}, // also 128 + SIGKILL
		{[]string{"exit=137, signal=''"}, "3"},
		{[]string{"exit=3"}, "6"}, // of its last attempt; the job waits for the next one
		{[]string{"signal=SIG*"}, "4"},
		{[]string{"cause~'as hard'"}, "5"},
		{[]string{"gamma>=3", "state!=skipped"}, "4,6"},
		{[]string{"acc>=0.001 and loss<2"}, "2"}, // declared, and read from the outputs
		{[]string{"[acc]>=0.001 and [loss]<2"}, "2"},
		{[]string{"state=failed", "gamma=0"}, ""},
		{[]string{"colour=red"}, `--where: character 1: there is no column "colour"; there are `},
		{[]string{"exit=300"}, `--where: character 6: 300 is not an exit code`},
	} {
		t.Run(c.want, func(t *testing.T) {
			if got := which(c.where); got != c.want &&
				!(strings.HasPrefix(c.want, "--where") && strings.HasPrefix(got, c.want)) {
				t.Errorf("%q: %s, want %s", c.where, got, c.want)
			}
		})
	}
	// A metric with the name of a fact.
	run.Settings.Options["results"] = []string{"acc", "host=key:acc"}
	for where, want := range map[string]string{"host=0.001": "2", "[host]=0.002": "3",
		"dcs.host=melon1 and job<3": "1-2"} {
		same(t, where, which([]string{where}), want)
	}
}

// queries parses values of --where.
func queries(t *testing.T, texts ...string) (list []*query.Query) {
	t.Helper()
	for _, s := range texts {
		q, err := query.Parse(s)
		must(t, err)
		list = append(list, q)
	}
	return list
}

// TestWhichJobsAreSelected checks which jobs numbers, --failed, and --where select (K9, X7).
func TestWhichJobsAreSelected(t *testing.T) {
	attempt := func(host string, o *jobs.Outcome) []*jobs.Attempt {
		return []*jobs.Attempt{{Host: host, State: jobs.AttemptExited, Outcome: o}}
	}
	spec := func(name, queue string) *jobs.Spec {
		return &jobs.Spec{Name: name, Command: "x", Options: &jobs.Options{Queue: queue}}
	}
	table := &jobs.Table{Jobs: []jobs.Job{
		{Spec: spec("a/1", "q"), State: jobs.Succeeded, Attempts: attempt("h1", &jobs.Outcome{})},
		{Spec: spec("a/2", "q"), State: jobs.Failed, Attempts: attempt("h1", &jobs.Outcome{Exit: 137})},
		{Spec: spec("b", ""), State: jobs.Failed, Attempts: attempt("h2", &jobs.Outcome{Signal: "SIGKILL"})},
		{Spec: spec("", ""), State: jobs.TimedOut,
			Attempts: attempt("h2", &jobs.Outcome{TimedOut: true, Signal: "SIGTERM"})},
		{Spec: spec("", ""), State: jobs.Queued},
		{Spec: spec("", ""), State: jobs.Running, Attempts: append(attempt("h1", &jobs.Outcome{Exit: 3}),
			attempt("h2", nil)...)},
		{Spec: spec("", ""), State: jobs.Canceled},
		{Spec: spec("b", ""), State: jobs.Skipped},
	}}
	for i := range table.Jobs {
		j := &table.Jobs[i]
		j.Spec.ID, j.Seq = jobs.ID(i+1), int64(i+1)
		j.Counted = int32(min(1, len(j.Attempts)))
	}
	a, run := &app{con: newConsole(os.Stderr)}, &rundir.Run{Dir: t.TempDir(), Disk: rundir.OS,
		Settings: &rundir.Settings{}}
	open := func(st jobs.JobState) bool { return !st.Terminal() }
	over := func(st jobs.JobState) bool { return st.Terminal() }
	for _, c := range []struct {
		named string
		sel   selection
		fit   func(jobs.JobState) bool
		want  string
	}{
		{"1-3,5", selection{}, open, "1-3,5"},
		{"9", selection{}, open, "the run  has no job 9; it has 8 jobs"},
		{"", selection{failed: true}, over, "2-4"},
		{"3-8", selection{failed: true}, over, "3-4"},
		{"", selection{all: true}, func(st jobs.JobState) bool { return st.Terminal() && st != jobs.Succeeded },
			"2-4,7-8"},
		{"", selection{where: queries(t, "state=failed", "host=h2")}, over, "3"},
		{"", selection{where: queries(t, "exit=3")}, open, "6"},
		{"1-4", selection{where: queries(t, "state=timed_out or state=skipped")}, over, "4"},
		{"", selection{where: queries(t, "host=h2")}, open, "6"},
		{"1-2", selection{where: queries(t, "host=h2")}, open, ""},
		// Their commands match: they have no name.
		{"", selection{where: queries(t, "name=x")}, open, "5-6"},
	} {
		t.Run(c.want, func(t *testing.T) {
			if c.named != "" {
				must(t, c.sel.parseNamed([]string{c.named}))
			}
			ids, err := a.selectJobs(t.Context(), run, table, &c.sel, c.fit)
			got := jobs.RangesOf(ids).String()
			if err != nil {
				got = err.Error()
			}
			if got != c.want {
				t.Errorf("%s %+v: %s, want %s", c.named, c.sel, got, c.want)
			}
		})
	}
}

// TestEventsAreFilteredByJobHostAndTime checks the filters of `events`.
func TestEventsAreFilteredByJobHostAndTime(t *testing.T) {
	date := func(hour, minute int) jobs.Stamp {
		return jobs.StampOf(time.Date(2026, 3, 14, hour, minute, 0, 0, time.Local))
	}
	ago := func(d time.Duration) jobs.Stamp { return jobs.StampOf(time.Now().Add(-d)) }
	accepted := jobs.Record{Kind: jobs.KindAccepted, Job: 4, Count: 7}
	for _, c := range []struct {
		jobs, host, since string
		r                 jobs.Record
		want              bool
	}{
		{"", "", "", jobs.Record{}, true},
		{"3,5-6", "", "", jobs.Record{Kind: jobs.KindLost, Job: 6}, true},
		{"3,5-6", "", "", jobs.Record{Kind: jobs.KindLost, Job: 4}, false},
		{"3", "", "", jobs.Record{Kind: jobs.KindEnded}, false},
		{"3,10-20", "", "", accepted, true},
		{"3,11-20", "", "", accepted, false},
		{"", "a", "", jobs.Record{Host: "a"}, true},
		{"", "a", "", jobs.Record{Host: "ab"}, false},
		{"", "", "2h", jobs.Record{At: ago(time.Hour)}, true},
		{"", "", "2h", jobs.Record{At: ago(3 * time.Hour)}, false},
		{"", "", "2026-03-14", jobs.Record{At: date(0, 0)}, true},
		{"", "", "2026-03-14", jobs.Record{At: date(-1, 59)}, false},
		{"", "", "2026-03-14 15:00", jobs.Record{At: date(15, 1)}, true},
	} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			filter := eventFilter{host: c.host}
			var err error
			if c.jobs != "" {
				filter.jobs, err = jobs.ParseRanges(c.jobs)
				must(t, err)
			}
			if c.since != "" {
				filter.since, err = parseSince(c.since)
				must(t, err)
			}
			same(t, fmt.Sprint(c), filter.isShown(&c.r), c.want)
		})
	}
	for _, s := range []string{"yesterday", "-2h"} {
		if at, err := parseSince(s); err == nil {
			t.Errorf("%s is %v", s, at)
		}
	}
}
