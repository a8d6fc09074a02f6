//go:build linux

package faults

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"dcs-tui/internal/polltest"
)

// TestStandbyWithMirror checks that a standby on a host that does not share the run directory takes
// the run over from its mirror when the dispatcher is killed, or when its machine is cut off, and
// starts the next standby. No result is lost, nothing runs twice, and the old dispatcher is fenced
// off when it comes back (E7, X1). CI tests one outage, chosen by the seed.
func TestStandbyWithMirror(t *testing.T) {
	eachOutage(t, []string{"killed", "no power", "hangs", "cable"},
		func(t *testing.T, outage func(*director) func(), _ bool) {
			takesOverMirror(t, newLab(t), outage)
		})
}

func takesOverMirror(t *testing.T, l *lab, outage func(*director) func()) {
	const nPlain, nGates = 40, 4
	d := newDirector(l, "mirrored", newRand(t), append(equalJobs(nPlain, "plain", 2), equalJobs(nGates, "gate", 0)...))
	d.dir = homeDir + "/mirrored"
	d.start("--standby-on", "ws1,ws2")
	desk, ws1 := l.desks[0], l.hosts[0]
	d.awaitOn(desk, d.dir, "a standby on ws1, with a mirror",
		func(s *runStatus) bool { return s.Standby == "ws1 (mirror)" && d.numMarks() >= 8 })
	found, _ := filepath.Glob(l.hub.path(ws1.onHub(homeDir + "/.dcs-tui/*/mirror.*")))
	if len(found) != 1 {
		t.Fatalf("the mirrors on ws1: %v", found)
	}
	mirror := homeDir + strings.TrimPrefix(found[0], l.hub.path(ws1.onHub(homeDir)))
	heal := outage(d)
	took := d.awaitOn(ws1, mirror, "the standby on ws1 has the run", isOwnedBy("ws1"))
	t.Logf("taken over %s after the outage", took.Round(time.Second))
	heal()
	d.logEvent("healed")
	d.awaitOn(ws1, mirror, "the next standby, on ws2", func(s *runStatus) bool {
		return isOwnedBy("ws1")(s) && s.Standby == "ws2 (mirror)"
	})
	d.must(l.openGate(d.name))
	d.awaitOn(ws1, mirror, "the end of the run", func(s *runStatus) bool { return s.Ended && s.Owner == nil })
	d.over = true
	d.stepUntil("the end of the dispatcher that was taken over", polltest.Patience,
		func() bool { return d.current.hasEnded() })
	for _, life := range d.fenced {
		if life.code != 4 {
			t.Errorf("the old dispatcher ended with %d:\n%s", life.code, life.output())
		}
	}
	d.checkRanAtMostOnce()
	ok := map[int]int{}
	for _, r := range d.resultsIn(ws1, mirror) {
		if r.State == "succeeded" {
			ok[r.Job]++
		}
	}
	for n := 1; n <= nPlain+nGates; n++ {
		if ok[n] != 1 {
			t.Errorf("job %d has %d successful results", n, ok[n])
		}
	}
	if desk.running.Load() != nil {
		out, code, _ := l.query(desk, "resume", "--no-tui", d.dir)
		if code == 0 || !strings.Contains(out, "has taken the run over") {
			t.Errorf("the old directory is resumed: exit %d\n%s", code, out)
		}
	}
	if log, _ := os.ReadFile(l.hub.path(ws1.onHub(mirror) + "/dispatcher.log")); t.Failed() {
		t.Logf("the log on ws1:\n%s", log)
	}
}
