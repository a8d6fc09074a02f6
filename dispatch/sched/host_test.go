package sched

import (
	"errors"
	"strings"
	"testing"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// TestStoppedIsNotDraining checks that a host that a user stopped is disabled, and a drained one is
// draining. Each has a readable reason and no usable slots. A stopped host stays stopped if it is
// also drained.
func TestStoppedIsNotDraining(t *testing.T) {
	s := newStage(t, Config{}, box("a", 2), box("b", 2))
	s.up("a", "b")
	if v := s.c.Hosts()[0]; v.Usable != 2 || v.Stopped {
		t.Fatalf("%+v", v)
	}
	s.step(DrainHost{Host: "a", On: true})
	s.step(DrainHost{Host: "b", On: true, Now: true})
	s.step(DrainHost{Host: "b", On: true})
	a, b := s.c.Hosts()[0], s.c.Hosts()[1]
	if a.State != Draining || a.Stopped || a.Usable != 0 || a.Reason == "draining" {
		t.Errorf("drained: %s %q, %v usable", a.State, a.Reason, a.Usable)
	}
	if b.State != Disabled || !b.Stopped || b.Usable != 0 || !strings.Contains(b.Reason, "stopped by a person") {
		t.Errorf("stopped: %s %q, %v usable", b.State, b.Reason, b.Usable)
	}
	s.step(DrainHost{Host: "b"})
	if b := s.c.Hosts()[1]; b.State != Up || b.Stopped || b.Usable != 2 {
		t.Errorf("used again: %+v", b)
	}
}

// TestStuck checks that the reason is reported when jobs are ready and no host accepts them.
// Failures are listed before requests by users. A host that is merely busy is no reason (X7).
func TestStuck(t *testing.T) {
	s := newStage(t, Config{}, box("a", 1), box("b", 1))
	s.plain(3)
	want(t, "before anybody has answered", s.c.Stuck(), "")
	s.up("a", "b")
	want(t, "busy", s.c.Stuck(), "")
	s.step(DrainHost{Host: "a", On: true})
	want(t, "one is left", s.c.Stuck(), "")
	s.step(HostDown{"b", &hosts.Error{Host: "b", Class: hosts.HostKey, Err: errors.New("its key has changed")}})
	want(t, "stuck", s.c.Stuck(), "b is disabled (its key has changed); a is draining ("+drainingWhy+")")
	if why := s.c.Why(s.now(), 3); !strings.Contains(why, "none of the 2 hosts that can run it takes jobs") || strings.Contains(why, "(draining)") {
		t.Error(why)
	}
	if r := s.c.Hosts()[1].Reason; r != "its key has changed" {
		t.Errorf("%q follows the name of the host", r)
	}
	s.step(Pause{true})
	want(t, "paused", s.c.Stuck(), "")
}

// TestWhyOneHost checks the wording for a single host (X7).
func TestWhyOneHost(t *testing.T) {
	s := newStage(t, Config{}, box("a", 1), box("b", 1))
	s.up("a", "b")
	s.step(DrainHost{Host: "b", On: true})
	s.submit(true, &jobs.Options{Slots: 1}, &jobs.Options{GPUs: 0, MemBytes: 1})
	s.started("a", "1.1")
	want(t, "why", s.c.Why(s.now(), 2), "Job 2 waits: every usable slot of the only host that can run it now is busy.")
}

// TestHostsCountAttempts checks that a host counts every failed attempt, even if its job is
// retried, but no attempt that a user canceled.
func TestHostsCountAttempts(t *testing.T) {
	s := newStage(t, Config{}, box("a", 3))
	s.up("a")
	s.plain(3)
	for _, id := range []string{"1.1", "2.1", "3.1"} {
		s.started("a", id)
	}
	s.ended("a", "1.1", okay)
	s.ended("a", "2.1", exit1) // it is tried again
	s.step(Cancel{Jobs: []jobs.ID{3}})
	s.ended("a", "3.1", jobs.Outcome{Signal: "SIGTERM", Stopped: true})
	s.wantState(3, jobs.Canceled)
	if h := s.c.Hosts()[0]; h.Done != 1 || h.Failed != 1 {
		t.Errorf("%d succeeded, %d failed", h.Done, h.Failed)
	}
}

// TestWishesSurvive checks that requests of users about hosts apply to the next dispatcher, which
// reports them, until the users revoke them. An attempt that still runs on a stopped host is
// killed, and its job runs elsewhere (D7).
func TestWishesSurvive(t *testing.T) {
	s := newStage(t, Config{}, box("a", 1), box("b", 1), box("c", 1))
	s.up("a", "b", "c")
	s.plain(6)
	s.started("a", "1.1")
	s.started("b", "2.1")
	s.step(DrainHost{Host: "a", On: true})
	s.step(DrainHost{Host: "b", On: true, Now: true})
	s.step(SetSlots{Host: "c", Slots: 2})

	// The end of 2.1 is not reported because the dispatcher dies.
	table := s.c.Table()
	s.c = New(Config{}, table, []*hosts.Host{box("a", 1), box("b", 1), box("c", 1)})
	o := s.step(Tick{})
	want(t, "commands", said[Launch](o), "")
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
	if j := s.c.Table().Job(2); j.State == jobs.Canceled || j.State.Terminal() {
		t.Errorf("job 2 is %s", j.State)
	}

	s.step(DrainHost{Host: "b"})
	s.step(SetSlots{Host: "c"})
	if w := s.c.Table().Hosts; len(w) != 1 || w["a"].Use != jobs.HostDrained {
		t.Errorf("left of the wishes: %v", w)
	}
}

// TestWishesOnce checks that a repeated request makes one record, and that a request that changes
// nothing makes none.
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

// TestPauseSurvives checks that a pause applies to the next dispatcher, which reports it, until a
// user continues. A Hold does not end a pause, and the end of a pause does not end a Hold.
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

// The following functions simulate the settings of the hosts' owners: quiet hours and max_load.

// quietLeeway is how long after the beginning of quiet hours a job may still start, because a
// disconnected host has its lease.
const quietLeeway = hosts.DefaultLostAfter + 15*time.Second

// rests draws a host's settings: max_load, and quiet hours that overlap the run.
func (w *world) rests(f *fakeHost) {
	if w.more.IntN(3) == 0 {
		f.spec.MaxLoad = 3
	}
	f.zone = (w.more.IntN(27) - 13) * 3600
	for range w.more.IntN(3) {
		from := (timeOfDay(wallStart, f.zone) + time.Duration(w.more.IntN(20))*time.Minute) % day
		f.spec.Quiet = append(f.spec.Quiet, hosts.Quiet{From: from, To: (from + time.Duration(1+w.more.IntN(30))*time.Minute) % day})
	}
}

// early sends the heartbeat that follows the hello.
func (h *fakeHost) early(gen int) {
	h.w.after(150*time.Millisecond, func() {
		if h.gen == gen && h.up && h.w.now >= h.mute {
			h.report(HostBeat{h.spec.Name, &hosts.Beat{Early: true, Load: h.draw(), Busy: 4, MemFree: 4 << 30, DiskFree: -1,
				Running: h.count(fakeRunning), Buffered: len(h.spool), Uptime: h.w.now}})
		}
	})
}

// draw returns a load that changes occasionally.
func (h *fakeHost) draw() [3]float64 {
	if h.w.more.IntN(10) == 0 {
		h.load = 4 * h.w.more.Float64()
	}
	return [3]float64{h.load}
}
