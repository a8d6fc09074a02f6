package cli

import (
	"context"
	"errors"
	"os"
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
	"dcs-tui/jobs/journal"
	"dcs-tui/jobs/rundir"
	"dcs-tui/jobs/runview"
)

// inBackground starts the program in the background in its own directory, with these jobs, and
// follows the run.
func inBackground(t *testing.T, jobLines string, flags ...string) *runScreen {
	t.Helper()
	dir := t.TempDir()
	t.Chdir(dir)
	t.Setenv("HOME", dir)
	t.Setenv("TEST_BASES", filepath.Join(dir, "base"))
	name := run.ProgramName
	run.ProgramName = "dcs-tui" // testscript runs the program by this name
	t.Cleanup(func() { run.ProgramName = name })
	writeFile(t, dir, "jobs.txt", jobLines)
	var said output
	p, err := run.StartBackground(append([]string{"run", "--name", "r", "jobs.txt"}, flags...), nil, &said)
	if err != nil {
		t.Fatal(err)
	}
	ready, err := p.Ready(t.Context())
	if err != nil || ready == "" {
		t.Fatal(ready, err, said.problem(""))
	}
	run, err := rundir.Open(ready)
	if err != nil {
		t.Fatal(err)
	}
	f := newApp().openScreen(run)
	f.process.Store(p)
	t.Cleanup(func() {
		f.Close()
		endRun(t, run, &f.process)
	})
	return f
}

// endRun ends any dispatcher of the run, and every job.
func endRun(t *testing.T, run *rundir.Run, last interface{ Load() *run.Background }) {
	owner, err := journal.ReadOwner(run)
	if err == nil && owner.Life() == journal.Alive {
		writeFile(t, run.Dir, rundir.StopNowFile, "")
	} else if table, _, err := journal.Replay(run); err == nil && table.Unfinished() > 0 {
		(&runScreen{app: newApp(), run: run}).cancel(context.Background())
	}
	if p := last.Load(); p != nil {
		select {
		case <-p.Ended:
		case <-time.After(polltest.Patience):
			t.Error("the dispatcher does not end")
			p.Process.Kill()
		}
	}
}

// until polls the run until is returns true.
func (f *runScreen) until(t *testing.T, what string, is func(*runview.Snapshot) bool) *runview.Snapshot {
	t.Helper()
	var pic *runview.Snapshot
	var err error
	ask := runview.Query{Wait: time.Second, Jobs: &runview.JobsWindow{Rows: 10}}
	for end := time.Now().Add(polltest.Patience); time.Now().Before(end); {
		var next *runview.Snapshot
		if next, err = f.Snapshot(t.Context(), ask); err == nil {
			if ask.After != 0 && next.Version < ask.After {
				t.Fatalf("the version fell from %x to %x", ask.After, next.Version)
			}
			ask.After = next.Version
			if pic = next; is(pic) {
				return pic
			}
		}
	}
	log, _ := os.ReadFile(f.run.Path(dispatcherLogFile))
	t.Fatalf("not so within a minute: %s; %v\n%+v\n%s", what, err, pic, log)
	return nil
}

const gated = "while [ -e jobs.txt -a ! -e gate ]; do sleep 0.02; done; echo $DCS_JOB_ID >> ran\n"

// TestScreenOutlivesItsDispatcher kills the dispatcher. It checks that the screen reports that
// within seconds and shows what is left. After a resume from the screen the run is live again, the
// job that kept running is adopted, and nothing runs twice. The screen still shows the run when it
// is over (X1).
func TestScreenOutlivesItsDispatcher(t *testing.T) {
	f := inBackground(t, gated+gated)
	pic := f.until(t, "a job runs", func(p *runview.Snapshot) bool { return p.Phases[runview.Running] > 0 })
	if pic.Status != runview.StatusRunning || pic.Run.Name != "r" || pic.Run.Owner == "" || len(pic.Jobs.Rows) != 2 {
		t.Errorf("%+v", pic)
	}
	first := f.process.Load()
	syscall.Kill(first.Process.Pid, syscall.SIGKILL)
	killed := time.Now()
	pic = f.until(t, "it is dead", func(p *runview.Snapshot) bool { return p.Status == runview.StatusCrashed })
	if d := time.Since(killed); d > 10*time.Second || !strings.Contains(pic.Over, "has died") || pic.Total != 2 || pic.Run.Owner != "" {
		t.Errorf("after %v: %+v", d, pic)
	}
	var refused *runview.Refused
	if _, err := f.Do(t.Context(), runview.Action{Do: runview.Pause}); !errors.As(err, &refused) {
		t.Error(err)
	}
	if a, err := f.Do(t.Context(), runview.Action{Do: runview.Resume}); err != nil || a.Done != 1 {
		t.Fatal(a, err)
	}
	f.until(t, "it is live again", func(p *runview.Snapshot) bool {
		return p.Status == runview.StatusRunning && p.Phases[runview.Running] > 0
	})
	if _, err := f.Do(t.Context(), runview.Action{Do: runview.Resume}); !errors.As(err, &refused) {
		t.Error(err)
	}
	writeFile(t, ".", "gate", "")
	pic = f.until(t, "it is over", func(p *runview.Snapshot) bool { return p.Status == runview.StatusFinished && p.Run.Owner == "" })
	if pic.Phases[runview.Succeeded] != 2 || pic.Over != "all jobs succeeded" {
		t.Errorf("%+v", pic)
	}
	if ran, _ := os.ReadFile("ran"); len(strings.Fields(string(ran))) != 2 {
		t.Errorf("ran: %q", ran)
	}
	p := f.process.Load()
	<-p.Ended
	if p == first || p.Code != exitOK {
		t.Errorf("exit %d", p.Code)
	}
	if left, _ := filepath.Glob("/tmp/dcs-*/" + filepath.Base(f.address(t))); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

func (f *runScreen) address(t *testing.T) string {
	owner, err := journal.ReadOwner(f.run)
	if err != nil {
		t.Fatal(err)
	}
	return owner.Socket
}

// TestRunAgainFromTheScreen edits and requeues jobs of a finished run from the screen, which starts
// a dispatcher for that. It checks that another screen of the run becomes live, too.
func TestRunAgainFromTheScreen(t *testing.T) {
	f := inBackground(t, "exit 3\ntrue\n")
	f.until(t, "it is over", func(p *runview.Snapshot) bool {
		return p.Status == runview.StatusFinished && p.Phases[runview.Failed] == 1
	})
	other := newApp().openScreen(f.run)
	defer other.Close()
	other.until(t, "the other sees it", func(p *runview.Snapshot) bool { return p.Status == runview.StatusFinished })
	a, err := f.Do(t.Context(), runview.Action{Do: runview.Edit, Jobs: jobs.One(1), Edit: &jobs.Change{Command: new(strings.TrimSpace(gated))}})
	if err != nil || a.Done != 1 {
		t.Fatal(a, err)
	}
	for _, s := range []*runScreen{f, other} {
		s.until(t, "it is live", func(p *runview.Snapshot) bool {
			return p.Status == runview.StatusRunning && p.Phases[runview.Running] == 1
		})
	}
	writeFile(t, ".", "gate", "")
	f.until(t, "it has succeeded", func(p *runview.Snapshot) bool {
		return p.Status == runview.StatusFinished && p.Phases[runview.Succeeded] == 2
	})

	if a, err := f.Do(t.Context(), runview.Action{Do: runview.Requeue, Jobs: jobs.One(2)}); err != nil || a.Done != 1 {
		t.Fatal(a, err)
	}
	f.until(t, "again", func(p *runview.Snapshot) bool { return p.Status == runview.StatusFinished })
	polltest.Until(t, "the new round and its requests are published", func() bool {
		table, _, err := journal.Replay(f.run)
		names, _, _ := f.run.RequestNames()
		return err == nil && table.Job(jobs.ID(2)).Round == 2 && !slices.ContainsFunc(names, func(name string) bool { return !table.Requests[name] })
	})
	var refused *runview.Refused
	none := ""
	if _, err := f.Do(t.Context(), runview.Action{Do: runview.Edit, Jobs: jobs.One(1), Edit: &jobs.Change{Command: new(" "), Name: &none}}); !errors.As(err, &refused) {
		t.Error(err)
	}
}

// TestCancelWhatADeadDispatcherLeft checks that canceling jobs of a run without a dispatcher ends
// them, also those that still run, and does not start the rest of the run (K9).
func TestCancelWhatADeadDispatcherLeft(t *testing.T) {
	f := inBackground(t, gated+gated+"#DCS after=1\necho 3 >> ran\n")
	f.until(t, "a job runs", func(p *runview.Snapshot) bool { return p.Phases[runview.Running] > 0 })
	syscall.Kill(f.process.Load().Process.Pid, syscall.SIGKILL)
	f.until(t, "it is dead", func(p *runview.Snapshot) bool { return p.Status == runview.StatusCrashed })
	if a, err := f.Do(t.Context(), runview.Cancel.Jobs(2)); err != nil || a.Done != 1 || a.Text != "1 job canceled" || a.Changed.String() != "2" {
		t.Fatal(a, err)
	}
	f.until(t, "job 2 is canceled", func(p *runview.Snapshot) bool {
		return p.Status != runview.StatusRunning && p.Phases[runview.Canceled] == 1
	})
	if a, err := f.Do(t.Context(), runview.Action{Do: runview.CancelRun}); err != nil || a.Done != 2 || a.Text != "2 jobs canceled" {
		t.Fatal(a, err)
	}
	pic := f.until(t, "all is over", func(p *runview.Snapshot) bool {
		return p.Status == runview.StatusFinished && p.Phases[runview.Canceled] >= 2
	})
	if !f.canceled.Load() || pic.Phases[runview.Running]+pic.Phases[runview.Queued] != 0 {
		t.Errorf("%+v", pic)
	}
	if ran, err := os.ReadFile("ran"); err == nil {
		t.Errorf("ran: %q", ran)
	}
}

// TestStopFromTheScreen checks that drain and stop, chosen on leaving, reach the dispatcher, which
// ends as after Ctrl-C.
func TestStopFromTheScreen(t *testing.T) {
	f := inBackground(t, gated+gated+gated)
	f.until(t, "a job runs", func(p *runview.Snapshot) bool { return p.Phases[runview.Running] > 0 })
	if _, err := f.Do(t.Context(), runview.Action{Do: runview.DrainRun}); err != nil {
		t.Fatal(err)
	}
	f.until(t, "it drains", func(p *runview.Snapshot) bool { return p.Draining != "" })
	if _, err := f.Do(t.Context(), runview.Action{Do: runview.StopRun}); err != nil {
		t.Fatal(err)
	}
	pic := f.until(t, "it has stopped", func(p *runview.Snapshot) bool { return p.Status != runview.StatusRunning && p.Run.Owner == "" })
	if pic.Status != runview.StatusStopped || !strings.Contains(pic.Over, "left") {
		t.Errorf("%+v", pic)
	}
	p := f.process.Load()
	<-p.Ended
	if p.Code != exitLeft {
		t.Errorf("exit %d", p.Code)
	}
}

// TestStoppedDispatcher checks that the screen reports a stopped dispatcher immediately instead of
// waiting for it, and that the run is live again once the dispatcher continues.
func TestStoppedDispatcher(t *testing.T) {
	f := inBackground(t, gated)
	f.until(t, "a job runs", func(p *runview.Snapshot) bool { return p.Phases[runview.Running] > 0 })
	pid := f.process.Load().Process.Pid
	syscall.Kill(pid, syscall.SIGSTOP)
	defer syscall.Kill(pid, syscall.SIGCONT)
	f.until(t, "it is named as stopped", func(p *runview.Snapshot) bool { return strings.Contains(p.Problem, "kill -CONT") })
	syscall.Kill(pid, syscall.SIGCONT)
	f.until(t, "it is live again", func(p *runview.Snapshot) bool { return p.Problem == "" && p.Status == runview.StatusRunning })
	writeFile(t, ".", "gate", "")
	f.until(t, "it is over", func(p *runview.Snapshot) bool { return p.Status == runview.StatusFinished })
}

// TestNoSocket checks a run without a control socket. With a screen it does not start, and the
// message names an alternative. A run that prints lines continues and reports that nobody can
// attach.
func TestNoSocket(t *testing.T) {
	base := t.TempDir()
	t.Chdir(base)
	dir, err := rundir.CreateAt(filepath.Join(base, "r"), "r", rundir.Asked{Cwd: base, Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	a := newApp()
	o, err := a.own(dir, false)
	if err != nil {
		t.Fatal(err)
	}
	old := socketBase
	socketBase = filepath.Join(base, "none")
	defer func() { socketBase = old }()
	inv := hosts.Local()
	a.starter = new(run.Starter)
	var p *text.Error
	if _, err := a.dispatching(new(runFlags), inv, nil).drive(o); !errors.As(err, &p) || !strings.Contains(p.Advice, "resume --no-tui") {
		t.Errorf("%v", err)
	}
	a.starter = nil
	if o, err = a.own(dir, false); err != nil {
		t.Fatal(err)
	}
	if code, err := a.dispatching(new(runFlags), inv, nil).drive(o); err != nil || code != exitOK {
		t.Errorf("exit %d, %v", code, err)
	}
}

// TestPauseOutlivesItsDispatcher checks that a user's pause is recorded and that the dispatcher
// that resumes the run keeps it. The end of a Hold, which lasts until requests are executed, does
// not end the pause (D7).
func TestPauseOutlivesItsDispatcher(t *testing.T) {
	f := inBackground(t, gated+gated+gated)
	f.until(t, "a job runs", func(p *runview.Snapshot) bool { return p.Phases[runview.Running] > 0 })
	if a, err := f.Do(t.Context(), runview.Action{Do: runview.Pause}); err != nil || a.Done != 1 {
		t.Fatal(a, err)
	}
	polltest.Until(t, "it is recorded", func() bool {
		table, err := wholeTable(f.run)
		return err == nil && table.Paused
	})
	syscall.Kill(f.process.Load().Process.Pid, syscall.SIGKILL)
	f.until(t, "it is dead", func(p *runview.Snapshot) bool { return p.Status == runview.StatusCrashed })
	if _, err := f.run.FileRequest(&rundir.Request{Do: rundir.DoCancel, Jobs: jobs.RangesOf([]jobs.ID{3}), At: time.Now()}); err != nil {
		t.Fatal(err)
	}
	if a, err := f.Do(t.Context(), runview.Action{Do: runview.Resume}); err != nil || a.Done != 1 {
		t.Fatal(a, err)
	}
	f.until(t, "the request is carried out, and it is paused", func(p *runview.Snapshot) bool {
		return p.Status == runview.StatusRunning && p.Phases[runview.Canceled] == 1 && p.Paused
	})
	if a, err := f.Do(t.Context(), runview.Action{Do: runview.Continue}); err != nil || a.Done != 1 {
		t.Fatal(a, err)
	}
	writeFile(t, ".", "gate", "")
	f.until(t, "it is over", func(p *runview.Snapshot) bool {
		return p.Status == runview.StatusFinished && p.Phases[runview.Succeeded] == 2
	})
}

// TestProblemOfACommand checks that a screen shows the error of a command that it has started, and
// not all of the command's output.
func TestProblemOfACommand(t *testing.T) {
	for said, want := range map[string]string{
		"warning: not static\nthe inventory has changed: added b\ndcs-tui: the run r is dispatched by x\n  dcs-tui attach r shows its screen\n": "the run r is dispatched by x",
		"panic: x\n": "panic: x", "": "it could not",
	} {
		var w output
		w.Write([]byte(said))
		if got := w.problem("it could not"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	after := &jobs.Table{}
	after.Counts[jobs.Canceled], after.Counts[jobs.Running] = 3, 2
	if a := cancelAnswer(&jobs.Table{}, after, true); a.Done != 3 || a.Text != "3 jobs canceled, 2 have not ended yet: they are ended as soon as their hosts can be reached" {
		t.Errorf("%+v", a)
	}
}
