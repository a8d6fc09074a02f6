//go:build linux

package faults

import (
	"strings"
	"testing"

	"dcs-tui/internal/polltest"
)

// checkCanceled checks that every job was canceled and that none of their processes is left.
func (d *director) checkCanceled() {
	d.t.Helper()
	for _, r := range d.checkResults() {
		if r.State != "canceled" {
			d.t.Errorf("job %d is %s", r.Job, r.State)
		}
	}
	d.checkOver()
	d.checkNothingLeft()
	d.checkNoPanic()
}

// TestCancelWhileAHostIsAway cancels, from another machine while a host is away, jobs that fork
// into the background, leave the session, and ignore TERM. Jobs on the other hosts end. cancel
// names the host that is away, and its processes end when it is back.
func TestCancelWhileAHostIsAway(t *testing.T) {
	l, d := startScenario(t, "cancel", 16, append(equalJobs(16, "daemon", 3000), equalJobs(20, "deaf", 3000)...))
	ws2 := l.hosts[1]
	d.must(ws2.setLink(false))
	d.logEvent("link down: ws2; cancel")
	out, code, err := l.query(l.desks[1], "cancel", d.runDir(), "--yes")
	d.logEvent("cancel: %d, %v: %s", code, err, out)
	for _, m := range l.hosts {
		if m != ws2 && !polltest.Within(polltest.Patience,
			func() bool { return marksOn(d.markedAttempts(), m.name) > 0 && len(m.find(isJob)) == 0 }) {
			t.Errorf("on %s lives on: %v", m.name, m.find(isJob))
		}
	}
	d.awaitOver()
	if said := d.dispatchers[0].output(); !strings.Contains(said, "ws2 could not be reached at the end") {
		t.Errorf("ws2 is not named:\n%s", lastLines(said, 20))
	}
	if len(ws2.find(isJob)) == 0 {
		t.Error("the jobs of a host that cannot be reached are gone: the test does not test")
	}
	d.must(ws2.setLink(true))
	d.logEvent("link up: ws2")
	d.checkCanceled()
}

// TestCancelWithoutADispatcher checks that cancel on another machine takes over a run without a
// dispatcher and ends what runs.
func TestCancelWithoutADispatcher(t *testing.T) {
	l, d := startScenario(t, "orphan", 16, append(equalJobs(16, "setsid", 3000), equalJobs(20, "deaf", 3000)...))
	d.current.kill()
	<-d.current.done
	d.over = true // the run must not be resumed
	out, code, err := l.query(l.desks[1], "cancel", d.runDir(), "--yes", "--force")
	d.logEvent("cancel: %d, %v: %s", code, err, out)
	if err != nil || code != 130 && code != 0 {
		t.Errorf("cancel: exit %d, %v: %s", code, err, out)
	}
	d.checkCanceled()
}

func isJob(p process) bool { return p.name == "job" || p.name == "sleep" && p.ppid != 1 }
