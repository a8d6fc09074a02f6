package sched

import (
	"math"
	"testing"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// TestSetSlots: a host gets more slots than its rule gives, and fewer, at once; what runs
// goes on; 0 gives it back to its rule (D7).
func TestSetSlots(t *testing.T) {
	s := newStage(t, Config{}, box("a", 1))
	s.up("a")
	s.plain(6)
	o := s.step(SetSlots{Host: "a", Slots: 3})
	want(t, "limit", said[SetLimit](o), "{a 3}")
	want(t, "launched", on(o, "a"), "2.1 3.1")
	contains(t, "said", s.records[0].Reason, "a gets 3 slots instead of 1")
	want(t, "twice", said[SetLimit](s.step(SetSlots{Host: "a", Slots: 3})), "")
	s.started("a", "1.1 2.1 3.1")
	o = s.step(SetSlots{Host: "a", Slots: 1})
	want(t, "limit", said[SetLimit](o), "{a 1}")
	want(t, "killed", said[Kill](o), "")
	want(t, "while two run", on(s.ended("a", "1.1", okay), "a"), "")
	if v := s.c.Hosts()[0]; v.Slots != 1 || v.Given != 1 || v.Running != 2 {
		t.Errorf("%+v", v)
	}
	s.step(SetSlots{Host: "a", Slots: 2})
	want(t, "rule", said[SetLimit](s.step(SetSlots{Host: "a", Slots: 0})), "{a 1}")
	if v := s.c.Hosts()[0]; v.Given != 0 {
		t.Errorf("%+v", v)
	}
}

// TestSetSlotsBounds: whatever is asked, for whatever host.
func TestSetSlotsBounds(t *testing.T) {
	s := newStage(t, Config{}, box("a", 1), &hosts.Host{Name: "b", Slots: hosts.SlotRule{Less: 1}})
	s.step(SetSlots{Host: "x", Slots: 3})
	s.step(SetSlots{Host: "a", Slots: math.MinInt})
	if n := s.c.hosts[0].slots(); n != 1 {
		t.Errorf("%d slots", n)
	}
	s.step(SetSlots{Host: "a", Slots: math.MaxInt})
	s.step(SetSlots{Host: "b", Slots: 5})
	if a, b := s.c.hosts[0].slots(), s.c.hosts[1].slots(); a != jobs.MaxSlots || b != 5 {
		t.Errorf("%d, %d slots", a, b)
	}
	s.step(SetSlots{Host: "b", Slots: 0}) // not known yet
	want(t, "limit", said[SetLimit](s.up("a")), "{a 4096}")
}

// TestSetSlotsReconnect: it holds when the host comes back, and --max-slots holds still.
func TestSetSlotsReconnect(t *testing.T) {
	s := newStage(t, Config{}, box("a", 1))
	s.up("a")
	s.step(SetSlots{Host: "a", Slots: 3})
	s.step(down("a", hosts.Broken, "gone"))
	want(t, "limit", said[SetLimit](s.up("a")), "{a 3}")

	s = newStage(t, Config{MaxSlots: 2}, box("a", 1))
	s.up("a")
	want(t, "limit", said[SetLimit](s.step(SetSlots{Host: "a", Slots: 3})), "{a 2}")
}

// TestSetSlotsFewer: a job that needs more slots than the host was left with waits; one
// that needs more than the rule gives can run while the host has them.
func TestSetSlotsFewer(t *testing.T) {
	s := newStage(t, Config{}, box("a", 4))
	s.up("a")
	s.step(SetSlots{Host: "a", Slots: 2})
	s.submit(false, &jobs.Options{Slots: 3})
	s.wantState(1, jobs.Queued)
	want(t, "launched", on(s.step(SetSlots{Host: "a", Slots: 0}), "a"), "1.1")
	s.ended("a", "1.1", okay)
	s.step(SetSlots{Host: "a", Slots: 6})
	s.submit(true, &jobs.Options{Slots: 6})
	s.wantState(2, jobs.Running)
	s.wait(time.Second, "a")
	s.ended("a", "2.1", okay)
	if s.finish == nil {
		t.Error("the run goes on")
	}
}
