package sched

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

var fastFail = jobs.Outcome{Exit: 1, Started: wallStart, Ended: wallStart + 1e7}

// failFast lets jobs fail fast on a until it is on probation, while jobs succeed on b. It returns
// the number of failures and the last commands.
func (s *stage) failFast() (n int, last []Command) {
	s.ended("a", "1.1", fastFail) // the streak begins
	for range 15 {                // the jobs on b succeed in the meantime
		s.endFirst("b", succeeded)
	}
	for n = 1; !s.c.Hosts()[0].OnProbation && n < 8; n++ {
		last = s.endFirst("a", fastFail)
	}
	return n, last
}

// TestFastFailuresCauseProbation checks that a host on which jobs fail fast in a row, while jobs
// succeed elsewhere, is put on probation. Its failures are no longer charged, and it is tried with
// one job at a time until one succeeds (B2).
func TestFastFailuresCauseProbation(t *testing.T) {
	s := stageWithJobs(t, 100, Config{}, testHost("a", 8), testHost("b", 2))
	n, rest := s.failFast()
	want(t, "fast failures before the rest", n, 3)
	wantContains(t, "what waited comes back", formatCommands[Withdraw](rest), "{a [")
	victim := s.c.hosts[0].oldest.id
	s.started("a", victim.String())
	s.ended("a", victim.String(), fastFail)
	if j := s.job(victim.Job); j.Failures != 0 || j.State.Terminal() {
		t.Errorf("victim %s: %s, %d failures", victim, j.State, j.Failures)
	}
	s.step(AttemptsWithdrawn{"a", &hosts.Withdrawn{Attempts: s.attemptsOn("a")}})
	s.wait(3*time.Second, "a", "b")
	want(t, "jobs on trial", s.c.hosts[0].occupiedSlots, 1)
	s.endFirst("a", succeeded)
	wantBetween(t, "jobs after a success", s.c.hosts[0].occupiedSlots, 8, 100)
}

// TestTrialOfAHostThatReturns checks that a host on trial whose link was cut before its jobs were withdrawn
// keeps none of them.
func TestTrialOfAHostThatReturns(t *testing.T) {
	s := stageWithJobs(t, 100, Config{}, testHost("a", 8), testHost("b", 2))
	s.failFast()
	waiting := strings.Trim(fmt.Sprint(s.attemptsOn("a")), "[]")
	s.step(hostDown("a", hosts.Unreachable, "gone"))
	s.up("a")
	s.probedAs("a", waiting, hosts.Buffered, nil)
	want(t, "jobs that may start", s.c.hosts[0].numInFlight((*inFlight).isWaiting), 0)
}

// TestBadJobsCauseNoProbation checks that no host is put on probation if jobs fail just as often
// elsewhere, randomly (D11's p = 0.5) or for a stretch of jobs.
func TestBadJobsCauseNoProbation(t *testing.T) {
	rests := 0
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 5))
		s := stageWithJobs(t, 500, Config{Tries: 1}, testHost("a", 1), testHost("b", 1))
		for s.c.table.Unfinished() > 0 {
			for _, h := range s.c.hosts {
				if h.oldest == nil {
					continue
				}
				o := succeeded
				stretch := h.oldest.id.Job > 200 && h.oldest.id.Job < 220
				if stretch || r.IntN(2) == 0 {
					o = fastFail
				}
				s.ended(h.spec.Name, h.oldest.id.String(), o)
				// The rest after failed first jobs does not count.
				if h.probation.onProbation && s.at < h.probation.restsUntil {
					rests++
				}
			}
			s.at += time.Second
			s.step(HostHeartbeat{Host: "a", Heartbeat: &hosts.Heartbeat{}})
			s.step(HostHeartbeat{Host: "b", Heartbeat: &hosts.Heartbeat{}})
		}
	}
	wantBetween(t, "pauses of healthy hosts in 10,000 jobs", rests, 0, 2)
}

// TestFirstFailuresSlowAHostDown checks that a host whose first jobs fail at once gets one job at a
// time, with pauses, while jobs run elsewhere, until a job succeeds there (B2).
func TestFirstFailuresSlowAHostDown(t *testing.T) {
	s := stageWithJobs(t, 50, Config{}, testHost("a", 2), testHost("b", 1))
	s.started("b", s.c.hosts[1].oldest.id.String())
	failed := 0
	for s.c.hosts[0].oldest != nil && !s.c.hosts[0].probation.onTrial {
		s.endFirst("a", fastFail)
		failed++
	}
	want(t, "failures before the pause", failed, 3)
	want(t, "times that it is told",
		s.numEvents("a gets one job at a time until one succeeds: its first 3 jobs failed at once"), 1)
	s.step(AttemptsWithdrawn{"a", &hosts.Withdrawn{Attempts: s.attemptsOn("a")}})
	s.wait(3*time.Second, "a", "b")
	want(t, "jobs at a time", s.c.hosts[0].occupiedSlots, 1)
	s.endFirst("a", succeeded)
	wantBetween(t, "jobs after a success", s.c.hosts[0].occupiedSlots, 2, 100)
}

// TestTrialIsReconsideredInTime checks that the core asks for a Tick at which a trial ends because jobs do
// not succeed on the other hosts any more, while a job of the trial runs and others wait.
func TestTrialIsReconsideredInTime(t *testing.T) {
	s := stageWithJobs(t, 200, Config{Tries: 1}, testHost("a", 2), testHost("b", 2))
	ended := func(exit int, took time.Duration) jobs.Outcome {
		return jobs.Outcome{Exit: exit, Started: s.now().Wall - jobs.Stamp(took), Ended: s.now().Wall}
	}
	s.endFirst("a", ended(0, time.Second))
	for range 50 {
		s.endFirst("b", ended(0, time.Second))
	}
	a := s.c.hosts[0]
	for k := 0; !a.probation.onTrial && k < 20; k++ {
		s.endFirst("a", ended(1, time.Minute))
	}
	s.step(AttemptsWithdrawn{"a", &hosts.Withdrawn{Attempts: s.attemptsOn("a")}})
	s.at = a.probation.restsUntil
	s.step(Tick{})
	want(t, "jobs on trial", a.occupiedSlots, 1)
	s.started("a", s.attemptsOn("a")[0].String())
	at, _ := s.c.Next()
	wantBetween(t, "milliseconds until the core looks again", int((at-s.at)/time.Millisecond), 1, 1000)
	s.wait(4 * time.Second) // nothing else happens
	wantBetween(t, "jobs after the trial", a.occupiedSlots, 2, 100)
}

// TestBrokenJobsSlowNoHostDown checks that the slow start ends once jobs fail on all hosts alike and
// none has succeeded: the jobs are at fault.
func TestBrokenJobsSlowNoHostDown(t *testing.T) {
	s := stageWithJobs(t, 50, Config{}, testHost("a", 2), testHost("b", 1))
	for range 4 {
		s.endFirst("a", fastFail)
		s.endFirst("b", fastFail)
	}
	for _, h := range s.c.hosts {
		want(t, h.spec.Name+" gets one job at a time", h.probation.onTrial, false)
		want(t, h.spec.Name+" is paused", h.probation.paused, false)
	}
}

// TestJobOnAFullDiskKeepsItsTries checks that a job that fails while the disk is full keeps its
// tries, and that its host pauses with a reason. This is limited to a number of times (promise 3).
func TestJobOnAFullDiskKeepsItsTries(t *testing.T) {
	s := stageWithJobs(t, 1, Config{Tries: 2}, testHost("a", 1))
	full := jobs.Outcome{Exit: 1, DiskFull: true, Started: wallStart, Ended: wallStart + 5e9}
	const most = 2 * maxHostFaults
	for n := 1; n <= most; n++ {
		id := jobs.AttemptID{Job: 1, N: n}.String()
		s.started("a", id)
		s.ended("a", id, full)
		s.wantState(1, jobs.Queued)
		want(t, id+": failures", s.job(1).Failures, 0)
		want(t, id+": paused", s.c.hosts[0].probation.paused, true)
		s.wait(10*time.Second, "a")
	}
	want(t, "times that it is told", s.numEvents("because the disk was full"), most)
	s.ended("a", jobs.AttemptID{Job: 1, N: most + 1}.String(), full)
	want(t, "failures", s.job(1).Failures, 1)
}

// TestProcessLimitIsTheHostsFault checks that a job that fails because its host has reached a limit
// on processes keeps its tries, that one message names the limit, and that the host gets fewer
// slots, which return with time (promise 5: a bad host affects only itself).
func TestProcessLimitIsTheHostsFault(t *testing.T) {
	s := stageWithJobs(t, 8, Config{Tries: 2}, testHost("a", 4))
	for n := 1; n <= 4; n++ {
		s.started("a", jobs.AttemptID{Job: jobs.ID(n), N: 1}.String())
	}
	limit := jobs.ProcessLimit{Kind: jobs.LimitPids, Max: 40, Path: "/sys/fs/cgroup/box"}
	hit := jobs.Outcome{Exit: 2, ProcessLimit: limit, Started: wallStart, Ended: wallStart + 1e6}
	s.ended("a", "1.1", hit)
	s.ended("a", "2.1", hit)
	for _, id := range []jobs.ID{1, 2} {
		s.wantState(id, jobs.Queued)
		want(t, "failures", s.job(id).Failures, 0)
	}
	want(t, "times that it is told", s.numEvents("pids.max of /sys/fs/cgroup/box is 40"), 1)
	s.wait(10*time.Second, "a")
	want(t, "slots", s.c.hosts[0].limit, 2)
	s.wait(processGrowth, "a")
	want(t, "slots after a while", s.c.hosts[0].limit, 3)
	// A refusal for the same reason counts alike, and leaves at least one slot.
	s.ended("a", "3.1", jobs.Outcome{Started: wallStart, Ended: wallStart + 1})
	s.ended("a", "4.1", jobs.Outcome{Started: wallStart, Ended: wallStart + 1})
	s.step(HostRefused{"a", &hosts.Refused{Attempts: s.attemptsOn("a"), Limit: limit}})
	s.wait(10*time.Second, "a")
	want(t, "slots after a refusal", s.c.hosts[0].limit, 1)
	want(t, "times that it is told", s.numEvents("pids.max of /sys/fs/cgroup/box is 40"), 1)
	s.wait(7*processGrowth, "a")
	want(t, "slots in the end", s.c.hosts[0].limit, 4)
}

// TestHungFileSystemHoldsHost checks that a host whose file system hangs does not count as dead. It
// starts no jobs, one event says so, and it accepts jobs again when the file system answers.
func TestHungFileSystemHoldsHost(t *testing.T) {
	s := stageWithJobs(t, 6, Config{}, testHost("a", 1), testHost("b", 1))
	s.started("a", "1.1")
	heartbeat := func(delay time.Duration) []Command {
		s.at += HeartbeatInterval
		s.step(HostHeartbeat{Host: "b", Heartbeat: &hosts.Heartbeat{MemFree: -1, DiskFree: -1}})
		return s.step(HostHeartbeat{Host: "a",
			Heartbeat: &hosts.Heartbeat{MemFree: -1, DiskFree: -1, FSDelay: delay, Running: 1}})
	}
	heartbeat(9 * time.Second)
	want(t, "in time", s.c.Hosts()[0].Reason, "")
	o := heartbeat(11 * time.Second)
	want(t, "limit", formatCommands[SetLimit](o), "{a 0}")
	want(t, "reason", s.c.Hosts()[0].Reason,
		"starts nothing: the file system of its attempts has not answered for 11 s")
	for range 30 { // for longer than lost_after
		if o := heartbeat(60 * time.Second); launchedOn(o, "a") != "" {
			t.Fatalf("launched: %v", o)
		}
	}
	s.wantState(1, jobs.Running)
	want(t, "times that it is told", s.numEvents("a starts nothing"), 1)
	want(t, "again", formatCommands[SetLimit](heartbeat(time.Millisecond)), "{a 1}")
}

// TestHungFileSystemIsReportedWithEmptyQueue checks that a hung file system is also reported when
// no job is left to launch.
func TestHungFileSystemIsReportedWithEmptyQueue(t *testing.T) {
	s := stageWithJobs(t, 1, Config{}, testHost("a", 1))
	s.started("a", "1.1")
	for _, delay := range []time.Duration{12 * time.Second, 15 * time.Second, 0} {
		s.at += reportInterval
		s.step(HostHeartbeat{Host: "a",
			Heartbeat: &hosts.Heartbeat{MemFree: -1, DiskFree: -1, FSDelay: delay, Running: 1}})
	}
	want(t, "times that the stop is told",
		s.numEvents("a starts nothing: the file system of its attempts has not answered"), 1)
	want(t, "times that the end is told", s.numEvents("a starts jobs again"), 1)
}

// TestFailuresBeforeProbationAreUncharged checks that jobs that failed on a host before it was put
// on probation get their try back if they have not ended (B2).
func TestFailuresBeforeProbationAreUncharged(t *testing.T) {
	s := stageWithJobs(t, 100, Config{Tries: 2}, testHost("a", 8), testHost("b", 2))
	s.failFast()
	for i := range s.c.table.Jobs {
		if j := &s.c.table.Jobs[i]; j.Failures != 0 && !j.State.Terminal() {
			t.Errorf("job %d: %d failures", i+1, j.Failures)
		}
	}
	want(t, "job 1", s.history(1), "succeeded: a exited, b exited")
	want(t, "a failure was forgiven", s.numRecords(jobs.KindForgiven) > 0, true)
	restart(s, testHost("a", 8), testHost("b", 2)) // the records can be replayed
}

// TestReturnedAttemptIsExplained checks that one readable event explains what happens to an attempt
// that comes back.
func TestReturnedAttemptIsExplained(t *testing.T) {
	s := replacedStage(t)
	s.wait(time.Hour, "b", "c")
	s.up("a")
	for range 3 {
		s.probedAs("a", "1.1", hosts.IsRunning, nil)
	}
	want(t, "times that the stop is told",
		s.numEvents("1.1 is still alive on a and is stopped: a newer attempt has run longer"), 1)
	s.ended("b", "1.2", succeeded)
	for range 3 {
		s.ended("a", "1.1", succeeded)
	}
	want(t, "times that the end is told",
		s.numEvents("1.1, given up as lost, has ended on a; it does not count: its job has succeeded already"), 1)
}

// TestUnchargedWhileItWaits checks that a waiting job that gets its try back also requests less
// memory again.
func TestUnchargedWhileItWaits(t *testing.T) {
	s := connectedStage(t, Config{MemGrowth: 2}, testHost("a", 8), testHost("b", 2))
	s.submit(true, slices.Repeat([]*jobs.Options{{MemBytes: 1 << 30}}, 100)...)
	s.step(SetPriority{Jobs: []jobs.ID{1}, Priority: 9}) // last in the queue
	s.failFast()
	if s.job(1).Failures > 0 || s.c.queue.states[0] != stateReady {
		t.Fatalf("job 1 has %d failures and is %d", s.job(1).Failures, s.c.queue.states[0])
	}
	for s.c.table.Unfinished() > 0 {
		s.wait(time.Second, "a", "b")
		for _, h := range s.c.hosts {
			for h.oldest != nil {
				s.endFirst(h.spec.Name, succeeded)
			}
		}
	}
}
