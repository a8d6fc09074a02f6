package sched

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
	"dcs-tui/jobs/jobstest"
)

// TestNewCoreAsksHostsAboutOpenAttempts checks that a new core asks each host about all of its open
// attempts in one Probe and continues from the answers. The first step requests every connection.
func TestNewCoreAsksHostsAboutOpenAttempts(t *testing.T) {
	old := stageWithJobs(t, 8, Config{}, testHost("a", 6))
	old.started("a", "1.1 2.1")
	s := restart(old, testHost("a", 6))
	want(t, "connect", formatCommands[Connect](s.commands), "{a}")
	s.step(Submit{Last: true})
	o := s.up("a")
	want(t, "one probe", formatCommands[Probe](o), "{a [1.1 2.1 3.1 4.1 5.1 6.1]}")
	want(t, "no slot is free", launchedOn(o, "a"), "")
	s.probedAs("a", "1.1", hosts.HasExited, &succeeded)
	s.wantState(1, jobs.Succeeded)
	s.probedAs("a", "2.1", hosts.IsRunning, nil)
	s.wantState(2, jobs.Running)
	s.probedAs("a", "3.1", hosts.NeverStarted, nil)
	want(t, "never started", s.history(3), "running: a superseded, a launching")
	want(t, "4.1", s.job(4).Attempts[0].State.String(), "launching")
	s.probedAs("a", "4.1", hosts.IsRunning, nil)
	want(t, "4.1 runs", s.job(4).Attempts[0].State.String(), "running")
	s.probedAs("a", "5.1", hosts.Dead, nil)
	want(t, "dead", s.history(5), "running: a lost, a launching")
	s.probedAs("a", "6.1", hosts.Unknown, nil)
	s.wantState(6, jobs.Running)
	want(t, "asked again", formatCommands[Probe](s.wait(6*time.Second, "a")), "{a [6.1]}")
}

// TestLivingAttemptOfAFinishedJobIsKilled checks that an attempt is killed if it is alive although
// its job has a result.
func TestLivingAttemptOfAFinishedJobIsKilled(t *testing.T) {
	old := replacedStage(t)
	old.up("a")
	old.probedAs("a", "1.1", hosts.HasExited, &succeeded)
	s := restart(old, testHost("a", 1), testHost("b", 1), testHost("c", 1))
	s.up("b")
	wantContains(t, "kill", formatCommands[Kill](s.probedAs("b", "1.2", hosts.IsRunning, nil)), "{b [1.2]")

	old = lostStage(t, Config{}) // the dispatcher died while 1.1 was given up
	s = restart(old, testHost("a", 1), testHost("b", 1), testHost("c", 1))
	want(t, "lost ones are asked about", formatCommands[Probe](s.up("a")), "{a [1.1]}")
}

// TestResumeEndsLostAttempts checks that a dispatcher that continues a finished run waits for the
// hosts of lost attempts and ends those, unless the hosts still cannot be reached.
func TestResumeEndsLostAttempts(t *testing.T) {
	old := replacedStage(t)
	old.ended("c", "3.1", succeeded)
	old.ended("b", "1.2", succeeded)
	want(t, "without a", old.finish.Why, "processes of lost attempts may still be alive: 1.1 on a")
	for _, back := range []bool{true, false} {
		s := restart(old, testHost("a", 1), testHost("b", 1), testHost("c", 1))
		s.step(Submit{Last: true})
		s.up("b", "c")
		want(t, "while a is being connected to", s.finishText(), "")
		if !back {
			s.step(hostDown("a", hosts.Unreachable, "gone"))
			want(t, "still without a", s.finish.Why, old.finish.Why)
			continue
		}
		s.up("a")
		wantContains(t, "1.1 is ended", formatCommands[Kill](s.probedAs("a", "1.1", hosts.IsRunning, nil)), "{a [1.1]")
		want(t, "until 1.1 has ended", s.finishText(), "")
		s.ended("a", "1.1", jobs.Outcome{Stopped: true})
		want(t, "at the end", s.finishText(), "done")
		want(t, "left", s.finish.Why, "")
	}
}

// TestNoDeviceIsAssignedTwiceAfterATakeover checks that no device is assigned twice, although the
// devices of adopted attempts are not known.
func TestNoDeviceIsAssignedTwiceAfterATakeover(t *testing.T) {
	old := connectedStage(t, Config{}, testHost("a", 4))
	old.submit(true, &jobs.Options{GPUs: jobs.WholeGPU}, &jobs.Options{GPUs: jobs.WholeGPU},
		&jobs.Options{GPUs: jobs.WholeGPU})
	old.started("a", "1.1 2.1")
	s := restart(old, testHost("a", 4))
	s.up("a")
	s.ended("a", "1.1", succeeded)
	s.wantState(3, jobs.Queued)
	want(t, "when both are over", launchedOn(s.ended("a", "2.1", succeeded), "a"), "3.1")
}

// TestHostThatReportsTooLittleIsAsked checks that a host that keeps reporting fewer attempts than
// the core knows is asked about them, so that a lost report does not keep the run open.
func TestHostThatReportsTooLittleIsAsked(t *testing.T) {
	s := stageWithJobs(t, 2, Config{}, testHost("a", 2))
	s.started("a", "1.1 2.1")
	s.wait(time.Minute, "a")
	var o []Command
	for range 10 {
		o = append(o, s.heartbeat("a", hosts.Heartbeat{Running: 1})...)
	}
	want(t, "asked", formatCommands[Probe](o), "{a [1.1 2.1]}")
	s.probedAs("a", "2.1", hosts.HasExited, &succeeded)
	s.wantState(2, jobs.Succeeded)
}

// TestEachReasonToWaitHasASentence checks that Why returns one plain sentence for each reason to
// wait (X7).
func TestEachReasonToWaitHasASentence(t *testing.T) {
	s := newStage(t, Config{}, testHost("a", 1))
	s.submitAfter(true, map[jobs.ID]jobs.Dependencies{3: jobstest.After(1, 2)}, jobs.NoOptions, jobs.NoOptions,
		jobs.NoOptions, &jobs.Options{Tags: []string{"x"}})
	wantContains(t, "no host", s.c.Why(s.now(), 1), "the only host that can run it cannot take it: a is connecting")
	s.up("a")
	wantContains(t, "handed", s.c.Why(s.now(), 1), "was sent to a")
	s.step(Pause{On: true})
	want(t, "paused", s.c.Why(s.now(), 1), "Job 1 was sent to a and does not start there: launching is paused.")
	s.step(Pause{})
	s.started("a", "1.1")
	want(t, "runs", s.c.Why(s.now(), 1), "Job 1 runs on a.")
	wantContains(t, "busy", s.c.Why(s.now(), 2), "busy")
	want(t, "after", s.c.Why(s.now(), 3), "Job 3 waits for jobs 1, 2 to succeed.")
	wantContains(t, "never", s.c.Why(s.now(), 4), "host a has no tag x")
	s.ended("a", "1.1", exit1)
	wantContains(t, "retry", s.c.Why(s.now(), 1), "try 1 of 3")
	for id := range jobs.ID(5) {
		if w := s.c.Why(s.now(), id); !strings.HasSuffix(w, ".") || strings.Contains(w, "\n") {
			t.Errorf("not a sentence: %q", w)
		}
	}
}

// TestInheritedLeaseLastsLonger checks that a dispatcher waits longer by OwnershipTime for a lease
// of its predecessor, which may have kept extending the lease for that long after the takeover
// (promise 2).
func TestInheritedLeaseLastsLonger(t *testing.T) {
	old := newStage(t, Config{}, testHost("a", 1), testHost("b", 1), testHost("c", 1))
	old.up("a")
	old.submitPlain(1)
	s := restart(old, testHost("a", 1), testHost("b", 1), testHost("c", 1))
	s.step(Submit{Last: true})
	s.up("b", "c")
	s.wait(hosts.DefaultLostAfter+leaseMargin+OwnershipTime-time.Second, "b", "c")
	want(t, "handed over by the earlier one", s.job(1).Attempts[0].State.String(), "launching")
	s.wait(3*time.Second, "b", "c")
	want(t, "its lease is over", s.job(1).Attempts[0].State.String(), "lost")
}

// The following tests check defects that repeated damage once caused (promise 2).

// TestAttemptOfUnknownStateBlocksItsJob checks that a host with an attempt of unknown state blocks
// its job, because the attempt may be alive and its number is used.
func TestAttemptOfUnknownStateBlocksItsJob(t *testing.T) {
	s := damagedStage(t, Config{}, 2, testHost("a", 1), testHost("b", 1))
	s.up("a", "b")
	s.reportList("a", "1.1", hosts.Unknown, nil, true)
	o := s.reportList("b", "", hosts.Dead, nil, true)
	want(t, "launched", launchedOn(o, "a")+launchedOn(o, "b"), "2.1")
	s.wantState(1, jobs.Running)
	want(t, "asked again", formatCommands[Probe](s.wait(6*time.Second, "a", "b")), "{a [1.1]}")
	s.probedAs("a", "1.1", hosts.Dead, nil)
	want(t, "job 1", s.history(1), "queued: a lost")
}

// TestReconcileWaitsForLeases checks that nothing is launched until the lease of a host that does
// not answer has run out, because the host may start buffered jobs until then.
func TestReconcileWaitsForLeases(t *testing.T) {
	patient := testHost("b", 1)
	patient.LostAfter = 5 * time.Minute
	for name, c := range map[string]struct {
		cfg Config
		b   *hosts.Host
	}{"buffer": {Config{Buffer: 5 * time.Minute}, testHost("b", 1)}, "lost_after": {Config{}, patient}} {
		s := damagedStage(t, c.cfg, 1, testHost("a", 1), c.b)
		s.up("a")
		s.reportList("a", "", hosts.Dead, nil, true)
		want(t, name+", too early", launchedOn(s.wait(5*time.Minute, "a"), "a"), "")
		want(t, name, launchedOn(s.wait(20*time.Second, "a"), "a"), "1.11")
	}
}

// TestMissingHostIsWaitedFor checks that launching waits for a host that had attempts and has left
// the inventory, as for one that does not answer, and that an event names it.
func TestMissingHostIsWaitedFor(t *testing.T) {
	ended := Found{"gone", hosts.ProbedJob{Attempt: attemptIDs("1.1")[0], Answer: hosts.HasExited,
		Outcome: &jobs.Outcome{Started: 1, Ended: 2}}}
	s := damagedStage(t, Config{Found: []Found{ended}}, 2, testHost("a", 1))
	s.wantState(1, jobs.Succeeded)
	want(t, "events about what is waited for",
		s.numEvents("for at most 90 s; gone is not in the inventory and cannot be asked"), 1)
	s.up("a")
	want(t, "too early", launchedOn(s.reportList("a", "", hosts.Dead, nil, true), "a")+
		launchedOn(s.wait(88*time.Second, "a"), "a"), "")
	want(t, "launched", launchedOn(s.wait(4*time.Second, "a"), "a"), "2.11")
}

// TestAttemptNumbersAfterRepeatedDamage checks the attempt numbers after repeated damage. What a
// dispatcher launched while a host did not answer may also be lost, so the next dispatcher, which
// starts with the same table, uses other numbers, whatever the clocks say.
func TestAttemptNumbersAfterRepeatedDamage(t *testing.T) {
	for epoch, first := range map[int]string{1: "1.11", 2: "1.21", 7: "1.71"} {
		s := damagedStage(t, Config{}, 1, testHost("a", 1), testHost("b", 1))
		s.c.table.Epoch = epoch
		s.up("a")
		s.reportList("a", "", hosts.Dead, nil, true)
		want(t, "launched", launchedOn(s.wait(92*time.Second, "a"), "a"), first)
	}
}

// TestFreeNumbersFitIntoMemory checks that fewer numbers are left free in runs with more jobs. Each
// free number occupies an entry of the table, and a run of a million jobs that was resumed often
// must fit into memory.
func TestFreeNumbersFitIntoMemory(t *testing.T) {
	for n, first := range map[int]int{1_000: 501, 400_000: 26, 1_000_000: 11} {
		c := &Core{table: &jobs.Table{Jobs: make([]jobs.Job, n), Epoch: 50}}
		c.numbersUnknown, c.numbersLeftFree = true, map[jobs.ID]bool{}
		want(t, fmt.Sprint(n, " jobs: first number"), c.nextNumber(&jobs.Job{Spec: &jobs.Spec{ID: 7}}), first)
	}
}

// TestClaimDoesNotProveRunning checks that a claim in the run directory proves that an attempt
// started, but not that it runs. The live attempt of the job is not killed because of it, and while
// that attempt lives no other one is launched.
func TestClaimDoesNotProveRunning(t *testing.T) {
	claimed := func(n int, at jobs.Stamp) Found {
		return Found{"a", hosts.ProbedJob{Attempt: jobs.AttemptID{Job: 1, N: n}, Answer: hosts.IsRunning, Started: at}}
	}
	s := damagedStage(t, Config{Found: []Found{claimed(1, 5), claimed(2, 9)}}, 1, testHost("a", 2))
	o := s.up("a")
	want(t, "ended", formatCommands[Kill](o), "")
	s.reportList("a", "1.1", hosts.Dead, nil, false)
	o = s.reportList("a", "1.2", hosts.IsRunning, nil, true)
	want(t, "ended", formatCommands[Kill](o), "")
	want(t, "launched", launchedOn(o, "a"), "")
	s.wantState(1, jobs.Running)
}

// TestSecondAttemptIsEndedOnlyBesideALiveOne checks that a running attempt without a record is not ended
// before the host of the recorded one has answered, and then only if that one is alive. The killed
// one stays open until its host reports its end.
func TestSecondAttemptIsEndedOnlyBesideALiveOne(t *testing.T) {
	for _, tt := range []struct {
		answer hosts.Answer
		ended  string
		want   string
	}{
		{hosts.IsRunning, "{b [1.2] its job has another attempt}", "running: a running, b running"},
		{hosts.Buffered, "{b [1.2] its job has another attempt}", "running: a running, b running"},
		{hosts.Unknown, "", "running: a running, b running"},
		{hosts.NeverStarted, "", "running: a superseded, b running"},
		{hosts.Dead, "", "running: a lost, b running"},
	} {
		t.Run(tt.answer.String(), func(t *testing.T) {
			s := damagedStage(t, Config{Found: []Found{{"a",
				hosts.ProbedJob{Attempt: attemptIDs("1.1")[0], Answer: hosts.IsRunning, Started: 5}}}}, 1,
				testHost("a", 1), testHost("b", 1))
			s.up("a", "b")
			want(t, "ended early", formatCommands[Kill](s.reportList("b", "1.2", hosts.IsRunning, nil, true)), "")
			want(t, "ended", formatCommands[Kill](s.reportList("a", "1.1", tt.answer, nil, true)), tt.ended)
			want(t, "job", s.history(1), tt.want)
			o := s.reportList("a", "1.1", hosts.Dead, nil, true)
			want(t, "launched", launchedOn(o, "a")+launchedOn(o, "b"), "")
			s.wantState(1, jobs.Running)
		})
	}
}

// TestGrownMemorySurvivesATakeover checks that the memory of a job, which has grown with its
// failures, is not assigned to another job after a takeover.
func TestGrownMemorySurvivesATakeover(t *testing.T) {
	s := newStage(t, Config{MemGrowth: 2}, testHost("a", 2))
	s.step(HostUp{Host: "a", Hello: &hosts.Hello{Slots: 2, MemBytes: 8 << 30}})
	ifFails := jobs.Dependencies{{Range: jobs.Range{First: 1, Last: 1}, On: jobs.AfterFailure}}
	s.submitAfter(true, map[jobs.ID]jobs.Dependencies{2: ifFails},
		&jobs.Options{MemBytes: 3 << 30, RetryDelay: new(time.Duration)}, &jobs.Options{MemBytes: 3 << 30})
	s.ended("a", "1.1", exit1)
	s.wait(20*time.Second, "a")
	next := restart(s, testHost("a", 2))
	want(t, "attempts taken over", next.c.hosts[0].numOpen, 1)
	want(t, "their memory", next.c.hosts[0].mem, 6<<30)
}
