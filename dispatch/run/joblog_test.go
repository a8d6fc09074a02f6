package run

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"dcs-tui/dispatch"
	"dcs-tui/jobs"
	"dcs-tui/jobs/results"
	"dcs-tui/jobs/rundir"
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
	l, err := openJobLog(path, openUserFile(path), run, &jobs.Table{}, func(error) {})
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

// TestJobLogOfTheRunStaysInItsDirectory checks that the job log of a run directory, where a job may
// have put a link or a pipe, changes no other file and waits for nobody.
func TestJobLogOfTheRunStaysInItsDirectory(t *testing.T) {
	run := disktest.NewRun(t)
	other := filepath.Join(t.TempDir(), "other")
	must(t, os.WriteFile(other, []byte("mine"), 0o600))
	path := run.Path(rundir.JobLogFile)
	for name, put := range map[string]func() error{
		"link": func() error { return os.Symlink(other, path) },
		"pipe": func() error { return syscall.Mkfifo(path, 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			_ = os.Remove(path)
			must(t, put())
			r := &Run{dir: run, table: &jobs.Table{}, messages: newMessages()}
			must(t, r.openJobLogs())
			if l := r.jobLogs[0]; l.failure == nil {
				t.Error("it was opened")
			}
			must(t, os.Remove(path))
			if b, err := os.ReadFile(other); err != nil || string(b) != "mine" {
				t.Errorf("the file that the link names: %q, %v", b, err)
			}
			must(t, r.jobLogs[0].Close())
		})
	}
}

// TestJobLogIsContinued checks that a later dispatcher writes only what a job log lacks, and that the
// log then equals one that was written at once.
func TestJobLogIsContinued(t *testing.T) {
	run, table := disktest.NewRun(t), &jobs.Table{}
	for i := range 3 {
		id := jobs.ID(i + 1)
		table.Specs = append(table.Specs, &jobs.Spec{ID: id, Command: "true", Options: jobs.NoOptions})
		for _, r := range []jobs.Record{{Kind: jobs.KindAccepted, At: 1, Job: id, Count: 1},
			{Kind: jobs.KindLaunching, At: 1, Job: id, N: 1, Host: "a"},
			{Kind: jobs.KindExited, At: 2, Job: id, N: 1, Slot: 1, Next: jobs.Succeeded, Seq: int64(i + 1),
				Outcome: &jobs.Outcome{Started: 1e9, Ended: 2e9}}} {
			must(t, jobs.Fold(table, &r))
		}
	}
	write := func(path, had string) (string, int) {
		must(t, os.WriteFile(path, []byte(had), 0o600))
		l, err := openJobLog(path, openUserFile(path), run, table, func(err error) { t.Error(err) })
		must(t, err)
		kept := int(l.kept)
		must(t, l.Close())
		b, err := os.ReadFile(path)
		must(t, err)
		return string(b), kept
	}
	path := filepath.Join(t.TempDir(), "log")
	whole, _ := write(path, "")
	if strings.Count(whole, "\n") != 4 {
		t.Fatalf("got %q, want the header and 3 lines", whole)
	}
	second := strings.LastIndex(whole[:len(whole)-1], "\n") + 1 // the beginning of the last line
	for had, want := range map[string]int{whole: len(whole), whole[:second]: second, whole[:second+5]: second,
		whole + "7\tb\n": len(whole), "x": 0, strings.Replace(whole, "Seq", "Job", 1): 0} {
		got, kept := write(path, had)
		if got != whole {
			t.Errorf("with %q: got %q, want %q", had, got, whole)
		}
		if kept != want {
			t.Errorf("with %q: kept %d bytes, want %d", had, kept, want)
		}
	}
	old := time.Now().Add(-time.Hour).Truncate(time.Second)
	must(t, os.Chtimes(path, old, old))
	l, err := openJobLog(path, openUserFile(path), run, table, func(err error) { t.Error(err) })
	must(t, errors.Join(err, l.Close()))
	if info, err := os.Stat(path); err != nil || !info.ModTime().Equal(old) {
		t.Errorf("a log that lacks nothing was written again: %v", err)
	}
}

// TestJobLogThatWasReplaced checks that a log that is removed between the reading of its lines and the
// first write gets no hole in their place, and that the end of the run names it.
func TestJobLogThatWasReplaced(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	l := &jobLog{path: path, open: openUserFile(path), kept: 100, report: func(err error) { t.Error(err) }}
	l.Add(&dispatch.Result{Job: 7, Command: "true", Attempts: 1})
	err := l.Close()
	if err == nil || !strings.Contains(err.Error(), "lacks its first lines") {
		t.Errorf("got the error %v", err)
	}
	if b, err := os.ReadFile(path); err != nil || strings.Contains(string(b), "\x00") ||
		strings.Count(string(b), "\n") != 1 {
		t.Errorf("got %q, %v; want one line", b, err)
	}
}
