package sched

import (
	"errors"
	"strings"
	"testing"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// TestStoppedIsNotDraining: a host that a person stopped is disabled, one that was drained
// drains; each says so in words, neither has usable slots, and a stopped one stays stopped
// when it is drained, too (TUI.md: the states of a host).
func TestStoppedIsNotDraining(t *testing.T) {
	s := newStage(t, Config{}, box("a", 2), box("b", 2))
	s.up("a", "b")
	if v := s.c.Hosts()[0]; v.Usable != 2 || v.Stopped {
		t.Fatalf("%+v", v)
	}
	s.step(DrainHost{Host: "a", On: true})
	s.step(DrainHost{Host: "b", On: true, Now: true})
	s.step(DrainHost{Host: "b", On: true})
	a, b := s.c.Hosts()[0], s.c.Hosts()[1]
	if a.State != Draining || a.Stopped || a.Usable != 0 || a.Reason == "draining" {
		t.Errorf("drained: %s %q, %v usable", a.State, a.Reason, a.Usable)
	}
	if b.State != Disabled || !b.Stopped || b.Usable != 0 || !strings.Contains(b.Reason, "stopped by a person") {
		t.Errorf("stopped: %s %q, %v usable", b.State, b.Reason, b.Usable)
	}
	s.step(DrainHost{Host: "b"})
	if b := s.c.Hosts()[1]; b.State != Up || b.Stopped || b.Usable != 2 {
		t.Errorf("used again: %+v", b)
	}
}

// TestStuck: when jobs are ready and no host takes any it is said why, what went wrong
// before what was asked for, and not while a host only has no room (X7).
func TestStuck(t *testing.T) {
	s := newStage(t, Config{}, box("a", 1), box("b", 1))
	s.plain(3)
	want(t, "before anybody has answered", s.c.Stuck(), "")
	s.up("a", "b")
	want(t, "busy", s.c.Stuck(), "")
	s.step(DrainHost{Host: "a", On: true})
	want(t, "one is left", s.c.Stuck(), "")
	s.step(HostDown{"b", &hosts.Error{Host: "b", Class: hosts.HostKey, Err: errors.New("its key has changed")}})
	want(t, "stuck", s.c.Stuck(), "b is disabled (its key has changed); a is draining ("+drainingWhy+")")
	if why := s.c.Why(s.now(), 3); !strings.Contains(why, "none of the 2 hosts that can run it takes jobs") || strings.Contains(why, "(draining)") {
		t.Error(why)
	}
	if r := s.c.Hosts()[1].Reason; r != "its key has changed" {
		t.Errorf("%q follows the name of the host", r)
	}
	s.step(Pause{true})
	want(t, "paused", s.c.Stuck(), "")
}

// TestWhyOneHost: one host is not "the 1 hosts" (X7).
func TestWhyOneHost(t *testing.T) {
	s := newStage(t, Config{}, box("a", 1), box("b", 1))
	s.up("a", "b")
	s.step(DrainHost{Host: "b", On: true})
	s.submit(true, &jobs.Options{Slots: 1}, &jobs.Options{GPUs: 0, MemBytes: 1})
	s.started("a", "1.1")
	want(t, "why", s.c.Why(s.now(), 2), "Job 2 waits: every usable slot of the only host that can run it now is busy.")
}

// Hosts count attempts: each one that fails, even if its job is retried, and none that
// a person has canceled.
func TestHostsCountAttempts(t *testing.T) {
	s := newStage(t, Config{}, box("a", 3))
	s.up("a")
	s.plain(3)
	for _, id := range []string{"1.1", "2.1", "3.1"} {
		s.started("a", id)
	}
	s.ended("a", "1.1", okay)
	s.ended("a", "2.1", exit1) // is tried again
	s.step(Cancel{Jobs: []jobs.ID{3}})
	s.ended("a", "3.1", jobs.Outcome{Signal: "SIGTERM", Stopped: true})
	s.wantState(3, jobs.Cancelled)
	if h := s.c.Hosts()[0]; h.Done != 1 || h.Failed != 1 {
		t.Errorf("%d succeeded, %d failed", h.Done, h.Failed)
	}
}
