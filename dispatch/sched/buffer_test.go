package sched

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// TestSizeOfABuffer checks the size of a host's buffer (B3).
func TestSizeOfABuffer(t *testing.T) {
	for _, tt := range []struct {
		slots int
		mean  float64
		known bool
		span  time.Duration
		want  int
	}{
		{16, 0, false, 0, 0},
		{16, 1, true, 0, 16},
		{16, 29, true, 0, 16},
		{16, 30, true, 0, 0},
		{4, 0.1, true, 0, 12},
		{4, 0.002, true, 0, maxBuffered},
		{1, 0, true, 0, maxBuffered},
		{4, 60, true, 30 * time.Minute, 120},
		{4, 3600, true, 30 * time.Minute, 4},
		{0, 1, true, 0, 0},
	} {
		want(t, fmt.Sprintf("%+v", tt), highWater(tt.slots, tt.mean, tt.known, tt.span), tt.want)
	}
}

// quickOutcome returns the outcome of a job that took 0.1 s.
func (s *stage) quickOutcome() jobs.Outcome {
	return jobs.Outcome{Started: s.now().Wall - 1e8, Ended: s.now().Wall}
}

// TestBufferIsFilledOnceRunTimesAreKnown checks that no job is buffered while no run time is known.
// After that, the buffer is filled to the high water mark, is refilled when it is less than half
// full, and never holds more than a fair part of the queue.
func TestBufferIsFilledOnceRunTimesAreKnown(t *testing.T) {
	s := stageWithJobs(t, 1000, Config{}, testHost("a", 4))
	want(t, "slots alone", launchedOn(s.commands, "a"), "1.1 2.1 3.1 4.1")
	end := func(n int) int { // returns how many jobs follow
		ids := fmt.Sprint(s.attemptsOn("a")[:n])
		return len(launchItems(s.ended("a", strings.Trim(ids, "[]"), s.quickOutcome()), "a"))
	}
	want(t, "jobs follow the first end", end(1), 13)
	want(t, "jobs follow though more than half is there", end(5), 0)
	want(t, "jobs follow below the low water mark", end(2), 7)
	for s.c.hosts[0].oldest != nil && s.c.queue.ready > 0 {
		end(1)
		if ahead := s.c.hosts[0].occupiedSlots - 4; ahead > s.c.queue.ready+1 {
			t.Fatalf("%d jobs are handed out ahead, %d are left", ahead, s.c.queue.ready)
		}
	}
}

// TestLargeJobsAreNotBuffered checks that jobs with several slots, GPUs, or memory needs start only
// on free slots, and that no job is buffered behind them.
func TestLargeJobsAreNotBuffered(t *testing.T) {
	for _, o := range []*jobs.Options{{Slots: 2}, {GPUs: jobs.WholeGPU}, {MemBytes: 1}} {
		s := connectedStage(t, Config{}, testHost("a", 2))
		s.submit(true, slices.Repeat([]*jobs.Options{o}, 50)...)
		s.ended("a", "1.1", s.quickOutcome())
		wantBetween(t, fmt.Sprintf("%+v: slots handed out", o), s.c.hosts[0].occupiedSlots, 0, 2)
	}
}

// TestBufferKeepsAHostBusy checks that --buffer keeps a host busy for that long, and that the hosts
// share the queue fairly (B3).
func TestBufferKeepsAHostBusy(t *testing.T) {
	s := connectedStage(t, Config{Buffer: 10 * time.Minute}, testHost("a", 1), testHost("b", 1))
	s.submit(true, slices.Repeat([]*jobs.Options{{Estimate: time.Minute}}, 40)...)
	for _, h := range s.c.hosts {
		want(t, h.spec.Name+": jobs, of which 10 are ahead", h.occupiedSlots, 11)
	}
}

// TestSurplusStaysIfNotRunnableElsewhere checks that a buffered job is not withdrawn for a free
// slot on a host that cannot run it.
func TestSurplusStaysIfNotRunnableElsewhere(t *testing.T) {
	a := testHost("a", 1)
	a.Tags = []string{"x"}
	s := newStage(t, Config{}, a, testHost("b", 1))
	s.up("a")
	s.submit(true, slices.Repeat([]*jobs.Options{{Tags: []string{"x"}}}, 20)...)
	s.started("a", "1.1")
	s.ended("a", "1.1", s.quickOutcome())
	s.started("a", "2.1")
	s.step(Cancel{Jobs: []jobs.ID{6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20}})
	want(t, "asked back", formatCommands[Withdraw](append(s.up("b"), s.wait(time.Second, "a", "b")...)), "")
}

// TestSurplusOfASecondHostMoves checks that a buffered job moves to a free slot although no other host can run
// those of the host with more of them (B3).
func TestSurplusOfASecondHostMoves(t *testing.T) {
	x, y := []string{"x"}, []string{"y"}
	a, b, c := testHost("a", 2, x...), testHost("b", 1, y...), testHost("c", 1, y...)
	s := newStage(t, Config{}, a, b, c)
	s.up("a", "b")
	s.submit(true, append(repeatOptions(40, &jobs.Options{Tags: x}), repeatOptions(20, &jobs.Options{Tags: y})...)...)
	for _, h := range []string{"a", "b"} {
		for range s.c.byName[h].limit {
			s.started(h, s.attemptsOn(h)[0].String())
			s.endFirst(h, s.quickOutcome())
		}
		s.started(h, s.attemptsOn(h)[0].String())
	}
	for id := jobs.ID(1); id <= 60; id++ {
		if s.job(id).State == jobs.Queued {
			s.step(Cancel{Jobs: []jobs.ID{id}})
		}
	}
	wantBetween(t, "more wait on a", s.c.byName["a"].surplus(), s.c.byName["b"].surplus()+1, 100)
	o := append(s.up("c"), s.wait(time.Second, "a", "b", "c")...)
	last := s.attemptsOn("b")[s.c.byName["b"].numOpen-1]
	want(t, "asked back", formatCommands[Withdraw](o), fmt.Sprintf("{b [%v]}", last))
}

// TestSurplusMovesToAnotherFreeSlot checks that a buffered job moves to a slot that becomes free in the same moment
// in which another one, which could not run it, is lost (B3).
func TestSurplusMovesToAnotherFreeSlot(t *testing.T) {
	y := []string{"y"}
	s := connectedStage(t, Config{}, testHost("a", 1, y...), testHost("b", 1), testHost("c", 1, y...))
	s.submit(false, &jobs.Options{Tags: y, MemBytes: 1}, &jobs.Options{Tags: y, MemBytes: 1})
	s.started("a", "1.1")
	s.started("c", "2.1")
	s.submit(true, repeatOptions(40, &jobs.Options{Tags: y})...)
	s.endFirst("a", s.quickOutcome())
	s.started("a", s.attemptsOn("a")[0].String())
	s.endFirst("a", s.quickOutcome())
	s.started("a", s.attemptsOn("a")[0].String())
	for id := jobs.ID(1); id <= 42; id++ {
		if s.job(id).State == jobs.Queued {
			s.step(Cancel{Jobs: []jobs.ID{id}})
		}
	}
	want(t, "asked back", formatCommands[Withdraw](s.wait(time.Second, "a", "b", "c")), "")
	wantBetween(t, "jobs that wait on a", s.c.byName["a"].surplus(), 1, 100)
	_, o := s.c.Step(s.now(), hostDown("b", hosts.Unreachable, "gone"), AttemptsEnded{"c", &hosts.Exits{
		Jobs: []hosts.ExitedJob{{Attempt: jobs.AttemptID{Job: 2, N: 1}, Slot: 1, Outcome: s.quickOutcome()}}}})
	last := s.attemptsOn("a")[s.c.byName["a"].numOpen-1]
	want(t, "asked back", formatCommands[Withdraw](o), fmt.Sprintf("{a [%v]}", last))
}

// TestSurplusStaysForRestingHosts checks that as many buffered jobs are withdrawn as other hosts can start
// now. A host on trial can start one at most, and none while it rests.
func TestSurplusStaysForRestingHosts(t *testing.T) {
	for rest, n := range map[time.Duration]int{time.Hour: 1, 0: 2} {
		s := newStage(t, Config{}, testHost("a", 1), testHost("b", 1), testHost("bad", 8))
		s.up("a")
		s.submitPlain(40)
		s.started("a", "1.1")
		s.ended("a", "1.1", s.quickOutcome())
		s.started("a", "2.1")
		for id := jobs.ID(6); id <= 40; id++ {
			s.step(Cancel{Jobs: []jobs.ID{id}})
		}
		s.up("bad")
		s.letRest("bad", rest)
		s.up("b")
		s.wait(time.Second, "a", "b", "bad")
		got := s.c.hosts[0].numInFlight(func(f *inFlight) bool { return f.withdrawn })
		want(t, fmt.Sprintf("withdrawn if the trial rests for %v", rest), got, n)
	}
}

// TestTrialHostsAreNotSearched checks that hosts on trial from which all kinds of jobs are kept are skipped in the
// search for hosts to fill, whose cost would otherwise grow with their number.
func TestTrialHostsAreNotSearched(t *testing.T) {
	s := stageWithJobs(t, 10, Config{}, testHost("a", 1))
	s.letRest("a", time.Hour)
	s.step(Tick{})
	want(t, "part per slot from which on it gets jobs ahead", s.c.nodes[1].minPart, math.Inf(1))
}

// TestHostOnTrialIsNotPreferred checks that a host on trial counts as one free slot when a job is placed, not as all
// its slots.
func TestHostOnTrialIsNotPreferred(t *testing.T) {
	s := connectedStage(t, Config{}, testHost("good", 2), testHost("bad", 8))
	s.letRest("bad", 0)
	s.submitPlain(1)
	want(t, "the first job", launchedOn(s.commands, "good"), "1.1")
}

// trialStage returns a stage with a host of one slot, which runs job 3 of queue good. It is on trial because a
// job of queue bad has failed there, and rests from those for d. Ten jobs of each of some queues wait.
func trialStage(t *testing.T, d time.Duration, queues ...string) *stage {
	s := connectedStage(t, Config{}, testHost("a", 1))
	s.submit(false, &jobs.Options{Queue: "bad"}, &jobs.Options{Queue: "good"}, &jobs.Options{Queue: "good"})
	s.endFirst("a", s.quickOutcome())
	s.endFirst("a", s.quickOutcome())
	s.started("a", "3.1")
	s.letRestFrom("a", 1, d)
	var waiting []*jobs.Options
	for _, q := range queues {
		waiting = append(waiting, repeatOptions(10, &jobs.Options{Queue: q})...)
	}
	s.submit(false, waiting...)
	return s
}

// TestTrialHostsGetOtherJobsAhead checks that a host on trial gets jobs ahead of need, but none of the kinds of
// which it gets one at a time.
func TestTrialHostsGetOtherJobsAhead(t *testing.T) {
	for _, tt := range []struct {
		name   string
		queues []string // of the jobs that wait
		rest   time.Duration
		want   string
	}{
		{"other jobs", []string{"good"}, time.Hour, "4.1 5.1 6.1"},
		{"jobs of the kind that fails", []string{"bad"}, time.Hour, ""},
		{"other jobs while it rests", []string{"bad", "good"}, time.Hour, "14.1 15.1 16.1"},
		{"one job at a time", []string{"bad", "bad"}, 0, "4.1"},
		{"other jobs behind one of the trial", []string{"bad", "good"}, 0, "4.1 14.1 15.1 16.1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := trialStage(t, tt.rest, tt.queues...)
			s.ended("a", "3.1", s.quickOutcome())
			want(t, "on the host", strings.Trim(fmt.Sprint(s.attemptsOn("a")), "[]"), tt.want)
		})
	}
}

// TestJobOfATrialGetsASlot checks that a host on trial gets nothing ahead while a job of the trial, which goes
// first, waits for a slot there.
func TestJobOfATrialGetsASlot(t *testing.T) {
	s := trialStage(t, time.Hour, "bad", "good")
	s.ended("a", "3.1", s.quickOutcome())
	s.letRest("a", 0)
	var launched []string
	for range 4 {
		s.started("a", s.attemptsOn("a")[0].String())
		s.endFirst("a", s.quickOutcome())
		launched = append(launched, launchedOn(s.commands, "a"))
	}
	want(t, "launched", strings.Join(launched, "; "), "; ; 4.1 17.1 18.1 19.1; ")
}

// TestBufferIsWithdrawnForATrial checks that jobs that were sent ahead of need are withdrawn once the trial of
// their host concerns their kind, too.
func TestBufferIsWithdrawnForATrial(t *testing.T) {
	s := trialStage(t, time.Hour, "good")
	s.ended("a", "3.1", s.quickOutcome())
	s.c.hosts[0].probation.kinds |= s.c.kinds.KindOf(s.job(4).Spec) // jobs of this kind have failed before
	s.started("a", "4.1")
	want(t, "withdrawn", formatCommands[Withdraw](s.ended("a", "4.1", exit1)), "{a [5.1 6.1]}")
}

// TestBufferIsWithdrawnForProbation checks that jobs that were sent ahead of need are withdrawn once successes
// on another host show that the trial concerns their kind.
func TestBufferIsWithdrawnForProbation(t *testing.T) {
	s := newStage(t, Config{}, testHost("a", 1), testHost("b", 4))
	s.up("a")
	s.submit(false, append([]*jobs.Options{{Queue: "bad"}}, repeatOptions(200, &jobs.Options{Queue: "good"})...)...)
	s.endFirst("a", s.quickOutcome())
	s.endFirst("a", s.quickOutcome())
	s.letRestFrom("a", 1, time.Hour)
	for range 3 { // this may be bad luck
		s.endFirst("a", exit1)
	}
	a, good := s.c.hosts[0], s.c.kinds.KindOf(s.job(2).Spec)
	s.up("b")
	isFirst := func(id jobs.AttemptID) bool { return id.N == 1 }
	for range 30 {
		ids := s.attemptsOn("b")
		s.ended("b", ids[slices.IndexFunc(ids, isFirst)].String(), s.quickOutcome())
	}
	wantBetween(t, "jobs that wait on a", a.numInFlight((*inFlight).isWaiting), 2, 100)
	want(t, "concerned", a.probation.limited()&good != 0, false)
	for _, id := range s.attemptsOn("b") {
		if !isFirst(id) {
			s.ended("b", id.String(), s.quickOutcome())
		}
	}
	want(t, "concerned after successes of jobs that failed there", a.probation.isOnProbationFor(good), true)
	want(t, "jobs that wait on a then", a.numInFlight((*inFlight).isWaiting), 0)
}

// TestBufferedJobMovesToAFreeSlot checks that at the end of the queue a buffered job moves to a
// host with a free slot, and that the move is not charged.
func TestBufferedJobMovesToAFreeSlot(t *testing.T) {
	s := stageWithJobs(t, 4, Config{}, testHost("a", 1), testHost("b", 1))
	s.started("a", "1.1")
	s.started("b", "2.1")
	o := s.ended("a", "1.1", succeeded)
	want(t, "a", launchedOn(o, "a"), "3.1")
	s.started("a", "3.1")
	// One job is left for two hosts, so no host gets it ahead of need.
	want(t, "b", launchedOn(s.ended("b", "2.1", succeeded), "b"), "4.1")

	s = newStage(t, Config{}, testHost("a", 1), testHost("b", 1))
	s.up("a")
	s.submitPlain(20)
	s.started("a", "1.1")
	o = s.ended("a", "1.1", s.quickOutcome())
	want(t, "ahead", launchedOn(o, "a"), "2.1 3.1 4.1 5.1")
	s.started("a", "2.1")
	s.step(Cancel{Jobs: []jobs.ID{6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20}})
	o = append(s.up("b"), s.wait(time.Second, "a", "b")...)
	want(t, "asked back", formatCommands[Withdraw](o), "{a [5.1]}")
	o = s.step(AttemptsWithdrawn{"a", &hosts.Withdrawn{Attempts: attemptIDs("5.1")}})
	want(t, "moved", launchedOn(o, "b"), "5.2")
	want(t, "job 5", s.history(5), "running: a superseded, b launching")
}

// TestBufferedJobsDoNotUseUpMaxSlots checks that, with --max-slots above the slots of all hosts,
// jobs buffered on one host do not block the slots of another host. If the limit can be reached,
// nothing is buffered.
func TestBufferedJobsDoNotUseUpMaxSlots(t *testing.T) {
	for _, c := range []struct {
		limit, buffered int
		launched        int // at least, on b
	}{{6, 12, 2}, {5, 0, 1}} {
		s := newStage(t, Config{MaxSlots: c.limit}, testHost("a", 4), testHost("b", 2))
		s.up("a")
		s.submitPlain(100)
		s.ended("a", "1.1", s.quickOutcome())
		want(t, fmt.Sprintf("--max-slots %d: jobs ahead on a", c.limit), s.c.hosts[0].occupiedSlots-4, c.buffered)
		wantBetween(t, fmt.Sprintf("--max-slots %d: launched on b", c.limit), len(launchItems(s.up("b"), "b")),
			c.launched, 100)
	}
}

// TestBufferShrinksWithTheSlots checks that jobs that were sent to a host ahead of need start
// elsewhere if other runs take its slots, although the queue is not empty. The host keeps what it
// would get with the slots that it has left.
func TestBufferShrinksWithTheSlots(t *testing.T) {
	for _, c := range []struct {
		slots int
		other bool // another host can run the jobs
		want  string
	}{{0, true, "{a [9.1 8.1 7.1 6.1 5.1 4.1]}"}, {1, true, "{a [9.1 8.1 7.1 6.1]}"}, {0, false, ""}} {
		s := newStage(t, Config{RunShare: 1}, testHost("a", 2), testHost("b", 1))
		s.up("a")
		s.submitPlain(100)
		s.started("a", "1.1 2.1")
		s.ended("a", "1.1", s.quickOutcome())
		s.started("a", "3.1")
		want(t, "jobs on a", len(s.attemptsOn("a")), 8)
		if c.other {
			s.up("b")
		}
		name := fmt.Sprintf("%d slots are left", c.slots)
		others := hosts.Heartbeat{Sharing: &hosts.Sharing{Slots: c.slots, Held: 2 - c.slots}}
		want(t, name, formatCommands[Withdraw](s.heartbeat("a", others)), c.want)
		if c.want == "" {
			continue
		}
		back := strings.NewReplacer("{a [", "", "]}", "").Replace(c.want)
		s.step(AttemptsWithdrawn{"a", &hosts.Withdrawn{Attempts: attemptIDs(back)}})
		want(t, name+": sent to a again", launchedOn(s.heartbeat("a", others), "a"), "")
		next := strings.Fields(back)
		o := append(s.endFirst("b", s.quickOutcome()), s.endFirst("b", s.quickOutcome())...)
		wantContains(t, name+": next on b", launchedOn(o, "b"), strings.Replace(next[len(next)-1], ".1", ".2", 1))
	}
}

// TestJobsThatAreNotBufferedStartInOrder checks that jobs with mem= start in their turn although others are
// sent to hosts ahead of need (order of the queue).
func TestJobsThatAreNotBufferedStartInOrder(t *testing.T) {
	l := &lab{bad: map[string]bool{}, broken: map[jobs.ID]bool{}}
	l.stage = connectedStage(t, Config{}, testHost("node1", 2), testHost("node2", 2))
	options := make([]*jobs.Options, 200)
	for i := range options {
		options[i] = jobs.NoOptions
		if i%10 == 5 {
			options[i] = &jobs.Options{MemBytes: 1 << 20}
		}
	}
	l.submit(true, options...)
	l.takes, l.spread = time.Second, 300*time.Millisecond
	started := map[jobs.ID]bool{}
	l.change = func() {
		for a := range l.ends {
			started[a.Job] = true
		}
		for id := range started {
			for first := jobs.ID(6); first+16 < id; first += 10 {
				if !started[first] {
					t.Fatalf("job %d has started, and job %d, which has mem=, has not", id, first)
				}
			}
		}
	}
	l.play(t, time.Hour)
}
