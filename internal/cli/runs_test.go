package cli

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	runner "dcs-tui/dispatch/run"
	"dcs-tui/dispatch/sched"
	"dcs-tui/internal/text"
	"dcs-tui/jobs"
	"dcs-tui/jobs/rundir"
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
	f, err := os.Open(own)
	if err != nil {
		return base
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err == nil {
		// If this fails (another file system), the program is sent.
		_ = os.Link(own, fmt.Sprintf("%s/dcs-tui-%x", bin, h.Sum(nil)))
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
		if got, want := said.String(), "the run directory dcs-runs/a␛b has not answered for 3 s; waiting\n"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// TestOpeningARunThatHangs checks the same report for each command that opens a run, from its first
// access on. A fifo makes the opening of a file hang.
func TestOpeningARunThatHangs(t *testing.T) {
	t.Parallel()
	run := emptyRun(t)
	if err := os.Remove(run.Path(rundir.AskedFile)); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(run.Path(rundir.AskedFile), 0o600); err != nil {
		t.Fatal(err)
	}
	lines := make(lineChan, 10)
	a := newApp()
	a.con = consoleTo(lines)
	opened := make(chan error)
	go func() {
		_, err := a.openRun([]string{filepath.Clean(run.Dir)})
		opened <- err
	}()
	if want := "the run directory " + run.Dir + " has not answered for 3 s; waiting"; strings.TrimSpace(<-lines) != want {
		t.Error("it says something else")
	}
	w, err := os.OpenFile(run.Path(rundir.AskedFile), os.O_WRONLY, 0) // lets the command continue
	if err != nil {
		t.Fatal(err)
	}
	w.Close()
	if err := <-opened; err == nil {
		t.Error("an empty file was read as what was asked")
	}
}

// TestOpeningManyRuns checks that one goroutine reports directories that do not answer, however
// many runs a command opens.
func TestOpeningManyRuns(t *testing.T) {
	run, a := emptyRun(t), newApp()
	open := func() {
		if _, err := a.openDir(run.Dir); err != nil {
			t.Fatal(err)
		}
	}
	open()
	before := runtime.NumGoroutine()
	for range 20 {
		open()
	}
	if n := runtime.NumGoroutine() - before; n > 10 {
		t.Errorf("20 more runs have started %d goroutines", n)
	}
}

// lineChan sends everything written to it to a channel.
type lineChan chan string

func (c lineChan) Write(b []byte) (int, error) {
	c <- string(b)
	return len(b), nil
}

// TestPruneCommandsForHosts checks that the commands that `runs prune` suggests for other hosts
// remove only the run's own directory, whatever location a host has reported (promise 5).
func TestPruneCommandsForHosts(t *testing.T) {
	run, err := rundir.Create(filepath.Join(t.TempDir(), "runs"), "r", rundir.Asked{UID: "abcdefghjkmn"})
	if err != nil {
		t.Fatal(err)
	}
	for host, c := range map[string]struct{ dir, want string }{
		"ws01": {"/home/me/.dcs-tui/abcdefghjkmn", `ssh ws01 rm -r /home/me/.dcs-tui/abcdefghjkmn`},
		// ssh joins its arguments into one string: without quotes, the remote shell would see two
		// directories.
		"ws02": {"/data/my runs/abcdefghjkmn", `ssh ws02 rm -r ''\''/data/my runs/abcdefghjkmn'\'''`},
		"ws03": {"/home/me", ""},
		"ws04": {"/home/me/x/../abcdefghjkmn", ""},
		"ws05": {"abcdefghjkmn", ""},
		"ws06": {"/", ""},
	} {
		if err := os.WriteFile(run.Path(rundir.HostsDir, host+rundir.HostDirSuffix), []byte(host+":"+c.dir+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		lines := leftOnHosts(run)
		line := lines[len(lines)-1]
		if !strings.HasPrefix(line, host) || !strings.HasSuffix(line, c.want) || c.want == "" && strings.Contains(line, "rm ") {
			t.Errorf("%s in %q: %s", host, c.dir, line)
		}
		os.Remove(run.Path(rundir.HostsDir, host+rundir.HostDirSuffix))
	}
}

// TestPruneLinks checks that prune does not report a run as removed if it would only remove a link
// to it, and that a run that is named twice is removed once (promise 5).
func TestPruneLinks(t *testing.T) {
	base := filepath.Join(t.TempDir(), "runs")
	run, err := rundir.Create(base, "r", rundir.Asked{UID: "abcdefghjkmn"})
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(base, "link")
	if err := os.Symlink(run.Dir, link); err != nil {
		t.Fatal(err)
	}
	linked, err := rundir.Open(link)
	if err != nil {
		t.Fatal(err)
	}
	if err := runner.Remove(linked, nil); err == nil || !strings.Contains(err.Error(), "symbolic link") {
		t.Errorf("%v", err)
	}
	if _, err := rundir.Open(link); err != nil {
		t.Errorf("the run through its link: %v", err)
	}
	if dirs, err := new(pruneOptions).candidates([]string{run.Dir, run.Dir + "/."}); err != nil || len(dirs) != 1 {
		t.Errorf("%q, %v", dirs, err)
	}
}

// TestExitCodes checks the exit codes.
func TestExitCodes(t *testing.T) {
	c := func(of map[jobs.JobState]int) (counts [jobs.Skipped + 1]int) {
		for s, n := range of {
			counts[s] = n
		}
		return counts
	}
	good := c(map[jobs.JobState]int{jobs.Succeeded: 3})
	bad := c(map[jobs.JobState]int{jobs.Succeeded: 3, jobs.TimedOut: 1})
	open := c(map[jobs.JobState]int{jobs.Succeeded: 3, jobs.Queued: 1})
	running := c(map[jobs.JobState]int{jobs.Running: 1, jobs.Failed: 1})
	gone := c(map[jobs.JobState]int{jobs.Canceled: 2, jobs.Succeeded: 1})
	for _, test := range []struct {
		name     string
		how      sched.Finished
		counts   [jobs.Skipped + 1]int
		canceled bool
		more     bool
		want     int
	}{
		{"all succeeded", sched.AllDone, good, false, false, exitOK},
		{"no jobs at all", sched.AllDone, c(nil), false, false, exitOK},
		{"one timed out", sched.AllDone, bad, false, false, exitFailed},
		{"skipped is not succeeded", sched.AllDone, c(map[jobs.JobState]int{jobs.Skipped: 1}), false, false, exitFailed},
		{"drained with jobs queued", sched.Drained, open, false, false, exitLeft},
		{"drained after the last job", sched.Drained, good, false, false, exitOK},
		{"drained while jobs were read", sched.Drained, good, false, true, exitLeft},
		{"stopped with jobs running", sched.Stopped, running, false, false, exitLeft},
		{"no hosts", sched.NoHosts, open, false, false, exitNoHosts},
		{"fenced off", sched.Fenced, good, false, false, exitLeft},
		{"canceled", sched.AllDone, gone, true, false, exitCanceled},
		{"canceled, and stopped before it was done", sched.Stopped, running, true, false, exitLeft},
		{"canceled by somebody else before", sched.AllDone, gone, false, false, exitFailed},
	} {
		if got := exitCode(runner.StateOf(test.how, test.counts, test.canceled, test.more)); got != test.want {
			t.Errorf("%s: %d, want %d", test.name, got, test.want)
		}
	}
}

// TestErrorCodes checks that an error found before anything started has exit code 2, however it is
// wrapped.
func TestErrorCodes(t *testing.T) {
	cause := errors.New("cause")
	p := text.Errorf("wrong: %w", cause).WithAdvice("do %s", "this")
	if errorCode(fmt.Errorf("more: %w", p)) != exitUsage || errorCode(cause) != exitUsage || !errors.Is(p, cause) || p.Advice != "do this" {
		t.Errorf("%+v", p)
	}
}
