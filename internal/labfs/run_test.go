//go:build linux

package labfs_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"dcs-tui/internal/labfs"
	"dcs-tui/internal/polltest"
	"dcs-tui/internal/progtest"
)

// TestStaleCachesLoseNothing checks that caches that stay stale for ten minutes delay nothing and
// lose nothing. Another machine, which has looked up every name before it existed, takes the run
// over, adopts the running jobs, and counts the ended ones (X1).
func TestStaleCachesLoseNothing(t *testing.T) {
	l := newLab(t, 7, long)
	n := polltest.Scale(90, 300, 300)
	free := n * 2 / 3
	// Machines 5 and 6 and the user's machine look for the run before it exists.
	for _, m := range []int{0, 5, 6} {
		l.startOn(m, "/bin/sh", "-c", "test -e run; test -e run/owner").wait()
	}
	p := l.start(l.inventory(4, 4), l.jobs(n, fmt.Sprintf("[ %%d -le %d ] || ", free)+l.gate("gate")))
	p.until("the jobs that need no gate have run", func() bool { return l.numStarted() >= free })
	// The machine has looked up names that do not exist yet, in a directory that it has listed
	// before.
	var poll strings.Builder
	poll.WriteString("ls . run run/attempts run/journal >/dev/null\n")
	for id := 1; id <= n; id++ {
		fmt.Fprintf(&poll, "test -e run/attempts/000/%d.1.status\n", id)
	}
	// It also reads unfinished status files.
	poll.WriteString("cat run/attempts/000/*.status > /dev/null\n")
	poll.WriteString("test -e run/journal/000002.jsonl; test -e run/STOP; true\n")
	l.startOn(5, "/bin/sh", "-c", poll.String()).exits(0)
	p.until("jobs wait at the gate", func() bool { return l.numStarted() >= free+10 })
	l.dcs(6, "status", l.run()).exits(0)         // this machine has looked for the run before
	l.dcs(6, "status", "--json", "run").exits(0) // a relative name
	p.cmd.Process.Kill()
	first := p.wait()
	l.open("gate")
	l.wantSucceededAtOnce(n, first, l.resume(5)) // otherwise some jobs were not adopted
}

// TestHungHostIsNotGivenUp checks a run whose shared directory hangs on one host. The host's
// heartbeats continue, so it is not given up. One line reports what hangs, and the other hosts
// continue. When the directory answers again, every job is counted and none has run twice.
func TestHungHostIsNotGivenUp(t *testing.T) {
	polltest.Long(t)
	t.Parallel()
	l := newLab(t, 4, time.Second)
	const n = 60
	p := l.startBusy(3, l.jobs(n, "[ %d -gt 6 ] || "+l.gate("gate")))
	l.mounts[1].Hang()
	l.open("gate") // its two jobs end, and their supervisors hang
	p.until("the other hosts have done most", func() bool { return l.numStarted() >= n/2 })
	p.until("calls of the host hang", func() bool { return l.mounts[1].NumWaiting() > 0 })
	p.says("file system")
	// This is longer than a host may be silent.
	progtest.AwaitRunning(t, filepath.Join(l.server.Dir, "run"),
		polltest.Scale(18*time.Second, 18*time.Second, 75*time.Second))
	if text := p.err.String(); strings.Contains(text, "suspect") || strings.Contains(text, "given up") ||
		strings.Contains(text, " lost") {
		t.Fatalf("a host whose file system hangs was taken for dead:\n%s", text)
	}
	l.mounts[1].Resume()
	e := p.wait()
	l.wantSucceededAtOnce(n, e)
	e.wantAtMost(t, "file system", 4)
}

// TestLostRepliesInARun checks a run in which the replies to creating, linking, or removing files
// are lost and the repeated requests get wrong answers. No job is lost, and none starts twice.
func TestLostRepliesInARun(t *testing.T) {
	polltest.Long(t)
	for _, c := range []struct {
		name, pattern string
		op            labfs.Op
	}{
		{"status file linked", "*.status", labfs.Link},
		{"its draft made", ".new.*", labfs.Create},
		{"its draft removed", ".new.*", labfs.Unlink},
		{"directory made", "", labfs.Mkdir},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, 3, long)
			const n = 40
			hits := 0
			var all []*labfs.Injected
			for _, m := range l.mounts {
				all = append(all, m.LoseReplies(c.op, c.pattern, 3))
			}
			e := l.start(l.inventory(2, 2), l.jobs(n, "true")).wait()
			l.wantSucceededAtOnce(n, e)
			for _, f := range all {
				hits += f.NumFailed()
			}
			if hits == 0 {
				t.Errorf("no reply was lost")
			}
			for _, x := range e.lines(t) {
				if x.Attempts != 1 {
					t.Errorf("%d replies lost, and job %d needed %d attempts:\n%s", hits, x.Job, x.Attempts, e.err)
					break
				}
			}
			t.Logf("%d replies lost", hits)
		})
	}
}

// wantExitCodes checks that the recorded exit code of every job is the one that it really had
// (promise 3). Job i was told to exit with i mod 3.
func (l *lab) wantExitCodes(n int, e ended) {
	l.t.Helper()
	got := map[int]bool{}
	for _, x := range e.lines(l.t) {
		got[x.Job] = true
		want, state := x.Job%3, "succeeded"
		if want != 0 {
			state = "failed"
		}
		if x.State != state || x.Exit == nil || *x.Exit != want {
			l.t.Errorf("job %d, which exited with %d: %+v", x.Job, want, x)
		}
	}
	if len(got) != n {
		l.t.Errorf("%d results of %d jobs", len(got), n)
	}
}

// TestResultsAreRightIfTheServerIsFull checks that results are late but right when the file server
// is full for every client, or refuses data that it had accepted, while jobs end.
func TestResultsAreRightIfTheServerIsFull(t *testing.T) {
	polltest.Long(t)
	for name, errno := range map[string]syscall.Errno{"no space": 0, "sentinels refused": syscall.ENOSPC,
		"quota": syscall.EDQUOT} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, 4, time.Second)
			const n = 60
			p := l.startBusy(3, l.jobs(n, l.gate("gate")+"; exit $((%d % 3))"), "--tries", "1")
			var faults []*labfs.Injected
			for _, m := range l.mounts {
				if errno == 0 {
					m.SetFull(true)
				} else {
					faults = append(faults,
						m.Fail(labfs.Fault{Ops: labfs.Write | labfs.Flush | labfs.Fsync, Name: "*.status",
							Errno: errno}))
				}
			}
			l.open("gate")
			if errno == 0 {
				p.says("nothing is launched")
			} else {
				p.says("could not be written")
			}
			for _, m := range l.mounts {
				m.SetFull(false)
			}
			for _, f := range faults {
				f.Stop()
			}
			e := p.exits(1)
			l.wantExitCodes(n, e)
			// Jobs whose disk was full run again, and so do those that failed on a host on which,
			// by chance, many jobs in a row were made to fail. Each of them is reported.
			events := l.dcs(0, "events", l.run()).wait()
			full := strings.Count(events.out, "queued again: its disk was full")
			unlucky := strings.Count(events.out, "queued again: it failed on a host where jobs fail fast")
			if got := l.wantEachRanOnce(n); got != n+full+unlucky || errno != 0 && full > 0 {
				t.Errorf("%d attempts for %d jobs, %d run again because of a full disk, %d because of their host\n"+
					"%s\n%s%s",
					got, n, full, unlucky, events.out, e.err, events.err)
			}
			e.wantAtMost(t, "nothing is launched", 2)
		})
	}
}

// TestFullHostIsRetried checks that a host whose file server is full at the first connection is
// not given up. It reports the reason, is retried, and works when there is space.
func TestFullHostIsRetried(t *testing.T) {
	t.Parallel()
	l := newLab(t, 3, time.Second)
	const n = 20
	l.mounts[1].SetFull(true)
	p := l.start(l.inventory(2, 2), l.jobs(n, l.gate("gate")))
	p.says("no space left")
	p.until("the other host works", func() bool { return l.numStarted() >= 2 })
	l.mounts[1].SetFull(false)
	p.until("both hosts work", func() bool { return l.numStarted() >= 4 })
	l.open("gate")
	l.wantSucceeded(n, p.wait())
}
