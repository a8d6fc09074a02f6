package cli

import (
	"io"
	"path/filepath"
	"strings"
	"testing"

	"dcs-tui/dispatch/sched"
	"dcs-tui/internal/cli/console"
	"dcs-tui/internal/cli/exit"
	"dcs-tui/jobs"
	"dcs-tui/jobs/rundir"
)

// A run that was drained or stopped before all its jobs were submitted has jobs
// left: its exit code is 4, whatever became of those that were.
func TestUnsubmittedJobsAreLeft(t *testing.T) {
	var specs []*jobs.Spec
	for id := jobs.ID(1); id <= 5; id++ {
		specs = append(specs, &jobs.Spec{ID: id, Command: "true", Options: jobs.NoOptions})
	}
	for accepted := range 6 {
		table := &jobs.Table{Specs: specs[:accepted:accepted]}
		if err := jobs.Fold(table, &jobs.Record{Kind: jobs.KindAccepted, Job: 1, Count: accepted}); err != nil {
			t.Fatal(err)
		}
		for i := range accepted {
			if err := jobs.Fold(table, &jobs.Record{Kind: jobs.KindJob, Job: jobs.ID(i + 1), Next: jobs.Cancelled, Seq: int64(i + 1)}); err != nil {
				t.Fatal(err)
			}
		}
		s := &session{table: table, waiting: specs}
		s.countWaiting()
		if len(table.Jobs) != 5 || table.Counts[jobs.Queued] != 5-accepted {
			t.Errorf("%d accepted: %d jobs, %d queued", accepted, len(table.Jobs), table.Counts[jobs.Queued])
		}
		want := exit.Left
		if accepted == 5 {
			want = exit.Failed
		}
		if got := exit.OfRun(sched.Drained, table.Counts, false, false); got != want {
			t.Errorf("%d accepted: exit %d, want %d", accepted, got, want)
		}
	}
}

// A dispatcher may die at any instant: jobs that it had stored and not submitted
// are submitted by resume; a run whose jobs were not all stored is refused.
func TestJobsOfADeadDispatcher(t *testing.T) {
	for _, test := range []struct {
		asked, stored, accepted int
		refused                 bool
	}{{3, 3, 0, false}, {3, 3, 2, false}, {3, 2, 0, true}, {3, 0, 0, true}} {
		run, err := rundir.Create(filepath.Join(t.TempDir(), "runs"), "r", rundir.Asked{
			Cwd: "/", JobsFile: "jobs.txt", Options: map[string]any{optionJobs: int64(test.asked)}})
		if err != nil {
			t.Fatal(err)
		}
		a := &app{con: console.To(io.Discard)}
		o, err := a.own(run, false)
		if err != nil {
			t.Fatal(err)
		}
		for id := 1; id <= test.stored; id++ {
			if err := run.AppendSpecs([]*jobs.Spec{{ID: jobs.ID(id), Command: "true", Options: jobs.NoOptions}}); err != nil {
				t.Fatal(err)
			}
		}
		if test.accepted > 0 {
			if err := o.journal.Append([]jobs.Record{{Kind: jobs.KindAccepted, Job: 1, Count: test.accepted}}); err != nil {
				t.Fatal(err)
			}
		}
		if err := o.journal.Close(); err != nil {
			t.Fatal(err)
		}
		if run, err = rundir.Open(run.Dir); err != nil {
			t.Fatal(err)
		}
		if o, err = a.own(run, false); err != nil {
			t.Fatal(err)
		}
		if len(o.table.Specs) != test.stored || len(o.table.Jobs) != test.accepted {
			t.Errorf("%+v: %d jobs are stored, %d accepted", test, len(o.table.Specs), len(o.table.Jobs))
		}
		err = o.whole()
		if (err != nil) != test.refused || err != nil && !strings.Contains(err.Error(), "none of them was started") {
			t.Errorf("%+v: %v", test, err)
		}
		if err := o.journal.Close(); err != nil {
			t.Error(err)
		}
	}
}

// K4: a template on standard input is no list of commands: what gives a parameter its
// values is not run, and what does run it is named.
func TestStreamedTemplate(t *testing.T) {
	next := readingJobs(strings.NewReader("[ -e x ] && echo [x]\n[x] 1 2\n"))
	if s, err := next(); err != nil || s.Command != "[ -e x ] && echo [x]" {
		t.Fatal(s, err)
	}
	if _, err := next(); err == nil || !strings.Contains(err.Error(), "standard input:2: this is a template, which dcs-tui grid - reads") {
		t.Error(err)
	}
}
