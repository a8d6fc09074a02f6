package cli

import (
	"bytes"
	"context"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"dcs-tui/dispatch"
	"dcs-tui/dispatch/run"
	"dcs-tui/dispatch/sched"
	"dcs-tui/dispatch/sched/halt"
	"dcs-tui/hosts"
	"dcs-tui/jobs"
	"dcs-tui/jobs/rundir"
	"dcs-tui/jobs/rundir/disktest"
)

// TestTheWarningAboutTheBinary checks that the warning appears only for hosts that the program is
// sent to.
func TestTheWarningAboutTheBinary(t *testing.T) {
	dynamic := buildSetting("CGO_ENABLED") == "1" // of this test binary
	for link, want := range map[string]bool{"local": false, "ssh": dynamic, "docker exec -i box": dynamic} {
		var b strings.Builder
		a := &app{con: consoleTo(&b)}
		a.warnDynamicBinary([]*hosts.Host{{Name: "here", Link: "local"}, {Name: "there", Link: link}})
		same(t, link, strings.Contains(b.String(), "make build"), want)
	}
}

// TestCancelOnSignal checks hosts check and fetch: the first Ctrl-C ends the work cleanly, and the
// second one ends the program even if nobody reads its output.
func TestCancelOnSignal(t *testing.T) {
	signals, quit := make(chan os.Signal, 1), make(chan bool)
	ctx, stop := cancelOnSignal(t.Context(), signals, func() { close(quit) })
	defer stop()
	signals <- syscall.SIGPIPE
	signals <- syscall.SIGINT
	<-ctx.Done()
	same(t, "Cause", context.Cause(ctx).Error(), "Ctrl-C")
	signals <- syscall.SIGINT
	<-quit
}

// TestProgressLineShowsTheRun checks the progress line: the counts, the rate, the hosts, and why
// nothing runs.
func TestProgressLineShowsTheRun(t *testing.T) {
	s := &dispatch.Snapshot{Retries: 5, Rate: 8.4, ETA: 4400 * time.Millisecond,
		Hosts: []sched.HostView{{HostStatus: jobs.HostStatus{State: jobs.HostUp}, Running: 12},
			{HostStatus: jobs.HostStatus{State: jobs.HostLost}}}}
	s.Counts[jobs.Succeeded], s.Counts[jobs.Failed], s.Counts[jobs.Running], s.Counts[jobs.Queued] = 50, 2, 16, 32
	const line = "50 of 100 ok, 2 failed, 12 running, 4 sent, 32 queued, ETA 4 s, 8.4/s, 5 tried again, 1 of 2 hosts up"
	same(t, "progressLine", progressLine(s, 200), "[##########..........] "+line)
	same(t, "a narrow progressLine", progressLine(s, len(line)+14), "[#####.....] "+line)
	same(t, "a progressLine without space", progressLine(s, len(line)), line)
	s.InputOpen = true
	same(t, "progressLine", progressLine(s, 200), strings.Replace(line, "ETA 4 s", "ETA 4 s, more may come", 1))
	s.Problem = "the disk is full"
	same(t, "progressLine", progressLine(s, 200),
		"50 of 100 ok, 2 failed, 12 running, 4 sent, 32 queued, launching nothing: the disk is full, 5 tried again")
	same(t, "progressLine", progressLine(&dispatch.Snapshot{Hosts: make([]sched.HostView, 1)}, 80),
		"0 of 0 ok, connecting")
	// While nothing runs, the line gives the reason why a host starts nothing, and no ETA.
	s = &dispatch.Snapshot{ETA: time.Minute,
		Hosts: []sched.HostView{{Name: "a", HostStatus: jobs.HostStatus{State: jobs.HostUp, Hold: jobs.HeldByOthersLoad,
			Reason: "reduces its slots: others use 2.1 cores"}}}}
	s.Counts[jobs.Queued] = 8
	same(t, "progressLine", progressLine(s, 80),
		"[.............] 0 of 8 ok, 8 queued, a: reduces its slots: others use 2.1 cores")
	s.Counts[jobs.Running], s.Hosts[0].Running = 1, 1
	same(t, "progressLine", progressLine(s, 80), "[....................] 0 of 9 ok, 1 running, 8 queued, ETA 60 s")
}

// finishedRun returns a run with one succeeded job that this process dispatched last.
func finishedRun(t *testing.T) *rundir.Run {
	t.Helper()
	run := disktest.NewRun(t)
	must(t, run.AppendSpecs([]*jobs.Spec{{ID: 1, Command: "true", Options: jobs.NoOptions}}))
	j := takeOver(t, run)
	must(t, j.Append([]jobs.Record{
		{Kind: jobs.KindAccepted, At: 1, Job: 1, Count: 1},
		{Kind: jobs.KindLaunching, At: 2, Job: 1, N: 1, Host: "a"},
		{Kind: jobs.KindExited, At: 4, Job: 1, N: 1, Next: jobs.Succeeded, Seq: 1,
			Outcome: &jobs.Outcome{Started: 2, Ended: 3}},
		{Kind: jobs.KindEnded, At: 5},
	}))
	must(t, j.Sync())
	must(t, j.Close())
	return run
}

// TestLastMessageDescribesTheCurrentState checks that the last message of a screen describes the
// current state of the run. The exit code of a dispatcher that was followed earlier is out of date:
// the message once reported a stopped run with jobs left, above a count of all jobs succeeded.
func TestLastMessageDescribesTheCurrentState(t *testing.T) {
	for _, c := range []struct {
		what   string
		pid    int // of the dispatcher that was started here
		code   int
		dated  string
		absent string
	}{
		{"taken over by another", os.Getpid() + 1, exitOK, "  dispatched last by dcs-tui of ",
			"stopped with jobs left"},
		{"never", os.Getpid(), exitLeft, "stopped with jobs left", "dispatched last by"},
	} {
		t.Run(c.what, func(t *testing.T) {
			process := &run.Background{Process: &os.Process{Pid: c.pid}, Ended: make(chan struct{}), Code: exitLeft}
			close(process.Ended)
			var said bytes.Buffer
			a := newApp()
			a.con = consoleTo(&said)
			run := finishedRun(t)
			screen := a.openScreen(run)
			screen.process.Store(process)
			must(t, a.reportLeft(screen, nil))
			if text := said.String(); a.exitCode != c.code || !strings.Contains(text, c.dated) ||
				strings.Contains(text, c.absent) || !strings.Contains(text, "1 succeeded") {
				t.Errorf("%s: exit %d\n%s", c.what, a.exitCode, text)
			}
		})
	}
}

// TestReportOfAnOvertakenDispatcher checks that a dispatcher whose run was taken over reports
// that, and nothing about jobs, because it does not know what happened to them since (X1).
func TestReportOfAnOvertakenDispatcher(t *testing.T) {
	table := &jobs.Table{Jobs: []jobs.Job{{State: jobs.Running, Spec: &jobs.Spec{Command: "true"}}}}
	table.Counts[jobs.Running] = 1
	a := newApp()
	a.con = consoleTo(new(bytes.Buffer))
	finish := sched.Finish{How: sched.Fenced, Why: "another dispatcher has taken this run over (epoch 2)"}
	s := &summary{app: a, flags: new(runFlags),
		Outcome: &run.Outcome{State: run.StateOf(finish.How, table.Counts, false, false, halt.Rule{}),
			Run: disktest.NewRun(t), Table: table, Finish: finish}}
	code := s.exitCode()
	text := strings.Join(s.lines(code), "\n")
	checkContains(t, text, finish.Why, "dcs-tui status")
	same(t, "exit code", code, exitLeft)
	same(t, "a message about jobs", strings.Contains(text, "1 job"), false)
}
