//go:build linux

package labfs_test

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"dcs-tui/internal/labfs"
)

// exits checks that the recorded exit code of every job is the one that it really had (promise 3).
// Job i was told to exit with i mod 3.
func (l *lab) exits(n int, e ended) {
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

// TestFullWhileJobsEnd checks that results are late but right when the file server is full for
// every client, or refuses data that it had accepted, while jobs end.
func TestFullWhileJobsEnd(t *testing.T) {
	for name, errno := range map[string]syscall.Errno{"no space": 0, "sentinels refused": syscall.ENOSPC, "quota": syscall.EDQUOT} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, 4, labfs.Options{Stale: time.Second, WriteBack: true})
			const n = 60
			file := l.jobs(n, l.gate("gate")+"; exit $((%d % 3))")
			p := l.dcs(0, "run", "--no-tui", "--json", "--tries", "1", "--hosts", l.inventory(3, 2, ""), "--run-dir", l.run(), file)
			l.until("every slot is busy", func() bool { return l.ran() >= 6 }, p.err.String)
			var faults []*labfs.Injected
			for _, m := range l.mounts {
				if errno == 0 {
					m.Full(true)
				} else {
					faults = append(faults, m.Fail(labfs.Fault{Ops: labfs.Write | labfs.Flush | labfs.Fsync, Name: "*.status", Errno: errno}))
				}
			}
			l.open("gate")
			if errno == 0 {
				p.says("nothing is launched")
			} else {
				p.says("could not be written")
			}
			for _, m := range l.mounts {
				m.Full(false)
			}
			for _, f := range faults {
				f.Stop()
			}
			e := p.wait()
			if e.code != 1 {
				t.Errorf("exit %d\n%s", e.code, e.err)
			}
			l.exits(n, e)
			// Jobs that failed because their disk was full run again, and each is reported. No
			// other job runs again.
			events := l.dcs(0, "events", l.run()).wait()
			more := strings.Count(events.out, "queued again: its disk was full")
			if got := l.ranOnce(n); got != n+more || errno != 0 && more > 0 {
				t.Errorf("%d attempts for %d jobs, %d said\n%s\n%s%s", got, n, more, e.err, events.out, events.err)
			}
			if k := strings.Count(e.err, "nothing is launched"); k > 2 {
				t.Errorf("said %d times:\n%s", k, e.err)
			}
		})
	}
}

// TestHostFullWhenReached checks that a host whose file server is full at the first connection is
// not given up. It reports the reason, is retried, and works when there is space.
func TestHostFullWhenReached(t *testing.T) {
	t.Parallel()
	l := newLab(t, 3, labfs.Options{Stale: time.Second, WriteBack: true})
	const n = 20
	l.mounts[1].Full(true)
	p := l.dcs(0, "run", "--no-tui", "--json", "--hosts", l.inventory(2, 2, ""), "--run-dir", l.run(), l.jobs(n, l.gate("gate")))
	p.says("no space left")
	l.until("the other host works", func() bool { return l.ran() >= 2 }, p.err.String)
	l.mounts[1].Full(false)
	l.until("both hosts work", func() bool { return l.ran() >= 4 }, p.err.String)
	l.open("gate")
	e := p.wait()
	if e.code != 0 {
		t.Fatalf("exit %d\n%s", e.code, e.err)
	}
	l.counted(n, "succeeded", e)
	l.ranOnce(n)
}
