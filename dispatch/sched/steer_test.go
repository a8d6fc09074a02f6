package sched

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"dcs-tui/dispatch/sched/halt"
	"dcs-tui/hosts"
	"dcs-tui/jobs"
	"dcs-tui/jobs/jobstest"
)

// TestCancelEndsQueuedAndRunningJobs checks that queued jobs end at once and running jobs when
// their attempts do. Repeating the cancel changes nothing (K9).
func TestCancelEndsQueuedAndRunningJobs(t *testing.T) {
	s := stageWithJobs(t, 4, Config{}, testHost("a", 2))
	s.started("a", "1.1 2.1")
	o := s.step(Cancel{Jobs: []jobs.ID{1, 3, 99}, Why: "not wanted"})
	s.wantState(3, jobs.Canceled)
	s.wantState(1, jobs.Running)
	want(t, "kill", formatCommands[Kill](o), "{a [1.1] not wanted}")
	want(t, "again", formatCommands[Kill](s.step(Cancel{Jobs: []jobs.ID{1, 3}})), "")
	s.ended("a", "1.1", jobs.Outcome{Signal: "SIGTERM", Stopped: true})
	s.wantState(1, jobs.Canceled)
	want(t, "reason", s.job(1).Reason, "not wanted")
	if a := s.job(1).Attempts[0]; a.State != jobs.AttemptCanceled || a.Outcome == nil {
		t.Errorf("attempt %+v", a)
	}
	s.step(Cancel{All: true})
	s.ended("a", "2.1", succeeded) // it ended before the cancel took effect
	s.wantState(2, jobs.Succeeded)
	s.step(AttemptsWithdrawn{"a", &hosts.Withdrawn{Attempts: attemptIDs("4.1")}})
	s.wantState(4, jobs.Canceled)
	want(t, "finish", s.finishText(), "done")
}

// TestCancelWaitsForAnUnreachableHost checks that a cancel waits until the host returns or is given
// up.
func TestCancelWaitsForAnUnreachableHost(t *testing.T) {
	s := stageWithJobs(t, 1, Config{}, testHost("a", 1), testHost("b", 1), testHost("c", 1))
	s.started("a", "1.1")
	s.step(hostDown("a", hosts.Unreachable, "gone"))
	s.step(Cancel{All: true})
	s.wantState(1, jobs.Running)
	wantContains(t, "why", s.c.Why(s.now(), 1), "as soon as a can be reached or is given up")
	o := append(s.up("a"), s.probedAs("a", "1.1", hosts.IsRunning, nil)...)
	wantContains(t, "kill on return", formatCommands[Kill](o), "{a [1.1]")
	s.step(hostDown("a", hosts.Unreachable, "gone"))
	s.wait(61*time.Second, "b", "c")
	s.wantState(1, jobs.Canceled)
	want(t, "finish", s.finishText(), "done")
	wantContains(t, "what may be left is named", s.journal[len(s.journal)-1].Reason, "1.1 on a")
}

// TestCanceledBufferedAttemptIsKilled checks that a canceled attempt that is found buffered when
// its host returns is killed. Attempts that a drain had withdrawn when the link broke are withdrawn
// again.
func TestCanceledBufferedAttemptIsKilled(t *testing.T) {
	s := newStage(t, Config{}, testHost("a", 2), testHost("b", 1))
	s.up("a")
	s.submitPlain(2)
	s.step(hostDown("a", hosts.Unreachable, "gone"))
	s.step(Cancel{Jobs: []jobs.ID{1}})
	s.up("a")
	wantContains(t, "kill", formatCommands[Kill](s.probedAs("a", "1.1 2.1", hosts.Buffered, nil)), "{a [1.1]")
	wantContains(t, "drain", formatCommands[Withdraw](s.step(Drain{})), "{a [2.1]}")
	s.step(hostDown("a", hosts.Unreachable, "gone"))
	s.up("a")
	wantContains(t, "asked again", formatCommands[Withdraw](s.probedAs("a", "2.1", hosts.Buffered, nil)), "{a [2.1]}")
}

// TestWithdrawalSurvivesACutLink checks that a job that is withdrawn just before or after the link to its host is
// cut is withdrawn when the host is back: it must not run (--halt, queues of a host).
func TestWithdrawalSurvivesACutLink(t *testing.T) {
	nearHalt := func(s *stage) { s.endFirst("b", exit1) }
	otherQueues := func(s *stage) {
		a := testHost("a", 1)
		a.Queues = []hosts.KeptPart{{Queue: "other"}}
		s.step(SetInventory{inventoryOf(a, testHost("b", 1))})
	}
	for _, tt := range []struct {
		name     string
		withdraw func(*stage)
	}{{"one more failure halts the run", nearHalt}, {"the host is for other queues", otherQueues}} {
		for _, cutFirst := range []bool{false, true} {
			s := stageWithJobs(t, 40, Config{Tries: 1, Halt: halt.Rule{Jobs: 2}}, testHost("a", 1), testHost("b", 1))
			s.started("a", "1.1")
			s.ended("a", "1.1", s.quickOutcome())
			waiting := strings.Trim(fmt.Sprint(s.attemptsOn("a")[1:]), "[]")
			if cutFirst {
				s.step(hostDown("a", hosts.Unreachable, "gone"))
				tt.withdraw(s)
			} else {
				tt.withdraw(s)
				s.step(hostDown("a", hosts.Unreachable, "gone"))
			}
			s.up("a")
			got := formatCommands[Withdraw](s.probedAs("a", waiting, hosts.Buffered, nil))
			want(t, fmt.Sprintf("%s, cut first %v: asked back", tt.name, cutFirst), got, "{a ["+waiting+"]}")
		}
	}
}

// TestRequeueStartsANewRound checks that a requeue starts a new round with all tries, and that a
// finished run continues.
func TestRequeueStartsANewRound(t *testing.T) {
	s := connectedStage(t, Config{Tries: 1}, testHost("a", 1))
	s.submitAfter(true, map[jobs.ID]jobs.Dependencies{1: jobstest.After(2)}, jobs.NoOptions, jobs.NoOptions)
	s.ended("a", "2.1", exit1)
	s.wantState(1, jobs.Skipped)
	want(t, "finish", s.finishText(), "done")
	s.finish = nil
	o := s.step(Requeue{[]jobs.ID{1, 2}})
	want(t, "the one it comes after", launchedOn(o, "a"), "2.2")
	s.wantState(1, jobs.Queued)
	want(t, "then it", launchedOn(s.ended("a", "2.2", succeeded), "a"), "1.1")
	s.ended("a", "1.1", succeeded)
	if s.finish == nil || s.job(2).Round != 2 || s.c.table.Seq != 4 {
		t.Errorf("finish %+v, round %d, %d results", s.finish, s.job(2).Round, s.c.table.Seq)
	}
}

// TestRequeueWaitsForOldAttempt checks that a new round starts nothing while an attempt of the old
// round may be alive (promise 2).
func TestRequeueWaitsForOldAttempt(t *testing.T) {
	s := replacedStage(t)
	s.up("a")
	s.probedAs("a", "1.1", hosts.HasExited, &succeeded) // 1.2 is being stopped
	s.step(Requeue{[]jobs.ID{1}})
	s.wantState(1, jobs.Queued)
	wantContains(t, "why", s.c.Why(s.now(), 1), "earlier round")
	o := s.ended("b", "1.2", succeeded) // too late: that round has its result
	want(t, "launched", launchedOn(o, ""), "1.3")
	s.wantState(1, jobs.Running)
}

// TestNothingStartsDuringAPause checks that during a pause nothing starts, not even from the
// buffers, and that the run continues afterward.
func TestNothingStartsDuringAPause(t *testing.T) {
	s := stageWithJobs(t, 3, Config{}, testHost("a", 1))
	want(t, "limit", formatCommands[SetLimit](s.step(Pause{true})), "{a 0}")
	wantContains(t, "why", s.c.Why(s.now(), 3), "paused")
	want(t, "paused", launchedOn(s.ended("a", "1.1", succeeded), "a"), "")
	o := s.step(Pause{false})
	want(t, "limit", formatCommands[SetLimit](o), "{a 1}")
	wantContains(t, "on", launchedOn(o, "a"), "2.1")
}

// TestDrainWithdrawsBufferedJobs checks that a drain withdraws buffered jobs and finishes when
// nothing runs.
func TestDrainWithdrawsBufferedJobs(t *testing.T) {
	s := stageWithJobs(t, 20, Config{}, testHost("a", 1))
	s.started("a", "1.1")
	s.ended("a", "1.1", succeeded)
	s.started("a", "2.1")
	want(t, "withdrawn", formatCommands[Withdraw](s.step(Drain{Why: "asked"})), "{a [3.1]}")
	s.step(AttemptsWithdrawn{"a", &hosts.Withdrawn{Attempts: attemptIDs("3.1")}})
	want(t, "finish while a job runs", s.finishText(), "")
	want(t, "nothing more", launchedOn(s.ended("a", "2.1", succeeded), "a"), "")
	want(t, "finish", s.finishText(), "drained")
	want(t, "reason", s.finish.Why, "asked")
	s.wantState(3, jobs.Queued)
}

// TestWorkAfterTheEndOfADrain checks that a run that drains or is stopped, and has ended, is drained or
// stopped if work comes while its end waits for the journal: the end does not count, and the work is left
// for the next dispatcher.
func TestWorkAfterTheEndOfADrain(t *testing.T) {
	for name, add := range map[string]Event{
		"requeue": Requeue{[]jobs.ID{1}},
		"edit":    Edit{[]jobs.ID{1}, jobs.Change{Timeout: new(time.Hour)}},
		"submit":  Submit{Specs: []*jobs.Spec{{ID: 2, Command: "true", Options: jobs.NoOptions}}},
	} {
		for how, ask := range map[string]Event{"drained": Drain{Why: "asked"}, "stopped": Stop{"asked"}} {
			s := stageWithJobs(t, 1, Config{}, testHost("a", 1))
			s.started("a", "1.1")
			s.ended("a", "1.1", succeeded)
			s.step(ask)
			end := *s.finish
			want(t, name+": finish", end.How, AllDone)
			want(t, name+": outdated before", s.c.IsOutdated(end), false)
			s.step(add)
			want(t, name+": outdated", s.c.IsOutdated(end), true)
			want(t, name+": finish with work left", s.finishText(), how)
			want(t, name+": unfinished", s.c.table.Unfinished(), 1)
		}
	}
}

// TestLaunchingContinuesAfterADrain checks that launching continues as before the drain. It does
// not end a drain by something other than a STOP file if only those end, nor one that has finished.
func TestLaunchingContinuesAfterADrain(t *testing.T) {
	s := stageWithJobs(t, 20, Config{}, testHost("a", 1))
	s.started("a", "1.1")
	s.step(Drain{Why: "asked"})
	s.step(EndDrain{OnlyByFile: true})
	want(t, "reason of the drain", s.c.WhyDraining(), "asked")
	s.step(EndDrain{Why: "asked for by ada"})
	wantContains(t, "launched", launchedOn(s.ended("a", "1.1", succeeded), "a"), "2.1")
	s.step(Drain{Why: "asked", Cause: DrainByFile})
	s.step(EndDrain{OnlyByFile: true})
	want(t, "reason of the drain by a file", s.c.WhyDraining(), "")
	s.step(Drain{Why: "asked"})
	s.step(AttemptsWithdrawn{"a", &hosts.Withdrawn{Attempts: s.attemptsOn("a")}})
	s.step(EndDrain{})
	want(t, "finish, which EndDrain does not revoke", s.finishText(), "drained")
	want(t, "draining", s.c.WhyDraining(), "asked")
}

// TestFailuresBeforeTheEndOfADrainDoNotCount checks that failures from before the end of a drain
// are not counted again.
func TestFailuresBeforeTheEndOfADrainDoNotCount(t *testing.T) {
	s := stageWithJobs(t, 20, Config{Halt: halt.Rule{Jobs: 1}, Tries: 1}, testHost("a", 2))
	s.started("a", "2.1")
	s.ended("a", "1.1", exit1)
	want(t, "draining", s.c.WhyDraining(), "1 job has failed (--halt 1)")
	s.step(EndDrain{})
	s.ended("a", "2.1", succeeded)
	want(t, "draining", s.c.WhyDraining(), "")
	want(t, "finish", s.finishText(), "")
	s.ended("a", "3.1", exit1)
	want(t, "draining after the next failure", s.c.WhyDraining(), "1 job has failed (--halt 1)")
}

// TestStopLeavesRunningJobsOpen checks that a stop finishes at once and leaves running jobs open.
func TestStopLeavesRunningJobsOpen(t *testing.T) {
	s := stageWithJobs(t, 2, Config{}, testHost("a", 1))
	s.step(Stop{"bye"})
	want(t, "finish", s.finishText(), "stopped")
	s.wantState(1, jobs.Running)
	want(t, "nothing more", launchedOn(s.ended("a", "1.1", succeeded), "a"), "")
}

// TestDrainedHostGetsNoJobs checks that a drained host gets no jobs, and that with Now its jobs
// move elsewhere, uncharged (D7).
func TestDrainedHostGetsNoJobs(t *testing.T) {
	s := stageWithJobs(t, 3, Config{}, testHost("a", 1), testHost("b", 1))
	s.started("a", "1.1")
	s.started("b", "2.1")
	o := s.step(DrainHost{Host: "a", On: true, Now: true})
	wantContains(t, "kill", formatCommands[Kill](o), "{a [1.1]")
	s.ended("a", "1.1", jobs.Outcome{Stopped: true, Signal: "SIGTERM"})
	s.wantState(1, jobs.Queued)
	want(t, "failures charged", s.job(1).Failures, 0)
	want(t, "host", s.c.Hosts()[0].State, jobs.HostDisabled)
	want(t, "elsewhere", launchedOn(s.ended("b", "2.1", succeeded), "b"), "1.2")
	want(t, "used again", launchedOn(s.step(DrainHost{Host: "a"}), "a"), "3.1")
}

// TestHaltNowKillsRunningAttempts checks that a halt with Now also kills the running attempts,
// without charging their jobs.
func TestHaltNowKillsRunningAttempts(t *testing.T) {
	s := stageWithJobs(t, 5, Config{Halt: halt.Rule{Of: halt.Successes, Jobs: 1, Now: true}, Tries: 1},
		testHost("a", 3))
	s.started("a", "1.1 2.1")
	o := s.ended("a", "1.1", succeeded)
	want(t, "launched", launchedOn(o, "a"), "")
	wantContains(t, "killed", formatCommands[Kill](o), "2.1")
	want(t, "draining", s.c.WhyDraining(), "1 job has succeeded (--halt now,success=1)")
	want(t, "asked back", formatCommands[Withdraw](o), "{a [3.1]}")
	wantContains(t, "ended although it was asked back", formatCommands[Kill](s.started("a", "3.1")), "3.1")
	s.ended("a", "3.1", jobs.Outcome{Signal: "SIGTERM", Stopped: true})
	s.ended("a", "2.1", jobs.Outcome{Signal: "SIGTERM", Stopped: true})
	s.wantState(2, jobs.Queued)
	want(t, "finish", s.finishText(), "reached")
}

// TestCommandsThatAreNotFoundHalt checks that a run drains after the first jobs if their command was
// found on no host, once, and not with --halt never or after an attempt that ended otherwise.
func TestCommandsThatAreNotFoundHalt(t *testing.T) {
	notFound := jobs.Outcome{Exit: 127, LastLine: "sh: 1: sim: not found"}
	run := func(cfg Config, second string, first jobs.Outcome) (s *stage, ended int) {
		cfg.Tries = 1
		s = stageWithJobs(t, 60, cfg, testHost("a", 1), testHost("b", 1))
		s.endFirst("a", first)
		for ended = 1; ended < 30 && s.c.WhyDraining() == ""; ended++ {
			if ended == 20 && second == "b" {
				s.endFirst("b", notFound)
				continue
			}
			s.endFirst("a", notFound)
		}
		return s, ended
	}
	s, ended := run(Config{}, "b", notFound)
	want(t, "ended before it drains", ended, 21)
	want(t, "reason", s.c.WhyDraining(),
		"the first 10 jobs exited with 126 or 127: their command was not found or cannot be run (sh: 1: sim: "+
			"not found)")
	s.step(EndDrain{})
	s.endFirst("a", notFound)
	want(t, "reason after a person continued", s.c.WhyDraining(), "")
	for name, c := range map[string]struct {
		cfg    Config
		second string
		first  jobs.Outcome
	}{
		"it may exist on b":   {Config{}, "", notFound},
		"--halt never":        {Config{Halt: halt.Rule{Never: true}}, "b", notFound},
		"a job found its own": {Config{}, "b", exit1},
	} {
		s, _ := run(c.cfg, c.second, c.first)
		want(t, name, s.c.WhyDraining(), "")
	}
}

// TestCommandsMayBeFoundOnAHostThatConnects checks that a run is not halted while a host connects
// for the first time, because its jobs may find their command there.
func TestCommandsMayBeFoundOnAHostThatConnects(t *testing.T) {
	notFound := jobs.Outcome{Exit: 127}
	begin := func() *stage {
		s := newStage(t, Config{Tries: 1}, testHost("a", 1), testHost("b", 1))
		s.up("a")
		s.submitPlain(60)
		for range 20 {
			s.endFirst("a", notFound)
		}
		want(t, "reason while b connects", s.c.WhyDraining(), "")
		return s
	}
	s := begin()
	s.step(HostUp{Host: "b", Hello: &hosts.Hello{Cores: 2, Slots: 1, MemBytes: 16 << 30}})
	s.endFirst("a", notFound)
	want(t, "reason before the first heartbeat of b", s.c.WhyDraining(), "")
	s.heartbeat("b", hosts.Heartbeat{})
	s.endFirst("b", notFound)
	wantContains(t, "reason after a job on b", s.c.WhyDraining(), "the first 10 jobs")
	s = begin()
	s.step(HostDown{"b", errRefused})
	wantContains(t, "reason if b is not reached", s.c.WhyDraining(), "the first 10 jobs")
}

// TestHaltStopsLaunching checks that launching stops after the given number or share of failures,
// successes, or ends, and that the run has then reached its goal unless failures have ended it.
func TestHaltStopsLaunching(t *testing.T) {
	for _, tt := range []struct {
		cfg  Config
		fail func(i int) bool
		want int // jobs ended when it drains; 0 means never
		how  Finished
	}{
		{Config{Halt: halt.Rule{Jobs: 3}}, func(i int) bool { return i%2 == 1 }, 5, Drained},
		{Config{Halt: halt.Rule{Percent: 20}}, func(i int) bool { return i > 3 }, 8, Drained},
		{Config{Halt: halt.Rule{Percent: 50}}, func(i int) bool { return i%3 == 0 }, 0, 0},
		{Config{Halt: halt.Rule{Jobs: 30}}, func(i int) bool { return true }, 0, 0},
		{Config{Halt: halt.Rule{Of: halt.Successes, Jobs: 2}}, func(i int) bool { return i != 4 && i != 7 }, 7,
			Reached},
		{Config{Halt: halt.Rule{Of: halt.Successes, Percent: 20}}, func(i int) bool { return i < 11 }, 15, Reached},
		{Config{Halt: halt.Rule{Of: halt.All, Jobs: 6}}, func(i int) bool { return i%2 == 1 }, 6, Drained},
		{Config{Halt: halt.Rule{Of: halt.All, Jobs: 6}}, func(i int) bool { return false }, 6, Reached},
	} {
		tt.cfg.Tries = 1
		s := stageWithJobs(t, 25, tt.cfg, testHost("a", 1))
		ended := 0
		for ; ended < 25 && s.c.WhyDraining() == ""; ended++ {
			o := succeeded
			if tt.fail(ended + 1) {
				o = exit1
			}
			s.ended("a", fmt.Sprintf("%d.1", ended+1), o)
		}
		if s.c.WhyDraining() == "" {
			want(t, fmt.Sprintf("%+v: jobs when it drains, which it does not do", tt.cfg), 0, tt.want)
			continue
		}
		want(t, fmt.Sprintf("%+v: jobs when it drains", tt.cfg), ended, tt.want)
		s.step(AttemptsWithdrawn{"a", &hosts.Withdrawn{Attempts: s.attemptsOn("a")}})
		want(t, fmt.Sprintf("%+v: finish", tt.cfg), s.finishText(), tt.how.String())
	}
}

// TestHaltCountsOnAfterATakeover checks that the results of earlier dispatchers count for --halt if a
// standby takes the run over, and not if a person resumes it or has continued it after a halt.
func TestHaltCountsOnAfterATakeover(t *testing.T) {
	for name, c := range map[string]struct {
		standby, continued, halts bool
	}{
		"a standby takes over":                 {standby: true, halts: true},
		"a person resumes":                     {},
		"a standby takes over a continued run": {standby: true, continued: true},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := Config{Halt: halt.Rule{Jobs: 3}, Tries: 1}
			s := stageWithJobs(t, 25, cfg, testHost("a", 1))
			s.ended("a", "1.1", exit1)
			s.ended("a", "2.1", exit1)
			if c.continued {
				s.step(Drain{})
				s.step(EndDrain{})
			}
			s.started("a", "3.1")
			epoch := jobs.Record{Kind: jobs.KindEpoch, Epoch: s.c.table.Epoch + 1}
			if c.standby {
				epoch.Count = 1
			}
			folded(t, s.c.table, epoch)
			s = &stage{t: t, c: New(cfg, s.c.table, inventoryOf(testHost("a", 1))), at: s.at}
			s.step(Tick{})
			s.up("a")
			s.ended("a", "3.1", exit1)
			want(t, "halted", s.c.WhyDraining() != "", c.halts)
		})
	}
}

// TestAPersonsDrainReachesNoGoal checks that a run that has reached the goal of --halt, and that a person
// has continued, finishes as drained when a person drains it, although its results are still enough.
func TestAPersonsDrainReachesNoGoal(t *testing.T) {
	s := stageWithJobs(t, 20, Config{Halt: halt.Rule{Of: halt.Successes, Jobs: 1}}, testHost("a", 2))
	s.started("a", "1.1 2.1")
	s.ended("a", "1.1", succeeded)
	want(t, "cause", s.c.drain.Cause, DrainHalted)
	s.step(EndDrain{Why: "asked for by ada"})
	s.step(Drain{Why: "Ctrl-C"})
	s.ended("a", "2.1", succeeded)
	s.step(AttemptsWithdrawn{"a", &hosts.Withdrawn{Attempts: s.attemptsOn("a")}})
	want(t, "finish", s.finishText(), "drained")
	want(t, "reason", s.finish.Why, "Ctrl-C")
}

// TestAcknowledgmentIsRecordedOnce checks that an acknowledgment is recorded once, and only for
// results that exist.
func TestAcknowledgmentIsRecordedOnce(t *testing.T) {
	s := stageWithJobs(t, 1, Config{}, testHost("a", 1))
	s.ended("a", "1.1", succeeded)
	for _, n := range []int64{0, 2, 1, 1} {
		s.step(Acked{n})
	}
	want(t, "records", s.numRecords(jobs.KindAcked), 1)
	want(t, "acked", s.c.table.Acked, 1)
}

// TestGapInIDsIsReported checks that ids with a gap are reported as a defect and do not cause a
// crash.
func TestGapInIDsIsReported(t *testing.T) {
	c := New(Config{}, &jobs.Table{}, inventoryOf())
	c.Step(Time{}, Submit{Specs: []*jobs.Spec{{ID: 7, Options: jobs.NoOptions}}})
	if c.Defects != 1 || len(c.table.Jobs) != 0 {
		t.Errorf("%d defects, %d jobs", c.Defects, len(c.table.Jobs))
	}
}

// TestEventsAboutUnknownThings checks events about unknown hosts, jobs, and attempts.
func TestEventsAboutUnknownThings(t *testing.T) {
	s := newStage(t, Config{}, testHost("a", 1))
	s.step(HostUp{Host: "x", Hello: &hosts.Hello{}})
	s.step(HostHeartbeat{Host: "x", Heartbeat: &hosts.Heartbeat{}})
	s.step(HostHeartbeat{Host: "a", Heartbeat: &hosts.Heartbeat{}})
	s.step(hostDown("x", hosts.Broken, "?"))
	s.step(HostDown{Host: "a"})
	s.step(HostRefused{"x", &hosts.Refused{Attempts: attemptIDs("5.5")}})
	s.started("x", "5.5")
	s.ended("x", "5.5", succeeded)
	s.step(AttemptsWithdrawn{"x", &hosts.Withdrawn{Attempts: attemptIDs("5.5")}})
	s.probedAs("x", "5.5", hosts.Dead, nil)
	s.step(Requeue{[]jobs.ID{5}})
	s.step(SetPriority{Jobs: []jobs.ID{5}, Priority: 1})
	s.step(DrainHost{Host: "x", On: true})
	want(t, "why", s.c.Why(s.now(), 5), "There is no job 5.")
}

// TestJobsAreWarnedBeforeAStop checks that the jobs of a stopped host are warned, and are killed
// after the warning time. A host that is used again in the meantime keeps its jobs (T2).
func TestJobsAreWarnedBeforeAStop(t *testing.T) {
	for _, again := range []bool{false, true} {
		s := stageWithJobs(t, 1, Config{WarnTime: time.Minute}, testHost("a", 1))
		s.started("a", "1.1")
		o := s.step(DrainHost{Host: "a", On: true, Now: true})
		want(t, "warned", formatCommands[Warn](o), "{a [1.1]}")
		want(t, "killed at once", formatCommands[Kill](o), "")
		o = s.wait(59*time.Second, "a")
		want(t, "within a minute", formatCommands[Warn](o)+formatCommands[Kill](o), "")
		if again {
			s.step(DrainHost{Host: "a"})
		}
		if killed := formatCommands[Kill](s.wait(5*time.Second, "a")); (killed == "") != again {
			t.Errorf("used again %v: killed %q after a minute", again, killed)
		}
	}
}

// TestJobWithdrawnTooLateCountsAsRunning checks that a job that started although it was withdrawn
// counts as running, and is killed with the other jobs of its host.
func TestJobWithdrawnTooLateCountsAsRunning(t *testing.T) {
	s := stageWithJobs(t, 20, Config{}, testHost("a", 1))
	s.started("a", "1.1")
	s.ended("a", "1.1", succeeded)
	s.started("a", "2.1")
	want(t, "withdrawn", formatCommands[Withdraw](s.step(Drain{Why: "asked"})), "{a [3.1]}")
	s.ended("a", "2.1", succeeded)
	s.started("a", "3.1")
	want(t, "ended", formatCommands[Kill](s.step(DrainHost{Host: "a", On: true, Now: true})),
		"{a [3.1] the host is being drained}")
}
