package sched

import (
	"fmt"
	"math"
	"testing"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/internal/text"
	"dcs-tui/jobs"
)

// TestDelayBeforeAReconnect checks the delay before a reconnect (B1). It is random(0.5, 1) x
// min(2^n s, cap), and is short while the host has been away for less than a minute.
func TestDelayBeforeAReconnect(t *testing.T) {
	c := New(Config{Seed: 3}, &jobs.Table{}, inventoryOf())
	for _, tt := range []struct {
		n    int
		away time.Duration
		most time.Duration
	}{
		{1, 0, 2 * time.Second}, {2, 0, 4 * time.Second}, {3, 0, 8 * time.Second}, {4, 30 * time.Second,
			8 * time.Second},
		{9, 59 * time.Second, 8 * time.Second}, {4, time.Minute, 16 * time.Second}, {5, time.Hour, 32 * time.Second},
		{6, time.Hour, time.Minute}, {500, time.Hour, time.Minute},
	} {
		for range 200 {
			wantBetween(t, fmt.Sprintf("%+v", tt), c.backoff(tt.n, tt.away), tt.most/2, tt.most)
		}
	}
	c = New(Config{MaxBackoff: 4 * time.Second}, &jobs.Table{}, inventoryOf())
	wantBetween(t, "with a lower cap", c.backoff(20, time.Hour), 0, 4*time.Second)
}

// TestHostIsUsedSoonAfterItsReturn checks a host that refuses connections for less than a minute.
// It gets no job, costs no try, and is used again within 10 s of its return.
func TestHostIsUsedSoonAfterItsReturn(t *testing.T) {
	for seed := range uint64(200) {
		for _, away := range []time.Duration{2 * time.Second, 20 * time.Second, 45 * time.Second, 59 * time.Second} {
			s := stageWithJobs(t, 50, Config{Seed: seed}, testHost("a", 1), testHost("b", 1), testHost("c", 1))
			back := s.at + away
			s.step(hostDown("a", hosts.Unreachable, "connection reset")) // tried again at once
			s.step(hostDown("a", hosts.Unreachable, "connection refused"))
			var used time.Duration
			for used == 0 && s.at < back+time.Minute {
				at, ok := s.c.Next()
				if !ok || at > s.at+time.Second {
					at = s.at + time.Second
				}
				s.at = at
				o := s.step(HostHeartbeat{Host: "b", Heartbeat: &hosts.Heartbeat{MemFree: -1, DiskFree: -1}})
				o = append(o, s.step(HostHeartbeat{Host: "c",
					Heartbeat: &hosts.Heartbeat{MemFree: -1, DiskFree: -1}})...)
				for formatCommands[Connect](o) != "" {
					if s.at >= back {
						used = s.at
						break
					}
					o = s.step(hostDown("a", hosts.Unreachable, "connection refused"))
				}
			}
			if used == 0 || used > back+10*time.Second {
				t.Fatalf("seed %d: away for %v, tried again %v after its return", seed, away, used-back)
			}
			for i := range s.c.table.Jobs {
				if s.c.table.Jobs[i].Failures > 0 {
					t.Fatalf("job %d was charged", i+1)
				}
			}
		}
	}
}

// TestHostThatNeedsAUserIsTriedRarely checks that a host with a problem that only a user can fix is
// tried once a minute, and never again if its host key is wrong. Other hosts continue to work.
func TestHostThatNeedsAUserIsTriedRarely(t *testing.T) {
	for class, tries := range map[hosts.Class]int{hosts.Denied: 5, hosts.Misconfigured: 5, hosts.HostKey: 0} {
		s := newStage(t, Config{}, testHost("a", 1), testHost("b", 1))
		s.up("b")
		s.step(hostDown("a", class, "will not do"))
		want(t, class.String(), s.c.Hosts()[0].State, jobs.HostDisabled)
		wantContains(t, "reason", s.c.Hosts()[0].Reason, "will not do")
		n := 0
		for range 330 {
			if formatCommands[Connect](s.wait(time.Second, "b")) != "" {
				n++
				s.step(hostDown("a", class, "will not do"))
			}
		}
		want(t, class.String()+": more attempts in 5.5 min", n, tries)
	}
}

// TestRunEndsWithoutUsableHosts checks that a run ends at once if every host needs a user, and
// otherwise after --give-up without a usable host.
func TestRunEndsWithoutUsableHosts(t *testing.T) {
	s := newStage(t, Config{}, testHost("a", 1), testHost("b", 1))
	s.submitPlain(1)
	s.step(hostDown("a", hosts.HostKey, "the host key has changed"))
	want(t, "finish, while b may come up", s.finishText(), "")
	s.step(hostDown("b", hosts.Denied, "permission denied"))
	want(t, "finish", s.finishText(), "no_hosts")
	wantContains(t, "why", s.finish.Why, "the host key has changed")

	s = newStage(t, Config{GiveUpAfter: 5 * time.Minute}, testHost("a", 1))
	s.submitPlain(1)
	for range 299 {
		if formatCommands[Connect](s.wait(time.Second)) != "" {
			s.step(hostDown("a", hosts.Unreachable, "refused"))
		}
	}
	want(t, "finish before 5 min", s.finishText(), "")
	s.step(hostDown("a", hosts.Unreachable, "refused"))
	s.wait(2 * time.Second)
	want(t, "finish after 5 min", s.finishText(), "no_hosts")
}

// TestLinkWithoutAHeartbeatIsAFailure checks that a link that ends before its first heartbeat
// counts as a failure. Otherwise a helper that dies at once would be started in a tight loop.
func TestLinkWithoutAHeartbeatIsAFailure(t *testing.T) {
	s := newStage(t, Config{}, testHost("a", 1), testHost("b", 1))
	s.up("b")
	n := 0
	for range 300 {
		s.step(HostUp{Host: "a", Hello: &hosts.Hello{Slots: 1}})
		o := s.step(hostDown("a", hosts.Broken, "the helper died"))
		for formatCommands[Connect](o) == "" {
			o = s.wait(time.Second, "b")
		}
		n++
		if s.at > 10*time.Minute {
			break
		}
	}
	wantBetween(t, "connections in 10 min", n, 1, 30)
}

// TestHostWithoutTheDirectoryGetsNoJob checks that a host without the directory gets no job, and
// that the reason names --cwd.
func TestHostWithoutTheDirectoryGetsNoJob(t *testing.T) {
	s := newStage(t, Config{}, testHost("a", 1), testHost("b", 1))
	s.up("b")
	s.step(HostUp{Host: "a", Hello: &hosts.Hello{Slots: 1, CwdError: "/x: no such directory"}})
	s.submitPlain(3)
	want(t, "a", launchedOn(s.commands, "a"), "")
	wantContains(t, "reason", s.c.Hosts()[0].Reason, "--cwd")
}

// TestHeartbeatsAreBounded checks that no measurement of a host can break the core's counts
// (promise 5).
func TestHeartbeatsAreBounded(t *testing.T) {
	wild := []float64{math.NaN(), math.Inf(1), math.Inf(-1), -1e300, 1e300, -5, math.MaxFloat64}
	for _, busy := range wild {
		for _, ours := range wild {
			a, b := testHost("a", 4), testHost("b", 4)
			a.Yield, a.MaxLoad = true, 100
			s := newStage(t, Config{}, a, b)
			s.up("a", "b")
			s.step(HostHeartbeat{Host: "a",
				Heartbeat: &hosts.Heartbeat{Busy: busy, Ours: ours, Load: [3]float64{busy, ours, 0},
					MemFree: -1, DiskFree: -1,
					Running: math.MaxInt, Buffered: math.MaxInt}})
			s.submitPlain(100)
			if h := s.c.hosts[0]; h.limit < 0 || h.limit > 4 || h.freeSlots() < -maxBuffered || h.occupiedSlots > 4 {
				t.Fatalf("busy %v ours %v: limit %d free %d occupied %d", busy, ours, h.limit,
					h.freeSlots(), h.occupiedSlots)
			}
			for range 60 { // long enough for the smoothed values to decay
				s.heartbeat("a", hosts.Heartbeat{})
				s.heartbeat("b", hosts.Heartbeat{})
			}
			if h := s.c.hosts[0]; h.limit != 4 || math.IsNaN(h.usable) {
				t.Fatalf("busy %v ours %v: good heartbeats give limit %d, usable %v", busy, ours, h.limit, h.usable)
			}
		}
	}
}

// TestHelloIsBounded checks that a hello is limited to what the inventory allows and to what a
// machine can have.
func TestHelloIsBounded(t *testing.T) {
	rule := &hosts.Host{Name: "a", Slots: hosts.SlotRule{Less: 1}, Link: "ssh", GPUs: -1}
	for _, tt := range []struct {
		spec  *hosts.Host
		hello hosts.Hello
		slots int
		gpus  int
	}{
		{testHost("a", 4), hosts.Hello{Slots: math.MaxInt, Cores: 1, GPUs: math.MaxInt}, 4, jobs.MaxGPUs},
		{testHost("a", 4), hosts.Hello{Slots: -7, Cores: -7, GPUs: -7, MemBytes: math.MinInt64}, 4, 0},
		{testHost("a", 4), hosts.Hello{Slots: 2}, 2, 0},
		{rule, hosts.Hello{Slots: math.MaxInt}, jobs.MaxSlots, 0},
		{rule, hosts.Hello{Cores: math.MaxInt}, jobs.MaxSlots - 1, 0},
		{rule, hosts.Hello{Cores: math.MinInt}, 1, 0},
		{rule, hosts.Hello{Cores: 8, Slots: 7, GPUs: 2}, 7, 2},
	} {
		s := newStage(t, Config{}, tt.spec)
		s.step(HostUp{Host: "a", Hello: &tt.hello})
		s.submitPlain(3 * jobs.MaxSlots)
		h := s.c.hosts[0]
		if h.slots() != tt.slots || h.limit != tt.slots || h.occupiedSlots > tt.slots || h.numGPUs() != tt.gpus {
			t.Errorf("%+v: %d slots, limit %d, %d in use, %d GPUs; want %d and %d", tt.hello, h.slots(), h.limit,
				h.occupiedSlots, h.numGPUs(), tt.slots, tt.gpus)
		}
	}
}

// TestSlotIsBounded checks that a slot number that no record can hold is dropped. The outcome
// counts and the run ends (promises 1 and 5).
func TestSlotIsBounded(t *testing.T) {
	for _, slot := range []int{-1, 1 << 20, 1 << 40, math.MaxInt, math.MinInt} {
		id := attemptIDs("1.1")[0]
		for name, ev := range map[string]Event{
			"exits": AttemptsEnded{"a", &hosts.Exits{Jobs: []hosts.ExitedJob{{Attempt: id, Slot: slot}}}},
			"probed": AttemptsProbed{"a",
				&hosts.Probed{Jobs: []hosts.ProbedJob{{Attempt: id, Slot: slot, Answer: hosts.HasExited,
					Outcome: &jobs.Outcome{}}}}},
		} {
			s := stageWithJobs(t, 1, Config{}, testHost("a", 1))
			s.step(AttemptsStarted{"a", &hosts.Started{Jobs: []hosts.StartedJob{{Attempt: id, Slot: slot}}}})
			s.wantState(1, jobs.Running)
			want(t, name+": running", s.c.hosts[0].runningSlots, 1)
			s.step(ev)
			s.wantState(1, jobs.Succeeded)
			want(t, name+": finish", s.finishText(), "done")
		}
	}
}

// TestRejectedRecordKeepsAttemptInFlight checks that an attempt stays in flight if the table
// rejects the record of its end. Its host is asked again, and the run can still end.
func TestRejectedRecordKeepsAttemptInFlight(t *testing.T) {
	s := stageWithJobs(t, 1, Config{}, testHost("a", 1))
	s.started("a", "1.1")
	s.c.table.Job(1).Attempts[0].State = jobs.AttemptSuperseded // the table disagrees
	s.ended("a", "1.1", succeeded)
	if s.c.Defects != 1 || len(s.c.inFlight) != 1 || s.c.hosts[0].numOpen != 1 {
		t.Errorf("%d defects, %d flights, %d on the host", s.c.Defects, len(s.c.inFlight), s.c.hosts[0].numOpen)
	}
	s.c.Defects = 0
	s.c.table.Job(1).Attempts[0].State = jobs.AttemptRunning
	s.ended("a", "1.1", succeeded)
	s.wantState(1, jobs.Succeeded)
	want(t, "finish", s.finishText(), "done")
}

// TestPriorityIsBounded checks that a priority that a record cannot hold is clamped (K2).
func TestPriorityIsBounded(t *testing.T) {
	s := newStage(t, Config{})
	s.submitPlain(1)
	for priority, held := range map[int]int32{math.MaxInt: math.MaxInt32, 1 << 40: math.MaxInt32,
		math.MinInt: math.MinInt32} {
		s.step(SetPriority{Jobs: []jobs.ID{1}, Priority: priority})
		want(t, "priority", s.job(1).Priority, held)
	}
}

// TestReportsAboutOthersAttemptsAreIgnored checks that a host's reports count only for its own
// attempts. Reports about other attempts are ignored, and an event says so once (promises 1, 2, and
// 5).
func TestReportsAboutOthersAttemptsAreIgnored(t *testing.T) {
	ids := attemptIDs("2.1")
	for name, ev := range map[string]Event{
		"started":   AttemptsStarted{"a", &hosts.Started{Jobs: []hosts.StartedJob{{Attempt: ids[0], Slot: 1}}}},
		"ended":     AttemptsEnded{"a", &hosts.Exits{Jobs: []hosts.ExitedJob{{Attempt: ids[0]}}}},
		"withdrawn": AttemptsWithdrawn{"a", &hosts.Withdrawn{Attempts: ids}},
		"refused":   HostRefused{"a", &hosts.Refused{Attempts: ids, Why: "full"}},
		"probed":    AttemptsProbed{"a", &hosts.Probed{Jobs: []hosts.ProbedJob{{Attempt: ids[0], Answer: hosts.Dead}}}},
	} {
		s := stageWithJobs(t, 2, Config{}, testHost("a", 1), testHost("b", 1))
		want(t, "2.1 is on", s.job(2).Attempts[0].Host, "b")
		s.step(ev)
		s.step(ev)
		want(t, name, s.history(2), "running: b launching")
		want(t, name, s.c.Hosts()[0].State, jobs.HostUp)
		if n := s.numEvents("ignored"); name != "probed" && n != 1 {
			t.Errorf("%s: said %d times", name, n)
		}
	}
}

// TestRepeatedAnswersCauseOneQuestion checks that a host that repeatedly answers that it does not
// know an attempt is asked about it only once.
func TestRepeatedAnswersCauseOneQuestion(t *testing.T) {
	s := stageWithJobs(t, 2, Config{}, testHost("a", 2))
	for range 100 {
		s.probedAs("a", "1.1 2.1", hosts.Unknown, nil)
	}
	wantBetween(t, "remembered", len(s.c.hosts[0].unknownAttempts), 0, 6)
	want(t, "asked", formatCommands[Probe](s.wait(6*time.Second, "a")), "{a [1.1 2.1]}")
}

// TestRunTimesAreBounded checks that an outcome dated by a wrong clock does not distort the run
// times of a queue for long.
func TestRunTimesAreBounded(t *testing.T) {
	s := stageWithJobs(t, 100, Config{}, testHost("a", 1))
	for i := range 90 {
		o := jobs.Outcome{Started: 1, Ended: 1e6}
		if i == 0 {
			o = jobs.Outcome{Started: math.MinInt64 / 4, Ended: math.MaxInt64 / 4}
		}
		s.endFirst("a", o)
	}
	wantBetween(t, "mean in s", s.c.stats[""].recent.All, 0, 1000)
}

// TestSuccessOfAnEarlierRoundDoesNotCount checks that a success of an earlier round never counts
// for a later one, however it is reported (promise 2).
func TestSuccessOfAnEarlierRoundDoesNotCount(t *testing.T) {
	news := map[string]func(s *stage, host, id string){
		"exits":  func(s *stage, host, id string) { s.ended(host, id, succeeded) },
		"probed": func(s *stage, host, id string) { s.probedAs(host, id, hosts.HasExited, &succeeded) },
		"running first": func(s *stage, host, id string) {
			s.probedAs(host, id, hosts.IsRunning, nil)
			s.ended(host, id, succeeded)
		},
		"started first": func(s *stage, host, id string) { s.started(host, id); s.ended(host, id, succeeded) },
	}
	for name, tell := range news {
		s := lostStage(t, Config{}) // 1.1 is given up
		s.step(Cancel{Jobs: []jobs.ID{1}})
		s.step(Requeue{[]jobs.ID{1}})
		s.up("a")
		tell(s, "a", "1.1")
		if j := s.job(1); j.State == jobs.Succeeded || j.Round != 2 {
			t.Errorf("lost, %s: job is %s in round %d", name, j.State, j.Round)
		}

		s = replacedStage(t)
		s.up("a")
		s.probedAs("a", "1.1", hosts.HasExited, &succeeded) // 1.2 is still being stopped
		s.step(Requeue{[]jobs.ID{1}})
		seq := s.c.table.Seq
		tell(s, "b", "1.2")
		if j := s.job(1); j.State.Terminal() || j.Round != 2 || s.c.table.Seq != seq {
			t.Errorf("open, %s: job is %s in round %d", name, j.State, j.Round)
		}
	}
}

// TestHostIsSuspectByItsOwnTimes checks that a host is suspect after the silence that the inventory
// has for it: suspect_after, or five of its heartbeats. A change begins with the next connection,
// because the helper learns the interval of heartbeats there (promise 5).
func TestHostIsSuspectByItsOwnTimes(t *testing.T) {
	for _, tt := range []struct {
		heartbeat, suspectAfter, want time.Duration
	}{
		{0, 0, 15 * time.Second},
		{time.Second, 0, 6 * time.Second},
		{10 * time.Second, 0, 50 * time.Second},
		{10 * time.Second, 25 * time.Second, 25 * time.Second},
		{0, 40 * time.Second, 40 * time.Second},
	} {
		t.Run(fmt.Sprint(tt), func(t *testing.T) {
			a := testHost("a", 1)
			a.Heartbeat, a.SuspectAfter = tt.heartbeat, tt.suspectAfter
			s := stageWithJobs(t, 1, Config{}, a, testHost("b", 1))
			s.wait(tt.want-time.Millisecond, "b")
			want(t, "state before", s.c.byName["a"].state, jobs.HostUp)
			s.wait(time.Millisecond, "b")
			want(t, "state", s.c.byName["a"].state, jobs.HostSuspect)
			want(t, "reason", s.c.byName["a"].reason, noSign+text.Span(tt.want))
		})
	}
	a, now := testHost("a", 1), testHost("a", 1)
	a.Heartbeat, now.Heartbeat = 10*time.Second, time.Second
	s := connectedStage(t, Config{}, a)
	s.step(setHosts(now))
	want(t, "silence before the next connection", s.c.byName["a"].suspectAfter, 50*time.Second)
	s.step(HostUp{Host: "a", Hello: &hosts.Hello{Cores: 2, Slots: 1}, Spec: now})
	want(t, "silence after it", s.c.byName["a"].suspectAfter, 6*time.Second)
}

// TestLeaseOutlastsTheNextHeartbeat checks that the lease of a host never ends before its next
// heartbeats can extend it, also with copies, which bound it (promise 2: it ends within lost_after).
func TestLeaseOutlastsTheNextHeartbeat(t *testing.T) {
	for _, h := range []*hosts.Host{{}, {Heartbeat: time.Second}, {Heartbeat: 10 * time.Second},
		{Heartbeat: 30 * time.Second, LostAfter: 5 * time.Minute},
		{Heartbeat: 5 * time.Second, SuspectAfter: 10 * time.Second, LostAfter: 10 * time.Second}} {
		beat, lost := h.HeartbeatOrDefault(), h.LostAfterOrDefault()
		for _, cfg := range []Config{{}, {Copies: 2}} {
			if d := cfg.Lease(lost, beat); d < 2*beat || d > lost {
				t.Errorf("heartbeat %s, lost_after %s, %d copies: lease %s", beat, lost, cfg.Copies, d)
			}
		}
	}
}

// TestInventoryIsReadAgainAfterFailures checks that the inventory is read again after every fifth
// connection failure in a row of a host, whatever its class (B5), and that a success resets the count.
func TestInventoryIsReadAgainAfterFailures(t *testing.T) {
	for _, class := range []hosts.Class{hosts.Unreachable, hosts.Denied} {
		s := newStage(t, Config{}, testHost("a", 1))
		reread := ""
		fail := func(n int) {
			for range n {
				s.at += time.Hour
				s.step(Tick{})
				s.step(hostDown("a", class, "it fails"))
				reread += fmt.Sprint(len(formatCommands[RereadInventory](s.commands)) / 2)
			}
		}
		fail(11)
		s.up("a")
		s.step(hostDown("a", hosts.Unreachable, "the link ended")) // a link that worked is no failure
		fail(5)
		want(t, fmt.Sprint(class, ": read again after failure"), reread, "0000100001000001")
	}
}
