package sched

import (
	"fmt"
	"testing"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
	"dcs-tui/jobs/ask"
)

// effect carries out a cancel and returns what must be requeued to undo it.
func (s *stage) effect(ev Event) []jobs.ID {
	trace := ask.Trace{Name: "cancel"}
	s.c.See = trace.See
	s.step(Request{Name: trace.Name, Do: []Event{ev}})
	s.c.See = nil
	return ask.Undo(s.c.table, trace.Affected)
}

// TestUndoCancel: a requeue of what a cancel ended brings everything back, also what was
// skipped because of it, and what is still being ended when the requeue comes; a job
// that had its end before is not among them (TUI.md rule 9).
func TestUndoCancel(t *testing.T) {
	for _, early := range []bool{false, true} {
		s := newStage(t, Config{Tries: 1}, box("a", 2))
		s.up("a")
		after := func(ids ...jobs.ID) *jobs.Options { return &jobs.Options{After: ids} }
		n := jobs.NoOptions
		// 4 comes after 3, 5 after 4; 6 after the running 2, 7 after that.
		s.submit(true, n, n, n, after(3), after(4), after(2), after(6), n)
		s.started("a", "1.1 2.1")
		s.ended("a", "1.1", exit1)
		s.step(Pause{true})
		s.step(AttemptsWithdrawn{"a", &hosts.Withdrawn{Attempts: attemptIDs("3.1 8.1")}})
		s.wantState(3, jobs.Queued)
		ids := s.effect(Cancel{Jobs: []jobs.ID{1, 2, 3}})
		want(t, "undo", fmt.Sprint(ids), "[2 3 4 5 6 7]")
		s.wantState(5, jobs.Skipped)
		if got := s.c.Standing(2); got != Ending {
			t.Errorf("standing %d", got)
		}
		if early {
			s.step(Requeue{ids})
		}
		s.ended("a", "2.1", jobs.Outcome{Stopped: true, Signal: "SIGTERM"})
		if !early {
			s.wantState(7, jobs.Skipped)
			s.step(Requeue{ids})
		}
		for _, id := range ids {
			s.wantState(id, jobs.Queued)
		}
		s.wantState(1, jobs.Failed)
		s.step(Pause{})
		for range 20 {
			for f := s.c.hosts[0].head; f != nil; f = s.c.hosts[0].head {
				s.ended("a", f.id.String(), okay)
			}
		}
		if s.c.table.Counts[jobs.Succeeded] != 7 || s.finish == nil {
			t.Errorf("early %v: %v", early, s.c.table.Counts)
		}
	}
}

// TestUndoUndone: a cancel after the undo stays, and a job that was quicker than its
// cancel keeps its result.
func TestUndoUndone(t *testing.T) {
	s := newStage(t, Config{}, box("a", 2))
	s.up("a")
	s.plain(2)
	s.started("a", "1.1 2.1")
	both := []jobs.ID{1, 2}
	s.step(Cancel{Jobs: both})
	s.step(Requeue{both})
	s.step(Cancel{Jobs: []jobs.ID{1}})
	s.ended("a", "1.1", jobs.Outcome{Stopped: true})
	s.wantState(1, jobs.Cancelled)
	s.ended("a", "2.1", okay)
	s.wantState(2, jobs.Succeeded)
	if s.finish == nil {
		t.Error("the run goes on")
	}
}

// TestStanding: what a screen shows of a job beyond its state is the core's own word.
func TestStanding(t *testing.T) {
	s := newStage(t, Config{}, box("a", 1))
	n := jobs.NoOptions
	s.submit(true, n, n, &jobs.Options{After: []jobs.ID{1}})
	check := func(what string, want ...Standing) {
		t.Helper()
		for i, w := range want {
			if got := s.c.Standing(jobs.ID(i + 1)); got != w {
				t.Errorf("%s: job %d stands at %d, want %d", what, i+1, got, w)
			}
		}
	}
	check("queued", IsReady, IsReady, Waits, IsOver)
	s.up("a")
	check("handed", Handed, IsReady, Waits)
	s.started("a", "1.1")
	check("runs", Runs)
	s.step(down("a", hosts.Unreachable, "gone"))
	check("away", Away)
	if v := s.c.Hosts()[0]; v.Down == 0 && s.at > 0 {
		t.Errorf("%+v", v)
	}
	s.up("a")
	s.ended("a", "1.1", exit1)
	check("failed", Retrying)
	s.step(Cancel{Jobs: []jobs.ID{1}})
	check("cancelled", IsOver, Handed, IsOver)
	s.step(Drain{Why: "asked"})
	if s.c.Draining() != "asked" || s.c.Paused() {
		t.Error("draining is not told")
	}
}
