package sched

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

func hostDown(name string, class hosts.Class, text string) HostDown {
	return HostDown{name, &hosts.Error{Host: name, Class: class, Err: errors.New(text)}}
}

// TestSilentHostGetsNoJobs checks that a host without a heartbeat for 15 s gets no more jobs and is
// reconnected (D6).
func TestSilentHostGetsNoJobs(t *testing.T) {
	s := connectedStage(t, Config{}, testHost("a", 1), testHost("b", 1))
	o := s.wait(14*time.Second, "b")
	want(t, "too early", formatCommands[Disconnect](o), "")
	o = s.wait(2*time.Second, "b")
	want(t, "cut", formatCommands[Disconnect](o), "{a}")
	want(t, "again", formatCommands[Connect](o), "{a}")
	want(t, "host", s.c.Hosts()[0].State, jobs.HostSuspect)
	s.submitPlain(2)
	want(t, "nothing for a", launchedOn(s.commands, "a"), "")
	want(t, "one for b", launchedOn(s.commands, "b"), "1.1")
}

// TestSilentHostIsGivenUp checks that a host that is silent for 60 s is given up, and that its jobs
// are requeued first and are not charged (D6, E6). An attempt that had not started waits for the
// end of its lease.
func TestSilentHostIsGivenUp(t *testing.T) {
	s := connectedStage(t, Config{}, testHost("a", 1), testHost("b", 1), testHost("c", 1))
	s.submit(false, jobs.NoOptions, jobs.NoOptions, jobs.NoOptions)
	s.submit(true, &jobs.Options{Priority: -5})
	s.started("b", "2.1")
	s.started("c", "3.1")
	s.started("a", "1.1")
	s.step(hostDown("a", hosts.Unreachable, "connection reset"))
	s.wait(59*time.Second, "b", "c")
	s.wantState(1, jobs.Running)
	s.wait(2*time.Second, "b", "c")
	want(t, "job 1", s.history(1), "queued: a lost")
	wantContains(t, "reason", s.job(1).Reason, "its host a is lost: no heartbeat for 60 s (connection reset)")
	wantContains(t, "told", events(s.journal), "a is lost: no heartbeat for 60 s (connection reset)")
	want(t, "host", s.c.Hosts()[0].State, jobs.HostLost)
	want(t, "before all others", launchedOn(s.ended("b", "2.1", succeeded), "b"), "1.2")
}

// TestLostWaitsForTheLease checks that an attempt that may not have started is given up only when
// its lease is over.
func TestLostWaitsForTheLease(t *testing.T) {
	s := connectedStage(t, Config{}, testHost("a", 1), testHost("b", 1), testHost("c", 1))
	s.submitPlain(1) // sent to a, not known to have started
	s.wait(16*time.Second, "b", "c")
	s.wait(46*time.Second, "b", "c")
	// Silent for 60 s, disconnected for 47.
	s.wantState(1, jobs.Running)
	// Disconnected for 62 s: the lease is over.
	want(t, "b", launchedOn(s.wait(15*time.Second, "b", "c"), "b"), "1.2")
}

// TestGivenUpDoesNotStartLate checks that an attempt that was given up before it started is
// withdrawn before its host may start anything again.
func TestGivenUpDoesNotStartLate(t *testing.T) {
	s := stageWithJobs(t, 1, Config{}, testHost("a", 1), testHost("b", 1), testHost("c", 1))
	s.wait(2*time.Minute, "b", "c")
	s.wantState(1, jobs.Running)
	s.step(hostDown("a", hosts.Unreachable, "gone"))
	s.step(HostUp{Host: "a", Hello: &hosts.Hello{Slots: 1, MemBytes: 1}})
	var kinds []string
	for _, o := range s.commands {
		kinds = append(kinds, fmt.Sprintf("%T%v", o, o))
	}
	want(t, "commands", strings.Join(kinds, " "), "sched.Probe{a [1.1]} sched.Withdraw{a [1.1]} sched.SetLimit{a 1}")
	s.step(AttemptsWithdrawn{"a", &hosts.Withdrawn{Attempts: attemptIDs("1.1")}})
	want(t, "still missed", len(s.c.hosts[0].orphans)+len(s.c.orphaned), 0)
	s.wantState(1, jobs.Running)
}

// TestJobCanWaitForItsHost checks that a job can request to wait for its host, and that a cancel
// ends the wait.
func TestJobCanWaitForItsHost(t *testing.T) {
	s := connectedStage(t, Config{}, testHost("a", 2), testHost("b", 1), testHost("c", 1))
	s.submit(true, &jobs.Options{OnLost: jobs.OnLostWait}, jobs.NoOptions)
	s.started("a", "1.1 2.1")
	s.step(hostDown("a", hosts.Unreachable, "gone"))
	s.wait(5*time.Minute, "b", "c")
	s.wantState(1, jobs.Running)
	s.wantState(2, jobs.Running)
	want(t, "2 runs elsewhere", s.job(2).Last().Host, "b")
	wantContains(t, "why", s.c.Why(s.now(), 1), "cannot be reached")
	s.step(Cancel{Jobs: []jobs.ID{1}})
	s.wantState(1, jobs.Canceled)
}

// TestSilentHostsAreGivenUpIfOneAnswers checks that silent hosts are given up after lost_after while
// a host answers that the same failure of the network would have cut off, however many are silent
// (D6).
func TestSilentHostsAreGivenUpIfOneAnswers(t *testing.T) {
	s := oneJobEach(t, Config{}, "a", "b", "c", "d")
	for _, n := range []string{"a", "b", "c"} {
		s.step(hostDown(n, hosts.Unreachable, "no route"))
	}
	s.wait(59*time.Second, "d")
	want(t, "given up too early", s.numRecords(jobs.KindLost), 0)
	s.wait(2*time.Second, "d")
	want(t, "given up", s.numRecords(jobs.KindLost), 3)
}

// TestSingleRemoteHostIsGivenUp checks that the jobs of the only remote host wait for it until
// outage_after, even beside a local host, which is no evidence about the network. Then they are
// queued again (D6, K8).
func TestSingleRemoteHostIsGivenUp(t *testing.T) {
	for _, withLocal := range []bool{false, true} {
		for _, after := range []time.Duration{0, 5 * time.Minute, time.Second} {
			a, here := testHost("a", 1), testHost("here", 1)
			a.OutageAfter, a.Tags, here.Link = after, []string{"x"}, "local"
			hs := []*hosts.Host{a}
			if withLocal {
				hs = append(hs, here)
			}
			s := connectedStage(t, Config{GiveUpAfter: time.Hour}, hs...)
			s.submit(false, &jobs.Options{Tags: []string{"x"}})
			s.started("a", "1.1")
			s.step(hostDown("a", hosts.Unreachable, "no route"))
			wait := max(cmp.Or(after, hosts.DefaultOutageAfter), hosts.DefaultLostAfter)
			s.wait(wait-time.Second, "here")
			s.wantState(1, jobs.Running)
			s.wait(2*time.Second+inspectAnswerTimeout, "here")
			want(t, fmt.Sprintf("attempt after %s, local host %v", wait, withLocal),
				s.job(1).Attempts[0].State, jobs.AttemptLost)
		}
	}
}

// TestLocalHostIsGivenUp checks that a silent local host is given up after lost_after: no failure of
// the network can be the cause.
func TestLocalHostIsGivenUp(t *testing.T) {
	here := testHost("here", 1)
	here.Link = "local"
	s := connectedStage(t, Config{GiveUpAfter: time.Hour}, here)
	s.submit(false, jobs.NoOptions)
	s.started("here", "1.1")
	s.step(hostDown("here", hosts.Broken, "killed"))
	s.wait(61*time.Second + inspectAnswerTimeout)
	s.wantState(1, jobs.Queued)
}

// TestHostsBehindOneGatewayWaitTogether checks that hosts behind one gateway, or in one network, are
// waited for until outage_after if none of them answers, and given up after lost_after if one does.
// Other hosts say nothing about that gateway. A host that is alone there is given up like any other
// (D6).
func TestHostsBehindOneGatewayWaitTogether(t *testing.T) {
	gate := func(name, jump string) *hosts.Host {
		h := testHost(name, 1)
		h.Jump = []string{jump}
		return h
	}
	at := func(name, address string) *hosts.Host {
		h := testHost(name, 1)
		h.Addresses = []string{address}
		return h
	}
	for _, tt := range []struct {
		name  string
		hosts []*hosts.Host // the first two go silent
		waits bool
	}{
		{"one gateway", []*hosts.Host{gate("a", "g"), gate("b", "g"), testHost("c", 1)}, true},
		{"one gateway, and one of its hosts answers", []*hosts.Host{gate("a", "g"), gate("b", "g"), gate("c", "g")},
			false},
		{"two gateways", []*hosts.Host{gate("a", "g1"), gate("b", "g2"), testHost("c", 1)}, false},
		{"one network", []*hosts.Host{at("a", "10.0.7.1"), at("b", "10.0.7.9"), at("c", "10.0.8.1")}, true},
		{"one network of IPv6", []*hosts.Host{at("a", "fd00:1::1"), at("b", "fd00:1::2"), at("c", "fd00:1:0:1::1")},
			true},
		{"one network, and one of its hosts answers", []*hosts.Host{at("a", "10.0.7.1"), at("b", "10.0.7.9"),
			at("c", "10.0.7.3")}, false},
		{"two networks", []*hosts.Host{at("a", "10.0.7.1"), at("b", "10.0.9.1"), at("c", "10.0.8.1")}, false},
		{"a local host", []*hosts.Host{at("a", "10.0.7.1"), at("b", "10.0.9.1"),
			{Name: "c", Slots: hosts.SlotRule{Fixed: 1}, Link: "local"}}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := stageWithJobs(t, 3, Config{GiveUpAfter: time.Hour}, tt.hosts...)
			s.started("a", "1.1")
			s.started("b", "2.1")
			s.started("c", "3.1")
			s.wait(75*time.Second, "c")
			lost := 2
			if tt.waits {
				lost = 0
			}
			want(t, "given up after lost_after", s.numRecords(jobs.KindLost), lost)
			s.wait(15*time.Minute, "c")
			want(t, "given up after outage_after", s.numRecords(jobs.KindLost), 2)
		})
	}
}

// TestOutageEndsForAGatewayAlone checks that the first host behind a gateway that is back gives the
// others behind it time to follow, although hosts elsewhere answered all the time.
func TestOutageEndsForAGatewayAlone(t *testing.T) {
	var hs []*hosts.Host
	for _, name := range []string{"a", "b", "c"} {
		h := testHost(name, 1)
		h.Jump = []string{"g"}
		hs = append(hs, h)
	}
	s := stageWithJobs(t, 4, Config{}, append(hs, testHost("d", 1))...)
	for i, name := range []string{"a", "b", "c", "d"} {
		s.started(name, fmt.Sprintf("%d.1", i+1))
	}
	s.wait(5*time.Minute, "d")
	s.up("a")
	s.wait(85*time.Second, "a", "d")
	want(t, "given up while they may follow", s.numRecords(jobs.KindLost), 0)
	s.wait(10*time.Second, "a", "d")
	want(t, "given up", s.numRecords(jobs.KindLost), 2)
}

// TestJobsOnALostHostWaitIfTheyMust checks that on_lost=wait keeps a job waiting for its host without
// limit, also after outage_after.
func TestJobsOnALostHostWaitIfTheyMust(t *testing.T) {
	s := connectedStage(t, Config{OnLost: jobs.OnLostWait, GiveUpAfter: 100 * time.Hour}, testHost("a", 1))
	s.submitPlain(1)
	s.started("a", "1.1")
	s.step(hostDown("a", hosts.Unreachable, "no route"))
	s.wait(3 * time.Hour)
	s.wantState(1, jobs.Running)
}

// lostStage returns a stage in which job 1 was lost on a, while b and c are up.
func lostStage(t *testing.T, cfg Config) *stage {
	s := connectedStage(t, cfg, testHost("a", 1), testHost("b", 1), testHost("c", 1))
	s.submit(true, jobs.NoOptions, jobs.NoOptions, jobs.NoOptions)
	s.started("a", "1.1")
	s.started("b", "2.1")
	s.started("c", "3.1")
	s.step(hostDown("a", hosts.Unreachable, "gone"))
	s.wait(61*time.Second, "b", "c")
	s.wantState(1, jobs.Queued)
	return s
}

// replacedStage returns a stage in which job 1 was lost on a and runs again on b.
func replacedStage(t *testing.T) *stage {
	s := lostStage(t, Config{})
	s.ended("b", "2.1", succeeded)
	s.started("b", "1.2")
	return s
}

// TestResultOfALostAttemptCounts checks that the result of a lost attempt counts if none was
// accepted yet. The attempt that replaced it is killed and changes nothing (promise 2).
func TestResultOfALostAttemptCounts(t *testing.T) {
	s := lostStage(t, Config{})
	want(t, "asked on its return", formatCommands[Probe](s.up("a")), "{a [1.1]}")
	want(t, "not where it may run", launchedOn(s.commands, "a"), "")
	s.probedAs("a", "1.1", hosts.HasExited, &succeeded)
	s.wantState(1, jobs.Succeeded)

	s = replacedStage(t)
	s.up("a")
	o := s.probedAs("a", "1.1", hosts.HasExited, &succeeded)
	s.wantState(1, jobs.Succeeded)
	wantContains(t, "the other is ended", formatCommands[Kill](o), "{b [1.2]")
	s.ended("b", "1.2", jobs.Outcome{Stopped: true})
	want(t, "job 1", s.history(1), "succeeded: a exited, b superseded")
	want(t, "results", s.c.table.Seq, 2)

	s = lostStage(t, Config{})
	s.up("a")
	s.probedAs("a", "1.1", hosts.HasExited, &exit1)
	want(t, "a late failure", s.history(1), "queued, 1 failure: a exited")
}

// TestOfTwoRunningAttemptsTheYoungerIsKilled checks that, when a lost attempt turns out to be
// running, the attempt that has run for less time is killed.
func TestOfTwoRunningAttemptsTheYoungerIsKilled(t *testing.T) {
	s := lostStage(t, Config{})
	s.up("a")
	s.probedAs("a", "1.1", hosts.IsRunning, nil)
	want(t, "job 1", s.history(1), "running: a running")
	s.ended("a", "1.1", succeeded)
	s.wantState(1, jobs.Succeeded)

	s = replacedStage(t)
	s.wait(time.Hour, "b", "c")
	s.up("a")
	o := s.step(AttemptsProbed{"a", &hosts.Probed{Jobs: []hosts.ProbedJob{{Attempt: attemptIDs("1.1")[0],
		Answer: hosts.IsRunning, Started: wallStart + 1}}}})
	wantContains(t, "the younger is ended", formatCommands[Kill](o), "{b [1.2]")
	s.ended("b", "1.2", jobs.Outcome{Stopped: true})
	s.wantState(1, jobs.Running)

	s = replacedStage(t)
	s.wait(time.Hour, "b", "c")
	s.up("a")
	o = s.probedAs("a", "1.1", hosts.IsRunning, nil) // started only now
	wantContains(t, "the younger is ended", formatCommands[Kill](o), "{a [1.1]")
	s.ended("a", "1.1", jobs.Outcome{Stopped: true})
	s.wantState(1, jobs.Running)
	want(t, "on", s.job(1).Last().Host, "b")
}

// TestSessionsThatEndTheirProcesses checks that the reasons of jobs that are lost with the connection
// name what prevents it, if the host is known to end the processes of a session.
func TestSessionsThatEndTheirProcesses(t *testing.T) {
	const advice = "`loginctl enable-linger` there prevents it"
	hello := func(ends bool) hosts.Hello { return hosts.Hello{Cores: 2, Slots: 1, EndsSessions: ends} }
	for _, ends := range []bool{true, false} {
		s := newStage(t, Config{}, testHost("a", 1))
		s.connect("a", hello(ends))
		s.submitPlain(1)
		s.started("a", "1.1")
		s.step(hostDown("a", hosts.Unreachable, "gone"))
		want(t, "why it is not known what the job does", strings.Contains(s.c.Why(s.now(), 1), advice), ends)
		s.connect("a", hello(ends))
		s.probedAs("a", "1.1", hosts.Dead, nil)
		want(t, "reason of a job that died", strings.Contains(s.job(1).Attempts[0].Reason, advice), ends)
		s.started("a", "1.2")
		s.step(hostDown("a", hosts.Unreachable, "gone"))
		s.wait(time.Hour)
		want(t, "reason of a job whose host is lost", strings.Contains(s.job(1).Attempts[1].Reason, advice), ends)
	}
}

// hostDies breaks the link of a host, which comes back without the attempt.
func (s *stage) hostDies(name, attempt string) {
	s.started(name, attempt)
	s.step(hostDown(name, hosts.Unreachable, "gone"))
	s.up(name)
	s.probedAs(name, attempt, hosts.Dead, nil)
}

// TestJobFailsAfterThreeDeaths checks that a job fails when hosts have died under it three times
// (B2). Until then the deaths are not charged.
func TestJobFailsAfterThreeDeaths(t *testing.T) {
	s := stageWithJobs(t, 1, Config{Tries: 1}, testHost("a", 1))
	for n := 1; n <= 3; n++ {
		s.wantState(1, jobs.Running)
		s.hostDies("a", jobs.AttemptID{Job: 1, N: n}.String())
	}
	want(t, "job 1", s.history(1), "failed: a lost, a lost, a lost")
	wantContains(t, "reason", s.job(1).Reason, "died under it 3 times")
}

// TestReturningHostIsNotDead checks that a host that was unreachable and returns with the attempt
// does not count as dead. A host that stays away does, so that a job that crashes hosts does not
// crash all of them.
func TestReturningHostIsNotDead(t *testing.T) {
	for _, back := range []bool{true, false} {
		s := newStage(t, Config{}, testHost("a", 1), testHost("b", 1), testHost("c", 1), testHost("d", 1),
			testHost("e", 1), testHost("f", 1), testHost("g", 1))
		names := []string{"b", "c", "d", "e", "f", "g"}
		s.up("a")
		s.up(names...)
		s.submitPlain(1)
		for n := 1; n <= 4 && !s.job(1).State.Terminal(); n++ {
			id := jobs.AttemptID{Job: 1, N: n}
			name := s.c.table.Attempt(id).Host
			s.started(name, id.String())
			rest := slices.DeleteFunc(append([]string{"a"}, names...),
				func(h string) bool { return h == name || !s.c.byName[h].linked })
			s.step(hostDown(name, hosts.Unreachable, "gone"))
			s.wait(61*time.Second, rest...)
			if back && !s.job(1).State.Terminal() {
				s.up(name)
				s.probedAs(name, id.String(), hosts.HasExited, &jobs.Outcome{Stopped: true})
			}
			s.wait(3*time.Second, rest...)
		}
		if back && len(s.job(1).Attempts) < 5 || !back &&
			(s.job(1).State != jobs.Failed || len(s.job(1).Attempts) != 3) {
			t.Errorf("back %v: %s after %d attempts: %s", back, s.job(1).State, len(s.job(1).Attempts), s.job(1).Reason)
		}
	}
}

// TestLostAgainIsADeath checks that the next loss of an attempt counts even if its host returned
// with it once before (B2).
func TestLostAgainIsADeath(t *testing.T) {
	s := newStage(t, Config{}, testHost("a", 1), testHost("b", 1), testHost("c", 1), testHost("d", 1), testHost("e", 1),
		testHost("f", 1), testHost("g", 1))
	names := []string{"a", "b", "c", "d", "e", "f", "g"}
	s.up(names...)
	s.submitPlain(1)
	silence := func(id string) {
		name := s.c.table.Attempt(attemptIDs(id)[0]).Host
		s.started(name, id)
		names = slices.DeleteFunc(names, func(h string) bool { return h == name })
		s.step(hostDown(name, hosts.Unreachable, "gone"))
		s.wait(61*time.Second, names...)
	}
	s.c.holders = HoldJournal // so that it is not launched elsewhere in the meantime
	silence("1.1")
	s.up("a")
	s.probedAs("a", "1.1", hosts.IsRunning, nil)
	s.wantState(1, jobs.Running)
	s.c.holders = 0
	silence("1.1")
	silence("1.2")
	silence("1.3")
	s.wantState(1, jobs.Failed)
	want(t, "attempts", len(s.job(1).Attempts), 3)
}

// TestReturnedAttemptsAreForgotten checks that the memory for attempts that came back does not grow
// with the run.
func TestReturnedAttemptsAreForgotten(t *testing.T) {
	s := connectedStage(t, Config{}, testHost("a", 1), testHost("b", 1), testHost("c", 1))
	for n := range jobs.ID(20) {
		s.submit(n == 19, jobs.NoOptions)
		id := jobs.AttemptID{Job: n + 1, N: 1}.String()
		s.started("a", id)
		s.step(hostDown("a", hosts.Unreachable, "gone"))
		s.wait(2*time.Minute, "b", "c")
		name := s.job(n + 1).Last().Host
		again := jobs.AttemptID{Job: n + 1, N: 2}.String()
		s.started(name, again)
		s.up("a")
		s.probedAs("a", id, hosts.IsRunning, nil) // younger than the other, so it is killed
		kept := func() string {
			return fmt.Sprintf("%d are being ended, %d were only away", len(s.c.toKill), len(s.c.stillRunning))
		}
		want(t, fmt.Sprintf("job %d came back", n+1), kept(), "1 are being ended, 1 were only away")
		switch n % 3 {
		case 0:
			s.ended("a", id, jobs.Outcome{Stopped: true})
		case 1:
			s.probedAs("a", id, hosts.Dead, nil)
		}
		s.ended(name, again, succeeded)
		if n%3 == 2 { // it ends after its job is over
			s.ended("a", id, succeeded)
		}
		s.wantState(n+1, jobs.Succeeded)
		want(t, fmt.Sprintf("job %d is over", n+1), kept(), "0 are being ended, 0 were only away")
	}
}

// TestHostNotInInventory checks that attempts on a host that left the inventory are given up after
// lost_after, not at once.
func TestHostNotInInventory(t *testing.T) {
	s := newStage(t, Config{}, testHost("a", 1), testHost("b", 1))
	s.up("a")
	s.submitPlain(1)
	s.started("a", "1.1")
	s2 := restart(s, testHost("b", 1))
	s2.up("b")
	s2.step(Submit{Last: true})
	s2.wait(59*time.Second, "b")
	s2.wantState(1, jobs.Running)
	want(t, "then elsewhere", launchedOn(s2.wait(2*time.Second, "b"), "b"), "1.2")
	wantContains(t, "reason", s2.job(1).Attempts[0].Reason, "not in the inventory")
}

// TestClaimCountsAsStart checks that an attempt that a supervisor has claimed is given up like one that
// runs, after lost_after, also by the next dispatcher. One that was only sent waits until its lease is over.
func TestClaimCountsAsStart(t *testing.T) {
	for name, want1 := range map[string]string{"claimed": "1.2", "sent": ""} {
		s := newStage(t, Config{Buffer: 2 * time.Minute}, testHost("a", 1), testHost("b", 1))
		s.up("a")
		s.submitPlain(1)
		if name == "claimed" {
			s.probedAs("a", "1.1", hosts.IsRunning, nil) // its helper does not know when it began
		}
		s2 := restart(s, testHost("a", 1), testHost("b", 1))
		for _, s := range []*stage{s, s2} {
			s.up("b")
			want(t, name+": after lost_after", launchedOn(s.wait(100*time.Second, "b"), "b"), want1)
			s.wait(2*time.Minute, "b")
			want(t, name+": attempts when the lease is over", len(s.job(1).Attempts), 2)
		}
	}
}

// TestLongestLeaseCoversEveryHost checks that the time after which claims may go into packs covers the
// longest lease of any host, and what is buffered (promise 2).
func TestLongestLeaseCoversEveryHost(t *testing.T) {
	slow := testHost("kiwi", 1)
	slow.LostAfter = 5 * time.Minute
	s := newStage(t, Config{}, testHost("melon", 1), slow)
	want(t, "with a patient host", s.c.LongestLease(), 5*time.Minute+leaseMargin+OwnershipTime)
	s = newStage(t, Config{Buffer: 10 * time.Minute}, testHost("melon", 1), slow)
	want(t, "with a long buffer", s.c.LongestLease(), 10*time.Minute+leaseMargin+OwnershipTime)
}
