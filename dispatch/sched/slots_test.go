package sched

import (
	"strings"
	"testing"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// TestUsableSlots holds the formula of DESIGN 7, and K6's experiment: of three
// 4-core hosts the one with two foreign jobs does half the work of the others
// when all cores are slots.
func TestUsableSlots(t *testing.T) {
	for _, tt := range []struct {
		name  string
		l     load
		slots int
	}{
		{"idle", load{slots: 4, yield: true}, 4},
		{"K6: two foreign jobs on four cores, four slots", load{slots: 4, others: 2, yield: true}, 2},
		{"K6 and K5: the same with a core left free", load{slots: 3, others: 2, yield: true}, 1},
		{"others use everything", load{slots: 4, others: 9, yield: true}, 0},
		{"noise costs no slot", load{slots: 4, others: 0.3, yield: true}, 4},
		{"our jobs use two cores each", load{slots: 8, excess: 4, yield: true}, 4},
		{"both", load{slots: 8, excess: 2, others: 3, yield: true}, 3},
		{"told not to yield", load{slots: 4, others: 3, excess: 3}, 4},
	} {
		if got := wholeSlots(usableSlots(tt.l), -1); got != tt.slots {
			t.Errorf("%s: %d slots, want %d", tt.name, got, tt.slots)
		}
	}
}

func TestWholeSlotsHoldsStill(t *testing.T) {
	last := 4
	for _, u := range []float64{3.6, 3.4, 3.55, 3.36, 4.6, 4} {
		if last = wholeSlots(u, last); last != 4 {
			t.Fatalf("usable %v gives %d, want still 4", u, last)
		}
	}
	if got := wholeSlots(3.3, 4); got != 3 {
		t.Errorf("usable 3.3 gives %d, want 3", got)
	}
}

// TestOthersAreSmoothed: a burst of a colleague's takes no slot at once, work that
// lasts does (DESIGN 7), and the helper hears of it once.
func TestOthersAreSmoothed(t *testing.T) {
	h := box("melon1", 4)
	h.Yield = true
	s := newStage(t, Config{}, h)
	want(t, "first limit", said[SetLimit](s.up("melon1")), "{melon1 4}")
	busy := func(cores float64) string {
		s.at += BeatEvery
		return said[SetLimit](s.step(HostBeat{"melon1", &hosts.Beat{Busy: cores, MemFree: -1, DiskFree: -1}}))
	}
	want(t, "a burst", busy(2), "")
	var all string
	for range 20 {
		all += busy(2)
	}
	want(t, "work that lasts", all, "{melon1 3}{melon1 2}")
	all = ""
	for range 20 {
		all += busy(0)
	}
	want(t, "when it is over", all, "{melon1 3}{melon1 4}")
}

// TestOwnJobsAreNotOthers: our jobs' CPU is subtracted, one core a slot is theirs,
// and what they use beyond counts (K6).
func TestOwnJobsAreNotOthers(t *testing.T) {
	h := box("melon1", 4)
	h.Yield = true
	s := newStage(t, Config{}, h)
	s.up("melon1")
	s.plain(8)
	s.started("melon1", "1.1 2.1 3.1 4.1")
	beat := func(ours float64) {
		s.at += BeatEvery
		s.step(HostBeat{"melon1", &hosts.Beat{Busy: ours, Ours: ours, MemFree: -1, DiskFree: -1}})
	}
	for range 10 {
		beat(4)
	}
	if u := s.c.Hosts()[0].Usable; u != 4 {
		t.Errorf("four busy single-core jobs leave %v usable, want 4", u)
	}
	for range 30 {
		beat(8)
	}
	if u := s.c.Hosts()[0].Usable; u > 0.5 {
		t.Errorf("four jobs on eight cores leave %v usable, want about 0", u)
	}
}

// TestAloneOneJobRuns: on this machine without an inventory at least one job
// always runs, whatever others do (DESIGN 7, P1).
func TestAloneOneJobRuns(t *testing.T) {
	h := box("here", 3)
	h.Link, h.Yield = "local", true
	s := newStage(t, Config{}, h)
	s.up("here")
	for range 30 {
		s.at += BeatEvery
		s.step(HostBeat{"here", &hosts.Beat{Busy: 8, MemFree: -1, DiskFree: -1}})
	}
	s.plain(2)
	want(t, "launched", on(s.orders, "here"), "1.1")
}

func TestAloneAWideJobRuns(t *testing.T) {
	h := box("here", 4)
	h.Link, h.Yield = "local", true
	s := newStage(t, Config{}, h)
	s.submit(true, &jobs.Options{Slots: 3}, jobs.NoOptions)
	want(t, "launched", on(s.up("here"), "here"), "1.1 2.1")
	for range 30 {
		s.at += BeatEvery
		s.step(HostBeat{"here", &hosts.Beat{Busy: 8, Running: 2, MemFree: -1, DiskFree: -1}})
	}
	if h := s.c.hosts[0]; h.told != 4 {
		t.Errorf("limit %d", h.told)
	}
}

// TestDelay: two starts are at least the delay apart, over all hosts.
func TestDelay(t *testing.T) {
	s := newStage(t, Config{Delay: 2 * time.Second}, box("a", 4), box("b", 4))
	s.up("a", "b")
	s.plain(9)
	want(t, "at once", on(s.orders, "a")+on(s.orders, "b"), "1.1")
	if why := s.c.Why(s.now(), 2); !strings.Contains(why, "--delay") {
		t.Errorf("why job 2 waits: %q", why)
	}
	if at, _ := s.c.Next(); at != s.at+2*time.Second {
		t.Errorf("the core wants a tick after %v", at-s.at)
	}
	o := s.wait(time.Second)
	want(t, "after 1 s", on(o, "a")+on(o, "b"), "")
	o = s.wait(time.Second)
	want(t, "after 2 s", on(o, "a")+on(o, "b"), "2.1")
}

// TestMaxSlots bounds what is busy over all hosts, buffers included.
func TestMaxSlots(t *testing.T) {
	s := newStage(t, Config{MaxSlots: 3}, box("a", 4), box("b", 4))
	s.up("a", "b")
	s.plain(9)
	want(t, "a", on(s.orders, "a"), "1.1 3.1")
	want(t, "b", on(s.orders, "b"), "2.1")
	o := s.ended("a", "1.1", okay)
	want(t, "the next", on(o, "a")+on(o, "b"), "4.1")

	one := newStage(t, Config{MaxSlots: 2}, box("a", 4))
	want(t, "limit", said[SetLimit](one.up("a")), "{a 2}")
	one.plain(9)
	want(t, "launched", on(one.orders, "a"), "1.1 2.1")
}
