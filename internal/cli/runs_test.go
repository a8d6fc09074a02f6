package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	runner "dcs-tui/dispatch/run"
	"dcs-tui/dispatch/sched"
	"dcs-tui/dispatch/sched/halt"
	"dcs-tui/hosts/helper"
	"dcs-tui/jobs"
	"dcs-tui/jobs/rundir"
	"dcs-tui/jobs/rundir/disktest"
)

// withProgram puts the program into a new base directory of helpers and returns the directory. The
// package of the links tests sending the program; here, sending tens of megabytes would take most
// of the time of each test.
func withProgram(base string) string {
	bin := filepath.Join(base, "bin")
	if _, err := os.Lstat(bin); base == "" || err == nil || os.MkdirAll(bin, 0o700) != nil {
		return base
	}
	own, err := os.Executable()
	if err != nil {
		return base
	}
	if name, err := helper.NameOnHosts(own); err == nil {
		_ = os.Link(own, filepath.Join(bin, name)) // if this fails (another file system), the program is sent
	}
	return base
}

// TestSlowRunDirectoryIsReported checks that a command reports once, after 3 s, which run directory
// it waits for. It reports nothing for a directory that answers, or if a screen shows the run (X1).
func TestSlowRunDirectoryIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var said bytes.Buffer
		a := &app{con: consoleTo(&said)}
		takes := func(d time.Duration) {
			answered := a.reportSlow("dcs-runs/a\x1bb")
			time.Sleep(d)
			answered()
			synctest.Wait()
		}
		takes(slowDelay - time.Millisecond)
		a.con.Hold()
		takes(time.Minute)
		a.con.Release()
		time.Sleep(time.Minute)
		if said.Len() > 0 {
			t.Errorf("got %q of a directory that answers", said.String())
		}
		a.con.Hold()
		time.AfterFunc(30*time.Second, a.con.Release)
		takes(time.Minute)
		takes(time.Minute)
		const want = "the run directory dcs-runs/a␛b has not answered for 3 s; waiting\n"
		if got := said.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// TestOneGoroutineReportsSlowDirectories checks that one goroutine reports directories that do not
// answer, however many runs a command opens.
func TestOneGoroutineReportsSlowDirectories(t *testing.T) {
	run, a, before := disktest.NewRun(t), newApp(), runtime.NumGoroutine()
	for range 20 {
		_, err := a.openDir(run.Dir)
		must(t, err)
	}
	if n := runtime.NumGoroutine() - before; n > 10 {
		t.Errorf("20 runs have started %d goroutines", n)
	}
}

// TestPruneReportsOnlyRemovedRuns checks that prune does not report a run as removed if it would
// only remove a link to it, and that a run that is named twice is removed once (promise 5).
func TestPruneReportsOnlyRemovedRuns(t *testing.T) {
	run := disktest.NewRun(t)
	link := filepath.Join(t.TempDir(), "link")
	must(t, os.Symlink(run.Dir, link))
	linked, err := rundir.Open(link)
	must(t, err)
	if err := runner.Remove(linked, nil); err == nil || !strings.Contains(err.Error(), "symbolic link") {
		t.Errorf("Remove of a link: got error %v, want a refusal", err)
	}
	if _, err := rundir.Open(link); err != nil {
		t.Errorf("the run through its link: %v", err)
	}
	if dirs, err := new(pruneFlags).candidates([]string{run.Dir, run.Dir + "/."}); err != nil || len(dirs) != 1 {
		t.Errorf("candidates: got %q, %v; want one directory", dirs, err)
	}
}

// TestExitCodes checks the exit codes.
func TestExitCodes(t *testing.T) {
	type counts = [jobs.Skipped + 1]int
	good, bad, open := counts{jobs.Succeeded: 3}, counts{jobs.Succeeded: 3, jobs.TimedOut: 1}, counts{jobs.Succeeded: 3,
		jobs.Queued: 1}
	no, one, half := halt.Rule{}, halt.Rule{Of: halt.Successes, Jobs: 1}, halt.Rule{Of: halt.All, Percent: 50}
	running, gone := counts{jobs.Running: 1, jobs.Failed: 1}, counts{jobs.Canceled: 2, jobs.Succeeded: 1}
	for _, test := range []struct {
		name     string
		how      sched.Finished
		rule     halt.Rule
		counts   counts
		canceled bool
		more     bool
		want     int
	}{
		{"all succeeded", sched.AllDone, no, good, false, false, exitOK},
		{"no jobs at all", sched.AllDone, no, counts{}, false, false, exitOK},
		{"one timed out", sched.AllDone, no, bad, false, false, exitFailed},
		{"skipped is not succeeded", sched.AllDone, no, counts{jobs.Skipped: 1}, false, false, exitFailed},
		{"drained with jobs queued", sched.Drained, no, open, false, false, exitLeft},
		{"drained after the last job", sched.Drained, no, good, false, false, exitOK},
		{"drained while jobs were read", sched.Drained, no, good, false, true, exitLeft},
		{"stopped with jobs running", sched.Stopped, no, running, false, false, exitLeft},
		{"no hosts", sched.NoHosts, no, open, false, false, exitNoHosts},
		{"fenced off", sched.Fenced, no, good, false, false, exitLeft},
		{"canceled", sched.AllDone, no, gone, true, false, exitCanceled},
		{"canceled, and stopped before it was done", sched.Stopped, no, running, true, false, exitLeft},
		{"canceled by somebody else before", sched.AllDone, no, gone, false, false, exitFailed},
		{"enough successes", sched.Reached, one, open, false, false, exitOK},
		{"enough successes, and the rest not read", sched.Reached, one, good, false, true, exitOK},
		{"enough successes, continued, and drained by a person", sched.Drained, one, open, false, false, exitLeft},
		{"enough successes, continued, and stopped by a person", sched.Stopped, one, open, false, false, exitLeft},
		{"enough successes, and canceled", sched.Reached, one, counts{jobs.Succeeded: 1, jobs.Canceled: 1}, true, false,
			exitCanceled},
		{"enough successes, besides a failure", sched.AllDone, one, bad, false, false, exitOK},
		{"not enough successes", sched.AllDone, halt.Rule{Of: halt.Successes, Jobs: 4}, bad, false, false, exitFailed},
		{"enough successes, but jobs run on", sched.Stopped, one, counts{jobs.Succeeded: 1, jobs.Running: 1}, false,
			false, exitLeft},
		{"half of the jobs ended without a failure", sched.Reached, half, open, false, false, exitOK},
		{"half of the jobs ended with a failure", sched.Drained, half, counts{jobs.Failed: 1, jobs.Succeeded: 1,
			jobs.Queued: 2}, false, false, exitLeft},
		{"too many failures", sched.Drained, halt.Rule{Jobs: 1}, counts{jobs.Failed: 1, jobs.Queued: 1}, false, false,
			exitLeft},
	} {
		state := runner.StateOf(test.how, test.counts, test.canceled, test.more, test.rule)
		same(t, test.name, exitCode(state), test.want)
	}
}
