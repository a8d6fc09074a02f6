package sched

import (
	"strings"
	"testing"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

func (s *stage) deadlineLines() (lines []string) {
	for _, r := range s.journal {
		if r.Kind == jobs.KindEvent && strings.Contains(r.Reason, "deadline") {
			lines = append(lines, r.Reason)
		}
	}
	return lines
}

// TestDeadline holds B6: among equal priorities the earliest deadline goes first; one
// that cannot be met is said once, by the user's estimate or the queue's run times, and
// Why says it as well.
func TestDeadline(t *testing.T) {
	in := func(d time.Duration) time.Time { return wallStart.Time().Add(d) }
	s := newStage(t, Config{}, box("a", 1))
	s.submit(true,
		jobs.NoOptions,
		&jobs.Options{Deadline: in(time.Hour)},
		&jobs.Options{Deadline: in(30 * time.Minute)},
		&jobs.Options{Deadline: in(time.Minute), Priority: 1},
		&jobs.Options{Deadline: in(40 * time.Minute), Estimate: time.Hour},
		&jobs.Options{Deadline: in(time.Minute), Priority: 2},
	)
	s.wait(12 * time.Second)
	want(t, "said", strings.Join(s.deadlineLines(), "; "), "job 5 cannot meet its deadline: it needs 60 min, as far as is known, and 40 min are left")
	s.wait(12 * time.Second)
	want(t, "said once", strings.Join(s.deadlineLines()[1:], "; "), "")
	contains(t, "why", s.c.Why(s.now(), 5), "Its deadline cannot be met: it needs 60 min")
	if why := s.c.Why(s.now(), 2); strings.Contains(why, "deadline") {
		t.Errorf("of a job that can meet it: %s", why)
	}
	s.wait(time.Minute)
	if n := len(s.deadlineLines()); n != 3 {
		t.Errorf("%d lines, want those of 4 and 6 as well: %q", n, s.deadlineLines())
	}
	contains(t, "missed", s.c.Why(s.now(), 4), "Its deadline cannot be met: that was")
	want(t, "order", s.throughSlot("a", 6), "3.1 5.1 2.1 1.1 4.1 6.1")
}

// TestDeadlineByQueue: without an estimate of the user's the queue's run times count; the
// next dispatcher does not tell of it again, a new round is told of anew.
func TestDeadlineByQueue(t *testing.T) {
	s := newStage(t, Config{Tries: 1}, box("a", 1))
	s.up("a")
	late := &jobs.Options{Deadline: wallStart.Time().Add(70 * time.Second)}
	n := &jobs.Options{Priority: -1}
	s.submit(true, n, n, n, n, n, n, late)
	for _, a := range []string{"1.1", "2.1", "3.1", "4.1", "5.1"} {
		s.ranFor("a", a, 60*time.Second)
	}
	s.wait(20*time.Second, "a")
	if n := len(s.deadlineLines()); n != 1 {
		t.Fatalf("%d lines: %q", n, s.deadlineLines())
	}
	replayed := &jobs.Table{Specs: s.c.table.Specs}
	for i := range s.journal {
		if err := jobs.Fold(replayed, &s.journal[i]); err != nil {
			t.Fatal(err)
		}
	}
	next := &stage{t: t, at: s.at, c: New(Config{Tries: 1}, replayed, []*hosts.Host{box("a", 1)})}
	next.step(Tick{})
	next.wait(20*time.Second, "a")
	want(t, "said by the next dispatcher", strings.Join(next.deadlineLines(), "; "), "")
	s.step(Cancel{Jobs: []jobs.ID{7}})
	s.step(Requeue{Jobs: []jobs.ID{7}})
	s.wait(10*time.Second, "a")
	if n := len(s.deadlineLines()); n != 2 {
		t.Errorf("%d lines after a new round: %q", n, s.deadlineLines())
	}
}
