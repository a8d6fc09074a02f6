package run

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"dcs-tui/dispatch"
	"dcs-tui/jobs"
	"dcs-tui/jobs/results"
	"dcs-tui/jobs/rundir/disktest"
)

// TestJobLogKeepsItsLinesOnAFullDisk checks that a job log on a full disk keeps its lines until
// there is space, and is then complete.
func TestJobLogKeepsItsLinesOnAFullDisk(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("there is no /dev/full")
	}
	dir := t.TempDir()
	run := disktest.NewRun(t)
	path, real := filepath.Join(dir, "log"), filepath.Join(dir, "real")
	must(t, os.Symlink("/dev/full", path))
	l, err := openJobLog(path, run, &jobs.Table{}, func(error) {})
	must(t, err)
	for i := range 3 {
		l.Add(&dispatch.Result{Job: jobs.ID(i + 1), Command: "true", Attempts: 1})
		if l.retry(); !errors.Is(l.failure, syscall.ENOSPC) {
			t.Fatalf("got failure %v, want ENOSPC", l.failure)
		}
		if i == 1 {
			must(t, errors.Join(os.Remove(path), os.WriteFile(real, nil, 0o600), os.Symlink(real, path)))
			if l.retry(); l.failure != nil {
				t.Fatal(l.failure)
			}
			break
		}
	}
	l.Add(&dispatch.Result{Job: 3, Command: "true", Attempts: 1})
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	b, err := os.ReadFile(real)
	if err != nil || !strings.HasPrefix(string(b), results.JobLogHeader) || strings.Count(string(b), "\n") != 4 {
		t.Errorf("the job log: got %q, %v; want the header and 3 lines", b, err)
	}
}
