package sched

import (
	"testing"
	"time"

	"dcs-tui/hosts"
)

// outageStage has four hosts that went silent together, each with a job that ran,
// and waits so long.
func outageStage(t *testing.T, d time.Duration) *stage {
	s := newStage(t, Config{GiveUp: time.Hour}, box("a", 1), box("b", 1), box("c", 1), box("d", 1))
	s.up("a", "b", "c", "d")
	s.plain(4)
	for _, h := range s.c.hosts {
		s.started(h.spec.Name, string('1'+rune(h.idx))+".1")
	}
	s.wait(d)
	return s
}

// TestOutageEndsHostByHost: hosts of a shared outage come back when their dials are
// due; those still on the way are not given up as soon as half are back, and the
// one that stays away is, in the end (DESIGN 7, D6).
func TestOutageEndsHostByHost(t *testing.T) {
	for _, long := range []time.Duration{50 * time.Second, 5 * time.Minute, 55 * time.Minute} {
		s := outageStage(t, long)
		s.up("a")
		s.wait(20*time.Second, "a")
		s.up("b")
		s.wait(50*time.Second, "a", "b")
		s.up("c")
		s.wait(85*time.Second, "a", "b", "c")
		if s.lostNow() != 0 {
			t.Fatalf("after %v: %d given up while they came back", long, s.lostNow())
		}
		s.wait(10*time.Second, "a", "b", "c")
		if s.lostNow() != 1 || s.job(4).Attempts[0].State.Open() {
			t.Errorf("after %v: %d given up, want that of d", long, s.lostNow())
		}
	}
}

// TestOutageShorterThanLost: nor when half are back before any is given up.
func TestOutageShorterThanLost(t *testing.T) {
	s := outageStage(t, 55*time.Second)
	s.up("a", "b")
	s.wait(time.Minute, "a", "b")
	if s.lostNow() != 0 {
		t.Errorf("%d given up while they came back", s.lostNow())
	}
}

// TestOutageReturns: a host that was back only for a moment has gone with the others.
func TestOutageReturns(t *testing.T) {
	s := outageStage(t, 5*time.Minute)
	s.up("a")
	s.wait(5*time.Second, "a")
	s.step(down("a", hosts.Unreachable, "no route"))
	s.wait(10 * time.Minute)
	if s.lostNow() != 0 {
		t.Errorf("%d given up", s.lostNow())
	}
}

// TestOutageAtStart: so it is for a dispatcher that starts into an outage.
func TestOutageAtStart(t *testing.T) {
	old := outageStage(t, 0)
	s := restart(old, box("a", 1), box("b", 1), box("c", 1), box("d", 1))
	s.wait(5 * time.Minute)
	s.up("a", "b")
	s.wait(time.Minute, "a", "b")
	if s.lostNow() != 0 {
		t.Errorf("%d given up while they came back", s.lostNow())
	}
	s.wait(time.Minute, "a", "b")
	if s.lostNow() != 2 {
		t.Errorf("%d given up, want those of c and d", s.lostNow())
	}
}

// TestOneDiesAfterAnOutage: an outage that goes on excuses nobody who dies later.
func TestOneDiesAfterAnOutage(t *testing.T) {
	s := newStage(t, Config{GiveUp: time.Hour}, box("a", 1), box("b", 1), box("c", 1), box("d", 1), box("e", 1))
	names := []string{"a", "b", "c", "d", "e"}
	s.up(names...)
	s.plain(5)
	for i, n := range names {
		s.started(n, string('1'+rune(i))+".1")
	}
	s.wait(5*time.Minute, "d", "e")
	if s.lostNow() != 0 {
		t.Fatalf("%d given up", s.lostNow())
	}
	s.wait(2*time.Minute, "e")
	if s.lostNow() != 1 || s.job(4).Attempts[0].State.Open() {
		t.Errorf("%d given up, want that of d", s.lostNow())
	}
}
