package sched

import (
	"testing"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// TestWishesSurvive: what people asked of hosts holds for the next dispatcher, which says
// so, and until they take it back; what still runs on a stopped host is ended and runs
// elsewhere (D7).
func TestWishesSurvive(t *testing.T) {
	s := newStage(t, Config{}, box("a", 1), box("b", 1), box("c", 1))
	s.up("a", "b", "c")
	s.plain(6)
	s.started("a", "1.1")
	s.started("b", "2.1")
	s.step(DrainHost{Host: "a", On: true})
	s.step(DrainHost{Host: "b", On: true, Now: true})
	s.step(SetSlots{Host: "c", Slots: 2})

	// Nobody hears how 2.1 ends: the dispatcher dies.
	table := s.c.Table()
	s.c = New(Config{}, table, []*hosts.Host{box("a", 1), box("b", 1), box("c", 1)})
	o := s.step(Tick{})
	want(t, "orders", said[Launch](o), "")
	told := ""
	for _, r := range s.records {
		told += r.Reason + "; "
	}
	want(t, "told", told, "a is still drained, as a person asked; b is still stopped, as a person asked; c still has 2 slots, as a person asked; ")
	want(t, "launched on the drained one", on(s.up("a"), "a"), "")
	want(t, "launched on the stopped one", on(s.up("b"), "b"), "")
	o = s.step(AttemptsProbed{"b", &hosts.Probed{Jobs: []hosts.ProbedJob{{Attempt: jobs.AttemptID{Job: 2, N: 1}, Answer: hosts.IsRunning, Slot: 1}}}})
	want(t, "ended", said[Kill](o), "{b [2.1] asked for before}")
	want(t, "limit", said[SetLimit](s.up("c")), "{c 2}")
	s.ended("b", "2.1", jobs.Outcome{Stopped: true, Signal: "SIGTERM"})
	if j := s.c.Table().Job(2); j.State == jobs.Cancelled || j.State.Terminal() {
		t.Errorf("job 2 is %s", j.State)
	}

	s.step(DrainHost{Host: "b"})
	s.step(SetSlots{Host: "c"})
	if w := s.c.Table().Hosts; len(w) != 1 || w["a"].Use != jobs.HostDrained {
		t.Errorf("left of the wishes: %v", w)
	}
}

// TestWishesOnce: what is asked twice is one record, and what changes nothing none.
func TestWishesOnce(t *testing.T) {
	s := newStage(t, Config{}, box("a", 1))
	s.up("a")
	wishes := 0
	for _, ev := range []Event{DrainHost{Host: "a"}, DrainHost{Host: "a", On: true}, DrainHost{Host: "a", On: true}, SetSlots{Host: "a", Slots: 3},
		SetSlots{Host: "a", Slots: 3}, DrainHost{Host: "x", On: true}, SetSlots{Host: "a"}} {
		s.step(ev)
		for _, r := range s.records {
			if r.Kind == jobs.KindHost {
				wishes++
			}
		}
	}
	if wishes != 3 {
		t.Errorf("%d records", wishes)
	}
}

// TestPauseSurvives: a pause holds for the next dispatcher, which reports it, until a
// person continues. A Hold does not end it, and it does not end a Hold.
func TestPauseSurvives(t *testing.T) {
	s := newStage(t, Config{}, box("a", 1))
	s.submit(false)
	s.step(Pause{On: true})
	s.step(Pause{On: true})
	s.step(Hold{By: HoldRequests, On: true})
	s.step(Hold{By: HoldRequests})
	s.plain(1)
	want(t, "launched after a hold", on(s.up("a"), "a"), "")

	table := s.c.Table()
	s.c = New(Config{}, table, []*hosts.Host{box("a", 1)})
	s.step(Tick{})
	told := ""
	for _, r := range s.records {
		told += r.Reason
	}
	contains(t, "told", told, "launching is still paused, as a person asked")
	want(t, "launched by the next one", on(s.up("a"), "a"), "")
	s.step(Hold{By: HoldJournal, On: true})
	want(t, "launched while the journal cannot be written", on(s.step(Pause{}), "a"), "")
	if table.Paused {
		t.Error("it is still paused")
	}
	if got := on(s.step(Hold{By: HoldJournal}), "a"); got == "" {
		t.Error("nothing is launched")
	}
}
