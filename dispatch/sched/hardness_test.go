package sched

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
	"dcs-tui/jobs/jobstest"
)

// withHardness returns the options of a job of the given hardness that may run for a minute.
func withHardness(at ...string) *jobs.Options {
	return &jobs.Options{Hardness: at, Timeout: time.Minute}
}

var timedOut = jobs.Outcome{TimedOut: true, Signal: "SIGTERM"}

// launchOrder completes all jobs successfully until no job is left. It returns their ids in the
// order in which they were launched.
func (s *stage) launchOrder(name string, commands []Command) (order []jobs.ID) {
	for {
		ids := launchedOn(commands, name)
		if ids == "" {
			return order
		}
		for _, id := range attemptIDs(ids) {
			order = append(order, id.Job)
		}
		s.started(name, ids)
		commands = s.ended(name, ids, succeeded)
	}
}

// TestEasiestJobRunsFirst checks that jobs run from the easiest to the hardest. Numbers are
// compared as numbers, equal jobs run in file order, priority counts before hardness, and jobs
// without hardness run first.
func TestEasiestJobRunsFirst(t *testing.T) {
	s := newStage(t, Config{}, testHost("melon1", 1))
	urgent := withHardness("99", "99")
	urgent.Priority = -1
	s.submit(true, withHardness("10", "1"), withHardness("9", "2"), withHardness("9", "1e0"), withHardness("9.0", "1"),
		urgent, jobs.NoOptions, withHardness("-1", "x"))
	want(t, "order", fmt.Sprint(s.launchOrder("melon1", s.up("melon1"))), "[5 6 7 3 4 2 1]")
}

// TestTimeoutEndsAndSkipsHarderJobs checks that a timeout stops the running jobs that are as hard
// or harder, and skips the waiting ones, whatever they wait for. Jobs that are not comparable and
// jobs of other batches continue (E2).
func TestTimeoutEndsAndSkipsHarderJobs(t *testing.T) {
	s := newStage(t, Config{}, testHost("melon1", 4))
	other := withHardness("5", "5")
	other.Queue, other.QueuePriority = "other", new(1) // runs later
	file := withHardness("5", "5")
	file.File = "other.txt"
	s.submitAfter(true, map[jobs.ID]jobs.Dependencies{11: jobstest.After(3)},
		withHardness("2", "2"),  // 1: times out
		withHardness("2", "3"),  // 2: runs, is harder
		withHardness("1", "9"),  // 3: runs, is not comparable
		withHardness("3", "1"),  // 4: waits, is not comparable
		withHardness("2", "2"),  // 5: is launched, is as hard
		withHardness("9", "9"),  // 6: waits, is harder
		withHardness("10", "1"), // 7: waits, is not comparable
		other, file,             // 8, 9: belong to other batches
		withHardness("5", "5", "5"), // 10: has another number of components
		withHardness("3", "3"),      // 11: waits for job 3
		withHardness("x", "9"),      // 12: is not comparable, because x is not a number
		&jobs.Options{Hardness: []string{"9", "9"}, Timeout: time.Hour}, // 13: has a longer timeout
		&jobs.Options{Hardness: []string{"9", "9"}},                     // 14: has no timeout
	)
	want(t, "launched", launchedOn(s.up("melon1"), "melon1"), "3.1 1.1 5.1 2.1")
	s.started("melon1", "1.1 2.1 3.1")
	s.ended("melon1", "1.1", timedOut)
	s.wantState(1, jobs.TimedOut)
	want(t, "stopped", formatCommands[Kill](s.commands),
		"{melon1 [5.1 2.1] it is at least as hard as job 1, which timed out after 1m0s}")
	for _, id := range []jobs.ID{6, 11} {
		s.wantState(id, jobs.Skipped)
		wantContains(t, "reason", s.job(id).Reason, "at least as hard as job 1, which timed out after 1m0s")
		want(t, fmt.Sprintf("job %d was avoided", id), s.job(id).Avoided(), true)
	}
	wantContains(t, "why", s.c.Why(s.now(), 2), "being stopped on melon1: it is at least as hard as job 1")
	want(t, "jobs that are being ended", fmt.Sprint(s.c.Running().Ending), "[5 2]")
	stopped := jobs.Outcome{Signal: "SIGTERM", Stopped: true}
	s.ended("melon1", "2.1", stopped)
	s.step(AttemptsWithdrawn{"melon1", &hosts.Withdrawn{Attempts: attemptIDs("5.1"), Why: "it had not started"}})
	s.wantState(2, jobs.Skipped)
	s.wantState(5, jobs.Skipped)
	want(t, "the attempt of job 2", s.job(2).Attempts[0].State, jobs.AttemptCanceled)
	for _, id := range []jobs.ID{3, 4, 7, 8, 9, 10, 12, 13, 14} {
		want(t, fmt.Sprintf("job %d has ended", id), s.job(id).State.Terminal(), false)
	}
	// A job that is submitted later is skipped too.
	s.submit(true, withHardness("4", "4"))
	s.wantState(15, jobs.Skipped)
}

// TestDominoWaitsForTheLastTry checks that only a final timeout counts (E1, E2). A timeout after
// which the job is tried again skips nothing.
func TestDominoWaitsForTheLastTry(t *testing.T) {
	s := newStage(t, Config{RetryTimeouts: true, Tries: 2}, testHost("melon1", 1))
	s.submit(true, withHardness("1"), withHardness("2"))
	s.up("melon1")
	s.started("melon1", "1.1")
	s.ended("melon1", "1.1", timedOut)
	s.wantState(1, jobs.Queued)
	s.wantState(2, jobs.Running)
	s.started("melon1", "2.1")
	s.ended("melon1", "2.1", succeeded)
	s.wait(3*time.Second, "melon1")
	s.submit(true, withHardness("3"))
	s.started("melon1", "1.2")
	s.ended("melon1", "1.2", timedOut)
	s.wantState(1, jobs.TimedOut)
	s.wantState(2, jobs.Succeeded)
	s.wantState(3, jobs.Skipped)
}

// TestSkippedJobRunsAgain checks that a skipped job runs again when a user gives it more time, or
// requeues the job that timed out, in any order. Otherwise it is skipped again, with a reason that
// says what would help.
func TestSkippedJobRunsAgain(t *testing.T) {
	begin := func(t *testing.T) *stage {
		s := newStage(t, Config{}, testHost("melon1", 1))
		s.submit(true, withHardness("1"), withHardness("2"), withHardness("3"))
		s.up("melon1")
		s.started("melon1", "1.1")
		s.ended("melon1", "1.1", timedOut)
		s.wantState(3, jobs.Skipped)
		return s
	}
	more := 2 * time.Minute
	t.Run("more time", func(t *testing.T) {
		s := begin(t)
		s.step(Edit{[]jobs.ID{3}, jobs.Change{Timeout: &more}})
		s.wantState(3, jobs.Running)
		s.wantState(2, jobs.Skipped)
		s.started("melon1", "3.1")
		s.ended("melon1", "3.1", timedOut)
		s.step(Edit{[]jobs.ID{2}, jobs.Change{Timeout: &more}})
		s.wantState(2, jobs.Running) // easier than 3
	})
	t.Run("as much time", func(t *testing.T) {
		s := begin(t)
		s.step(Requeue{[]jobs.ID{3}})
		s.wantState(3, jobs.Skipped)
		wantContains(t, "reason", s.job(3).Reason, "it can run with more time, or when that job is requeued too")
		want(t, "round", fmt.Sprint(s.job(3).Round), "2")
	})
	for _, ids := range [][]jobs.ID{{1, 2, 3}, {3, 2, 1}} {
		t.Run(fmt.Sprint("all of them ", ids), func(t *testing.T) {
			s := begin(t)
			s.step(Requeue{ids})
			s.wantState(1, jobs.Running)
			if s.job(2).State.Terminal() || s.job(3).State.Terminal() {
				t.Errorf("jobs 2 and 3: got %s and %s, want neither ended", s.job(2).State, s.job(3).State)
			}
		})
	}
	t.Run("a request", func(t *testing.T) {
		s := begin(t)
		s.step(Request{Name: "r", Do: []Event{Requeue{[]jobs.ID{3, 2}}, Requeue{[]jobs.ID{1}}}})
		s.wantState(1, jobs.Running)
		s.wantState(3, jobs.Queued)
		s.started("melon1", "1.2")
		s.ended("melon1", "1.2", timedOut)
		s.wantState(3, jobs.Skipped)
	})
	t.Run("another timeout stands", func(t *testing.T) {
		s := newStage(t, Config{}, testHost("melon1", 2))
		s.submit(true, withHardness("1"), withHardness("2"), withHardness("3"), withHardness("4"))
		s.up("melon1")
		s.started("melon1", "1.1 2.1")
		s.ended("melon1", "1.1", timedOut)
		s.ended("melon1", "2.1", timedOut) // before it was stopped
		s.wantState(2, jobs.TimedOut)
		s.step(Requeue{[]jobs.ID{1, 3}})
		s.wantState(1, jobs.Running)
		s.wantState(3, jobs.Skipped) // now because of job 2
		wantContains(t, "reason", s.job(3).Reason, "at least as hard as job 2")
	})
}

// TestDominoAfterRestart checks that a dispatcher that starts after the timeout was recorded skips
// the waiting jobs, and stops the running ones as soon as their host answers (promise 1, E2).
func TestDominoAfterRestart(t *testing.T) {
	s := newStage(t, Config{Timeout: time.Minute}, testHost("melon1", 2))
	o := func(at string) *jobs.Options { return &jobs.Options{Hardness: []string{at}} }
	s.submit(true, o("1"), o("2"), o("3"))
	s.up("melon1")
	s.started("melon1", "1.1 2.1")
	s.ended("melon1", "1.1", jobs.Outcome{TimedOut: true, Started: 1, Ended: jobs.Stamp(61 * time.Second)})
	for _, timeout := range []time.Duration{time.Minute, 66 * time.Second, time.Hour} {
		// The rest of the journal was lost.
		durable := 1 + slices.IndexFunc(s.journal, func(r jobs.Record) bool { return r.Next == jobs.TimedOut })
		s.c.cfg.Timeout = timeout
		n := restartAfter(s, durable, testHost("melon1", 2))
		n.step(Submit{Last: true})
		n.up("melon1")
		n.probedAs("melon1", "2.1", hosts.IsRunning, nil)
		if timeout > time.Minute { // all jobs have more time now
			n.wantState(3, jobs.Running)
			want(t, "stopped", formatCommands[Kill](n.commands), "")
			continue
		}
		n.wantState(3, jobs.Skipped)
		wantContains(t, "stopped", formatCommands[Kill](n.commands), "[2.1]")
		n.ended("melon1", "2.1", jobs.Outcome{Signal: "SIGTERM", Stopped: true})
		n.wantState(2, jobs.Skipped)
	}
}

// TestTimeOfATimedOutJob checks how much time a job that timed out had. The run's own timeout may
// have been raised since then, and even a slightly longer timeout counts as more
// (docs/search.md). The host's clock, which measured the run time, is slewed by less than a
// thousandth.
func TestTimeOfATimedOutJob(t *testing.T) {
	const end = 2 * time.Second // it takes a moment to stop a job
	for _, c := range []struct{ ran, limit, want time.Duration }{
		{time.Hour + end, time.Hour, time.Hour},
		{time.Hour + end, 64 * time.Minute, time.Hour + end},
		{time.Hour + end, time.Hour + time.Minute, time.Hour + end},
		{time.Hour + end, 30 * time.Minute, 30 * time.Minute},
		{time.Hour + end, 0, time.Hour + end},
		{time.Hour - 2*time.Second, time.Hour, time.Hour}, // slewed clock
		{48*time.Hour - time.Minute, 48 * time.Hour, 48 * time.Hour},
		{time.Second - time.Millisecond, time.Second, time.Second},
	} {
		j := &jobs.Job{Spec: &jobs.Spec{Options: jobs.NoOptions},
			Attempts: []*jobs.Attempt{{Outcome: &jobs.Outcome{TimedOut: true, Started: 1,
				Ended: 1 + jobs.Stamp(c.ran)}}}}
		core := &Core{cfg: Config{Timeout: c.limit}}
		want(t, fmt.Sprintf("ran %s, the limit is %s now: it had", c.ran, c.limit), core.timeoutUsed(j), c.want)
	}
}

// TestDominoOfVeryMany checks that many jobs are skipped over several steps, and that no job is
// launched in the meantime.
func TestDominoOfVeryMany(t *testing.T) {
	const n = 2*maxPerStep + 100
	s := newStage(t, Config{}, testHost("melon1", 1))
	s.submit(true, append(append([]*jobs.Options{withHardness("1")},
		repeatOptions(n, withHardness("2"))...), jobs.NoOptions)...)
	s.step(Cancel{Jobs: []jobs.ID{n + 2}})
	s.up("melon1")
	s.started("melon1", "1.1")
	s.ended("melon1", "1.1", timedOut)
	// The step has also processed job 1.
	want(t, "skipped", fmt.Sprint(s.c.table.Counts[jobs.Skipped]), fmt.Sprint(maxPerStep-1))
	want(t, "launched", launchedOn(s.commands, "melon1"), "")
	want(t, "launched meanwhile", launchedOn(s.wait(time.Second, "melon1"), "melon1"), "")
	want(t, "skipped", fmt.Sprint(s.c.table.Counts[jobs.Skipped]), fmt.Sprint(n))
}

// TestEstimatesCountBeforeHardness checks that on local slots of a hybrid run the shortest estimate
// counts before hardness (D5).
func TestEstimatesCountBeforeHardness(t *testing.T) {
	local := testHost("here", 1)
	local.Link = "local"
	s := newStage(t, Config{}, local, testHost("melon1", 1))
	long, short := withHardness("1"), withHardness("2")
	long.Estimate, short.Estimate = time.Hour, time.Minute
	s.submit(true, long, short)
	want(t, "launched", launchedOn(s.up("here"), "here"), "2.1")
}

// BenchmarkDomino queues 100,000 jobs with as many tuples. Then 1,000 more jobs, none of which is
// as hard as another, time out one after the other. They lie on the antidiagonal of a square; the
// others lie beyond it.
func BenchmarkDomino(b *testing.B) {
	const side, bars = 317, 1000
	var all []*jobs.Options
	for x := range side {
		for y := range side {
			all = append(all, &jobs.Options{Hardness: []string{strconv.Itoa(x * 4), strconv.Itoa(y * 4)},
				Timeout: time.Minute})
		}
	}
	var hardest []*jobs.Options
	for i := range bars {
		hardest = append(hardest, &jobs.Options{Hardness: []string{strconv.Itoa(i), strconv.Itoa(bars - i)},
			Timeout: time.Minute, Priority: -1})
	}
	for b.Loop() {
		c := New(Config{}, &jobs.Table{}, inventoryOf(testHost("melon1", bars)))
		now := Time{Wall: wallStart}
		specs := specsOf(1, slices.Concat(hardest, all)...)
		begin := time.Now()
		c.Step(now, Submit{Specs: specs, Last: true})
		submitted := time.Since(begin)
		c.Step(now, HostUp{Host: "melon1", Hello: &hosts.Hello{Cores: bars + 1, Slots: bars}})
		c.Step(now, HostHeartbeat{Host: "melon1", Heartbeat: &hosts.Heartbeat{MemFree: -1, DiskFree: -1}})
		begin = time.Now()
		var longest time.Duration
		for i := range bars {
			id := jobs.AttemptID{Job: jobs.ID(i + 1), N: 1}
			if c.inFlight[id] == nil {
				b.Fatal("not launched", id)
			}
			was := time.Now()
			c.Step(now, AttemptsEnded{"melon1",
				&hosts.Exits{Jobs: []hosts.ExitedJob{{Attempt: id, Outcome: timedOut}}}})
			longest = max(longest, time.Since(was))
		}
		if n := c.table.Counts[jobs.TimedOut]; n != bars || c.Defects > 0 {
			b.Fatal(n, "timeouts,", c.Defects, "defects")
		}
		b.ReportMetric(float64(submitted)/float64(len(specs)), "ns/job-submitted")
		b.ReportMetric(float64(time.Since(begin))/bars/1e3, "µs/timeout")
		b.ReportMetric(float64(longest)/1e6, "ms-longest-step")
		b.ReportMetric(float64(c.table.Counts[jobs.Skipped]), "skipped")
	}
}
