package sched

import (
	"testing"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// What other runs and users have of a host bounds its slots (K11), and is not taken off
// again as load of others. What we want is told, and told again when it changes.
func TestSlotsAreShared(t *testing.T) {
	h := box("a", 4)
	h.Yield = true
	s := newStage(t, Config{RunShare: 2}, h)
	beat := func(sharing *hosts.Sharing, busy float64) []Order {
		s.at += BeatEvery
		return s.step(HostBeat{"a", &hosts.Beat{Busy: busy, MemFree: -1, DiskFree: -1, Running: s.c.byName["a"].open, Sharing: sharing}})
	}
	o := s.up("a")
	want(t, "limit", said[SetLimit](o), "{a 4}")
	want(t, "share", said[SetShare](o), "{a {4 0 2}}")
	others := &hosts.Sharing{Slots: 1, Held: 3, Users: []hosts.SharedUser{{Name: "bob", Slots: 3}}}
	for range 5 { // the jobs of others use a core each
		o = append(o, beat(others, 3)...)
	}
	want(t, "bound by others", said[SetLimit](o), "{a 4} {a 1}")
	want(t, "nothing is wanted", said[SetShare](o[3:]), "")
	others = &hosts.Sharing{Slots: 0, Held: 4, Users: []hosts.SharedUser{{Name: "bob", Slots: 4}}}
	want(t, "all are taken", said[SetLimit](beat(others, 4)), "{a 0}")
	s.submit(true, jobs.NoOptions, jobs.NoOptions, jobs.NoOptions)
	contains(t, "why", s.c.Why(s.now(), 1), "other runs and users have its slots: bob 4 slots")
	if beat(others, 4); s.c.byName["a"].toldShare != (hosts.Share{Slots: 4, Want: 3, Weight: 2}) {
		t.Errorf("the helper is told %+v", s.c.byName["a"].toldShare)
	}
	want(t, "they have gone", said[SetLimit](beat(nil, 0)), "{a 4}")
	want(t, "no absurd bound", said[SetLimit](beat(&hosts.Sharing{Slots: -5, Held: -5}, 0)), "{a 0}")
	want(t, "nor one above its slots", said[SetLimit](beat(&hosts.Sharing{Slots: 99, Held: 1 << 40}, 0)), "{a 4}")

	off := newStage(t, Config{}, box("a", 4))
	want(t, "off", said[SetShare](off.up("a")), "")
	off.at += BeatEvery
	want(t, "off", said[SetLimit](off.step(HostBeat{"a", &hosts.Beat{MemFree: -1, DiskFree: -1, Sharing: others}})), "")
}
