package sched

import (
	"fmt"
	"testing"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// oneEach returns a stage whose hosts have one slot each: a runs job 1, b job 2, and so on.
func oneEach(t *testing.T, cfg Config, names ...string) *stage {
	var hs []*hosts.Host
	for _, n := range names {
		hs = append(hs, box(n, 1))
	}
	s := withJobs(t, len(names), cfg, hs...)
	for i, n := range names {
		s.started(n, fmt.Sprintf("%d.1", i+1))
	}
	return s
}

// outageStage returns a stage in which four hosts, each with a running job, have been silent
// together for d.
func outageStage(t *testing.T, d time.Duration) *stage {
	s := oneEach(t, Config{GiveUpAfter: time.Hour}, "a", "b", "c", "d")
	s.wait(d)
	return s
}

// TestOutageEndsHostByHost checks an outage of all hosts, after which each host returns when its
// next dial is due. Hosts that are still away are not given up as soon as half of the hosts are
// back. A host that stays away is given up in the end.
func TestOutageEndsHostByHost(t *testing.T) {
	for _, long := range []time.Duration{50 * time.Second, 5 * time.Minute, 55 * time.Minute} {
		s := outageStage(t, long)
		s.up("a")
		s.wait(20*time.Second, "a")
		s.up("b")
		s.wait(50*time.Second, "a", "b")
		s.up("c")
		s.wait(85*time.Second, "a", "b", "c")
		want(t, fmt.Sprint(long, ": given up while they came back"), s.count(jobs.KindLost), 0)
		s.wait(10*time.Second, "a", "b", "c")
		want(t, fmt.Sprint(long, ": given up"), s.count(jobs.KindLost), 1)
		want(t, "job 4", s.history(4), "queued: d lost")
	}
}

// TestOutageShorterThanLost checks that no host is given up either if half of them return before
// lost_after.
func TestOutageShorterThanLost(t *testing.T) {
	s := outageStage(t, 55*time.Second)
	s.up("a", "b")
	s.wait(time.Minute, "a", "b")
	want(t, "given up while they came back", s.count(jobs.KindLost), 0)
}

// TestOutageReturns checks that a host that was back for only a moment counts as part of the
// outage.
func TestOutageReturns(t *testing.T) {
	s := outageStage(t, 5*time.Minute)
	s.up("a")
	s.wait(5*time.Second, "a")
	s.step(down("a", hosts.Unreachable, "no route"))
	s.wait(10 * time.Minute)
	want(t, "given up", s.count(jobs.KindLost), 0)
}

// TestOutageAtStart checks that the same rules apply to a dispatcher that starts during an outage.
func TestOutageAtStart(t *testing.T) {
	old := outageStage(t, 0)
	s := restart(old, box("a", 1), box("b", 1), box("c", 1), box("d", 1))
	s.wait(5 * time.Minute)
	s.up("a", "b")
	s.wait(time.Minute, "a", "b")
	want(t, "given up while they came back", s.count(jobs.KindLost), 0)
	s.wait(time.Minute, "a", "b")
	want(t, "given up", s.count(jobs.KindLost), 2)
}

// TestOneDiesAfterAnOutage checks that a host that goes silent later is given up even if an outage
// of other hosts continues.
func TestOneDiesAfterAnOutage(t *testing.T) {
	s := oneEach(t, Config{GiveUpAfter: time.Hour}, "a", "b", "c", "d", "e")
	s.wait(5*time.Minute, "d", "e")
	want(t, "given up in the outage", s.count(jobs.KindLost), 0)
	s.wait(2*time.Minute, "e")
	want(t, "given up", s.count(jobs.KindLost), 1)
	want(t, "job 4", s.history(4), "queued: d lost")
}

// TestStall checks that hosts are not charged for silence while the dispatcher was suspended,
// whichever event it processes first afterward. Their silence is counted again from there.
func TestStall(t *testing.T) {
	for _, first := range []Event{Tick{}, HostHeartbeat{"a", &hosts.Heartbeat{MemFree: -1, DiskFree: -1, Running: 1}}} {
		for _, gap := range []time.Duration{14 * time.Second, 70 * time.Second, 3 * time.Hour} {
			s := oneEach(t, Config{}, "a", "b", "c", "d")
			s.wait(10*time.Second, "a", "b", "c", "d")
			s.at += gap
			o := s.step(first)
			want(t, "cut off", said[Disconnect](o), "")
			s.wait(10*time.Second, "a", "b", "c")
			if n := s.told("was suspended for"); n != 1 || s.count(jobs.KindLost) != 0 || s.finish != nil {
				t.Errorf("after %v: told %d times, %d attempts given up, finish %+v", gap, n, s.count(jobs.KindLost), s.finish)
			}
			want(t, "silent at last", said[Disconnect](s.wait(10*time.Second, "a", "b", "c")), "{d}")
			s.wait(time.Minute, "a", "b", "c")
			want(t, "attempts given up", s.count(jobs.KindLost), 1)
		}
	}
}

// TestStallKeepsTheLease checks that a lease does not count as over because the dispatcher was
// suspended.
func TestStallKeepsTheLease(t *testing.T) {
	s := connected(t, Config{}, box("a", 1), box("b", 1), box("c", 1))
	s.plain(1) // sent to a, not known to have started
	s.step(down("a", hosts.Unreachable, "gone"))
	s.wait(30*time.Second, "b", "c")
	s.at += time.Hour
	s.wait(25*time.Second, "b", "c")
	want(t, "given up after 55 s without a link, not counting the stall", s.count(jobs.KindLost), 0)
	s.wait(10*time.Second, "b", "c")
	want(t, "then elsewhere", s.job(1).Last().Host, "b")

	s = withJobs(t, 1, Config{Buffer: 5 * time.Minute}, box("a", 1), box("b", 1), box("c", 1))
	s.step(down("a", hosts.Unreachable, "gone"))
	s.at += time.Hour
	s.wait(290*time.Second, "b", "c")
	want(t, "given up though the lease may last 5 min", s.count(jobs.KindLost), 0)
	s.wait(15*time.Second, "b", "c")
	want(t, "then elsewhere", s.job(1).Last().Host, "b")
}

// TestStallsAllTheTime checks that a dispatcher whose every commit takes long still notices a dead
// host, and does not fill the journal with events about it.
func TestStallsAllTheTime(t *testing.T) {
	s := withJobs(t, 3, Config{}, box("a", 1), box("b", 1), box("c", 1))
	s.started("a", "1.1")
	for range 30 {
		s.at += 10 * time.Second
		for _, n := range []string{"b", "c"} {
			s.step(HostHeartbeat{n, &hosts.Heartbeat{MemFree: -1, DiskFree: -1, Running: 1}})
		}
	}
	want(t, "attempt on the dead host", s.job(1).Attempts[0].State, jobs.AttemptLost)
	want(t, "given up", s.count(jobs.KindLost), 1)
	between(t, "said in five minutes", s.told("was suspended for"), 0, 5)
}

// TestStallIsNotNoHost checks that --give-up does not count the time during which the dispatcher
// was suspended.
func TestStallIsNotNoHost(t *testing.T) {
	s := newStage(t, Config{GiveUpAfter: 10 * time.Minute}, box("a", 1))
	s.plain(1)
	s.wait(time.Minute)
	s.at += time.Hour
	s.step(Tick{})
	want(t, "finish after a stall", s.ending(), "")
	s.wait(9 * time.Minute)
	want(t, "finish", s.ending(), "no_hosts")
}

// TestNoStallBetweenTicks checks that no suspension is reported to a caller that follows Next.
func TestNoStallBetweenTicks(t *testing.T) {
	s := newStage(t, Config{}, box("a", 1))
	s.wait(5 * time.Minute)
	s.up("a")
	s.wait(5*time.Minute, "a")
	s.plain(1)
	s.ended("a", "1.1", okay)
	s.wait(5*time.Minute, "a") // finished, but more jobs may come
	want(t, "times that it is told", s.told("was suspended for"), 0)
	if at, ok := s.c.Next(); !ok || at-s.at > TickInterval {
		t.Errorf("Next is %v away", at-s.at)
	}
}

// hello lets d pass. Whenever a is to be connected, its helper sends a hello and nothing else.
func (s *stage) hello(d time.Duration, beating ...string) (all []Command) {
	for end := s.at + d; s.at < end; {
		o := s.wait(time.Second, beating...)
		all = append(all, o...)
		if said[Connect](o) != "" {
			all = append(all, s.step(HostUp{Host: "a", Hello: &hosts.Hello{Slots: 2, MemBytes: 1}})...)
		}
	}
	return all
}

// TestSilentHelper checks that a helper that sends a hello but no heartbeat is restarted. If that
// continues, its host is declared lost like any silent host, with its buffered jobs. The host gets
// no jobs until it sends a heartbeat (promise 1, D6).
func TestSilentHelper(t *testing.T) {
	s := withJobs(t, 4, Config{}, box("a", 2), box("b", 1), box("c", 1))
	s.started("a", "1.1")
	want(t, "handed over, not known to have started", s.job(2).Last().Host, "a")
	s.hello(70*time.Second, "b", "c")
	if s.count(jobs.KindLost) != 0 || !s.c.Linked("a") == (s.c.hosts[0].silentLinks < maxSilentLinks) && s.c.hosts[0].linked {
		t.Errorf("%d given up, %d silent links, linked %v", s.count(jobs.KindLost), s.c.hosts[0].silentLinks, s.c.Linked("a"))
	}
	s.hello(3*time.Minute, "b", "c")
	want(t, "given up", s.count(jobs.KindLost), 2)
	want(t, "linked, so that its hellos extend leases", s.c.Linked("a"), false)
	between(t, "said", s.told("no heartbeat for 15 s"), 0, 5)
	before := len(s.c.table.Job(1).Attempts)
	s.step(HostUp{Host: "a", Hello: &hosts.Hello{Slots: 2, MemBytes: 1}})
	want(t, "to a silent host", on(s.commands, "a"), "")
	want(t, "attempts", len(s.job(1).Attempts), before)
	o := s.step(HostHeartbeat{"a", &hosts.Heartbeat{MemFree: -1, DiskFree: -1}})
	want(t, "leave to start", said[SetLimit](o), "{a 2}")
	want(t, "state after a heartbeat", s.c.Hosts()[0].State, Up)
	want(t, "linked", s.c.Linked("a"), true)
}

// TestSilentAlone checks that a run ends for lack of hosts if its only host never sends heartbeats.
func TestSilentAlone(t *testing.T) {
	s := newStage(t, Config{}, box("a", 1))
	s.plain(1)
	s.step(HostUp{Host: "a", Hello: &hosts.Hello{Slots: 1, MemBytes: 1}})
	s.hello(20 * time.Minute)
	want(t, "finish", s.ending(), "no_hosts")
	s.wantState(1, jobs.Running)
}
