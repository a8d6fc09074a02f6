package sched

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

var fastFail = jobs.Outcome{Exit: 1, Started: wallStart, Ended: wallStart + 1e7}

// TestBlackHole checks that a host on which jobs fail fast in a row, while jobs succeed elsewhere,
// is put on probation. Its failures are no longer charged, and it is tried with one job at a time
// until one succeeds (B2).
func TestBlackHole(t *testing.T) {
	s := newStage(t, Config{}, box("a", 8), box("b", 2))
	s.up("a", "b")
	s.plain(100)
	s.ended("a", "1.1", fastFail) // the streak begins
	for range 15 {                // the jobs on b succeed in the meantime
		s.ended("b", s.c.hosts[1].head.id.String(), okay)
	}
	var rest []Command
	n := 1
	for s.c.Hosts()[0].State != BackingOff && n < 8 {
		rest = s.ended("a", s.c.hosts[0].head.id.String(), fastFail)
		n++
	}
	if n != 3 {
		t.Errorf("rests after %d fast failures, want 3", n)
	}
	want(t, "limit", said[SetLimit](rest), "{a 0}")
	contains(t, "what waited comes back", said[Withdraw](rest), "{a [")
	victim := s.c.hosts[0].head.id
	s.started("a", victim.String())
	s.ended("a", victim.String(), fastFail)
	if j := s.job(victim.Job); j.Failures != 0 || j.State.Terminal() {
		t.Errorf("victim %s: %s, %d failures", victim, j.State, j.Failures)
	}
	var back []jobs.AttemptID
	for f := s.c.hosts[0].head; f != nil; f = f.next {
		back = append(back, f.id)
	}
	s.step(AttemptsWithdrawn{"a", &hosts.Withdrawn{Attempts: back}})
	s.wait(3*time.Second, "a", "b")
	if h := s.c.hosts[0]; h.occupied != 1 {
		t.Errorf("%d jobs on trial, want 1", h.occupied)
	}
	s.ended("a", s.c.hosts[0].head.id.String(), okay)
	if h := s.c.hosts[0]; h.occupied < 8 {
		t.Errorf("after a success it has %d jobs", h.occupied)
	}
}

// TestBadJobsAreNoBlackHole checks that no host is put on probation if jobs fail just as often
// elsewhere, randomly (D11's p = 0.5) or for a stretch of jobs.
func TestBadJobsAreNoBlackHole(t *testing.T) {
	rests := 0
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 5))
		s := newStage(t, Config{Tries: 1}, box("a", 1), box("b", 1))
		s.up("a", "b")
		s.plain(500)
		for s.c.table.Unfinished() > 0 {
			for _, h := range s.c.hosts {
				if h.head == nil {
					continue
				}
				o := okay
				stretch := h.head.id.Job > 200 && h.head.id.Job < 220
				if stretch || r.IntN(2) == 0 {
					o = fastFail
				}
				s.ended(h.spec.Name, h.head.id.String(), o)
				// The pause after failed first jobs does not count.
				if h.probation.paused && h.probation.times > 0 {
					rests++
				}
			}
			s.at += time.Second
			s.step(HostBeat{"a", &hosts.Beat{}})
			s.step(HostBeat{"b", &hosts.Beat{}})
		}
	}
	if rests > 2 {
		t.Errorf("healthy hosts rested %d times in 10,000 jobs", rests)
	}
}

// TestOwnFault checks that a job that fails on three hosts is itself at fault, which clears the
// hosts (B2).
func TestOwnFault(t *testing.T) {
	s := newStage(t, Config{Tries: 5}, box("a", 1), box("b", 1), box("c", 1))
	s.up("a", "b", "c")
	s.plain(1)
	for n := 1; n <= 3; n++ {
		a := s.job(1).Last()
		s.c.byName[a.Host].probation.streak = 5
		s.ended(a.Host, a.ID.String(), fastFail)
		s.wait(9*time.Second, "a", "b", "c")
	}
	for _, h := range s.c.hosts {
		if h.probation.streak != 0 || h.probation.paused {
			t.Errorf("%s is still suspected: %+v", h.spec.Name, h.probation)
		}
	}
	if s.job(1).Failures != 3 {
		t.Errorf("%d failures", s.job(1).Failures)
	}
}

// TestBrake checks that a host whose first jobs fail at once gets no more jobs until the core knows
// how jobs fare elsewhere (B2: after few losses).
func TestBrake(t *testing.T) {
	s := newStage(t, Config{}, box("a", 2), box("b", 1))
	s.up("a", "b")
	s.plain(50)
	s.started("b", s.c.hosts[1].head.id.String())
	failed := 0
	for s.c.hosts[0].head != nil && !s.c.hosts[0].probation.paused {
		s.ended("a", s.c.hosts[0].head.id.String(), fastFail)
		failed++
	}
	if failed != 3 || s.told("a pauses: its first 3 jobs failed at once") != 1 {
		t.Errorf("pauses after %d failures", failed)
	}
	for s.c.hosts[0].head != nil {
		s.step(AttemptsWithdrawn{"a", &hosts.Withdrawn{Attempts: []jobs.AttemptID{s.c.hosts[0].head.id}}})
	}
	if s.wait(2*time.Second, "a", "b"); s.c.hosts[0].head == nil {
		t.Error("it is not tried again")
	}
	// If jobs also fail on the other host, this host is not at fault.
	for range 3 {
		s.ended("b", s.c.hosts[1].head.id.String(), fastFail)
	}
	for range 3 {
		s.ended("a", s.c.hosts[0].head.id.String(), fastFail)
	}
	if s.c.hosts[0].probation.paused {
		t.Error("it rests though jobs fail everywhere")
	}
}

// TestDiskFull checks that a job that fails while the disk is full keeps its tries, and that its
// host pauses with a reason. This is limited to a number of times (promise 3).
func TestDiskFull(t *testing.T) {
	s := newStage(t, Config{Tries: 1}, box("a", 1))
	s.up("a")
	s.plain(1)
	full := jobs.Outcome{Exit: 1, DiskFull: true, Started: wallStart, Ended: wallStart + 5e9}
	for n := 1; n <= maxUnchargedPerTry; n++ {
		id := jobs.AttemptID{Job: 1, N: n}.String()
		s.started("a", id)
		s.ended("a", id, full)
		s.wantState(1, jobs.Queued)
		if s.job(1).Failures != 0 || !s.c.hosts[0].probation.paused {
			t.Errorf("attempt %s: %d failures, resting %v", id, s.job(1).Failures, s.c.hosts[0].probation.paused)
		}
		s.wait(10*time.Second, "a")
	}
	if s.told("because the disk was full") != maxUnchargedPerTry {
		t.Errorf("told:\n%s", events(s.journal))
	}
	s.ended("a", jobs.AttemptID{Job: 1, N: maxUnchargedPerTry + 1}.String(), full)
	s.wantState(1, jobs.Failed)
}

// TestWedge checks that a host whose file system hangs does not count as dead. It starts no jobs,
// one event says so, and it accepts jobs again when the file system answers.
func TestWedge(t *testing.T) {
	s := newStage(t, Config{}, box("a", 1), box("b", 1))
	s.up("a", "b")
	s.plain(6)
	s.started("a", "1.1")
	beat := func(delay time.Duration) []Command {
		s.at += HeartbeatInterval
		s.step(HostBeat{"b", &hosts.Beat{MemFree: -1, DiskFree: -1}})
		return s.step(HostBeat{"a", &hosts.Beat{MemFree: -1, DiskFree: -1, FSDelay: delay, Running: 1}})
	}
	beat(9 * time.Second)
	want(t, "in time", s.c.Hosts()[0].Reason, "")
	o := beat(11 * time.Second)
	want(t, "limit", said[SetLimit](o), "{a 0}")
	want(t, "reason", s.c.Hosts()[0].Reason, "starts nothing: the file system of its attempts has not answered for 11 s")
	for range 30 { // for longer than lost_after
		if o := beat(60 * time.Second); on(o, "a") != "" {
			t.Fatalf("launched: %v", o)
		}
	}
	s.wantState(1, jobs.Running)
	if n := s.told("a starts nothing"); n != 1 {
		t.Errorf("told %d times", n)
	}
	want(t, "again", said[SetLimit](beat(time.Millisecond)), "{a 1}")
}

// TestWedgeUnderTheLastJobs checks that a hung file system is also reported when no job is left to
// launch.
func TestWedgeUnderTheLastJobs(t *testing.T) {
	s := newStage(t, Config{}, box("a", 1))
	s.up("a")
	s.plain(1)
	s.started("a", "1.1")
	for _, delay := range []time.Duration{12 * time.Second, 15 * time.Second, 0} {
		s.at += reportInterval
		s.step(HostBeat{"a", &hosts.Beat{MemFree: -1, DiskFree: -1, FSDelay: delay, Running: 1}})
	}
	if s.told("a starts nothing: the file system of its attempts has not answered") != 1 || s.told("a starts jobs again") != 1 {
		t.Errorf("told:\n%s", events(s.journal))
	}
}

// TestVictimsAreForgiven checks that jobs that failed on a host before it was put on probation get
// their try back if they have not ended (B2).
func TestVictimsAreForgiven(t *testing.T) {
	s := newStage(t, Config{Tries: 2}, box("a", 8), box("b", 2))
	s.up("a", "b")
	s.plain(100)
	s.ended("a", "1.1", fastFail)
	for range 15 {
		s.ended("b", s.c.hosts[1].head.id.String(), okay)
	}
	if n := s.job(1).Failures; n != 1 {
		t.Fatalf("%d failures before it is known", n)
	}
	for n := 1; s.c.Hosts()[0].State != BackingOff && n < 8; n++ {
		s.ended("a", s.c.hosts[0].head.id.String(), fastFail)
	}
	for i := range s.c.table.Jobs {
		if j := &s.c.table.Jobs[i]; j.Failures != 0 && !j.State.Terminal() {
			t.Errorf("job %d: %d failures", i+1, j.Failures)
		}
	}
	if j := s.job(1); j.State != jobs.Succeeded || j.Last().Host != "b" {
		t.Errorf("job 1, which failed on a first, is %s on %s", j.State, j.Last().Host)
	}
	if !slices.ContainsFunc(s.journal, func(r jobs.Record) bool { return r.Kind == jobs.KindForgiven }) {
		t.Error("nothing was forgiven")
	}
	restart(s, box("a", 8), box("b", 2)) // the records can be replayed
}

// TestDecisionsAreTold checks that one readable event explains what happens to an attempt that
// comes back.
func TestDecisionsAreTold(t *testing.T) {
	s := lostStage(t, Config{})
	s.ended("b", "2.1", okay)
	s.started("b", "1.2")
	s.wait(time.Hour, "b", "c")
	s.up("a")
	for range 3 {
		s.probedAs("a", "1.1", hosts.IsRunning, nil)
	}
	if n := s.told("1.1 is still alive on a and is stopped: a newer attempt has run longer"); n != 1 {
		t.Errorf("stopped: told %d times", n)
	}
	s.ended("b", "1.2", okay)
	for range 3 {
		s.ended("a", "1.1", okay)
	}
	if n := s.told("1.1, given up as lost, has ended on a; it does not count: its job has succeeded already"); n != 1 {
		t.Errorf("ended: told %d times", n)
	}
}

// TestForgivenWhileItWaits checks that a waiting job that gets its try back also requests less
// memory again.
func TestForgivenWhileItWaits(t *testing.T) {
	s := newStage(t, Config{MemGrowth: 2}, box("a", 8), box("b", 2))
	s.up("a", "b")
	s.submit(true, slices.Repeat([]*jobs.Options{{MemBytes: 1 << 30}}, 100)...)
	s.step(SetPriority{Jobs: []jobs.ID{1}, Priority: 9}) // last in the queue
	s.ended("a", "1.1", fastFail)
	for range 15 {
		s.ended("b", s.c.hosts[1].head.id.String(), okay)
	}
	for n := 0; s.job(1).Failures > 0 && n < 8; n++ {
		s.ended("a", s.c.hosts[0].head.id.String(), fastFail)
	}
	if s.job(1).Failures > 0 || s.c.queue.states[0] != ready {
		t.Fatalf("job 1 has %d failures and is %d", s.job(1).Failures, s.c.queue.states[0])
	}
	for s.c.table.Unfinished() > 0 {
		s.wait(time.Second, "a", "b")
		for _, h := range s.c.hosts {
			for h.head != nil {
				s.ended(h.spec.Name, h.head.id.String(), okay)
			}
		}
	}
	if s.c.Defects > 0 {
		t.Errorf("%d defects", s.c.Defects)
	}
}
