package cli

import (
	"fmt"
	"os"
	"testing"

	"dcs-tui/internal/cli/console"
	"dcs-tui/jobs"
	"dcs-tui/jobs/rundir"
)

// Which jobs are meant by numbers, --failed and --where (K9, X7).
func TestPick(t *testing.T) {
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
		{Spec: spec("", ""), State: jobs.TimedOut, Attempts: attempt("h2", &jobs.Outcome{TimedOut: true, Signal: "SIGTERM"})},
		{Spec: spec("", ""), State: jobs.Queued},
		{Spec: spec("", ""), State: jobs.Running, Attempts: append(attempt("h1", &jobs.Outcome{Exit: 3}), attempt("h2", nil)...)},
		{Spec: spec("", ""), State: jobs.Cancelled},
		{Spec: spec("b", ""), State: jobs.Skipped},
	}}
	for i := range table.Jobs {
		table.Jobs[i].Spec.ID, table.Jobs[i].Seq = jobs.ID(i+1), int64(i+1)
	}
	a, run := &app{con: console.New(os.Stderr)}, &rundir.Run{Dir: t.TempDir(), Disk: rundir.OS, Asked: &rundir.Asked{}}
	open := func(st jobs.JobState) bool { return !st.Terminal() }
	over := func(st jobs.JobState) bool { return st.Terminal() }
	for _, c := range []struct {
		named string
		sel   selection
		fit   func(jobs.JobState) bool
		want  string
	}{
		{"1-3,5", selection{}, open, "1-3,5"},
		{"9", selection{}, open, "there is no job 9: the run has 8 jobs"},
		{"", selection{failed: true}, over, "2-4"},
		{"3-8", selection{failed: true}, over, "3-4"},
		{"", selection{all: true}, func(st jobs.JobState) bool { return st.Terminal() && st != jobs.Succeeded }, "2-4,7-8"},
		{"", selection{where: []string{"state=failed"}}, over, "2-3"},
		{"", selection{where: []string{"state=failed", "host=h2"}}, over, "3"},
		{"", selection{where: []string{"state=failed,host=h2"}}, over, "3"},
		{"", selection{where: []string{"exit=137"}}, over, "2-3"}, // 128 + SIGKILL, too
		{"", selection{where: []string{"exit=3"}}, open, "6"},
		{"", selection{where: []string{"exit=0"}}, over, "1"},
		{"", selection{where: []string{"signal=SIG*"}}, over, "3-4"},
		{"", selection{where: []string{"name=a*"}}, over, "1-2"},
		{"", selection{where: []string{"name~'a.[2-3]'"}}, over, "2"},
		{"", selection{where: []string{"state=timed_out or state=skipped"}}, over, "4,8"},
		{"1-4", selection{where: []string{"state=timed_out or state=skipped"}}, over, "4"},
		{"", selection{where: []string{"queue=q"}}, over, "1-2"},
		{"", selection{where: []string{"host=h2"}}, open, "6"},
		{"1-2", selection{where: []string{"host=h2"}}, open, ""},
		{"", selection{where: []string{"name=x"}}, open, "5-6"}, // their command: they have no name
		{"", selection{where: []string{"host=h1,host=h2"}}, open, ""},
		{"", selection{where: []string{"name="}}, open, "--where: character 6: a name, a number, or a text is expected, not the end"},
		{"", selection{where: []string{"name"}}, open, "--where: character 5: a comparison such as = or > is expected after \"name\", not the end"},
	} {
		if c.named != "" {
			if err := c.sel.parseNamed([]string{c.named}); err != nil {
				t.Fatal(err)
			}
		}
		ids, err := a.pick(t.Context(), run, table, &c.sel, c.fit)
		got := jobs.RangesOf(ids).String()
		if err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s %+v: %s, want %s", c.named, c.sel, got, c.want)
		}
	}
}

// Whatever --where is given, it is refused or understood; nothing panics.
func FuzzWhere(f *testing.F) {
	for _, s := range []string{"state=failed", "exit=137,host=melon4", "name=a*[", "=", ",", "name=\\", "state=fail?d"} {
		f.Add(s)
	}
	a, run := &app{con: console.New(os.Stderr)}, &rundir.Run{Dir: f.TempDir(), Disk: rundir.OS, Asked: &rundir.Asked{}}
	table := &jobs.Table{Jobs: []jobs.Job{{Spec: &jobs.Spec{ID: 1, Command: "x", Options: jobs.NoOptions}, State: jobs.Failed}}}
	f.Fuzz(func(t *testing.T, s string) {
		sel := selection{where: []string{s}}
		ids, err := a.pick(t.Context(), run, table, &sel, func(jobs.JobState) bool { return true })
		if err != nil && len(ids) > 0 {
			t.Error(fmt.Sprint(ids), err)
		}
	})
}
