package sched

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/internal/text"
	"dcs-tui/jobs"
)

// TestNumberOfTries checks the number of tries (D2). The delay after failure n is random(0.5, 1) x
// 2^(n-1) s.
func TestNumberOfTries(t *testing.T) {
	for _, tt := range []struct{ run, job, want int }{{0, 0, 3}, {1, 0, 1}, {0, 5, 5}, {4, 2, 2}} {
		s := connectedStage(t, Config{Tries: tt.run, Seed: uint64(tt.want)}, testHost("a", 1))
		s.submit(true, &jobs.Options{Tries: tt.job})
		n := 1
		for s.job(1).State != jobs.Failed {
			a := jobs.AttemptID{Job: 1, N: n}
			s.ended("a", a.String(), exit1)
			s.ended("a", a.String(), exit1) // a repeated report changes nothing
			if s.job(1).State == jobs.Failed {
				break
			}
			wait := s.job(1).Retry.Sub(s.now().Wall)
			most := time.Second << (n - 1)
			wantBetween(t, fmt.Sprintf("wait after failure %d", n), wait, most/2, most)
			if s.wait(wait-time.Millisecond, "a"); s.job(1).State != jobs.Queued {
				t.Errorf("tried again too early")
			}
			s.wait(time.Second, "a")
			s.wantState(1, jobs.Running)
			n++
		}
		want(t, fmt.Sprintf("%+v: tries", tt), n, tt.want)
	}
}

// TestRetryDelayDependsOnTheRunTime checks that the delay after a failure depends on the run time
// of the attempt, so that waiting never takes much longer than trying. A delay that the user set is
// used unchanged.
func TestRetryDelayDependsOnTheRunTime(t *testing.T) {
	ran := func(d time.Duration) jobs.Outcome {
		return jobs.Outcome{Exit: 1, Started: wallStart, Ended: wallStart + jobs.Stamp(d)}
	}
	unstarted := jobs.Outcome{Error: "no such directory"}
	for _, tt := range []struct {
		name     string
		run, job *time.Duration
		o        jobs.Outcome
		n        int
		// Upper limit; a delay derived from the run time is at least half of it.
		want time.Duration
	}{
		{"short", nil, nil, ran(4 * time.Millisecond), 1, 4 * time.Millisecond},
		{"short, third failure", nil, nil, ran(4 * time.Millisecond), 3, 16 * time.Millisecond},
		{"long", nil, nil, ran(time.Hour), 1, time.Second},
		{"long, third failure", nil, nil, ran(time.Hour), 3, 4 * time.Second},
		{"at most a minute", nil, nil, ran(time.Hour), 7, time.Minute},
		{"at most a minute after very many", nil, nil, ran(time.Hour), 99, time.Minute},
		{"run time not known", nil, nil, exit1, 1, time.Second},
		{"not started", nil, nil, unstarted, 2, 2 * time.Second},
		{"clock of the host set back", nil, nil, ran(-time.Hour), 1, 0},
		{"asked of the run", new(5 * time.Minute), nil, exit1, 3, 5 * time.Minute},
		{"asked of the job", new(5 * time.Minute), new(time.Minute), exit1, 3, time.Minute},
		{"none", new(time.Duration(0)), nil, unstarted, 3, 0},
		{"none for the job", new(time.Hour), new(time.Duration(0)), unstarted, 3, 0},
	} {
		c := New(Config{RetryDelay: tt.run}, &jobs.Table{}, inventoryOf())
		j := &jobs.Job{Spec: &jobs.Spec{Options: &jobs.Options{RetryDelay: tt.job}}}
		least := tt.want
		if tt.run == nil {
			least /= 2
		}
		wantBetween(t, tt.name, c.retryDelay(j, &tt.o, tt.n), least, tt.want)
	}
}

// TestRetryElsewhereIsNotDelayed checks that a failed job goes to another host at once, and returns
// to the same host only after a delay (D2).
func TestRetryElsewhereIsNotDelayed(t *testing.T) {
	s := stageWithJobs(t, 1, Config{Tries: 5, RetryDelay: new(2 * time.Minute)}, testHost("a", 1), testHost("b", 1))
	want(t, "elsewhere, at once", launchedOn(s.ended("a", "1.1", exit1), "b"), "1.2")
	want(t, "no other host is up", launchedOn(s.ended("b", "1.2", exit1), "a")+launchedOn(s.commands, "b"), "")
	want(t, "waits for", s.job(1).Retry.Sub(s.now().Wall), 2*time.Minute)
	want(t, "too early", launchedOn(s.wait(119*time.Second, "a", "b"), ""), "")
	want(t, "after the delay", launchedOn(s.wait(2*time.Second, "a", "b"), ""), "1.3")
}

// TestRetryWaitsForTheFirstDial checks that short jobs do not use up their tries on the first host
// that is up while others are being dialed (D2).
func TestRetryWaitsForTheFirstDial(t *testing.T) {
	s := newStage(t, Config{}, testHost("a", 1), testHost("b", 1))
	s.up("a")
	s.submitPlain(1)
	s.ended("a", "1.1", fastFail)
	want(t, "while b is dialed", launchedOn(s.wait(400*time.Millisecond, "a"), ""), "")
	want(t, "when b is up", launchedOn(s.up("b"), "b"), "1.2")
}

// TestADelayLeavesNoSlotIdle checks that other jobs run while a job waits for its next try.
func TestADelayLeavesNoSlotIdle(t *testing.T) {
	s := stageWithJobs(t, 2, Config{RetryDelay: new(time.Minute)}, testHost("a", 1))
	want(t, "the next job", launchedOn(s.ended("a", "1.1", exit1), "a"), "2.1")
}

// TestRetriesOfShortJobsCostLittle checks the delays of very short jobs that fail half of the time.
// With four tries each, they take 1.9 times as long as with a single try, which is little more than
// their attempts need.
func TestRetriesOfShortJobsCostLittle(t *testing.T) {
	const run = 3 * time.Millisecond
	took := func(tries int) time.Duration {
		s := newStage(t, Config{Tries: tries, Seed: 3}, testHost("a", 1))
		r := rand.New(rand.NewPCG(1, 2))
		s.up("a")
		s.submitPlain(500)
		begun := s.at
		for s.c.table.Unfinished() > 0 {
			h := s.c.hosts[0]
			if h.oldest == nil {
				next, _ := s.c.Next()
				s.at = next
				s.step(Tick{})
				continue
			}
			id, started := h.oldest.id.String(), s.now().Wall
			s.at += run
			s.ended("a", id, jobs.Outcome{Exit: r.IntN(2), Started: started, Ended: s.now().Wall})
			if s.at%HeartbeatInterval < run {
				s.step(HostHeartbeat{Host: "a", Heartbeat: &hosts.Heartbeat{}})
			}
		}
		return s.at - begun
	}
	if one, four := took(1), took(4); float64(four) > 2.2*float64(one) {
		t.Errorf("%v with 4 tries, %v with 1: %.1f times as long", four, one, float64(four)/float64(one))
	}
}

// TestStateAfterEachOutcome checks the state of a job with tries left after each kind of outcome.
func TestStateAfterEachOutcome(t *testing.T) {
	for _, tt := range []struct {
		name string
		cfg  Config
		o    jobs.Outcome
		want string
	}{
		{"success", Config{}, succeeded, "succeeded: a exited"},
		{"exit code", Config{}, exit1, "queued, 1 failure: a exited"},
		{"signal", Config{}, jobs.Outcome{Signal: "SIGSEGV"}, "queued, 1 failure: a exited"},
		{"could not be started", Config{}, jobs.Outcome{Error: "no such directory"}, "queued, 1 failure: a exited"},
		{"last try", Config{Tries: 1}, jobs.Outcome{Error: "no such directory"}, "failed, 1 failure: a exited"},
		{"timeout is final (E1)", Config{}, jobs.Outcome{TimedOut: true, Signal: "SIGTERM"},
			"timed_out, 1 failure: a exited"},
		{"timeout tried again", Config{RetryTimeouts: true}, jobs.Outcome{TimedOut: true},
			"queued, 1 failure: a exited"},
		{"last timeout", Config{RetryTimeouts: true, Tries: 1}, jobs.Outcome{TimedOut: true},
			"timed_out, 1 failure: a exited"},
		{"stopped on the host, by an earlier dispatcher that drained it: it runs again at once", Config{},
			jobs.Outcome{Stopped: true, Signal: "SIGTERM"}, "running: a canceled, a launching"},
	} {
		s := stageWithJobs(t, 1, tt.cfg, testHost("a", 1))
		s.started("a", "1.1")
		s.ended("a", "1.1", tt.o)
		want(t, tt.name, s.history(1), tt.want)
	}
}

// TestTimeoutOfTheRunIsTheDefault checks that the run's timeout applies to a job without its own
// (E1).
func TestTimeoutOfTheRunIsTheDefault(t *testing.T) {
	s := connectedStage(t, Config{Timeout: time.Minute}, testHost("a", 2))
	s.submit(true, jobs.NoOptions, &jobs.Options{Timeout: time.Second})
	launched := launchItems(s.commands, "a")
	want(t, "timeout of the run", launched[0].Timeout, time.Minute)
	want(t, "timeout of the job", launched[1].Timeout, time.Second)
}

// TestRefusedAttemptGoesElsewhere checks that attempts that a host refuses go elsewhere uncharged,
// and that the host pauses, longer each time.
func TestRefusedAttemptGoesElsewhere(t *testing.T) {
	s := stageWithJobs(t, 2, Config{}, testHost("a", 2), testHost("b", 1))
	s.started("b", "2.1")
	s.ended("b", "2.1", succeeded)
	o := s.step(HostRefused{"a", &hosts.Refused{Attempts: attemptIDs("1.1"), Why: "spool full"}})
	want(t, "elsewhere", launchedOn(o, "b"), "1.2")
	want(t, "limit", formatCommands[SetLimit](o), "{a 0}")
	want(t, "failures charged", s.job(1).Failures, 0)
	v := s.c.Hosts()[0]
	want(t, "host", v.State, jobs.HostBackingOff)
	wantContains(t, "reason", v.Reason, "spool full")
	// A repeated report.
	s.step(HostRefused{"a", &hosts.Refused{Attempts: attemptIDs("1.1"), Why: "spool full"}})
	want(t, "refusals in a row", s.c.hosts[0].probation.refusals, 1)
	want(t, "after the rest", formatCommands[SetLimit](s.wait(3*time.Second, "a", "b")), "{a 2}")
}

// TestRefusalsAddUp checks that a host with a full disk is retried after longer and longer pauses,
// although its supervisors hold attempts for a moment before they refuse them.
func TestRefusalsAddUp(t *testing.T) {
	s := stageWithJobs(t, 2, Config{}, testHost("a", 2))
	for n := 1; n <= 4; n++ {
		one, two := fmt.Sprintf("1.%d", n), fmt.Sprintf("2.%d", n)
		s.probedAs("a", two, hosts.IsRunning, nil) // withdrawn too late
		// Each supervisor reports separately, but both refusals count once.
		for _, id := range []string{one, two} {
			s.step(HostRefused{"a", &hosts.Refused{Attempts: attemptIDs(id), Why: "no space left on device"}})
		}
		want(t, "refusals in a row", s.c.hosts[0].probation.refusals, n)
		s.wait(time.Minute, "a")
	}
	s.started("a", "1.5")
	want(t, "refusals in a row after a start", s.c.hosts[0].probation.refusals, 0)
}

// TestDispatcherEndsIfAHostKnowsANewerOne checks that a dispatcher ends when a host knows a newer
// one.
func TestDispatcherEndsIfAHostKnowsANewerOne(t *testing.T) {
	s := newStage(t, Config{}, testHost("a", 2))
	s.step(HostUp{Host: "a", Hello: &hosts.Hello{Slots: 2, FencedBy: 7}})
	want(t, "finish", s.finishText(), "fenced")
	s.submitPlain(1)
	want(t, "launched", launchedOn(s.commands, "a"), "")
}

// TestExitCode75PostponesAJob checks that exit code 75 uses up no try and postpones the job, longer
// each time. After the allowed number of times, it is a failure (T2).
func TestExitCode75PostponesAJob(t *testing.T) {
	later := jobs.Outcome{Exit: 75}
	s := stageWithJobs(t, 1, Config{Tries: 1, MaxPostpone: 3}, testHost("a", 1))
	for n := 1; n <= 3; n++ {
		s.ended("a", jobs.AttemptID{Job: 1, N: n}.String(), later)
		s.wantState(1, jobs.Queued)
		wait := s.job(1).Retry.Sub(s.now().Wall)
		if most := time.Second << (n - 1); wait < most/2 || wait > most || s.job(1).Failures != 0 {
			t.Errorf("after %d times: waits %s and %d tries are used up, want up to %s and 0", n, wait,
				s.job(1).Failures, most)
		}
		wantContains(t, "why", s.c.Why(s.now(), 1), "asked "+text.Plural(n, "time")+" to be run again later")
		s.wait(time.Minute, "a")
		s.wantState(1, jobs.Running)
	}
	want(t, "failed on the host", s.c.Hosts()[0].Failed, 0)
	s.ended("a", "1.4", later)
	s.wantState(1, jobs.Failed)
	want(t, "failed on the host", s.c.Hosts()[0].Failed, 1)
}

// TestFinalOutcomeIsNotRetried checks that an outcome that the run declares final is not retried,
// unless the host is at fault or another attempt may still succeed (T2).
func TestFinalOutcomeIsNotRetried(t *testing.T) {
	s := stageWithJobs(t, 2, Config{Tries: 3, IsFinal: func(o *jobs.Outcome) bool { return o.Exit == 1 }},
		testHost("a", 2))
	s.ended("a", "1.1", exit1)
	s.wantState(1, jobs.Failed)
	s.ended("a", "2.1", jobs.Outcome{TimedOut: true, Signal: "SIGTERM"})
	s.wantState(2, jobs.Queued)
}

// TestMemoryLimitIsRetriedWithMore checks that a job that exceeded its memory limit is launched
// again with more memory, and that its reason names the limit (T3).
func TestMemoryLimitIsRetriedWithMore(t *testing.T) {
	s := connectedStage(t, Config{Tries: 2, MemGrowth: 2, RetryDelay: new(time.Duration(0))}, testHost("a", 1))
	s.submit(true, &jobs.Options{MemBytes: 4 << 30})
	over := jobs.Outcome{Signal: "SIGKILL", Memory: jobs.MemoryLimit, MaxRSSBytes: 5 << 30}
	o := append(s.ended("a", "1.1", over), s.wait(time.Second, "a")...)
	want(t, "memory of the second attempt", launchItems(o, "a")[0].Mem, 8<<30)
	over.MaxRSSBytes = 9 << 30
	s.ended("a", "1.2", over)
	s.wantState(1, jobs.Failed)
	want(t, "reason", s.job(1).Reason, "it used 9 GiB of memory and asked for 8 GiB (mem=)")
}

// TestTimeoutAndMemoryGrow checks that timeout and memory grow with each failure, the memory up to
// that of the largest host (T2).
func TestTimeoutAndMemoryGrow(t *testing.T) {
	cfg := Config{Tries: 4, RetryTimeouts: true, TimeoutGrowth: 2, MemGrowth: 1.5, RetryDelay: new(time.Duration(0))}
	s := connectedStage(t, cfg, testHost("a", 1)) // with 16 GiB
	s.submit(true, &jobs.Options{Timeout: time.Minute, MemBytes: 8 << 30})
	o := s.commands
	for _, launch := range []string{"1.1: 1m0s, 8 GiB", "1.2: 2m0s, 12 GiB", "1.3: 4m0s, 16 GiB"} {
		p := launchItems(o, "a")[0]
		want(t, "launched", fmt.Sprintf("%s: %s, %s", p.Attempt, p.Timeout, text.Size(p.Mem)), launch)
		o = append(s.ended("a", p.Attempt.String(), timedOut), s.wait(time.Second, "a")...)
	}
}

// TestGrownMemoryMeetsALargerHost checks that memory that has grown to that of the largest host
// grows further when a larger host comes up, even for a waiting job (T2).
func TestGrownMemoryMeetsALargerHost(t *testing.T) {
	s := newStage(t, Config{Tries: 3, MemGrowth: 2, RetryDelay: new(time.Duration(0))}, testHost("a", 1),
		testHost("b", 1))
	s.up("a") // with 16 GiB
	s.submit(true, &jobs.Options{MemBytes: 12 << 30})
	s.step(Pause{true})
	s.ended("a", "1.1", jobs.Outcome{Exit: 1})
	s.connect("b", hosts.Hello{Cores: 2, Slots: 1, MemBytes: 64 << 30})
	s.step(Pause{false})
	want(t, "launched", launchedOn(s.commands, "b"), "1.2")
	want(t, "memory of the second attempt", launchItems(s.commands, "b")[0].Mem, 24<<30)
}
