package sched

import (
	"fmt"
	"testing"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// oneJobEach returns a stage whose hosts have one slot each: a runs job 1, b job 2, and so on.
func oneJobEach(t *testing.T, cfg Config, names ...string) *stage {
	var hs []*hosts.Host
	for _, n := range names {
		hs = append(hs, testHost(n, 1))
	}
	s := stageWithJobs(t, len(names), cfg, hs...)
	for i, n := range names {
		s.started(n, fmt.Sprintf("%d.1", i+1))
	}
	return s
}

// outageStage returns a stage in which four hosts, each with a running job, have been silent
// together for d.
func outageStage(t *testing.T, d time.Duration) *stage {
	s := oneJobEach(t, Config{GiveUpAfter: time.Hour}, "a", "b", "c", "d")
	s.wait(d)
	return s
}

// TestOutageEndsHostByHost checks an outage of all hosts, after which each host returns when its
// next dial is due. Hosts that are still away are not given up as soon as the first one is back. A
// host that stays away is given up in the end.
func TestOutageEndsHostByHost(t *testing.T) {
	for _, long := range []time.Duration{50 * time.Second, 5 * time.Minute, 14 * time.Minute} {
		s := outageStage(t, long)
		s.up("a")
		s.wait(20*time.Second, "a")
		s.up("b")
		s.wait(50*time.Second, "a", "b")
		s.up("c")
		s.wait(15*time.Second, "a", "b", "c")
		want(t, fmt.Sprint(long, ": given up while they came back"), s.numRecords(jobs.KindLost), 0)
		s.wait(10*time.Second, "a", "b", "c")
		want(t, fmt.Sprint(long, ": given up"), s.numRecords(jobs.KindLost), 1)
		want(t, "job 4", s.history(4), "queued: d lost")
	}
}

// TestOutageHasAnEnd checks that all hosts are given up after outage_after, also if one of them
// comes and goes all the time (K8).
func TestOutageHasAnEnd(t *testing.T) {
	s := outageStage(t, hosts.DefaultOutageAfter-time.Second)
	want(t, "given up too early", s.numRecords(jobs.KindLost), 0)
	s.wait(5 * time.Second)
	want(t, "given up", s.numRecords(jobs.KindLost), 4)

	s = outageStage(t, time.Minute)
	for range 20 {
		s.up("a")
		s.wait(5*time.Second, "a")
		s.step(hostDown("a", hosts.Unreachable, "no route"))
		s.wait(45 * time.Second)
	}
	want(t, "given up while one comes and goes", s.numRecords(jobs.KindLost), 3)
}

// TestNoHostIsGivenUpAfterAShortOutage checks that no host is given up either if half of them
// return before lost_after.
func TestNoHostIsGivenUpAfterAShortOutage(t *testing.T) {
	s := outageStage(t, 55*time.Second)
	s.up("a", "b")
	s.wait(time.Minute, "a", "b")
	want(t, "given up while they came back", s.numRecords(jobs.KindLost), 0)
}

// TestHostBackForAMomentIsPartOfTheOutage checks that a host that was back for only a moment counts
// as part of the outage.
func TestHostBackForAMomentIsPartOfTheOutage(t *testing.T) {
	s := outageStage(t, 5*time.Minute)
	s.up("a")
	s.wait(5*time.Second, "a")
	s.step(hostDown("a", hosts.Unreachable, "no route"))
	s.wait(9 * time.Minute)
	want(t, "given up", s.numRecords(jobs.KindLost), 0)
}

// TestNoHostIsGivenUpInAnOutageAtTheStart checks that the same rules apply to a dispatcher that
// starts during an outage.
func TestNoHostIsGivenUpInAnOutageAtTheStart(t *testing.T) {
	old := outageStage(t, 0)
	s := restart(old, testHost("a", 1), testHost("b", 1), testHost("c", 1), testHost("d", 1))
	s.wait(5 * time.Minute)
	s.up("a", "b")
	s.wait(time.Minute, "a", "b")
	want(t, "given up while they came back", s.numRecords(jobs.KindLost), 0)
	s.wait(time.Minute, "a", "b")
	want(t, "given up", s.numRecords(jobs.KindLost), 2)
}

// TestSuspensionOfTheDispatcherIsNoSilence checks that hosts are not charged for silence while the
// dispatcher was suspended, whichever event it processes first afterward. Their silence is counted
// again from there.
func TestSuspensionOfTheDispatcherIsNoSilence(t *testing.T) {
	for _, first := range []Event{Tick{},
		HostHeartbeat{Host: "a", Heartbeat: &hosts.Heartbeat{MemFree: -1, DiskFree: -1, Running: 1}}} {
		for _, gap := range []time.Duration{14 * time.Second, 70 * time.Second, 3 * time.Hour} {
			s := oneJobEach(t, Config{}, "a", "b", "c", "d")
			s.wait(10*time.Second, "a", "b", "c", "d")
			s.at += gap
			o := s.step(first)
			want(t, "cut off", formatCommands[Disconnect](o), "")
			s.wait(10*time.Second, "a", "b", "c")
			if n := s.numEvents("was suspended for"); n != 1 || s.numRecords(jobs.KindLost) != 0 || s.finish != nil {
				t.Errorf("after %v: told %d times, %d attempts given up, finish %+v", gap, n,
					s.numRecords(jobs.KindLost), s.finish)
			}
			want(t, "silent at last", formatCommands[Disconnect](s.wait(10*time.Second, "a", "b", "c")), "{d}")
			s.wait(time.Minute, "a", "b", "c")
			want(t, "attempts given up", s.numRecords(jobs.KindLost), 1)
		}
	}
}

// TestStallKeepsTheLease checks that a lease does not count as over because the dispatcher was
// suspended.
func TestStallKeepsTheLease(t *testing.T) {
	s := connectedStage(t, Config{}, testHost("a", 1), testHost("b", 1), testHost("c", 1))
	s.submitPlain(1) // sent to a, not known to have started
	s.step(hostDown("a", hosts.Unreachable, "gone"))
	s.wait(30*time.Second, "b", "c")
	s.at += time.Hour
	s.wait(25*time.Second, "b", "c")
	want(t, "given up after 55 s without a link, not counting the stall", s.numRecords(jobs.KindLost), 0)
	s.wait(10*time.Second, "b", "c")
	want(t, "then elsewhere", s.job(1).Last().Host, "b")

	s = stageWithJobs(t, 1, Config{Buffer: 5 * time.Minute}, testHost("a", 1), testHost("b", 1), testHost("c", 1))
	s.step(hostDown("a", hosts.Unreachable, "gone"))
	s.at += time.Hour
	s.wait(290*time.Second, "b", "c")
	want(t, "given up though the lease may last 5 min", s.numRecords(jobs.KindLost), 0)
	s.wait(15*time.Second, "b", "c")
	want(t, "then elsewhere", s.job(1).Last().Host, "b")
}

// TestSlowDispatcherNoticesADeadHost checks that a dispatcher whose every commit takes long still
// notices a dead host, and does not fill the journal with events about it.
func TestSlowDispatcherNoticesADeadHost(t *testing.T) {
	s := stageWithJobs(t, 3, Config{}, testHost("a", 1), testHost("b", 1), testHost("c", 1))
	s.started("a", "1.1")
	for range 30 {
		s.at += 10 * time.Second
		for _, n := range []string{"b", "c"} {
			s.step(HostHeartbeat{Host: n, Heartbeat: &hosts.Heartbeat{MemFree: -1, DiskFree: -1, Running: 1}})
		}
	}
	want(t, "attempt on the dead host", s.job(1).Attempts[0].State, jobs.AttemptLost)
	want(t, "given up", s.numRecords(jobs.KindLost), 1)
	wantBetween(t, "said in five minutes", s.numEvents("was suspended for"), 0, 5)
}

// TestStallIsNotNoHost checks that --give-up does not count the time during which the dispatcher
// was suspended.
func TestStallIsNotNoHost(t *testing.T) {
	s := newStage(t, Config{GiveUpAfter: 10 * time.Minute}, testHost("a", 1))
	s.submitPlain(1)
	s.wait(time.Minute)
	s.at += time.Hour
	s.step(Tick{})
	want(t, "finish after a stall", s.finishText(), "")
	s.wait(9 * time.Minute)
	want(t, "finish", s.finishText(), "no_hosts")
}

// TestNoStallBetweenTicks checks that no suspension is reported to a caller that follows Next.
func TestNoStallBetweenTicks(t *testing.T) {
	s := newStage(t, Config{}, testHost("a", 1))
	s.wait(5 * time.Minute)
	s.up("a")
	s.wait(5*time.Minute, "a")
	s.submitPlain(1)
	s.ended("a", "1.1", succeeded)
	s.wait(5*time.Minute, "a") // finished, but more jobs may come
	want(t, "times that it is told", s.numEvents("was suspended for"), 0)
	if at, ok := s.c.Next(); !ok || at-s.at > TickInterval {
		t.Errorf("Next is %v away", at-s.at)
	}
}

// waitWithSilentHelper lets d pass. Whenever a is to be connected, its helper sends a hello and
// nothing else.
func (s *stage) waitWithSilentHelper(d time.Duration, beating ...string) (all []Command) {
	for end := s.at + d; s.at < end; {
		o := s.wait(time.Second, beating...)
		all = append(all, o...)
		if formatCommands[Connect](o) != "" {
			all = append(all, s.step(HostUp{Host: "a", Hello: &hosts.Hello{Slots: 2, MemBytes: 1}})...)
		}
	}
	return all
}

// TestHelperWithoutHeartbeatIsRestarted checks that a helper that sends a hello but no heartbeat is
// restarted. If that continues, its host is declared lost like any silent host, with its buffered
// jobs. The host gets no jobs until it sends a heartbeat (promise 1, D6).
func TestHelperWithoutHeartbeatIsRestarted(t *testing.T) {
	s := stageWithJobs(t, 4, Config{}, testHost("a", 2), testHost("b", 1), testHost("c", 1))
	s.started("a", "1.1")
	want(t, "handed over, not known to have started", s.job(2).Last().Host, "a")
	s.waitWithSilentHelper(70*time.Second, "b", "c")
	if s.numRecords(jobs.KindLost) != 0 || !s.c.Linked("a") == (s.c.hosts[0].silentLinks < maxSilentLinks) &&
		s.c.hosts[0].linked {
		t.Errorf("%d given up, %d silent links, linked %v", s.numRecords(jobs.KindLost), s.c.hosts[0].silentLinks,
			s.c.Linked("a"))
	}
	s.waitWithSilentHelper(3*time.Minute, "b", "c")
	want(t, "given up", s.numRecords(jobs.KindLost), 2)
	want(t, "linked, so that its hellos extend leases", s.c.Linked("a"), false)
	wantBetween(t, "said", s.numEvents("no heartbeat for 15 s"), 0, 5)
	before := len(s.c.table.Job(1).Attempts)
	s.step(HostUp{Host: "a", Hello: &hosts.Hello{Slots: 2, MemBytes: 1}})
	want(t, "to a silent host", launchedOn(s.commands, "a"), "")
	want(t, "attempts", len(s.job(1).Attempts), before)
	o := s.step(HostHeartbeat{Host: "a", Heartbeat: &hosts.Heartbeat{MemFree: -1, DiskFree: -1}})
	want(t, "leave to start", formatCommands[SetLimit](o), "{a 2}")
	want(t, "state after a heartbeat", s.c.Hosts()[0].State, jobs.HostUp)
	want(t, "linked", s.c.Linked("a"), true)
}

// TestRunEndsIfItsOnlyHostIsSilent checks that a run ends for lack of hosts if its only host never
// sends heartbeats.
func TestRunEndsIfItsOnlyHostIsSilent(t *testing.T) {
	s := newStage(t, Config{}, testHost("a", 1))
	s.submitPlain(1)
	s.step(HostUp{Host: "a", Hello: &hosts.Hello{Slots: 1, MemBytes: 1}})
	s.waitWithSilentHelper(20 * time.Minute)
	want(t, "finish", s.finishText(), "no_hosts")
}

// TestOutageWithSlowHeartbeats checks that a host with a longer heartbeat interval is not given up
// early in an outage because another one was last heard a few seconds later than it.
func TestOutageWithSlowHeartbeats(t *testing.T) {
	slow, fast := testHost("a", 1), testHost("b", 1)
	slow.Heartbeat, slow.SuspectAfter = 20*time.Second, 40*time.Second
	s := stageWithJobs(t, 2, Config{GiveUpAfter: time.Hour}, slow, fast)
	s.started("a", "1.1")
	s.started("b", "2.1")
	s.wait(19*time.Second, "b") // then the network fails
	s.wait(10 * time.Minute)
	want(t, "given up", s.numRecords(jobs.KindLost), 0)
}
