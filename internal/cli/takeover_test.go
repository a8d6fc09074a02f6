package cli

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"dcs-tui/dispatch/run"
	"dcs-tui/dispatch/sched"
	"dcs-tui/internal/cli/console"
	"dcs-tui/internal/cli/exit"
	"dcs-tui/jobs"
	"dcs-tui/jobs/journal"
	"dcs-tui/jobs/rundir"
)

// over is a run of one job that has succeeded; this process dispatched it last.
func over(t *testing.T) *rundir.Run {
	t.Helper()
	run := emptyRun(t)
	if err := run.AppendSpecs([]*jobs.Spec{{ID: 1, Command: "true", Options: jobs.NoOptions}}); err != nil {
		t.Fatal(err)
	}
	j, _, _, err := journal.Take(t.Context(), run, journal.TakeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	err = j.Append([]jobs.Record{
		{Kind: jobs.KindAccepted, At: 1, Job: 1, Count: 1},
		{Kind: jobs.KindLaunching, At: 2, Job: 1, N: 1, Host: "a"},
		{Kind: jobs.KindExited, At: 4, Job: 1, N: 1, Next: jobs.Succeeded, Seq: 1, Outcome: &jobs.Outcome{Started: 2, Ended: 3}},
		{Kind: jobs.KindEnded, At: 5},
	})
	if err == nil {
		err = j.Sync()
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	return run
}

// DESIGN 8: the last words of a screen are of the run as it is. What a dispatcher exited
// with that somebody has followed is past: the run was said to be stopped with jobs left
// above the count of all jobs succeeded.
func TestLastWordsAfterATakeover(t *testing.T) {
	for _, c := range []struct {
		what   string
		pid    int // of the dispatcher that was started here
		code   int
		dated  string
		absent string
	}{
		{"taken over by another", os.Getpid() + 1, exit.OK, "  dispatched last by dcs-tui of ", "stopped with jobs left"},
		{"never", os.Getpid(), exit.Left, "stopped with jobs left", "dispatched last by"},
	} {
		p := &run.Background{Process: &os.Process{Pid: c.pid}, Ended: make(chan struct{}), Code: exit.Left}
		close(p.Ended)
		var said bytes.Buffer
		a := newApp()
		a.con = console.To(&said)
		run := over(t)
		f := a.openScreen(run)
		f.process.Store(p)
		if err := a.farewell(f, nil); err != nil {
			t.Fatal(err)
		}
		if text := said.String(); a.code != c.code || !strings.Contains(text, c.dated) || strings.Contains(text, c.absent) || !strings.Contains(text, "1 succeeded") {
			t.Errorf("%s: exit %d\n%s", c.what, a.code, text)
		}
	}
}

// X1: a dispatcher that another has taken the run over from says that, and nothing of jobs:
// it does not know what has become of them since.
func TestLastWordsOfAnOvertakenDispatcher(t *testing.T) {
	table := &jobs.Table{Jobs: []jobs.Job{{State: jobs.Running, Spec: &jobs.Spec{Command: "true"}}}}
	table.Counts[jobs.Running] = 1
	a := newApp()
	a.con = console.To(new(bytes.Buffer))
	finish := sched.Finish{How: sched.Fenced, Why: "another dispatcher has taken this run over (epoch 2)"}
	s := &summary{app: a, flags: new(runFlags), Outcome: &run.Outcome{State: run.StateOf(finish.How, table.Counts, false, false),
		Run: emptyRun(t), Table: table, Finish: finish}}
	code := s.exitCode()
	text := strings.Join(s.lines(code), "\n")
	if !strings.Contains(text, finish.Why) || !strings.Contains(text, "dcs-tui status") || strings.Contains(text, "1 job") || code != exit.Left {
		t.Errorf("exit %d\n%s", code, text)
	}
}
