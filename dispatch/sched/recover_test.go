package sched

import (
	"strings"
	"testing"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// TestRecovery: start-up is recovery. A new core asks each host about every open
// attempt in one Probe and goes on from the answers (X1, DESIGN 3.2, 3.4).
func TestRecovery(t *testing.T) {
	old := newStage(t, Config{}, box("a", 6))
	old.up("a")
	old.plain(8)
	old.started("a", "1.1 2.1")
	s := restart(old, box("a", 6))
	want(t, "connect", said[Connect](s.orders), "{a}")
	s.step(Submit{Last: true})
	o := s.up("a")
	want(t, "one probe", said[Probe](o), "{a [1.1 2.1 3.1 4.1 5.1 6.1]}")
	want(t, "no slot is free", on(o, "a"), "")
	s.probedAs("a", "1.1", hosts.HasExited, &okay)
	s.wantState(1, jobs.Succeeded)
	s.probedAs("a", "2.1", hosts.IsRunning, nil)
	s.wantState(2, jobs.Running)
	s.probedAs("a", "3.1", hosts.NeverStarted, nil)
	if a := s.job(3).Attempts[0]; a.State != jobs.AttemptSuperseded || s.job(3).Failures != 0 {
		t.Errorf("never started: %+v", a)
	}
	want(t, "4.1", s.job(4).Attempts[0].State.String(), "launching")
	s.probedAs("a", "4.1", hosts.IsRunning, nil)
	want(t, "4.1 runs", s.job(4).Attempts[0].State.String(), "running")
	s.probedAs("a", "5.1", hosts.Dead, nil)
	if j := s.job(5); j.Failures != 0 || j.Attempts[0].State != jobs.AttemptLost {
		t.Errorf("dead: %+v", j)
	}
	s.probedAs("a", "6.1", hosts.Unknown, nil)
	s.wantState(6, jobs.Running)
	want(t, "asked again", said[Probe](s.wait(6*time.Second, "a")), "{a [6.1]}")
}

// TestRecoveryConnectsAtOnce: the first step asks for every connection.
func TestRecoveryConnectsAtOnce(t *testing.T) {
	c := New(Config{}, &jobs.Table{}, []*hosts.Host{box("a", 1), box("b", 1)})
	if at, ok := c.Next(); !ok || at != 0 {
		t.Errorf("Next before the first step: %v %v", at, ok)
	}
	_, o := c.Step(Time{}, Tick{})
	want(t, "connect", said[Connect](o), "{a} {b}")
}

// TestRecoveryKills: an attempt that is alive though its job has a result is ended.
func TestRecoveryKills(t *testing.T) {
	old := lostStage(t, Config{})
	old.ended("b", "2.1", okay)
	old.started("b", "1.2")
	old.up("a")
	old.probedAs("a", "1.1", hosts.HasExited, &okay)
	s := restart(old, box("a", 1), box("b", 1), box("c", 1))
	s.up("b")
	contains(t, "kill", said[Kill](s.probedAs("b", "1.2", hosts.IsRunning, nil)), "{b [1.2]")

	old = lostStage(t, Config{}) // killed while 1.1 was given up
	s = restart(old, box("a", 1), box("b", 1), box("c", 1))
	want(t, "lost ones are asked about", said[Probe](s.up("a")), "{a [1.1]}")
}

// TestRecoveryGPUs: devices of attempts taken over are not known, so none is given twice.
func TestRecoveryGPUs(t *testing.T) {
	old := newStage(t, Config{}, box("a", 4))
	old.up("a")
	old.submit(true, &jobs.Options{GPUs: 1}, &jobs.Options{GPUs: 1}, &jobs.Options{GPUs: 1})
	old.started("a", "1.1 2.1")
	s := restart(old, box("a", 4))
	s.up("a")
	s.ended("a", "1.1", okay)
	s.wantState(3, jobs.Queued)
	want(t, "when both are over", on(s.ended("a", "2.1", okay), "a"), "3.1")
}

// TestLostReport: a host that says for long that it has fewer attempts than we
// think is asked about them; a report that never came does not keep a run open.
func TestLostReport(t *testing.T) {
	s := newStage(t, Config{}, box("a", 2))
	s.up("a")
	s.plain(2)
	s.started("a", "1.1 2.1")
	s.wait(time.Minute, "a")
	var o []Order
	for range 10 {
		s.at += BeatEvery
		o = append(o, s.step(HostBeat{"a", &hosts.Beat{Running: 1, MemFree: -1, DiskFree: -1}})...)
	}
	want(t, "asked", said[Probe](o), "{a [1.1 2.1]}")
	s.probedAs("a", "2.1", hosts.HasExited, &okay)
	s.wantState(2, jobs.Succeeded)
}

// TestWhy: one plain sentence for each way to wait (X7).
func TestWhy(t *testing.T) {
	s := newStage(t, Config{}, box("a", 1))
	s.submit(true, jobs.NoOptions, jobs.NoOptions, &jobs.Options{After: []jobs.ID{1, 2}}, &jobs.Options{Tags: []string{"x"}})
	contains(t, "no host", s.c.Why(s.now(), 1), "the only host that can run it cannot take it: a is connecting")
	s.up("a")
	contains(t, "handed", s.c.Why(s.now(), 1), "is handed to a")
	s.step(Pause{On: true})
	want(t, "paused", s.c.Why(s.now(), 1), "Job 1 is handed to a and does not start there: launching is paused.")
	s.step(Pause{})
	s.started("a", "1.1")
	want(t, "runs", s.c.Why(s.now(), 1), "Job 1 runs on a.")
	contains(t, "busy", s.c.Why(s.now(), 2), "busy")
	want(t, "after", s.c.Why(s.now(), 3), "Job 3 waits for jobs 1, 2 to succeed.")
	contains(t, "never", s.c.Why(s.now(), 4), "host a has no tag x")
	s.ended("a", "1.1", exit1)
	contains(t, "retry", s.c.Why(s.now(), 1), "try 1 of 3")
	for id := range jobs.ID(5) {
		if w := s.c.Why(s.now(), id); !strings.HasSuffix(w, ".") || strings.Contains(w, "\n") {
			t.Errorf("not a sentence: %q", w)
		}
	}
}

// TestInheritedLease: an earlier dispatcher that was taken over may go on extending a
// host's lease for OwnerFor; its successor waits for so much longer (promise 2).
func TestInheritedLease(t *testing.T) {
	old := newStage(t, Config{}, box("a", 1), box("b", 1), box("c", 1))
	old.up("a")
	old.plain(1)
	s := restart(old, box("a", 1), box("b", 1), box("c", 1))
	s.step(Submit{Last: true})
	s.up("b", "c")
	s.wait(hosts.DefaultLostAfter+leaseMargin+OwnerFor-time.Second, "b", "c")
	want(t, "handed over by the earlier one", s.job(1).Attempts[0].State.String(), "launching")
	s.wait(3*time.Second, "b", "c")
	want(t, "its lease is over", s.job(1).Attempts[0].State.String(), "lost")
}
