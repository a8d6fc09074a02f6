package sched

import (
	"fmt"
	"testing"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// connectAs connects a machine under a host's name.
func (s *stage) connectAs(name, machine string) []Command {
	slots := s.c.byName[name].spec.Slots.Fixed
	return s.connect(name, hosts.Hello{Machine: machine, Cores: slots + 1, Slots: slots, MemBytes: 16 << 30, GPUs: 2})
}

func hostAt(name string, slots int, address string) *hosts.Host {
	h := testHost(name, slots)
	h.Addresses = []string{address}
	return h
}

func setHosts(list ...*hosts.Host) SetInventory { return SetInventory{inventoryOf(list...)} }

// TestHostsAreAddedAndRemovedDuringARun checks that hosts can be added and removed while the run
// continues (B5).
func TestHostsAreAddedAndRemovedDuringARun(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(t *testing.T, s *stage)
	}{
		{"a new host connects and gets jobs", func(t *testing.T, s *stage) {
			o := s.step(setHosts(testHost("a", 1), testHost("b", 2)))
			want(t, "configured", o[0].(Configure).Host, "b")
			want(t, "connects", formatCommands[Connect](o), "{b}")
			want(t, "launched", launchedOn(s.connectAs("b", "B"), "b"), "2.1 3.1")
		}},
		{"a removed host finishes its jobs and leaves", func(t *testing.T, s *stage) {
			s.started("a", "1.1")
			o := s.step(setHosts(testHost("b", 1)))
			want(t, "leaves at once", formatCommands[Leave](o), "")
			want(t, "its limit", formatCommands[SetLimit](o), "{a 0}")
			o = s.ended("a", "1.1", succeeded)
			want(t, "launched there", launchedOn(o, "a"), "")
			want(t, "leaves", formatCommands[Leave](o), "{a}")
			want(t, "others", launchedOn(s.connectAs("b", "B"), "b"), "2.1 3.1")
		}},
		{"one that is added again before it left stays", func(t *testing.T, s *stage) {
			s.started("a", "1.1")
			s.step(setHosts())
			s.step(setHosts(testHost("a", 1)))
			o := s.ended("a", "1.1", succeeded)
			want(t, "leaves", formatCommands[Leave](o), "")
			want(t, "launched there", launchedOn(o, "a"), "2.1 3.1")
		}},
		{"slots apply at once", func(t *testing.T, s *stage) {
			o := s.step(setHosts(testHost("a", 3)))
			want(t, "limit", formatCommands[SetLimit](o), "{a 3}")
			want(t, "launched", launchedOn(o, "a"), "2.1 3.1")
			want(t, "disconnects", formatCommands[Disconnect](o), "")
		}},
		{"another address counts when nothing is open at the old one", func(t *testing.T, s *stage) {
			s.started("a", "1.1")
			o := s.step(setHosts(hostAt("a", 1, "elsewhere")))
			want(t, "disconnects at once", formatCommands[Disconnect](o), "")
			o = s.ended("a", "1.1", succeeded)
			want(t, "launched at the old address", launchedOn(o, "a"), "")
			want(t, "disconnects", formatCommands[Disconnect](o), "{a}")
			want(t, "connects", formatCommands[Connect](o), "{a}")
			want(t, "addresses", fmt.Sprint(s.c.byName["a"].spec.Addresses), "[elsewhere]")
			want(t, "launched there", launchedOn(s.connectAs("a", "A2"), "a"), "2.1 3.1")
		}},
		{"the same set changes nothing", func(t *testing.T, s *stage) {
			o := s.step(setHosts(testHost("a", 1)))
			want(t, "commands and records", len(o)+len(s.records), 0)
		}},
		{"a removed host that cannot be reached leaves when its jobs are given up", func(t *testing.T, s *stage) {
			s.started("a", "1.1")
			s.step(hostDown("a", hosts.Unreachable, "gone"))
			s.step(setHosts(testHost("b", 1)))
			s.connectAs("b", "B")
			o := s.wait(2*time.Minute, "b")
			want(t, "leaves", formatCommands[Leave](o), "{a}")
			want(t, "attempt 1.1", s.c.table.Job(1).Attempts[0].State, jobs.AttemptLost)
		}},
		{"jobs that only a removed host can run wait before they fail", func(t *testing.T, s *stage) {
			s.step(setHosts(testHost("b", 1)))
			s.connectAs("b", "B")
			s.submit(false, &jobs.Options{Slots: 1, Tags: []string{"gpu"}})
			n := jobs.ID(len(s.c.table.Jobs))
			want(t, "at once", s.c.table.Job(n).State.String(), "queued")
			s.wait(11*time.Minute, "b")
			want(t, "after 11 minutes", s.c.table.Job(n).State.String(), "failed")
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStage(t, Config{}, testHost("a", 1))
			s.connectAs("a", "A")
			s.submitPlain(5)
			c.do(t, s)
		})
	}
}

// TestMachineSettlesItsOwn checks that only the machine on which an attempt was launched can settle
// it. Reports of another machine under the same name prove nothing.
func TestMachineSettlesItsOwn(t *testing.T) {
	answers := func(a hosts.Answer) Event {
		return AttemptsProbed{"a", &hosts.Probed{Jobs: []hosts.ProbedJob{{Attempt: attemptIDs("1.1")[0], Answer: a,
			Why: "?"}}}}
	}
	for _, c := range []struct {
		name string
		ev   Event
	}{
		{"a tombstone", answers(hosts.NeverStarted)},
		{"a dead process", answers(hosts.Dead)},
		{"withdrawn", AttemptsWithdrawn{"a", &hosts.Withdrawn{Attempts: attemptIDs("1.1")}}},
		{"refused", HostRefused{"a", &hosts.Refused{Attempts: attemptIDs("1.1")}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStage(t, Config{}, testHost("a", 1))
			s.connectAs("a", "A")
			s.submitPlain(2)
			s.started("a", "1.1")
			s.step(hostDown("a", hosts.Broken, "gone"))
			o := s.connectAs("a", "B")
			want(t, "asked of the other machine", formatCommands[Probe](o), "")
			want(t, "launched", launchedOn(o, "a"), "2.1")
			s.step(c.ev)
			want(t, "attempt 1.1", s.c.table.Job(1).Attempts[0].State, jobs.AttemptRunning)
			// The machine returns and settles its attempts.
			s.step(hostDown("a", hosts.Broken, "gone"))
			o = s.connectAs("a", "A")
			want(t, "asked", formatCommands[Probe](o), "{a [1.1]}")
			s.ended("a", "1.1", succeeded)
			want(t, "job 1", s.c.table.Job(1).State.String(), "succeeded")
			want(t, "job 2", s.c.table.Job(2).State.String(), "running")
		})
	}
}

// TestMachineOfTheNextDispatcher checks that a later dispatcher knows from the journal which
// machine has an attempt. If that machine stays silent, the attempt is given up by the ordinary
// rule.
func TestMachineOfTheNextDispatcher(t *testing.T) {
	s := newStage(t, Config{}, testHost("a", 1))
	s.connectAs("a", "A")
	s.submitPlain(1)
	s.started("a", "1.1")
	s = restart(s, hostAt("a", 1, "elsewhere"))
	o := s.connectAs("a", "B")
	want(t, "asked", formatCommands[Probe](o), "")
	want(t, "launched at once", launchedOn(o, "a"), "")
	o = s.wait(3*time.Minute, "a")
	want(t, "launched when the first is given up", launchedOn(o, "a"), "1.2")
}

// TestReturningMachineIsAskedAboutItsJob checks a host whose name belonged to another machine in
// the meantime. When the first machine returns, it is asked about a job that was given up on it and
// now waits.
func TestReturningMachineIsAskedAboutItsJob(t *testing.T) {
	s := newStage(t, Config{}, testHost("a", 1), testHost("b", 1))
	s.connectAs("a", "A")
	s.connectAs("b", "other")
	s.submitPlain(2)
	s.started("b", "2.1")
	s.started("a", "1.1")
	s.step(hostDown("a", hosts.Broken, "gone"))
	s.wait(3*time.Minute, "b")
	s.connectAs("a", "B")
	s.wantState(1, jobs.Queued)
	s.step(hostDown("a", hosts.Broken, "gone"))
	want(t, "asked", formatCommands[Probe](s.connectAs("a", "A")), "{a [1.1]}")
	s.ended("a", "1.1", succeeded)
	s.wantState(1, jobs.Succeeded)
}
