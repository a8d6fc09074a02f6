package run_test

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"dcs-tui/dispatch/run"
	"dcs-tui/internal/polltest"
	"dcs-tui/jobs"
	"dcs-tui/jobs/attempts"
	"dcs-tui/jobs/rundir"
)

// TestLongRunPacksItsFiles checks that a run with enough jobs packs the files of those that have
// ended while others run, that its outputs can be read all the same, and that a run with fewer jobs
// packs nothing.
func TestLongRunPacksItsFiles(t *testing.T) {
	t.Cleanup(run.PackAfter(50 * time.Millisecond))
	const numJobs = 300
	dir := t.TempDir()
	made, r := startNew(t, dir, func(o *run.Options) { o.PackFiles = numJobs })
	submit := func(command string) {
		t.Helper()
		polltest.Must(t, r.Submit(t.Context(), &jobs.Spec{Command: command}))
	}
	for i := range numJobs - 1 {
		submit(fmt.Sprintf("echo output %d", i+1))
	}
	ack := func() {
		result, err := r.Next(t.Context())
		polltest.Must(t, err)
		r.Ack(result.Seq)
	}
	for range numJobs - 1 {
		ack()
	}
	if attempts.HasPacks(made.Disk, made.Dir) {
		t.Error("files were packed before there were enough jobs")
	}
	gate := filepath.Join(dir, "gate") // a job that opens it would wait for another slot of a busy host
	submit("while [ ! -e " + gate + " ]; do sleep 0.02; done; echo last")
	polltest.Until(t, "files are in packs", func() bool { return attempts.HasPacks(made.Disk, made.Dir) })
	polltest.Must(t, os.WriteFile(gate, nil, 0o600))
	ack()
	for id, want := range map[jobs.ID]string{1: "output 1\n", 299: "output 299\n", 300: "last\n"} {
		out, _, err := r.Output(t.Context(), jobs.AttemptID{Job: id, N: 1}, jobs.FileOut, 0, 100)
		if err != nil || string(out) != want {
			t.Errorf("output of job %d: %q, %v", id, out, err)
		}
	}
	r.CloseInput()
	outcome, err := r.Close()
	if err != nil || len(outcome.Warnings) > 0 {
		t.Fatalf("%v %v", outcome, err)
	}
	if n, err := run.Pack(made); n == 0 || err != nil {
		t.Errorf("packed %d attempts after the end, %v", n, err)
	}
}

// TestEndOfRunPacksItsNewestFiles checks that a run with enough jobs packs the files of the jobs
// that ended last when it ends, and that a run with fewer jobs does not.
func TestEndOfRunPacksItsNewestFiles(t *testing.T) {
	const numJobs = 300
	for least, want := range map[int]bool{numJobs: true, numJobs + 1: false, 0: false} {
		t.Run(fmt.Sprint(least), func(t *testing.T) {
			made, r := startNew(t, t.TempDir(), func(o *run.Options) { o.PackFiles = least })
			for range numJobs {
				polltest.Must(t, r.Submit(t.Context(), &jobs.Spec{Command: "echo output"}))
			}
			r.CloseInput()
			for range numJobs {
				result, err := r.Next(t.Context())
				polltest.Must(t, err)
				r.Ack(result.Seq)
			}
			if outcome, err := r.Close(); err != nil || len(outcome.Warnings) > 0 {
				t.Fatalf("%v %v", outcome, err)
			}
			files, err := filepath.Glob(made.Path("attempts", "*", "*.out"))
			if err != nil || attempts.HasPacks(made.Disk, made.Dir) != want || (len(files) == 0) != want {
				t.Errorf("%d outputs are in files of their own, %v", len(files), err)
			}
			out, err := rundir.ReadFile(rundir.WithPacks(made.Disk), jobs.AttemptFile(made.Dir,
				jobs.AttemptID{Job: numJobs, N: 1}, jobs.FileOut))
			if err != nil || string(out) != "output\n" {
				t.Errorf("the output of the last job is %q, %v", out, err)
			}
		})
	}
}

// TestAStopEndsThePackingAtTheEnd checks that a person who requests a stop does not wait until all
// files of a run that has ended are packed.
func TestAStopEndsThePackingAtTheEnd(t *testing.T) {
	const numJobs = 300
	signals := make(chan os.Signal)
	made, r := startNew(t, t.TempDir(), func(o *run.Options) {
		o.PackFiles = numJobs
		o.Signals = func() <-chan os.Signal { return signals }
	})
	for range numJobs {
		polltest.Must(t, r.Submit(t.Context(), &jobs.Spec{Command: "echo output"}))
	}
	r.CloseInput()
	for result, err := r.Next(t.Context()); err == nil; result, err = r.Next(t.Context()) {
		r.Ack(result.Seq)
	}
	signals <- syscall.SIGTERM
	signals <- syscall.SIGHUP // when it is received, the first one has been handled
	if _, err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(made.Path(rundir.CountsFile)); err != nil || attempts.HasPacks(made.Disk, made.Dir) {
		t.Errorf("the run has ended: %v; it has packs: %t", err, attempts.HasPacks(made.Disk, made.Dir))
	}
}
