package cli

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"dcs-tui/dispatch/run"
	"dcs-tui/hosts"
	"dcs-tui/internal/polltest"
	"dcs-tui/internal/text"
	"dcs-tui/jobs"
	"dcs-tui/jobs/action"
	"dcs-tui/jobs/journal"
	"dcs-tui/jobs/rundir"
	"dcs-tui/jobs/rundir/disktest"
	"dcs-tui/observe/runview"
)

// startRun starts the program in the background in its own directory, with these jobs, and
// follows the run.
func startRun(t *testing.T, jobLines string, flags ...string) *runScreen {
	t.Helper()
	dir := tempDir(t)
	writeFile(t, dir, "jobs.txt", jobLines)
	var said commandOutput
	args := append([]string{"run", "--name", "r", "--run-dir", filepath.Join(dir, "r"), "--cwd", dir,
		filepath.Join(dir, "jobs.txt")}, flags...)
	process, err := run.StartBackground(args, nil, &said, nil)
	must(t, err)
	ready, err := process.Ready(t.Context())
	if err != nil || ready == "" {
		t.Fatal(ready, err, said.problemOf(process, ""))
	}
	run, err := rundir.Open(ready)
	must(t, err)
	screen := newApp().openScreen(run)
	screen.process.Store(process)
	t.Cleanup(func() {
		screen.Close()
		endRun(t, run)
	})
	return screen
}

// startRunningJob is like startRun, and waits until a job runs.
func startRunningJob(t *testing.T, jobLines string, flags ...string) *runScreen {
	t.Helper()
	screen := startRun(t, jobLines, flags...)
	screen.awaitSnapshot(t, "a job runs", func(p *runview.Snapshot) bool { return p.Phases[runview.Running] > 0 })
	return screen
}

// killDispatcher kills the dispatcher, and waits until the screen reports that.
func (s *runScreen) killDispatcher(t *testing.T) *runview.Snapshot {
	t.Helper()
	syscall.Kill(s.process.Load().Process.Pid, syscall.SIGKILL)
	return s.awaitSnapshot(t, "it is dead", func(p *runview.Snapshot) bool { return p.Status == runview.StatusCrashed })
}

// mustDo carries out an action, which must change this number of jobs or hosts.
func (s *runScreen) mustDo(t *testing.T, a action.Request, done int) {
	t.Helper()
	if got, err := s.Do(t.Context(), a); err != nil || got.Done != done {
		t.Fatal(got, err)
	}
}

// mustRefuse checks that an action is refused.
func (s *runScreen) mustRefuse(t *testing.T, a action.Request) {
	t.Helper()
	var refused *runview.Refused
	if _, err := s.Do(t.Context(), a); !errors.As(err, &refused) {
		t.Error(err)
	}
}

// endRun ends any dispatcher of the run, and every job.
func endRun(t *testing.T, run *rundir.Run) {
	t.Helper()
	owner, err := journal.ReadOwner(run)
	if err == nil && owner.Liveness() == journal.Alive {
		writeFile(t, run.Dir, rundir.StopNowFile, "")
	} else if table, _, err := journal.Replay(run); err == nil && table.Unfinished() > 0 {
		(&runScreen{app: newApp(), run: run}).actUndispatched(context.Background(),
			action.Request{Do: action.Cancel, All: true}, nil)
	}
	awaitNobody(t, run)
}

// awaitNobody waits until the run has no dispatcher.
func awaitNobody(t *testing.T, run *rundir.Run) {
	t.Helper()
	polltest.Until(t, "nobody dispatches the run", func() bool {
		owner, err := journal.ReadOwner(run)
		return err == nil && owner.Liveness() == journal.Dead
	})
}

// awaitSnapshot polls the run until is returns true.
func (s *runScreen) awaitSnapshot(t *testing.T, what string, is func(*runview.Snapshot) bool) *runview.Snapshot {
	t.Helper()
	var snap *runview.Snapshot
	var err error
	ask := runview.Query{Wait: time.Second, Jobs: &runview.JobsWindow{Rows: 10}}
	for end := time.Now().Add(polltest.Patience); time.Now().Before(end); {
		var next *runview.Snapshot
		if next, err = s.Snapshot(t.Context(), ask); err == nil {
			if ask.After != 0 && next.Version < ask.After {
				t.Fatalf("the version fell from %x to %x", ask.After, next.Version)
			}
			ask.After = next.Version
			if snap = next; is(snap) {
				return snap
			}
		}
	}
	t.Fatalf("not so within %v: %s; %v\n%+v\n%s", polltest.Patience, what, err, snap,
		readFile(s.run.Dir, dispatcherLogFile))
	return nil
}

// gated is a job that waits until the gate is open.
const gated = "while [ -e jobs.txt -a ! -e gate ]; do sleep 0.02; done; echo $DCS_JOB_ID >> ran\n"

func (s *runScreen) openGate(t *testing.T) { writeFile(t, s.run.Settings.Cwd, "gate", "") }

// ranJobs returns the numbers of the gated jobs that have run.
func (s *runScreen) ranJobs() []string { return strings.Fields(readFile(s.run.Settings.Cwd, "ran")) }

// TestScreenOutlivesItsDispatcher kills the dispatcher. It checks that the screen reports that
// without waiting for missing heartbeats, and shows what is left. After a resume from the screen
// the run is live again, the job that kept running is adopted, and nothing runs twice. The screen
// still shows the run when it is over (X1).
func TestScreenOutlivesItsDispatcher(t *testing.T) {
	t.Parallel()
	screen := startRun(t, gated+gated)
	snap := screen.awaitSnapshot(t, "a job runs",
		func(p *runview.Snapshot) bool { return p.Phases[runview.Running] > 0 })
	if snap.Status != runview.StatusRunning || snap.Run.Name != "r" || snap.Run.Owner == "" ||
		len(snap.Jobs.Rows) != 2 {
		t.Errorf("got %+v, want the running run r with 2 jobs and an owner", snap)
	}
	first := screen.process.Load()
	syscall.Kill(first.Process.Pid, syscall.SIGKILL)
	<-first.Ended
	owner, err := journal.ReadOwner(screen.run)
	must(t, err)
	if owner.Liveness() != journal.Dead { // at once, not when heartbeats are missing
		t.Errorf("the owner is %v, not dead", owner.Liveness())
	}
	snap = screen.awaitSnapshot(t, "it is dead",
		func(p *runview.Snapshot) bool { return p.Status == runview.StatusCrashed })
	if !strings.Contains(snap.Over, "has died") || snap.Total != 2 || snap.Run.Owner != "" {
		t.Errorf("got %+v, want a dead dispatcher and 2 jobs", snap)
	}
	screen.mustRefuse(t, action.Request{Do: action.DrainRun})
	screen.mustDo(t, action.Request{Do: action.Pause}, 1) // both wait for the next dispatcher
	screen.mustDo(t, action.Request{Do: action.Continue}, 1)
	screen.mustDo(t, action.Request{Do: action.Resume}, 1)
	screen.awaitSnapshot(t, "it is live again", func(p *runview.Snapshot) bool {
		return p.Status == runview.StatusRunning && p.Phases[runview.Running] > 0
	})
	screen.mustRefuse(t, action.Request{Do: action.Resume})
	screen.openGate(t)
	snap = screen.awaitSnapshot(t, "it is over",
		func(p *runview.Snapshot) bool { return p.Status == runview.StatusFinished && p.Run.Owner == "" })
	if snap.Phases[runview.Succeeded] != 2 || snap.Over != "all jobs succeeded" {
		t.Errorf("got %+v, want 2 succeeded jobs", snap)
	}
	if ran := screen.ranJobs(); len(ran) != 2 {
		t.Errorf("ran: %q", ran)
	}
	process := screen.process.Load()
	<-process.Ended
	if process == first || process.Code != exitOK {
		t.Errorf("exit %d", process.Code)
	}
	owner, err = journal.ReadOwner(screen.run)
	must(t, err)
	if left, _ := filepath.Glob("/tmp/dcs-*/" + filepath.Base(owner.Socket)); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// TestRunAgainFromTheScreen edits and requeues jobs of a finished run from the screen, which starts
// a dispatcher for that. It checks that another screen of the run becomes live, too.
func TestRunAgainFromTheScreen(t *testing.T) {
	t.Parallel()
	screen := startRun(t, "exit 3\ntrue\n")
	screen.awaitSnapshot(t, "it is over", func(p *runview.Snapshot) bool {
		return p.Status == runview.StatusFinished && p.Phases[runview.Failed] == 1
	})
	other := newApp().openScreen(screen.run)
	defer other.Close()
	other.awaitSnapshot(t, "the other sees it",
		func(p *runview.Snapshot) bool { return p.Status == runview.StatusFinished })
	screen.mustDo(t, action.Request{Do: action.Edit, Jobs: jobs.One(1),
		Edit: &jobs.Change{Command: new(strings.TrimSpace(gated))}}, 1)
	for _, s := range []*runScreen{screen, other} {
		s.awaitSnapshot(t, "it is live", func(p *runview.Snapshot) bool {
			return p.Status == runview.StatusRunning && p.Phases[runview.Running] == 1
		})
	}
	screen.openGate(t)
	screen.awaitSnapshot(t, "it has succeeded", func(p *runview.Snapshot) bool {
		return p.Status == runview.StatusFinished && p.Phases[runview.Succeeded] == 2
	})

	screen.mustDo(t, action.Request{Do: action.Requeue, Jobs: jobs.One(2)}, 1)
	screen.awaitSnapshot(t, "again", func(p *runview.Snapshot) bool { return p.Status == runview.StatusFinished })
	polltest.Until(t, "the new round and its requests are published", func() bool {
		table, _, err := journal.Replay(screen.run)
		names, _, _ := screen.run.RequestNames()
		return err == nil && table.Job(jobs.ID(2)).Round == 2 &&
			!slices.ContainsFunc(names, func(name string) bool { return !table.Requests[name] })
	})
	none := ""
	screen.mustRefuse(t, action.Request{Do: action.Edit, Jobs: jobs.One(1),
		Edit: &jobs.Change{Command: new(" "), Name: &none}})
}

// TestCancelWhatADeadDispatcherLeft checks that canceling jobs of a run without a dispatcher ends
// them, also those that still run, and does not start the rest of the run (K9).
func TestCancelWhatADeadDispatcherLeft(t *testing.T) {
	t.Parallel()
	screen := startRunningJob(t, gated+gated+"#DCS after=1\necho 3 >> ran\n")
	screen.killDispatcher(t)
	if a, err := screen.Do(t.Context(), action.Request{Do: action.Cancel, Jobs: jobs.One(2)}); err != nil ||
		a.Done != 1 || a.Text != "job 2 canceled" || a.Changed.String() != "2" {
		t.Fatal(a, err)
	}
	screen.awaitSnapshot(t, "job 2 is canceled", func(p *runview.Snapshot) bool {
		return p.Status != runview.StatusRunning && p.Phases[runview.Canceled] == 1
	})
	if a, err := screen.Do(t.Context(), action.Request{Do: action.Cancel, All: true}); err != nil || a.Done != 2 ||
		a.Text != "2 jobs canceled, 1 had already finished" {
		t.Fatal(a, err)
	}
	snap := screen.awaitSnapshot(t, "all is over", func(p *runview.Snapshot) bool {
		return p.Status == runview.StatusFinished && p.Phases[runview.Canceled] >= 2
	})
	if !screen.canceled.Load() || snap.Phases[runview.Running]+snap.Phases[runview.Queued] != 0 {
		t.Errorf("got %+v, want a canceled run without running or queued jobs", snap)
	}
	if ran := screen.ranJobs(); len(ran) > 0 {
		t.Errorf("ran: %q", ran)
	}
}

// TestDrainAndStopReachTheDispatcher checks that drain and stop, chosen on leaving, reach the
// dispatcher, which ends as after Ctrl-C.
func TestDrainAndStopReachTheDispatcher(t *testing.T) {
	t.Parallel()
	screen := startRunningJob(t, gated+gated+gated)
	_, err := screen.Do(t.Context(), action.Request{Do: action.DrainRun})
	must(t, err)
	screen.awaitSnapshot(t, "it drains", func(p *runview.Snapshot) bool { return p.Draining != "" })
	_, err = screen.Do(t.Context(), action.Request{Do: action.StopRun})
	must(t, err)
	snap := screen.awaitSnapshot(t, "it has stopped",
		func(p *runview.Snapshot) bool { return p.Status == runview.StatusStopped && p.Run.Owner == "" })
	checkContains(t, snap.Over, "left")
	process := screen.process.Load()
	<-process.Ended
	same(t, "exit code", process.Code, exitLeft)
}

// TestStoppedDispatcherIsReportedAtOnce checks that the screen reports a stopped dispatcher
// immediately instead of waiting for it, and that the run is live again once the dispatcher
// continues.
func TestStoppedDispatcherIsReportedAtOnce(t *testing.T) {
	t.Parallel()
	screen := startRunningJob(t, gated)
	pid := screen.process.Load().Process.Pid
	syscall.Kill(pid, syscall.SIGSTOP)
	defer syscall.Kill(pid, syscall.SIGCONT)
	screen.awaitSnapshot(t, "it is named as stopped",
		func(p *runview.Snapshot) bool { return strings.Contains(p.Problem, "kill -CONT") })
	syscall.Kill(pid, syscall.SIGCONT)
	screen.awaitSnapshot(t, "it is live again", func(p *runview.Snapshot) bool {
		return p.Problem == "" && p.Status == runview.StatusRunning
	})
	screen.openGate(t)
	screen.awaitSnapshot(t, "it is over", func(p *runview.Snapshot) bool { return p.Status == runview.StatusFinished })
}

// TestRunWithoutASocket checks a run without a control socket. With a screen it does not start, and
// the message names an alternative. A run that prints lines continues and reports that nobody can
// attach.
func TestRunWithoutASocket(t *testing.T) {
	dir, a, inv := disktest.NewRun(t), newApp(), hosts.Local()
	owned, err := a.becomeOwner(dir, false)
	must(t, err)
	socketBase = filepath.Join(t.TempDir(), "none")
	defer func() { socketBase = "" }()
	a.starter = new(run.Starter)
	var p *text.Error
	if _, err := a.newDispatchSession(new(runFlags), inv, nil).runToEnd(owned); !errors.As(err, &p) ||
		!strings.Contains(p.Advice, "resume --no-tui") {
		t.Errorf("got error %v, want the advice to resume with --no-tui", err)
	}
	a.starter = nil
	if owned, err = a.becomeOwner(dir, false); err != nil {
		t.Fatal(err)
	}
	if code, err := a.newDispatchSession(new(runFlags), inv, nil).runToEnd(owned); err != nil || code != exitOK {
		t.Errorf("exit %d, %v", code, err)
	}
}

// TestPauseOutlivesItsDispatcher checks that a user's pause is recorded and that the dispatcher
// that resumes the run keeps it. The end of a Hold, which lasts until requests are executed, does
// not end the pause (D7).
func TestPauseOutlivesItsDispatcher(t *testing.T) {
	t.Parallel()
	screen := startRunningJob(t, gated+gated+gated)
	screen.mustDo(t, action.Request{Do: action.Pause}, 1)
	polltest.Until(t, "it is recorded", func() bool {
		table, err := replayTable(screen.run)
		return err == nil && table.Paused
	})
	screen.killDispatcher(t)
	if _, err := screen.run.FileRequest(&action.Request{Do: action.Cancel, Jobs: jobs.RangesOf([]jobs.ID{3}),
		At: time.Now()}); err != nil {
		t.Fatal(err)
	}
	screen.mustDo(t, action.Request{Do: action.Resume}, 1)
	screen.awaitSnapshot(t, "the request is carried out, and it is paused", func(p *runview.Snapshot) bool {
		return p.Status == runview.StatusRunning && p.Phases[runview.Canceled] == 1 && p.Paused
	})
	screen.mustDo(t, action.Request{Do: action.Continue}, 1)
	screen.openGate(t)
	screen.awaitSnapshot(t, "it is over", func(p *runview.Snapshot) bool {
		return p.Status == runview.StatusFinished && p.Phases[runview.Succeeded] == 2
	})
}

// TestObservedSilenceIsNotWaitedForAgain checks that a dispatcher in the background takes a run over at once
// if its starter has observed that the owner is silent.
func TestObservedSilenceIsNotWaitedForAgain(t *testing.T) {
	dir := stoppedRun(t)
	disktest.Elsewhere(t, dir, nil)
	silent, err := journal.ReadOwner(dir)
	must(t, err)
	var said commandOutput
	process, err := run.StartBackground([]string{"resume", dir.Dir}, nil, &said, silent)
	must(t, err)
	ready, err := process.Ready(t.Context())
	if err != nil || ready == "" {
		t.Fatal(ready, err, said.problemOf(process, ""))
	}
	endRun(t, dir)
	<-process.Ended
	if text := said.b.String(); strings.Contains(text, "waiting") {
		t.Errorf("it waited: %q", text)
	}
}

// TestScreenShowsTheErrorOfItsCommand checks that a screen shows the error of a command that it has
// started, and not all of the command's output.
func TestScreenShowsTheErrorOfItsCommand(t *testing.T) {
	for _, c := range []struct{ problem, printed, want string }{
		{"the run r is dispatched by x", "warning: not static\ndcs-tui: a\ndcs-tui: b\n",
			"the run r is dispatched by x"},
		{"", "panic: x\n", "panic: x"},
		{"", "", "it could not"},
	} {
		var w commandOutput
		w.Write([]byte(c.printed))
		same(t, "problem", w.problemOf(&run.Background{Problem: c.problem}, "it could not"), c.want)
	}
	var said commandOutput
	args := []string{"cancel", "--yes", filepath.Join(t.TempDir(), "none")}
	process, err := run.StartBackground(args, nil, &said, nil)
	must(t, err)
	ready, err := process.Ready(t.Context())
	if err != nil || ready != "" || process.Code != exitUsage ||
		!strings.HasPrefix(said.b.String(), "dcs-tui: "+process.Problem) || process.Problem == "" {
		t.Errorf("got %q, %v, code %d, problem %q, printed %q", ready, err, process.Code, process.Problem,
			said.b.String())
	}
}
