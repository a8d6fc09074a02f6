package sched

import (
	"testing"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// TestHybrid holds D5: local slots take the shortest estimated job first, remote ones the
// first in the file, so that short jobs are over while remote hosts are connected to;
// priorities go before, and only a run with both kinds of hosts does so.
func TestHybrid(t *testing.T) {
	local := func() *hosts.Host { h := box("here", 1); h.Link = "local"; return h }
	est := func(d time.Duration) *jobs.Options { return &jobs.Options{Estimate: d} }
	opts := []*jobs.Options{est(time.Hour), est(90 * time.Minute), est(2 * time.Hour), est(10 * time.Minute), est(time.Minute),
		{Estimate: 3 * time.Hour, Priority: -1}, est(10 * time.Minute)}

	s := newStage(t, Config{}, local(), box("there", 1))
	minute := func() jobs.Outcome { // long enough for hosts to be handed nothing ahead
		return jobs.Outcome{Started: s.now().Wall - jobs.Stamp(time.Minute), Ended: s.now().Wall}
	}
	s.up("here")
	s.submit(true, opts...)
	want(t, "what is more urgent first", on(s.orders, "here"), "6.1")
	want(t, "then the shortest", on(s.ended("here", "6.1", minute()), "here"), "5.1")
	o := s.ended("here", "5.1", minute())
	want(t, "then the first of the equal ones", on(o, "here"), "4.1")
	want(t, "remote: first in first out", on(s.up("there"), "there"), "1.1")
	want(t, "remote: first in first out", on(s.ended("there", "1.1", minute()), "there"), "2.1")
	want(t, "and again", on(s.ended("here", "4.1", minute()), "here"), "7.1")
	want(t, "and the longest", on(s.ended("here", "7.1", minute()), "here"), "3.1")

	s = newStage(t, Config{}, local())
	s.submit(true, opts...)
	want(t, "without remote hosts the common order", s.throughSlot("here", 7), "6.1 1.1 2.1 3.1 4.1 5.1 7.1")
}

// TestHybridByQueue: where the user has no estimate, the run times of the queue count.
func TestHybridByQueue(t *testing.T) {
	h := box("here", 1)
	h.Link = "local"
	s := newStage(t, Config{}, h, box("there", 2))
	s.up("there")
	long, quick := &jobs.Options{Queue: "long"}, &jobs.Options{Queue: "quick"}
	s.submit(true, long, quick, long, long, long, quick, quick, quick, quick)
	s.ranFor("there", "1.1", time.Hour)
	s.ranFor("there", "2.1", time.Minute)
	for _, id := range attemptIDs(on(s.up("here"), "here")) {
		if s.job(id.Job).Spec.Queue != "quick" {
			t.Errorf("job %d of the long queue goes first", id.Job)
		}
	}
	if s.c.byName["here"].free() != 0 {
		t.Error("nothing was launched here")
	}
}
