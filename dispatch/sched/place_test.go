package sched

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// TestHostWithTheMostFreeSlotsGetsTheJob checks that the host with the most free slots, weighted,
// gets the next job. Among equals, the first host of the inventory does.
func TestHostWithTheMostFreeSlotsGetsTheJob(t *testing.T) {
	s := newStage(t, Config{}, testHost("a", 2), testHost("b", 4), testHost("c", 2))
	s.submitPlain(4)
	o := slices.Concat(s.up("a"), s.up("b"), s.up("c"))
	want(t, "a alone takes what it can", launchedOn(o, "a"), "1.1 2.1")
	want(t, "b", launchedOn(o, "b"), "3.1 4.1")

	s = stageWithJobs(t, 5, Config{}, testHost("a", 2), testHost("b", 4), testHost("c", 2))
	want(t, "a", launchedOn(s.commands, "a"), "3.1")
	want(t, "b", launchedOn(s.commands, "b"), "1.1 2.1 4.1")
	want(t, "c", launchedOn(s.commands, "c"), "5.1")

	fast := testHost("b", 2)
	fast.Weight = 3
	s = connectedStage(t, Config{}, testHost("a", 2), fast)
	s.submitPlain(3)
	want(t, "the faster one", launchedOn(s.commands, "b"), "1.1 2.1")
}

// TestJobsRunWhereRequirementsAreMet checks tags, GPUs with their device numbers, and memory (K10).
func TestJobsRunWhereRequirementsAreMet(t *testing.T) {
	big := testHost("b", 4)
	big.Tags = []string{"big"}
	s := connectedStage(t, Config{}, testHost("a", 8), big)
	gpu := &jobs.Options{GPUs: jobs.WholeGPU, Tags: []string{"big"}}
	mem := &jobs.Options{MemBytes: 10 << 30}
	s.submit(true, gpu, gpu, gpu, mem, mem, mem)
	want(t, "b", launchedOn(s.commands, "b"), "1.1 2.1 5.1")
	want(t, "a", launchedOn(s.commands, "a"), "4.1")
	want(t, "devices", devices(s.commands), "[[] [0] [1] []]")
	wantContains(t, "why", s.c.Why(s.now(), 3), "GPUs it needs are in use")
	wantContains(t, "why", s.c.Why(s.now(), 6), "memory it needs is in use")
	o := s.ended("b", "1.1", succeeded)
	want(t, "next GPU job", launchedOn(o, "b"), "3.1")
	want(t, "device, which is the one given back", devices(o), "[[0]]")
	want(t, "next memory job", launchedOn(s.ended("a", "4.1", succeeded), "a"), "6.1")
}

// TestNextTryPrefersAnotherHost checks that the next try goes to a host where the job has not failed
// (D2), and to one where it has only if there is no other.
func TestNextTryPrefersAnotherHost(t *testing.T) {
	s := stageWithJobs(t, 1, Config{}, testHost("a", 2), testHost("b", 1))
	want(t, "b is free", launchedOn(s.ended("a", "1.1", exit1), "b"), "1.2")
	s.ended("b", "1.2", exit1)
	want(t, "failed on both", launchedOn(s.wait(3*time.Second, "a", "b"), "a"), "1.3")
}

// TestNextTryWithoutAnotherHost checks that a job is tried again on the only host.
func TestNextTryWithoutAnotherHost(t *testing.T) {
	s := stageWithJobs(t, 1, Config{}, testHost("a", 2))
	s.ended("a", "1.1", exit1)
	want(t, "the only host", launchedOn(s.wait(3*time.Second, "a"), "a"), "1.2")
}

// TestDeadSupervisorsHostIsAvoided checks that a job whose supervisor died goes to another host.
func TestDeadSupervisorsHostIsAvoided(t *testing.T) {
	s := stageWithJobs(t, 1, Config{}, testHost("a", 2), testHost("b", 1))
	s.started("a", "1.1")
	s.probedAs("a", "1.1", hosts.Dead, nil)
	want(t, "launched on a", launchedOn(s.wait(3*time.Second, "a", "b"), "a"), "")
}

// TestNextTryIsFirstInLine checks that a job that has failed gets the next slot of another host
// before other jobs of its priority, and waits for it however long that takes if no job has
// succeeded on the host where it failed (D2).
func TestNextTryIsFirstInLine(t *testing.T) {
	s := stageWithJobs(t, 8, Config{}, testHost("a", 1), testHost("b", 1))
	s.started("b", "2.1")
	for range 3 {
		s.endFirst("a", fastFail) // jobs 1, 3, and 4
	}
	o := s.wait(10*time.Minute, "a", "b")
	want(t, "launched again on a", strings.Contains(launchedOn(o, "a"), ".2"), false)
	want(t, "sent to b ahead of need", fmt.Sprint(s.attemptsOn("b")), "[2.1 1.2]")
}

// laterSuccess is the outcome of an attempt that started after all others, and succeeded.
var laterSuccess = jobs.Outcome{Started: wallStart + 1e12, Ended: wallStart + 2e12}

// TestReturnToAGoodHost checks that a job returns to a host where it failed after a bounded time if
// other jobs succeed there, although another host is busy. A delay that was set is kept.
func TestReturnToAGoodHost(t *testing.T) {
	for _, tt := range []struct {
		delay       *time.Duration
		kept, until time.Duration
	}{{nil, 49 * time.Millisecond, 2 * time.Millisecond}, {new(time.Minute), 59 * time.Second, 2 * time.Second}} {
		s := stageWithJobs(t, 3, Config{RetryDelay: tt.delay}, testHost("a", 1), testHost("b", 1))
		s.started("b", "2.1")
		s.ended("a", "1.1", fastFail)
		s.ended("a", "3.1", laterSuccess)
		want(t, "kept from a", launchedOn(s.wait(tt.kept, "a", "b"), "a"), "")
		want(t, "after that", launchedOn(s.wait(tt.until, "a", "b"), "a"), "1.2")
	}
}

// TestReservedSlotsAreNotFree checks that slots reserved for a job with several slots are not free
// for jobs behind it, and that Why explains this (X7). Jobs before it that were buffered on that
// host still start first.
func TestReservedSlotsAreNotFree(t *testing.T) {
	s := connectedStage(t, Config{Buffer: time.Hour}, testHost("a", 2))
	one := &jobs.Options{Estimate: time.Minute}
	s.submit(false, one, one, one, one, &jobs.Options{Slots: 2}, one)
	s.started("a", "1.1 2.1")
	s.wait(2*reserveAfter, "a")
	want(t, "kept for the wide job", s.c.hosts[0].reserved != nil, true)
	s.step(AttemptsWithdrawn{"a", &hosts.Withdrawn{Attempts: attemptIDs("3.1 4.1 6.1")}})
	want(t, "before the wide one", launchedOn(s.ended("a", "2.1", succeeded), "a"), "3.2")
	s.started("a", "3.2")
	want(t, "before the wide one", launchedOn(s.ended("a", "3.2", succeeded), "a"), "4.2")
	s.started("a", "4.2")
	s.wait(2*reserveAfter, "a")
	want(t, "behind", launchedOn(s.ended("a", "4.2", succeeded), "a"), "")
	want(t, "why", s.c.Why(s.now(), 6), "Job 6 waits: a is kept for job 5, which needs 2 slots at once.")
	wantContains(t, "the wide one", s.c.Why(s.now(), 5), "it needs 2 slots at once")
	urgent := -1
	want(t, "a more urgent queue", launchedOn(s.step(Submit{Specs: []*jobs.Spec{{ID: 7, Command: "true",
		Options: &jobs.Options{Queue: "u", QueuePriority: &urgent}}}}), "a"), "7.1")
	want(t, "a queue as urgent", launchedOn(s.step(Submit{Specs: []*jobs.Spec{{ID: 8, Command: "true",
		Options: &jobs.Options{Queue: "v"}}}}), "a"), "")
	s.started("a", "7.1")
	s.ended("a", "7.1", succeeded)
	want(t, "its turn", launchedOn(s.ended("a", "1.1", succeeded), "a"), "5.1")
}

// TestWideJobIsNotStarved checks that a job with several slots occupies them, and that a
// reservation keeps single-slot jobs from starving it.
func TestWideJobIsNotStarved(t *testing.T) {
	s := connectedStage(t, Config{}, testHost("a", 4))
	opts := repeatOptions(40, jobs.NoOptions)
	opts[4] = &jobs.Options{Slots: 3}
	s.submit(true, opts...)
	want(t, "first", launchedOn(s.commands, "a"), "1.1 2.1 3.1 4.1")
	s.started("a", "1.1 2.1 3.1 4.1")
	running := attemptIDs("1.1 2.1 3.1 4.1")
	for range 20 {
		s.at += time.Second
		s.step(Tick{})
		o := s.ended("a", running[0].String(), succeeded)
		running = append(running[1:], attemptIDs(launchedOn(o, "a"))...)
		if s.job(5).State == jobs.Running {
			break
		}
	}
	s.wantState(5, jobs.Running)
	if h := s.c.hosts[0]; h.occupiedSlots > 4 {
		t.Errorf("%d slots in use of 4", h.occupiedSlots)
	}
	if left := s.c.table.Counts[jobs.Queued]; left < 20 {
		t.Errorf("only %d jobs were left when the wide one ran", left)
	}
}

// TestSeveralGPUsAtOnce checks that jobs with one GPU do not starve a job with two.
func TestSeveralGPUsAtOnce(t *testing.T) {
	s := newStage(t, Config{}, testHost("a", 8))
	s.step(HostUp{Host: "a", Hello: &hosts.Hello{Cores: 8, Slots: 8, MemBytes: 16 << 30, GPUs: 2}})
	one := &jobs.Options{GPUs: jobs.WholeGPU}
	s.submit(true, one, one, &jobs.Options{GPUs: 2 * jobs.WholeGPU}, one, one, one, one)
	s.started("a", "1.1 2.1")
	s.wait(2*reserveAfter, "a")
	s.ended("a", "1.1", succeeded)
	s.wantState(4, jobs.Queued)
	s.ended("a", "2.1", succeeded)
	s.wantState(3, jobs.Running)
}

// TestLocalSlotsRunTheShortestFirst checks that local slots run the job with the shortest estimate
// first and remote slots the first job of the file (D5), so that short jobs are done while remote
// hosts are being connected. Priorities count first, and only a run with both kinds of hosts does
// this.
func TestLocalSlotsRunTheShortestFirst(t *testing.T) {
	local := func() *hosts.Host { h := testHost("here", 1); h.Link = "local"; return h }
	est := func(d time.Duration) *jobs.Options { return &jobs.Options{Estimate: d} }
	opts := []*jobs.Options{est(time.Hour), est(90 * time.Minute), est(2 * time.Hour), est(10 * time.Minute),
		est(time.Minute),
		{Estimate: 3 * time.Hour, Priority: -1}, est(10 * time.Minute)}

	s := newStage(t, Config{}, local(), testHost("there", 1))
	minute := func() jobs.Outcome { // long enough for the hosts to buffer nothing
		return jobs.Outcome{Started: s.now().Wall - jobs.Stamp(time.Minute), Ended: s.now().Wall}
	}
	s.up("here")
	s.submit(true, opts...)
	want(t, "what is more urgent first", launchedOn(s.commands, "here"), "6.1")
	want(t, "then the shortest", launchedOn(s.ended("here", "6.1", minute()), "here"), "5.1")
	o := s.ended("here", "5.1", minute())
	want(t, "then the first of the equal ones", launchedOn(o, "here"), "4.1")
	want(t, "remote: first in first out", launchedOn(s.up("there"), "there"), "1.1")
	want(t, "remote: first in first out", launchedOn(s.ended("there", "1.1", minute()), "there"), "2.1")
	want(t, "and again", launchedOn(s.ended("here", "4.1", minute()), "here"), "7.1")
	want(t, "and the longest", launchedOn(s.ended("here", "7.1", minute()), "here"), "3.1")

	s = newStage(t, Config{}, local())
	s.submit(true, opts...)
	want(t, "without remote hosts the common order", s.runThroughSlot("here", 7), "6.1 1.1 2.1 3.1 4.1 5.1 7.1")
}

// TestRunTimesOfTheQueueReplaceEstimates checks that the run times of the queue count if there is
// no estimate by the user.
func TestRunTimesOfTheQueueReplaceEstimates(t *testing.T) {
	h := testHost("here", 1)
	h.Link = "local"
	s := newStage(t, Config{}, h, testHost("there", 2))
	s.up("there")
	long, quick := &jobs.Options{Queue: "long"}, &jobs.Options{Queue: "quick"}
	s.submit(true, long, quick, long, long, long, quick, quick, quick, quick)
	s.endAfter("there", "1.1", time.Hour)
	s.endAfter("there", "2.1", time.Minute)
	for _, id := range attemptIDs(launchedOn(s.up("here"), "here")) {
		if s.job(id.Job).Spec.Queue != "quick" {
			t.Errorf("job %d of the long queue goes first", id.Job)
		}
	}
	want(t, "free slots here", s.c.byName["here"].freeSlots(), 0)
}

// TestEarliestDeadlineGoesFirst checks that the earliest deadline goes first among equal priorities
// (B6). A deadline that cannot be met, by the user's estimate or the queue's run times, is reported
// once, and Why explains it.
func TestEarliestDeadlineGoesFirst(t *testing.T) {
	in := func(d time.Duration) time.Time { return wallStart.Time().Add(d) }
	s := newStage(t, Config{}, testHost("a", 1))
	s.submit(true,
		jobs.NoOptions,
		&jobs.Options{Deadline: in(time.Hour)},
		&jobs.Options{Deadline: in(30 * time.Minute)},
		&jobs.Options{Deadline: in(time.Minute), Priority: 1},
		&jobs.Options{Deadline: in(40 * time.Minute), Estimate: time.Hour},
		&jobs.Options{Deadline: in(time.Minute), Priority: 2},
	)
	s.wait(12 * time.Second)
	want(t, "said", strings.Join(s.eventsAbout("deadline"), "; "),
		"job 5 cannot meet its deadline: it needs 60 min, as far as is known, and 40 min are left")
	s.wait(12 * time.Second)
	want(t, "said once", strings.Join(s.eventsAbout("deadline")[1:], "; "), "")
	wantContains(t, "why", s.c.Why(s.now(), 5), "Its deadline cannot be met: it needs 60 min")
	if why := s.c.Why(s.now(), 2); strings.Contains(why, "deadline") {
		t.Errorf("of a job that can meet it: %s", why)
	}
	s.wait(time.Minute)
	want(t, "events, with those of 4 and 6", len(s.eventsAbout("deadline")), 3)
	wantContains(t, "missed", s.c.Why(s.now(), 4), "Its deadline cannot be met: that was")
	want(t, "order", s.runThroughSlot("a", 6), "3.1 5.1 2.1 1.1 4.1 6.1")
}

// TestDeadlineIsJudgedByTheQueue checks that the queue's run times count without an estimate by the
// user. The next dispatcher does not report a missed deadline again, but a new round is reported
// again.
func TestDeadlineIsJudgedByTheQueue(t *testing.T) {
	s := connectedStage(t, Config{Tries: 1}, testHost("a", 1))
	late := &jobs.Options{Deadline: wallStart.Time().Add(70 * time.Second)}
	n := &jobs.Options{Priority: -1}
	s.submit(true, n, n, n, n, n, n, late)
	for _, a := range []string{"1.1", "2.1", "3.1", "4.1", "5.1"} {
		s.endAfter("a", a, 60*time.Second)
	}
	s.wait(20*time.Second, "a")
	want(t, "events", len(s.eventsAbout("deadline")), 1)
	next := restart(s, testHost("a", 1))
	next.wait(20*time.Second, "a")
	want(t, "events when the next dispatcher runs", len(next.eventsAbout("deadline")), 1)
	s.step(Cancel{Jobs: []jobs.ID{7}})
	s.step(Requeue{Jobs: []jobs.ID{7}})
	s.wait(10*time.Second, "a")
	want(t, "events after a new round", len(s.eventsAbout("deadline")), 2)
}
