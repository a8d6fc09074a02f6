//go:build linux

package faults

import (
	"strings"
	"testing"
	"time"

	"dcs-tui/internal/polltest"
)

// TestFullDiskPausesTheRun fills the shared directory until the run has paused and reported why. The
// run continues by itself.
func TestFullDiskPausesTheRun(t *testing.T) {
	_, d := startScenario(t, "full", 20, equalJobs(64, "plain", 1))
	empty := d.fillUntil()
	if empty == nil {
		t.Fatal("the directory could not be filled")
	}
	d.stepUntil("it says why", polltest.Patience, func() bool {
		return strings.Contains(d.dispatchers[0].output(), "no space left")
	})
	empty()
	d.logEvent("the directory has space again")
	d.awaitOver()
	if len(d.dispatchers) != 1 {
		t.Errorf("%d dispatchers were needed", len(d.dispatchers))
	}
	d.checkRun()
}

// TestHangingFilesAreNoDeadHost makes the shared directory hang on one host. The host still sends
// heartbeats, so it is not declared dead, and the others continue. It does its pending work when
// the directory answers again.
func TestHangingFilesAreNoDeadHost(t *testing.T) {
	needLong(t)
	l := newNetLab(t, 10*time.Second)
	d := newDirector(l, "hang", newRand(t), equalJobs(80, "plain", 3))
	d.start()
	d.stepUntil("jobs run on each host", polltest.Patience, func() bool { return d.numMarks() >= 16 })
	ws1 := l.hosts[0]
	d.logEvent("the files hang on ws1 for 40 s: %s",
		d.injectFault(ws1, 40*time.Second, ws1.mount.Hang, ws1.mount.Resume))
	d.awaitOver()
	for _, bad := range []string{"ws1  no heartbeat", "ws1  is lost"} {
		if said := d.dispatchers[0].output(); strings.Contains(said, bad) {
			t.Errorf("a hanging directory is not a dead host:\n%s", said)
		}
	}
	d.checkRanAtMostOnce()
	d.checkRun()
}
