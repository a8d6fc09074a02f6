package sched

import (
	"fmt"
	"math"
	"testing"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// TestUsableSlotsDependOnOthersLoad checks the formula, and the experiment of K6: of three 4-core
// hosts, the one with two foreign jobs does half the work of the others when all cores are slots.
func TestUsableSlotsDependOnOthersLoad(t *testing.T) {
	for _, tt := range []struct {
		name           string
		slots          int
		others, excess float64
		yield          bool
		want           int
	}{
		{"idle", 4, 0, 0, true, 4},
		{"K6: two foreign jobs on four cores, four slots", 4, 2, 0, true, 2},
		{"K6 and K5: the same with a core left free", 3, 2, 0, true, 1},
		{"others use everything", 4, 9, 0, true, 0},
		{"noise costs no slot", 4, 0.3, 0, true, 4},
		{"our jobs use two cores each", 8, 0, 4, true, 4},
		{"both", 8, 3, 2, true, 3},
		{"told not to yield", 4, 3, 3, false, 4},
	} {
		want(t, tt.name, wholeSlots(usableSlots(tt.slots, tt.others, tt.excess, tt.yield), -1), tt.want)
	}
}

// TestWholeSlotsAreStable checks that small changes of the usable slots do not change the number
// of whole slots.
func TestWholeSlotsAreStable(t *testing.T) {
	last := 4
	for _, u := range []float64{3.6, 3.4, 3.55, 3.36, 4.6, 4} {
		last = wholeSlots(u, last)
		want(t, fmt.Sprint("slots of ", u, " usable"), last, 4)
	}
	want(t, "slots of 3.3 usable", wholeSlots(3.3, 4), 3)
}

// TestOthersAreSmoothed checks that a short load of other users takes no slot, that a lasting load
// does, and that the helper is told once per change.
func TestOthersAreSmoothed(t *testing.T) {
	h := testHost("melon1", 4)
	h.Yield = true
	s := newStage(t, Config{}, h)
	want(t, "first limit", formatCommands[SetLimit](s.up("melon1")), "{melon1 4}")
	busy := func(cores float64) string {
		return formatCommands[SetLimit](s.heartbeat("melon1", hosts.Heartbeat{Busy: cores}))
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

// TestOwnJobsAreNotOthers checks that the CPU use of the run's own jobs is subtracted. Each slot
// includes one core, and use beyond that counts (K6).
func TestOwnJobsAreNotOthers(t *testing.T) {
	h := testHost("melon1", 4)
	h.Yield = true
	s := connectedStage(t, Config{}, h)
	s.submitPlain(8)
	s.started("melon1", "1.1 2.1 3.1 4.1")
	for range 10 {
		s.heartbeat("melon1", hosts.Heartbeat{Busy: 4, Ours: 4})
	}
	want(t, "usable beside four busy single-core jobs", s.c.Hosts()[0].Usable, 4)
	for range 30 {
		s.heartbeat("melon1", hosts.Heartbeat{Busy: 8, Ours: 8})
	}
	wantBetween(t, "usable beside four jobs on eight cores", s.c.Hosts()[0].Usable, 0, 0.5)
}

// TestAloneAWideJobRuns checks that without an inventory a job with several slots keeps its slots,
// whatever the load of others.
func TestAloneAWideJobRuns(t *testing.T) {
	h := testHost("here", 4)
	h.Link, h.Yield = "local", true
	s := newStage(t, Config{}, h)
	s.submit(true, &jobs.Options{Slots: 3}, jobs.NoOptions)
	want(t, "launched", launchedOn(s.up("here"), "here"), "1.1 2.1")
	for range 30 {
		s.heartbeat("here", hosts.Heartbeat{Busy: 8})
	}
	want(t, "limit", s.c.hosts[0].sentLimit, 4)
}

// TestStartsAreTheDelayApart checks that two starts are at least the delay apart, over all hosts.
func TestStartsAreTheDelayApart(t *testing.T) {
	s := stageWithJobs(t, 9, Config{LaunchDelay: 2 * time.Second}, testHost("a", 4), testHost("b", 4))
	want(t, "at once", launchedOn(s.commands, "a")+launchedOn(s.commands, "b"), "1.1")
	wantContains(t, "why job 2 waits", s.c.Why(s.now(), 2), "--delay")
	if at, _ := s.c.Next(); at != s.at+2*time.Second {
		t.Errorf("the core wants a tick after %v", at-s.at)
	}
	o := s.wait(time.Second)
	want(t, "after 1 s", launchedOn(o, "a")+launchedOn(o, "b"), "")
	o = s.wait(time.Second)
	want(t, "after 2 s", launchedOn(o, "a")+launchedOn(o, "b"), "2.1")
}

// TestMaxSlotsLimitsAllHosts checks that --max-slots limits the occupied slots over all hosts,
// buffers included.
func TestMaxSlotsLimitsAllHosts(t *testing.T) {
	s := stageWithJobs(t, 9, Config{MaxSlots: 3}, testHost("a", 4), testHost("b", 4))
	want(t, "a", launchedOn(s.commands, "a"), "1.1 3.1")
	want(t, "b", launchedOn(s.commands, "b"), "2.1")
	o := s.ended("a", "1.1", succeeded)
	want(t, "the next", launchedOn(o, "a")+launchedOn(o, "b"), "4.1")

	one := newStage(t, Config{MaxSlots: 2}, testHost("a", 4))
	want(t, "limit", formatCommands[SetLimit](one.up("a")), "{a 2}")
	one.submitPlain(9)
	want(t, "launched", launchedOn(one.commands, "a"), "1.1 2.1")
}

// TestNumberOfSlotsChangesAtOnce checks that a host gets more or fewer slots than its rule allows,
// at once, while running jobs continue. 0 restores the rule (D7).
func TestNumberOfSlotsChangesAtOnce(t *testing.T) {
	s := stageWithJobs(t, 6, Config{}, testHost("a", 1))
	o := s.step(SetSlots{Host: "a", Slots: 3})
	want(t, "limit", formatCommands[SetLimit](o), "{a 3}")
	want(t, "launched", launchedOn(o, "a"), "2.1 3.1")
	wantContains(t, "said", s.records[0].Reason, "a gets 3 slots instead of 1")
	want(t, "twice", formatCommands[SetLimit](s.step(SetSlots{Host: "a", Slots: 3})), "")
	s.started("a", "1.1 2.1 3.1")
	o = s.step(SetSlots{Host: "a", Slots: 1})
	want(t, "limit", formatCommands[SetLimit](o), "{a 1}")
	want(t, "killed", formatCommands[Kill](o), "")
	want(t, "while two run", launchedOn(s.ended("a", "1.1", succeeded), "a"), "")
	if v := s.c.Hosts()[0]; v.Slots != 1 || v.Asked.Slots != 1 || v.Running != 2 {
		t.Errorf("got host %+v, want 1 slot and 2 running jobs", v)
	}
	s.step(SetSlots{Host: "a", Slots: 2})
	s.c.byName["a"].hello.MaxSlots = 2
	s.step(SetSlots{Host: "a", Slots: 4})
	wantContains(t, "said of more than the administrators allow", s.records[0].Reason, "a keeps its 2 slots")
	want(t, "rule", formatCommands[SetLimit](s.step(SetSlots{Host: "a", Slots: 0})), "{a 1}")
	want(t, "slots asked for", s.c.Hosts()[0].Asked.Slots, 0)
}

// TestAdministratorsLimitSlots checks that neither a person nor a changed inventory gets more slots than
// the administrators of the host allow, and that the load of others takes the other cores first.
func TestAdministratorsLimitSlots(t *testing.T) {
	h := testHost("a", 8)
	h.Yield = true
	s := newStage(t, Config{}, h)
	want(t, "limit", formatCommands[SetLimit](s.connect("a",
		hosts.Hello{Cores: 8, MachineCores: 8, Slots: 2, MaxSlots: 2})), "{a 2}")
	for range 30 {
		want(t, "others use the other cores", formatCommands[SetLimit](s.heartbeat("a", hosts.Heartbeat{Busy: 6})), "")
	}
	want(t, "by request", formatCommands[SetLimit](s.step(SetSlots{Host: "a", Slots: 5})), "")
	want(t, "fewer", formatCommands[SetLimit](s.step(SetSlots{Host: "a", Slots: 1})), "{a 1}")
	want(t, "by the rule", formatCommands[SetLimit](s.step(SetSlots{Host: "a"})), "{a 2}")
	more := *h
	more.Slots = hosts.SlotRule{Fixed: 12}
	want(t, "by another rule", formatCommands[SetLimit](s.step(setHosts(&more))), "")
	s.submit(true, &jobs.Options{Slots: 3})
	wantContains(t, "a wide job", s.c.Why(s.now(), 1), "no host of the inventory can run it")
}

// TestFewerSlotsThanAJob checks that a job that is buffered on a host, and needs more slots than
// the host now has, is withdrawn and starts elsewhere (D7, B3).
func TestFewerSlotsThanAJob(t *testing.T) {
	s := newStage(t, Config{}, testHost("a", 4), testHost("b", 4))
	s.up("a")
	s.submit(true, jobs.NoOptions, &jobs.Options{Slots: 3})
	want(t, "launched", launchedOn(s.commands, "a"), "1.1 2.1")
	s.up("b")
	o := s.step(SetSlots{Host: "a", Slots: 2})
	want(t, "asked back", formatCommands[Withdraw](o), "{a [2.1]}")
	o = s.step(AttemptsWithdrawn{"a", &hosts.Withdrawn{Attempts: attemptIDs("2.1"), Why: "it had not started"}})
	want(t, "elsewhere", launchedOn(o, "b"), "2.2")
}

// TestSetSlotsWithExtremeValues checks SetSlots with extreme values and unknown hosts.
func TestSetSlotsWithExtremeValues(t *testing.T) {
	s := newStage(t, Config{}, testHost("a", 1), &hosts.Host{Name: "b", Slots: hosts.SlotRule{Less: 1}})
	s.step(SetSlots{Host: "x", Slots: 3})
	s.step(SetSlots{Host: "a", Slots: math.MinInt})
	want(t, "slots", s.c.hosts[0].slots(), 1)
	s.step(SetSlots{Host: "a", Slots: math.MaxInt})
	s.step(SetSlots{Host: "b", Slots: 5})
	want(t, "slots of a", s.c.hosts[0].slots(), jobs.MaxSlots)
	want(t, "slots of b", s.c.hosts[1].slots(), 5)
	s.step(SetSlots{Host: "b", Slots: 0}) // the slots of b are not known yet
	want(t, "limit", formatCommands[SetLimit](s.up("a")), "{a 4096}")
}

// TestNumberOfSlotsSurvivesAReconnect checks that SetSlots still applies after a reconnect, and
// that --max-slots still limits it.
func TestNumberOfSlotsSurvivesAReconnect(t *testing.T) {
	s := connectedStage(t, Config{}, testHost("a", 1))
	s.step(SetSlots{Host: "a", Slots: 3})
	s.step(hostDown("a", hosts.Broken, "gone"))
	want(t, "limit", formatCommands[SetLimit](s.up("a")), "{a 3}")

	s = connectedStage(t, Config{MaxSlots: 2}, testHost("a", 1))
	want(t, "limit", formatCommands[SetLimit](s.step(SetSlots{Host: "a", Slots: 3})), "{a 2}")
}

// TestJobWiderThanTheSlotsWaits checks that a job that needs more slots than the host currently has
// waits. A job that needs more than the rule allows can run while the host has them.
func TestJobWiderThanTheSlotsWaits(t *testing.T) {
	s := connectedStage(t, Config{}, testHost("a", 4))
	s.step(SetSlots{Host: "a", Slots: 2})
	s.submit(false, &jobs.Options{Slots: 3})
	s.wantState(1, jobs.Queued)
	want(t, "launched", launchedOn(s.step(SetSlots{Host: "a", Slots: 0}), "a"), "1.1")
	s.ended("a", "1.1", succeeded)
	s.step(SetSlots{Host: "a", Slots: 6})
	s.submit(true, &jobs.Options{Slots: 6})
	s.wantState(2, jobs.Running)
	s.wait(time.Second, "a")
	s.ended("a", "2.1", succeeded)
	want(t, "finish", s.finishText(), "done")
}

// TestSlotsAreShared checks that the slots that other runs and users hold limit the host's slots
// (K11), and are not subtracted again as load of others. The wanted share is sent to the helper,
// and again when it changes.
func TestSlotsAreShared(t *testing.T) {
	h := testHost("a", 4)
	h.Yield = true
	s := newStage(t, Config{RunShare: 2}, h)
	heartbeat := func(sharing *hosts.Sharing, busy float64) []Command {
		return s.heartbeat("a", hosts.Heartbeat{Busy: busy, Sharing: sharing})
	}
	o := s.up("a")
	want(t, "limit", formatCommands[SetLimit](o), "{a 4}")
	want(t, "share", formatCommands[SetShare](o), "{a {4 4 0}}")
	others := &hosts.Sharing{Slots: 1, Held: 3, Users: []hosts.SharedUser{{Name: "bob", Slots: 3}}}
	for range 5 { // the jobs of others use one core each
		o = append(o, heartbeat(others, 3)...)
	}
	want(t, "bound by others", formatCommands[SetLimit](o), "{a 4} {a 1}")
	want(t, "nothing is wanted", formatCommands[SetShare](o[3:]), "")
	others = &hosts.Sharing{Slots: 0, Held: 4, Users: []hosts.SharedUser{{Name: "bob", Slots: 4}}}
	want(t, "all are taken", formatCommands[SetLimit](heartbeat(others, 4)), "{a 0}")
	s.submit(true, jobs.NoOptions, jobs.NoOptions, jobs.NoOptions)
	wantContains(t, "why", s.c.Why(s.now(), 1), "other runs and users have its slots: bob 4 slots")
	if heartbeat(others, 4); s.c.byName["a"].sentShare != (hosts.Share{Rule: 4, Slots: 4, Want: 3}) {
		t.Errorf("the helper is told %+v", s.c.byName["a"].sentShare)
	}
	want(t, "they have gone", formatCommands[SetLimit](heartbeat(nil, 0)), "{a 4}")
	want(t, "no absurd bound", formatCommands[SetLimit](heartbeat(&hosts.Sharing{Slots: -5, Held: -5}, 0)), "{a 0}")
	want(t, "nor one above its slots", formatCommands[SetLimit](heartbeat(&hosts.Sharing{Slots: 99, Held: 1 << 40}, 0)),
		"{a 4}")

	off := newStage(t, Config{}, testHost("a", 4))
	want(t, "off", formatCommands[SetShare](off.up("a")), "")
	want(t, "off", formatCommands[SetLimit](off.heartbeat("a", hosts.Heartbeat{Sharing: others})), "")
}

// TestMemoryIsShared checks that memory that jobs of other runs may use is not assigned, and that
// jobs without a memory reservation continue.
func TestMemoryIsShared(t *testing.T) {
	s := connectedStage(t, Config{RunShare: 1}, testHost("a", 4))
	heartbeat := func(held int64) []Command {
		return s.heartbeat("a", hosts.Heartbeat{Sharing: &hosts.Sharing{Slots: 4, Memory: held}})
	}
	heartbeat(10 << 30)
	s.submit(true, &jobs.Options{MemBytes: 8 << 30}, jobs.NoOptions)
	s.wantState(2, jobs.Running)
	s.wantState(1, jobs.Queued) // others hold the memory that it needs
	wantContains(t, "why", s.c.Why(s.now(), 1), "memory")
	want(t, "the others have less", launchedOn(heartbeat(8<<30), "a"), "1.1")
}

// TestNothingStartsWhileTheOwnerIsPresent checks that nothing starts on a host whose owner is
// present. Suspended jobs do not become stragglers, and the time of the suspension is not counted
// (B7, T4, D4).
func TestNothingStartsWhileTheOwnerIsPresent(t *testing.T) {
	s := stageWithJobs(t, 9, Config{}, testHost("a", 2))
	for range 5 {
		s.endAfter("a", s.c.byName["a"].oldest.id.String(), 10*time.Second)
	}
	first := s.c.byName["a"].oldest.id
	s.started("a", first.String())
	held := hosts.Owner{Who: "alice uses the screen", Suspend: true}
	total := time.Duration(0)
	for range 100 {
		total += HeartbeatInterval
		s.heartbeat("a", hosts.Heartbeat{Owner: held, Suspended: total})
	}
	want(t, "why", s.c.Why(s.now(), first.Job), "Job 6 is suspended on a: alice uses the screen.")
	want(t, "host", s.c.Hosts()[0].Reason, "starts nothing: alice uses the screen; jobs there are suspended")
	want(t, "suspended", s.c.Hosts()[0].Suspended, 1)
	want(t, "limit", fmt.Sprint(s.c.byName["a"].limit), "0")
	want(t, "stragglers", fmt.Sprint(s.c.numStragglers.Of(1)), "0")
	if f := s.c.inFlight[first]; f.age(s.at) > 2*HeartbeatInterval {
		t.Errorf("its age is %v after %v, all of them suspended", f.age(s.at), total)
	}
	s.heartbeat("a", hosts.Heartbeat{Owner: hosts.Owner{Who: "alice uses the screen"}, Suspended: total})
	want(t, "paused", s.c.Hosts()[0].Reason, "starts nothing: alice uses the screen")
	want(t, "suspended", s.c.Hosts()[0].Suspended, 0)
	for range 9 {
		s.heartbeat("a", hosts.Heartbeat{Suspended: total})
	}
	want(t, "limit", fmt.Sprint(s.c.byName["a"].limit), "2")
	want(t, "said", events(s.journal),
		"a is up\na starts nothing: alice uses the screen; jobs there are suspended\na starts jobs again\n"+
			"job 6 is a straggler: it has run for 21 s on a, and jobs of its queue take 10 s at most, as a rule")
}

// TestNothingStartsBeforeTheOwnerIsKnown checks that nothing starts before the first heartbeat
// either.
func TestNothingStartsBeforeTheOwnerIsKnown(t *testing.T) {
	s := newStage(t, Config{}, testHost("a", 2))
	s.submitPlain(1)
	o := s.step(HostUp{Host: "a", Hello: &hosts.Hello{Cores: 2, Slots: 2,
		Owner: hosts.Owner{Who: "/var/tmp/.dcs-busy is there"}}})
	want(t, "launched", launchedOn(o, "a"), "")
	want(t, "why", s.c.Why(s.now(), 1),
		"Job 1 waits: the only host that can run it cannot take it: a starts nothing: /var/tmp/.dcs-busy is there.")
}
