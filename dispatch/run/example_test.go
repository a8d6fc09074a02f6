package run_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"dcs-tui/dispatch/run"
	"dcs-tui/hosts"
	"dcs-tui/hosts/helper"
	"dcs-tui/hosts/helper/remote"
	"dcs-tui/hosts/link"
	"dcs-tui/internal/polltest"
	"dcs-tui/internal/progtest"
	"dcs-tui/jobs"
	"dcs-tui/jobs/action"
	"dcs-tui/jobs/journal"
	"dcs-tui/jobs/rundir"
)

// TestMain runs the host side if the program was started for that.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && strings.HasPrefix(os.Args[1], "__") {
		os.Exit(remote.Main(os.Args[1:]))
	}
	os.Exit(m.Run())
}

// startHere takes a run over and dispatches it to two slots of this machine. base is a directory
// for the helper.
func startHere(t *testing.T, dir *rundir.Run, base string, change ...func(*run.Options)) *run.Run {
	t.Helper()
	owned, err := run.Take(t.Context(), dir, journal.TakeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	here := hosts.Local()
	here.SetSlots(hosts.SlotRule{Fixed: 2})
	options := run.Options{
		Inventory: here,
		Connector: func(log func(host, line string)) (hosts.Connector, error) {
			return helper.New(helper.Options{Opener: hosts.Router{"local": link.LocalOpener{}}, Log: log, Bases: base}),
				nil
		},
		AcceptJobs: true,
	}
	for _, f := range change {
		f(&options)
	}
	r, err := run.Start(t.Context(), owned, options)
	if err != nil {
		owned.Release()
		t.Fatal(err)
	}
	return r
}

// startNew starts a new run in dir. Its processes end before dir is removed.
func startNew(t *testing.T, dir string, change ...func(*run.Options)) (*rundir.Run, *run.Run) {
	t.Helper()
	t.Cleanup(func() {
		progtest.CheckNothingLeft(t, time.Minute, func(p progtest.Process) bool { return p.RefersTo(dir) })
	})
	made, err := rundir.CreateAt(filepath.Join(dir, "run"), "r", rundir.Settings{Version: "test", Cwd: dir})
	if err != nil {
		t.Fatal(err)
	}
	return made, startHere(t, made, filepath.Join(dir, "base"), change...)
}

// TestJobsAreSubmittedWhileResultsAreRead checks that a Go program can start a run and submit jobs
// one after another while it reads results in completion order, and that later jobs can depend on
// earlier results (D1).
func TestJobsAreSubmittedWhileResultsAreRead(t *testing.T) {
	dir := t.TempDir()
	made, r := startNew(t, dir)
	submit := func(command string) {
		t.Helper()
		if err := r.Submit(t.Context(), &jobs.Spec{Command: command}); err != nil {
			t.Fatal(err)
		}
	}
	next := func() string {
		t.Helper()
		result, err := r.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		out, _, err := r.Output(t.Context(), result.Attempt, jobs.FileOut, 0, 100)
		if err != nil {
			t.Fatal(err)
		}
		r.Ack(result.Seq)
		return fmt.Sprintf("job %d %s %q", result.Job, result.State, out)
	}

	// Job 1 waits for the file that job 3 creates, which is submitted after the result of job 2.
	submit("while [ ! -e gate ]; do sleep 0.02; done; echo slow")
	submit("echo gate")
	if got, want := next(), `job 2 succeeded "gate\n"`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	submit("touch gate; sleep 1000 & wait")
	if got, want := next(), `job 1 succeeded "slow\n"`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	r.Do("test", &action.Request{Do: action.Cancel, All: true, Why: "enough"})
	if got, want := next(), `job 3 canceled ""`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	r.CloseInput()
	if result, err := r.Next(t.Context()); !errors.Is(err, io.EOF) {
		t.Errorf("got %v, %v; want io.EOF", result, err)
	}
	if err := r.Submit(t.Context(), &jobs.Spec{Command: "true"}); err == nil {
		t.Error("a job was submitted after the end")
	}
	outcome, err := r.Close()
	if err != nil {
		t.Fatal(err)
	}
	if c := outcome.Table.Counts; outcome.State != run.Canceled || c[jobs.Succeeded] != 2 || c[jobs.Canceled] != 1 ||
		len(outcome.Warnings) > 0 {
		t.Errorf("got %+v", outcome)
	}
	if input, err := made.ReadInput(); err != nil || input.State != rundir.InputDone {
		t.Errorf("input: got %+v, %v", input, err)
	}
}

// TestClosedRunContinues checks that a run that is closed before its jobs have ended continues
// without a dispatcher. The next dispatcher adopts its jobs and returns only unacknowledged
// results.
func TestClosedRunContinues(t *testing.T) {
	dir := t.TempDir()
	made, r := startNew(t, dir)
	if err := r.Submit(t.Context(), &jobs.Spec{Command: "true"},
		&jobs.Spec{Command: "touch begun; while [ ! -e gate ]; do sleep 0.02; done"}); err != nil {
		t.Fatal(err)
	}
	first, err := r.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r.Ack(first.Seq)
	polltest.Until(t, "job 2 runs", func() bool {
		_, err := os.Stat(filepath.Join(dir, "begun"))
		return err == nil
	})
	outcome, err := r.Close()
	if err != nil || outcome.State != run.Stopped || outcome.Table.Counts[jobs.Running] != 1 || !outcome.Input.Cut() {
		t.Fatalf("got %+v, %v; want a job that runs", outcome, err)
	}

	r = startHere(t, made, filepath.Join(dir, "base"))
	if err := os.WriteFile(filepath.Join(dir, "gate"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r.CloseInput()
	second, err := r.Next(t.Context())
	if err != nil || second.Job != 2 || second.State != jobs.Succeeded || second.Attempt.N != 1 {
		t.Errorf("got %+v, %v; want the first attempt of job 2", second, err)
	}
	if outcome, err = r.Close(); err != nil || outcome.State != run.Succeeded {
		t.Errorf("got %+v, %v", outcome, err)
	}
}
