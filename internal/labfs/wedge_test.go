//go:build linux

package labfs_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"dcs-tui/internal/labfs"
	"dcs-tui/internal/polltest"
)

// inLong returns short, or long with DCS_LONG=1.
func inLong(short, long time.Duration) time.Duration {
	if os.Getenv("DCS_LONG") == "1" {
		return long
	}
	return short
}

// TestWedgedHost checks a run whose shared directory hangs on one host. The host's heartbeats
// continue, so it is not given up. One line reports what hangs, and the other hosts continue. When
// the directory answers again, every job is counted and none has run twice.
func TestWedgedHost(t *testing.T) {
	polltest.Long(t)
	t.Parallel()
	l := newLab(t, 4, labfs.Options{Stale: time.Second, WriteBack: true})
	const n = 60
	file := l.jobs(n, "[ %d -gt 6 ] || "+l.gate("gate"))
	p := l.dcs(0, "run", "--no-tui", "--json", "--hosts", l.inventory(3, 2, ""), "--run-dir", l.run(), file)
	l.until("every slot is busy", func() bool { return l.ran() >= 6 }, p.err.String)
	l.mounts[1].Wedge()
	l.open("gate") // its two jobs end, and their supervisors hang
	l.until("the other hosts have done most", func() bool { return l.ran() >= n/2 }, p.err.String)
	l.until("calls of the host hang", func() bool { return l.mounts[1].Waiting() > 0 }, p.err.String)
	p.says("file system")
	// This is longer than a host may be silent.
	for over := time.After(inLong(18*time.Second, 75*time.Second)); ; {
		select {
		case <-over:
		case <-time.After(500 * time.Millisecond):
			if text := p.err.String(); strings.Contains(text, "suspect") || strings.Contains(text, "given up") || strings.Contains(text, " lost") {
				t.Fatalf("a host whose file system hangs was taken for dead:\n%s", text)
			}
			continue
		}
		break
	}
	l.mounts[1].Unwedge()
	e := p.wait()
	if e.code != 0 {
		t.Fatalf("exit %d\n%s", e.code, e.err)
	}
	l.counted(n, "succeeded", e)
	if got := l.ranOnce(n); got != n {
		t.Errorf("%d attempts for %d jobs\n%s", got, n, e.err)
	}
	if strings.Count(e.err, "file system") > 4 {
		t.Errorf("it is said too often:\n%s", e.err)
	}
}
