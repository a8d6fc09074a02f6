package run_test

import (
	"fmt"
	"testing"
	"time"

	"dcs-tui/dispatch/run"
	"dcs-tui/internal/polltest"
	"dcs-tui/jobs"
	"dcs-tui/jobs/attempts"
)

// TestLongRunPacksItsFiles checks that a run with enough jobs packs the files of those that have
// ended while others run, that its outputs can be read all the same, and that a run with fewer jobs
// packs nothing.
func TestLongRunPacksItsFiles(t *testing.T) {
	t.Cleanup(run.PackEvery(50 * time.Millisecond))
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
	submit("while [ ! -e gate ]; do sleep 0.02; done; echo last")
	polltest.Until(t, "files are in packs", func() bool { return attempts.HasPacks(made.Disk, made.Dir) })
	submit("touch gate")
	ack()
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
