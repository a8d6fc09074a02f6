package sched

import (
	"testing"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// TestNextSlot checks from whom and when the next slot is due: from the job of ours that is expected
// to end first, also with its own estimate or progress, or by the rule of LastSlotDelay from others.
func TestNextSlot(t *testing.T) {
	want(t, "no job", connectedStage(t, Config{}, testHost("a", 1)).c.NextSlot(), nil)

	estimate := func(d time.Duration) *jobs.Options { return &jobs.Options{Estimate: d} }
	s := connectedStage(t, Config{}, testHost("a", 1), testHost("b", 2))
	s.submit(true, estimate(time.Minute), estimate(20*time.Second), jobs.NoOptions, jobs.NoOptions,
		&jobs.Options{Slots: 2})
	for _, name := range []string{"a", "b"} {
		for _, id := range s.attemptsOn(name) {
			s.started(name, id.String())
		}
	}
	s.wait(5*time.Second, "a", "b")
	soon := s.c.NextSlot()
	if soon == nil || soon.From != jobs.SlotOfJob || soon.Job != 2 || soon.In <= 0 || soon.In > 15*time.Second {
		t.Fatalf("got %+v, want the slot of job 2", soon)
	}
	wantContains(t, "why", s.c.Why(s.now(), 4), "busy; "+soon.Text())
	wantContains(t, "why of a job with two slots", s.c.Why(s.now(), 5), "it is not known when the next slot is due")
	s.wait(20*time.Second, "a", "b")
	if n := s.c.NextSlot(); n == nil || n.Job != 1 {
		t.Errorf("got %+v, want the slot of job 1, because job 2 is overdue", n)
	}
	s.wait(time.Minute, "a", "b")
	wantContains(t, "why of an overdue job", s.c.Why(s.now(), 4), "which takes longer than expected")

	s = connectedStage(t, Config{Buffer: time.Minute}, testHost("a", 1))
	s.submit(true, estimate(20*time.Second), estimate(20*time.Second), jobs.NoOptions, jobs.NoOptions)
	s.started("a", "1.1")
	if s.job(2).State != jobs.Running || s.c.hosts[0].numBuffered() == 0 {
		t.Fatal("no job was sent in advance")
	}
	if n := s.c.NextSlot(); n == nil || n.Job != 1 {
		t.Errorf("got %+v, want the slot of job 1", n)
	}
	wantContains(t, "why", s.c.Why(s.now(), 2),
		"starts when a slot is free there; the next slot is due in about 20 s, when job 1")

	s = connectedStage(t, Config{RunShare: 1}, testHost("a", 4))
	s.heartbeat("a", hosts.Heartbeat{Sharing: &hosts.Sharing{Held: 4,
		Users: []hosts.SharedUser{{Name: "bob", Slots: 4}}}})
	s.submitPlain(1)
	n := s.c.NextSlot()
	if n == nil || n.From != jobs.SlotOfOthers || n.Host != "a" || n.In <= 0 || n.In > hosts.LastSlotDelay {
		t.Fatalf("got %+v, want a slot of others on a", n)
	}
	wantContains(t, "why", s.c.Why(s.now(), 1), "; the next slot is due within 30 s on a, from runs of bob")
	s.heartbeat("a", hosts.Heartbeat{Sharing: &hosts.Sharing{Held: 4, Users: []hosts.SharedUser{
		{Name: "ada", Slots: 3, Runs: []string{"tables", "ours"}, OwnRuns: []string{"tables"}},
		{Name: "bob", Slots: 1}}}})
	wantContains(t, "why", s.c.Why(s.now(), 1), " on a, from your run tables and runs of bob")
}
