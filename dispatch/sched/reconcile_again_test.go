package sched

import (
	"slices"
	"strings"
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

// TestStrangerIsWaitedFor: a host that had attempts and has left the inventory cannot be
// asked; launching waits for it as for one that does not answer, and says its name.
func TestStrangerIsWaitedFor(t *testing.T) {
	ended := Found{"gone", hosts.ProbedJob{Attempt: attemptIDs("1.1")[0], Answer: hosts.HasExited, Outcome: &jobs.Outcome{Started: 1, Ended: 2}}}
	s := damaged(t, Config{Found: []Found{ended}}, 2, box("a", 1))
	s.wantState(1, jobs.Succeeded)
	if !slices.ContainsFunc(s.journal, func(r jobs.Record) bool {
		return strings.HasSuffix(r.Reason, "for at most 90 s; gone is not in the inventory and cannot be asked")
	}) {
		t.Error("nobody said what is waited for")
	}
	s.up("a")
	want(t, "too early", on(s.lists("a", "", hosts.Dead, nil, true), "a")+on(s.wait(88*time.Second, "a"), "a"), "")
	want(t, "launched", on(s.wait(4*time.Second, "a"), "a"), "2.11")
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

// TestFreeNumbersFitIntoMemory: each number that is left free stands in the table, and a run
// of a million jobs that was resumed often must fit there.
func TestFreeNumbersFitIntoMemory(t *testing.T) {
	for n, first := range map[int]int{1_000: 501, 400_000: 26, 1_000_000: 11} {
		c := &Core{table: &jobs.Table{Jobs: make([]jobs.Job, n), Epoch: 50}}
		c.gap, c.numbered = true, map[jobs.ID]bool{}
		if got := c.nextNumber(&jobs.Job{Spec: &jobs.Spec{ID: 7}}); got != first {
			t.Errorf("%d jobs: the first number is %d, not %d", n, got, first)
		}
	}
}

// TestClaimIsNoLife: a claim in the run directory says that an attempt has started, not that
// it runs: the live one of its job is not ended because of it, and while that lives no other
// is launched.
func TestClaimIsNoLife(t *testing.T) {
	claimed := func(n int, at jobs.Stamp) Found {
		return Found{"a", hosts.ProbedJob{Attempt: jobs.AttemptID{Job: 1, N: n}, Answer: hosts.IsRunning, Started: at}}
	}
	s := damaged(t, Config{Found: []Found{claimed(1, 5), claimed(2, 9)}}, 1, box("a", 2))
	o := s.up("a")
	want(t, "ended", said[Kill](o), "")
	s.lists("a", "1.1", hosts.Dead, nil, false)
	o = s.lists("a", "1.2", hosts.IsRunning, nil, true)
	want(t, "ended", said[Kill](o), "")
	want(t, "launched", on(o, "a"), "")
	s.wantState(1, jobs.Running)
}

// TestEndedIsWaitedFor: an attempt without a record that is ended, because another of its
// job has run longer, is open until its host says that it is over.
func TestEndedIsWaitedFor(t *testing.T) {
	s := damaged(t, Config{Found: []Found{{"a", hosts.ProbedJob{Attempt: attemptIDs("1.1")[0], Answer: hosts.IsRunning, Started: 5}}}}, 1, box("a", 1), box("b", 1))
	s.up("a", "b")
	want(t, "ended", said[Kill](s.lists("b", "1.2", hosts.IsRunning, nil, true)), "{b [1.2] a newer attempt has run longer}")
	o := s.lists("a", "1.1", hosts.Dead, nil, true)
	want(t, "launched", on(o, "a")+on(o, "b"), "")
	s.wantState(1, jobs.Running)
}
