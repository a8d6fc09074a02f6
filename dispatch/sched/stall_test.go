package sched

import (
	"strings"
	"testing"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// told counts the events whose text contains part.
func (s *stage) told(part string) int {
	n := 0
	for _, r := range s.journal {
		if r.Kind == jobs.KindEvent && strings.Contains(r.Reason, part) {
			n++
		}
	}
	return n
}

// lostNow counts the attempts given up so far.
func (s *stage) lostNow() int {
	n := 0
	for _, r := range s.journal {
		if r.Kind == jobs.KindLost {
			n++
		}
	}
	return n
}

// TestStall: hosts are not blamed for what their dispatcher slept through, whatever
// the first thing is that it sees then (DESIGN 7, promise 2); their silence counts
// again from there.
func TestStall(t *testing.T) {
	for _, first := range []Event{Tick{}, HostBeat{"a", &hosts.Beat{MemFree: -1, DiskFree: -1, Running: 1}}} {
		for _, gap := range []time.Duration{14 * time.Second, 70 * time.Second, 3 * time.Hour} {
			s := newStage(t, Config{}, box("a", 1), box("b", 1), box("c", 1), box("d", 1))
			s.up("a", "b", "c", "d")
			s.plain(4)
			for _, h := range s.c.hosts {
				s.started(h.spec.Name, string('1'+rune(h.idx))+".1")
			}
			s.wait(10*time.Second, "a", "b", "c", "d")
			s.at += gap
			o := s.step(first)
			want(t, "cut off", said[Disconnect](o), "")
			s.wait(10*time.Second, "a", "b", "c")
			if n := s.told("stood still"); n != 1 || s.lostNow() != 0 || s.finish != nil {
				t.Errorf("after %v: told %d times, %d attempts given up, finish %+v", gap, n, s.lostNow(), s.finish)
			}
			want(t, "silent at last", said[Disconnect](s.wait(10*time.Second, "a", "b", "c")), "{d}")
			s.wait(time.Minute, "a", "b", "c")
			if s.lostNow() != 1 {
				t.Errorf("%d attempts given up, want that of d", s.lostNow())
			}
		}
	}
}

// TestStallKeepsTheLease: a lease is not taken for over because we slept.
func TestStallKeepsTheLease(t *testing.T) {
	s := newStage(t, Config{}, box("a", 1), box("b", 1), box("c", 1))
	s.up("a", "b", "c")
	s.plain(1) // handed to a, not known to have started
	s.step(down("a", hosts.Unreachable, "gone"))
	s.wait(30*time.Second, "b", "c")
	s.at += time.Hour
	s.wait(25*time.Second, "b", "c")
	if s.lostNow() != 0 {
		t.Errorf("given up %v after the cut, all of it but 55 s a stall", s.at)
	}
	s.wait(10*time.Second, "b", "c")
	want(t, "then elsewhere", s.job(1).Last().Host, "b")

	s = newStage(t, Config{Buffer: 5 * time.Minute}, box("a", 1), box("b", 1), box("c", 1))
	s.up("a", "b", "c")
	s.plain(1)
	s.step(down("a", hosts.Unreachable, "gone"))
	s.at += time.Hour
	s.wait(290*time.Second, "b", "c")
	if s.lostNow() != 0 {
		t.Errorf("given up though the lease may last 5 min")
	}
	s.wait(15*time.Second, "b", "c")
	want(t, "then elsewhere", s.job(1).Last().Host, "b")
}

// TestStallsAllTheTime: a dispatcher whose every commit takes long still notices a
// host that is dead, and does not fill the journal with its complaints.
func TestStallsAllTheTime(t *testing.T) {
	s := newStage(t, Config{}, box("a", 1), box("b", 1), box("c", 1))
	s.up("a", "b", "c")
	s.plain(3)
	s.started("a", "1.1")
	for range 30 {
		s.at += 10 * time.Second
		for _, n := range []string{"b", "c"} {
			s.step(HostBeat{n, &hosts.Beat{MemFree: -1, DiskFree: -1, Running: 1}})
		}
	}
	if s.job(1).Attempts[0].State != jobs.AttemptLost || s.lostNow() != 1 {
		t.Errorf("attempt on the dead host is %s, %d given up", s.job(1).Attempts[0].State, s.lostNow())
	}
	if n := s.told("stood still"); n > 5 {
		t.Errorf("said %d times in five minutes", n)
	}
}

// TestStallIsNotNoHost: --give-up counts only the time that we looked.
func TestStallIsNotNoHost(t *testing.T) {
	s := newStage(t, Config{GiveUp: 10 * time.Minute}, box("a", 1))
	s.plain(1)
	s.wait(time.Minute)
	s.at += time.Hour
	s.step(Tick{})
	if s.finish != nil {
		t.Errorf("finish %+v", s.finish)
	}
	s.wait(9 * time.Minute)
	if s.finish == nil || s.finish.How != NoHosts {
		t.Errorf("finish %+v", s.finish)
	}
}

// TestNoStallBetweenTicks: whoever keeps to Next is never told that he slept.
func TestNoStallBetweenTicks(t *testing.T) {
	s := newStage(t, Config{}, box("a", 1))
	s.wait(5 * time.Minute)
	s.up("a")
	s.wait(5*time.Minute, "a")
	s.plain(1)
	s.ended("a", "1.1", okay)
	s.wait(5*time.Minute, "a") // finished, more may come
	if n := s.told("stood still"); n != 0 {
		t.Errorf("told %d times", n)
	}
	if at, ok := s.c.Next(); !ok || at-s.at > TickEvery {
		t.Errorf("Next is %v away", at-s.at)
	}
}
