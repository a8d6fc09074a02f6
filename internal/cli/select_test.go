package cli

import (
	"errors"
	"os"
	"testing"

	"dcs-tui/internal/text"
	"dcs-tui/jobs"
	"dcs-tui/jobs/action"
	"dcs-tui/jobs/rundir"
)

// TestAnEmptySelectionIsExplained checks that each action on jobs that has none to act on reports
// which condition no job meets, and which names there are if a name was asked for. If only the state
// of the jobs does not fit, it reports that.
func TestAnEmptySelectionIsExplained(t *testing.T) {
	tableOf := func(names ...string) *jobs.Table {
		table := &jobs.Table{}
		for i, name := range names {
			table.Jobs = append(table.Jobs, jobs.Job{State: jobs.Succeeded,
				Spec: &jobs.Spec{ID: jobs.ID(i + 1), Name: name, Command: "x", Options: &jobs.Options{}}})
		}
		return table
	}
	open := func(st jobs.JobState) bool { return !st.Terminal() }
	ended := func(st jobs.JobState) bool { return st.Terminal() }
	bad := func(st jobs.JobState) bool { return st.Terminal() && st != jobs.Succeeded }
	a, run := &app{con: newConsole(os.Stderr)}, &rundir.Run{Dir: t.TempDir(), Disk: rundir.OS,
		Settings: &rundir.Settings{}}
	for _, c := range []struct {
		do    action.Name
		table *jobs.Table
		named string
		sel   selection
		fit   func(jobs.JobState) bool
		want  string
	}{
		{action.Cancel, tableOf("a"), "", selection{where: queries(t, "exit=77", "state=failed")}, open,
			"nothing to cancel: no job matches exit=77 and matches state=failed"},
		{action.Cancel, tableOf("a", "", "b"), "", selection{where: queries(t, "name=bog")}, open,
			"nothing to cancel: no job matches name=bog; the only names are a, b"},
		{action.Requeue, tableOf("a", "a"), "", selection{where: queries(t, "name=bog")}, ended,
			"nothing to requeue: no job matches name=bog; the only name is a"},
		{action.Priority, tableOf("a", "b", "c", "d"), "", selection{where: queries(t, "name=bog")}, open,
			"nothing was changed: no job matches name=bog; names are, for example, a, b, c"},
		{action.Requeue, tableOf("", ""), "", selection{where: queries(t, "name=bog")}, ended,
			"nothing to requeue: no job matches name=bog; no job of the run has a name, so name is the command"},
		{action.Cancel, tableOf("a", "b"), "", selection{where: queries(t, "name=a")}, open,
			"nothing to cancel, 1 had already finished"},
		{action.Priority, tableOf("a", "b"), "", selection{where: queries(t, "job>0")}, open,
			"nothing was changed, 2 had already finished"},
		{action.Requeue, tableOf("a", "b"), "", selection{failed: true}, bad,
			"nothing to requeue: no job has failed or timed out"},
		{action.Requeue, tableOf("a", "b"), "1-2", selection{failed: true}, bad,
			"nothing to requeue: none of these jobs has failed or timed out"},
		{action.Requeue, tableOf("a", "b"), "", selection{all: true}, bad,
			"nothing to requeue: no job has ended without success"},
	} {
		t.Run(c.want, func(t *testing.T) {
			if c.named != "" {
				must(t, c.sel.parseNamed([]string{c.named}))
			}
			ids, err := a.selectJobs(t.Context(), run, c.table, &c.sel, c.fit)
			must(t, err)
			same(t, "selected", len(ids), 0)
			same(t, "text", c.sel.nothingText(c.do, c.table, 0), c.want)
		})
	}
}

// TestANameInPlaceOfANumberIsRefusedWithTheWayThatWorks checks that every place that takes numbers of
// jobs names the --where that selects by the name which was given there.
func TestANameInPlaceOfANumberIsRefusedWithTheWayThatWorks(t *testing.T) {
	t.Chdir(t.TempDir())
	must(t, os.MkdirAll("dcs-runs/sweep", 0o700))
	must(t, os.WriteFile("dcs-runs/sweep/"+rundir.SettingsFile, nil, 0o600))
	named := func(words ...string) error { return new(selection).parseNamed(words) }
	flag := func(word string) error {
		_, err := parseJobsFlag(word)
		return err
	}
	job := func(args ...string) error {
		_, _, err := new(app).openJob(args)
		return err
	}
	for _, c := range []struct {
		place string
		err   error
		want  string
	}{
		{"JOBS", named("3", "big1"), "--where name=big1 selects jobs by name"},
		{"JOBS with a blank", named("big one"), "--where 'name=big*' selects jobs by name"},
		{"JOBS that are numbers", named("5-3"), ""},
		{"--job", flag("big1"),
			"dcs-tui results --all --where name=big1 lists the numbers of jobs of the newest run"},
		{"JOB", job("big1"), "dcs-tui results --all --where name=big1 lists the numbers of jobs"},
		{"RUN JOB", job("my run", "big1"),
			"dcs-tui results 'my run' --all --where name=big1 lists the numbers of jobs"},
		{"RUN without JOB", job("sweep"), "it is a run: give the number of a job, too"},
	} {
		t.Run(c.place, func(t *testing.T) {
			var advised *text.Error
			got := ""
			if errors.As(c.err, &advised) {
				got = advised.Advice
			}
			if c.err == nil || got != c.want {
				t.Errorf("%v, with the advice %q, want %q", c.err, got, c.want)
			}
		})
	}
}
