package sched

import (
	"testing"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// What repeated damage once broke (promise 2).

// TestListedUnknown: a host that has something of an attempt and cannot say what holds its
// job up: the attempt may be alive, and its number is taken.
func TestListedUnknown(t *testing.T) {
	s := damaged(t, Config{}, 2, box("a", 1), box("b", 1))
	s.up("a", "b")
	s.lists("a", "1.1", hosts.Unknown, nil, true)
	o := s.lists("b", "", hosts.Dead, nil, true)
	want(t, "launched", on(o, "a")+on(o, "b"), "2.1")
	s.wantState(1, jobs.Running)
	want(t, "asked again", said[Probe](s.wait(6*time.Second, "a", "b")), "{a [1.1]}")
	s.step(AttemptsProbed{"a", &hosts.Probed{Jobs: []hosts.ProbedJob{{Attempt: attemptIDs("1.1")[0], Answer: hosts.Dead}}}})
	if a := s.job(1).Attempts; a[0].State != jobs.AttemptLost {
		t.Errorf("job 1: %+v", a[0])
	}
}

// TestReconcileWaitsForLeases: a host that does not answer may start what it was handed
// until its lease has run out; nothing is launched before.
func TestReconcileWaitsForLeases(t *testing.T) {
	patient := box("b", 1)
	patient.LostAfter = 5 * time.Minute
	for name, c := range map[string]struct {
		cfg Config
		b   *hosts.Host
	}{"buffer": {Config{Buffer: 5 * time.Minute}, box("b", 1)}, "lost_after": {Config{}, patient}} {
		s := damaged(t, c.cfg, 1, box("a", 1), c.b)
		s.up("a")
		s.lists("a", "", hosts.Dead, nil, true)
		want(t, name+", too early", on(s.wait(5*time.Minute, "a"), "a"), "")
		want(t, name, on(s.wait(20*time.Second, "a"), "a"), "1.11")
	}
}

// TestNumbersOfEachEpoch: what a dispatcher has launched beside a host that did not answer
// may be lost with damage, too: the next one, which begins with the same table, gives other
// numbers, whatever their clocks say.
func TestNumbersOfEachEpoch(t *testing.T) {
	for epoch, first := range map[int]string{1: "1.11", 2: "1.21", 7: "1.71"} {
		s := damaged(t, Config{}, 1, box("a", 1), box("b", 1))
		s.c.table.Epoch = epoch
		s.up("a")
		s.lists("a", "", hosts.Dead, nil, true)
		want(t, "launched", on(s.wait(92*time.Second, "a"), "a"), first)
	}
}
