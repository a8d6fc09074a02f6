package sched

import (
	"slices"
	"testing"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// TestWedge: a host whose file system hangs is not dead: it starts nothing, says so on
// one line, and takes jobs again when it answers (issue 3.2, promise 5).
func TestWedge(t *testing.T) {
	s := newStage(t, Config{}, box("a", 1), box("b", 1))
	s.up("a", "b")
	s.plain(6)
	s.started("a", "1.1")
	beat := func(delay time.Duration) []Order {
		s.at += BeatEvery
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

// TestWedgeUnderTheLastJobs: it is told also when nothing is left to launch.
func TestWedgeUnderTheLastJobs(t *testing.T) {
	s := newStage(t, Config{}, box("a", 1))
	s.up("a")
	s.plain(1)
	s.started("a", "1.1")
	for _, delay := range []time.Duration{12 * time.Second, 15 * time.Second, 0} {
		s.at += holdEvery
		s.step(HostBeat{"a", &hosts.Beat{MemFree: -1, DiskFree: -1, FSDelay: delay, Running: 1}})
	}
	if s.told("a starts nothing: the file system of its attempts has not answered") != 1 || s.told("a starts jobs again") != 1 {
		t.Errorf("told:\n%s", events(s.journal))
	}
}

// TestVictimsAreForgiven: those that failed on a black hole before it was known to
// be one get their try back, if they are not over (B2).
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
	restart(s, box("a", 8), box("b", 2)) // the records fold
}

// TestDecisionsAreTold: what becomes of an attempt that comes back is an event that
// a person can read, once (issue 3.2).
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

// TestForgivenWhileItWaits: a job that gets its try back asks for less memory again, also
// while it waits.
func TestForgivenWhileItWaits(t *testing.T) {
	s := newStage(t, Config{MemGrowth: 2}, box("a", 8), box("b", 2))
	s.up("a", "b")
	s.submit(true, slices.Repeat([]*jobs.Options{{MemBytes: 1 << 30}}, 100)...)
	s.step(SetPriority{Jobs: []jobs.ID{1}, Priority: 9}) // the last in the line
	s.ended("a", "1.1", fastFail)
	for range 15 {
		s.ended("b", s.c.hosts[1].head.id.String(), okay)
	}
	for n := 0; s.job(1).Failures > 0 && n < 8; n++ {
		s.ended("a", s.c.hosts[0].head.id.String(), fastFail)
	}
	if s.job(1).Failures > 0 || s.c.queue.spots[0] != ready {
		t.Fatalf("job 1 has %d failures and is %d", s.job(1).Failures, s.c.queue.spots[0])
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
