package sched

import (
	"errors"
	"fmt"
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
	s := connectedStage(t, Config{}, testHost("a", 2), testHost("b", 2))
	shown := func(i int) string {
		v := s.c.Hosts()[i]
		return fmt.Sprintf("%s, asked %d, %g usable: %s", v.State, v.Asked.Use, v.Usable, v.Reason)
	}
	used := fmt.Sprintf("up, asked %d, 2 usable: ", jobs.HostUsed)
	want(t, "at first", shown(0), used)
	s.step(DrainHost{Host: "a", On: true})
	s.step(DrainHost{Host: "b", On: true, Now: true})
	s.step(DrainHost{Host: "b", On: true})
	want(t, "drained", shown(0), fmt.Sprintf("draining, asked %d, 0 usable: %s", jobs.HostDrained, whyDraining))
	want(t, "stopped", shown(1), fmt.Sprintf("disabled, asked %d, 0 usable: %s", jobs.HostStopped, whyStopped))
	s.step(DrainHost{Host: "b"})
	want(t, "used again", shown(1), used)
}

// TestReasonWhyNoHostAcceptsJobs checks that the reason is reported when jobs are ready and no host
// accepts them. Failures are listed before requests by users. A host that is merely busy is no
// reason (X7).
func TestReasonWhyNoHostAcceptsJobs(t *testing.T) {
	s := newStage(t, Config{}, testHost("a", 1), testHost("b", 1))
	s.submitPlain(3)
	want(t, "before anybody has answered", s.c.WhyStuck(), "")
	s.up("a", "b")
	want(t, "busy", s.c.WhyStuck(), "")
	s.step(DrainHost{Host: "a", On: true})
	want(t, "one is left", s.c.WhyStuck(), "")
	s.step(HostDown{"b", &hosts.Error{Host: "b", Class: hosts.HostKey, Err: errors.New("its key has changed")}})
	want(t, "stuck", s.c.WhyStuck(), "b is disabled (its key has changed); a is draining ("+whyDraining+")")
	if why := s.c.Why(s.now(), 3); !strings.Contains(why, "none of the 2 hosts that can run it takes jobs") ||
		strings.Contains(why, "(draining)") {
		t.Errorf("Why: got %q, want the number of hosts without their states", why)
	}
	want(t, "reason", s.c.Hosts()[1].Reason, "its key has changed")
	s.step(Pause{true})
	want(t, "paused", s.c.WhyStuck(), "")
}

// TestReasonWhyAllHostsRest checks that the reason is reported when all hosts that accept jobs are on trial
// and rest from the ready jobs. One that is tried with a job, or may be, is no reason.
func TestReasonWhyAllHostsRest(t *testing.T) {
	const slowed = "has been slowed down for 0 s: its first 0 jobs failed at once; " +
		"it gets one job at a time until one succeeds"
	for _, tt := range []struct {
		name  string
		rests map[string]time.Duration
		want  string
	}{
		{"one accepts jobs", map[string]time.Duration{"a": time.Hour}, ""},
		{"both rest", map[string]time.Duration{"a": time.Hour, "b": time.Hour},
			"a " + slowed + "; b " + slowed},
		{"one gets a job", map[string]time.Duration{"a": time.Hour, "b": 0}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := connectedStage(t, Config{}, testHost("a", 2), testHost("b", 2))
			for name, d := range tt.rests {
				s.letRest(name, d)
			}
			s.submitPlain(5)
			want(t, "stuck", s.c.WhyStuck(), tt.want)
		})
	}
}

// TestWordingForASingleHost checks the wording for a single host (X7).
func TestWordingForASingleHost(t *testing.T) {
	s := connectedStage(t, Config{}, testHost("a", 1), testHost("b", 1))
	s.step(DrainHost{Host: "b", On: true})
	s.submit(true, &jobs.Options{Slots: 1}, &jobs.Options{GPUs: 0, MemBytes: 1})
	s.started("a", "1.1")
	want(t, "why", s.c.Why(s.now(), 2), "Job 2 waits: every usable slot of the only host that can run it now is busy; "+
		"it is not known when the next slot is due.")
}

// TestHostCountsEveryFailedAttempt checks that a host counts every failed attempt, even if its job
// is retried, but no attempt that a user canceled.
func TestHostCountsEveryFailedAttempt(t *testing.T) {
	s := stageWithJobs(t, 3, Config{}, testHost("a", 3))
	s.started("a", "1.1 2.1 3.1")
	s.ended("a", "1.1", succeeded)
	s.ended("a", "2.1", exit1) // it is tried again
	s.step(Cancel{Jobs: []jobs.ID{3}})
	s.ended("a", "3.1", jobs.Outcome{Signal: "SIGTERM", Stopped: true})
	s.wantState(3, jobs.Canceled)
	if h := s.c.Hosts()[0]; h.Done != 1 || h.Failed != 1 {
		t.Errorf("%d succeeded, %d failed", h.Done, h.Failed)
	}
}

// TestHostSettingsApplyToTheNextDispatcher checks that requests of users about hosts apply to the
// next dispatcher, which reports them, until the users revoke them. An attempt that still runs on a
// stopped host is killed, and its job runs elsewhere (D7).
func TestHostSettingsApplyToTheNextDispatcher(t *testing.T) {
	s := stageWithJobs(t, 6, Config{}, testHost("a", 1), testHost("b", 1), testHost("c", 1))
	s.started("a", "1.1")
	s.started("b", "2.1")
	s.step(DrainHost{Host: "a", On: true})
	s.step(DrainHost{Host: "b", On: true, Now: true})
	s.step(SetSlots{Host: "c", Slots: 2})

	// The end of 2.1 is not reported because the dispatcher dies.
	table := s.c.Table()
	s.c = New(Config{}, table, inventoryOf(testHost("a", 1), testHost("b", 1), testHost("c", 1)))
	o := s.step(Tick{})
	want(t, "commands", formatCommands[Launch](o), "")
	want(t, "told", events(s.records), "a is still drained, as a person asked\n"+
		"b is still stopped, as a person asked\nc still has 2 slots, as a person asked")
	want(t, "launched on the drained one", launchedOn(s.up("a"), "a"), "")
	want(t, "launched on the stopped one", launchedOn(s.up("b"), "b"), "")
	o = s.probedAs("b", "2.1", hosts.IsRunning, nil)
	want(t, "ended", formatCommands[Kill](o), "{b [2.1] asked for before}")
	want(t, "limit", formatCommands[SetLimit](s.up("c")), "{c 2}")
	s.ended("b", "2.1", jobs.Outcome{Stopped: true, Signal: "SIGTERM"})
	s.wantState(2, jobs.Queued)

	s.step(DrainHost{Host: "b"})
	s.step(SetSlots{Host: "c"})
	if w := s.c.Table().Hosts; len(w) != 1 || w["a"].Use != jobs.HostDrained {
		t.Errorf("left of the settings: %v", w)
	}
}

// TestRepeatedHostSettingMakesOneRecord checks that a repeated request makes one record, and that a
// request that changes nothing makes none.
func TestRepeatedHostSettingMakesOneRecord(t *testing.T) {
	s := connectedStage(t, Config{}, testHost("a", 1))
	for _, ev := range []Event{DrainHost{Host: "a"}, DrainHost{Host: "a", On: true}, DrainHost{Host: "a", On: true},
		SetSlots{Host: "a", Slots: 3},
		SetSlots{Host: "a", Slots: 3}, DrainHost{Host: "x", On: true}, SetSlots{Host: "a"}} {
		s.step(ev)
	}
	want(t, "records", s.numRecords(jobs.KindHost), 3)
}

// TestPauseAppliesToTheNextDispatcher checks that a pause applies to the next dispatcher, which
// reports it, until a user continues. A Hold does not end a pause, and the end of a pause does not
// end a Hold.
func TestPauseAppliesToTheNextDispatcher(t *testing.T) {
	s := newStage(t, Config{}, testHost("a", 1))
	s.submit(false)
	s.step(Pause{On: true})
	s.step(Pause{On: true})
	s.step(Hold{By: HoldRequests, On: true})
	s.step(Hold{By: HoldRequests})
	s.submitPlain(1)
	want(t, "launched after a hold", launchedOn(s.up("a"), "a"), "")

	table := s.c.Table()
	s.c = New(Config{}, table, inventoryOf(testHost("a", 1)))
	s.step(Tick{})
	wantContains(t, "told", events(s.records), "launching is still paused, as a person asked")
	want(t, "launched by the next one", launchedOn(s.up("a"), "a"), "")
	s.step(Hold{By: HoldJournal, On: true})
	want(t, "launched while the journal cannot be written", launchedOn(s.step(Pause{}), "a"), "")
	want(t, "paused", table.Paused, false)
	want(t, "launched", launchedOn(s.step(Hold{By: HoldJournal}), "a"), "1.1")
}

// TestWaitingForFilesIsNoPause checks that nothing is launched while files must be packed first, that hosts keep
// their slots and start what they have, and that the run is not given up.
func TestWaitingForFilesIsNoPause(t *testing.T) {
	s := newStage(t, Config{}, testHost("a", 1))
	s.up("a")
	s.submitPlain(3)
	s.step(Hold{By: HoldFiles, On: true})
	want(t, "paused", s.c.Paused(), false)
	want(t, "slots", s.c.byName["a"].limit, 1)
	want(t, "stuck while a job runs", s.c.WhyStuck(), "")
	want(t, "launched", launchedOn(s.ended("a", "1.1", jobs.Outcome{}), "a"), "")
	want(t, "stuck", s.c.WhyStuck(), whyFiles)
	s.wait(time.Hour, "a")
	want(t, "finished", s.c.finished, false)
	want(t, "launched after that", launchedOn(s.step(Hold{By: HoldFiles}), "a"), "2.1")
}
