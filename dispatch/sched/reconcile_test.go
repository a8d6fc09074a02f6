package sched

import (
	"testing"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// damagedStage starts a core with a table in which records are missing.
func damagedStage(t *testing.T, cfg Config, n int, hs ...*hosts.Host) *stage {
	return continuedStage(t, &jobs.Table{Damaged: true}, cfg, n, hs...)
}

// continuedStage starts a core with a table of n jobs, none of which the table shows as launched.
func continuedStage(t *testing.T, table *jobs.Table, cfg Config, n int, hs ...*hosts.Host) *stage {
	table.Specs = specsOf(1, repeatOptions(n, jobs.NoOptions)...)
	accepted := jobs.Record{Kind: jobs.KindAccepted, Job: 1, Count: n}
	s := &stage{t: t, c: New(cfg, folded(t, table, accepted), inventoryOf(hs...)), at: time.Minute,
		journal: []jobs.Record{accepted}}
	t.Cleanup(func() {
		want(t, "defects", s.c.Defects, 0)
	})
	s.step(Tick{})
	s.step(Submit{Last: true})
	return s
}

func (s *stage) reportList(name, attempts string, a hosts.Answer, o *jobs.Outcome, last bool) []Command {
	m := &hosts.Listed{Last: last, All: true}
	for _, id := range attemptIDs(attempts) {
		m.Jobs = append(m.Jobs, hosts.ProbedJob{Attempt: id, Answer: a, Outcome: o, Started: s.now().Wall})
	}
	return s.step(HostListed{name, m})
}

// TestHostsListTheirAttemptsAfterDamage checks that after damage nothing is launched before every
// host has listed its attempts. These attempts are adopted and counted, and each job runs once
// (promises 1 and 2).
func TestHostsListTheirAttemptsAfterDamage(t *testing.T) {
	s := damagedStage(t, Config{}, 4, testHost("a", 2), testHost("b", 2))
	o := s.up("a", "b")
	want(t, "lists", formatCommands[List](o), "{a } {b }")
	want(t, "launched", launchedOn(o, "a")+launchedOn(o, "b"), "")
	s.reportList("a", "1.1", hosts.IsRunning, nil, false)
	s.reportList("a", "2.3", hosts.HasExited, &succeeded, true)
	s.wantState(1, jobs.Running)
	s.wantState(2, jobs.Succeeded)
	want(t, "job 2", s.history(2), "succeeded:  lost,  lost, a exited")
	o = s.reportList("b", "3.1", hosts.Dead, nil, true)
	want(t, "launched", launchedOn(o, "a")+" "+launchedOn(o, "b"), "3.2 4.1")
	want(t, "job 3", s.history(3), "running: b lost, a launching")
	s.wantState(4, jobs.Running)
	// The next dispatcher sees the same state, and lists again because the table is still marked as
	// damaged.
	r := restart(s, testHost("a", 2), testHost("b", 2))
	r.wantState(2, jobs.Succeeded)
	r.wantState(1, jobs.Running)
}

// TestReconcileWithoutOneHost checks that launching waits 90 s for a host that stays away, and that
// the attempt numbers that it may have used are left free.
func TestReconcileWithoutOneHost(t *testing.T) {
	s := damagedStage(t, Config{}, 2, testHost("a", 1), testHost("b", 1))
	s.up("a")
	want(t, "too early", launchedOn(s.reportList("a", "", hosts.Dead, nil, true), "a"), "")
	want(t, "too early", launchedOn(s.wait(80*time.Second, "a"), "a"), "")
	want(t, "with a gap", launchedOn(s.wait(12*time.Second, "a"), "a"), "1.11")
	s.started("a", "1.11")
	s.up("b") // b had 1.1; the attempt that has a record is kept
	want(t, "ended", formatCommands[Kill](s.reportList("b", "1.1", hosts.IsRunning, nil, true)),
		"{b [1.1] its job has another attempt}")
	s.wantState(1, jobs.Running)
}

// TestReconcileWithoutARemovedHost checks that launching also waits for a host that is removed from
// the inventory before it has listed its attempts, because nothing else tells which it had.
func TestReconcileWithoutARemovedHost(t *testing.T) {
	s := damagedStage(t, Config{}, 2, testHost("a", 1), testHost("b", 1))
	s.step(setHosts(testHost("a", 1)))
	s.up("a")
	want(t, "too early", launchedOn(s.reportList("a", "", hosts.Dead, nil, true), "a"), "")
	want(t, "too early", launchedOn(s.wait(80*time.Second, "a"), "a"), "")
	want(t, "with a gap", launchedOn(s.wait(12*time.Second, "a"), "a"), "1.11")
}

// TestRunDirectoryIsReadBeforeHostsAnswer checks that claims and sentinels in the run directory are
// known before any host has answered (X1).
func TestRunDirectoryIsReadBeforeHostsAnswer(t *testing.T) {
	s := damagedStage(t, Config{Found: []Found{
		{"a", hosts.ProbedJob{Attempt: jobs.AttemptID{Job: 1, N: 1}, Answer: hosts.HasExited, Outcome: &succeeded}},
		{"gone", hosts.ProbedJob{Attempt: jobs.AttemptID{Job: 2, N: 1}, Answer: hosts.IsRunning}},
	}}, 3, testHost("a", 1))
	s.wantState(1, jobs.Succeeded)
	s.wantState(2, jobs.Running)
	s.up("a")
	s.reportList("a", "", hosts.Dead, nil, true)
	s.wantState(3, jobs.Queued) // it may have started on the host that cannot be asked
	s.wait(75*time.Second, "a") // its host left the inventory and its lease is over
	want(t, "job 2", s.history(2), "queued: gone lost")
	want(t, "with gaps", launchedOn(s.wait(16*time.Second, "a"), "a"), "2.12")
	s.wantState(3, jobs.Queued)
}

// TestFoundAttemptReturnsWithItsHost checks an attempt that was found before its machine was known.
// If its host is not in the inventory of the next dispatcher and is added again, the host is asked
// about the attempt, which is not given up while the host answers.
func TestFoundAttemptReturnsWithItsHost(t *testing.T) {
	s := damagedStage(t, Config{Found: []Found{
		{"a", hosts.ProbedJob{Attempt: jobs.AttemptID{Job: 1, N: 1}, Answer: hosts.IsRunning}},
	}}, 1, testHost("a", 1), testHost("b", 1))
	s.connectAs("a", "A")
	s = restart(s, testHost("b", 1))
	s.connectAs("b", "B")
	s.step(setHosts(testHost("a", 1), testHost("b", 1)))
	want(t, "asked", formatCommands[Probe](s.connectAs("a", "A")), "{a [1.1]}")
	s.wait(3*time.Minute, "a", "b")
	want(t, "job 1", s.history(1), "running: a running")
}

// TestFoundThatNobodyWaitsFor checks that an unrecorded attempt of a job that has a result is ended.
// Until its host reports its end, the run does not end, and the job is not launched again. The job
// keeps its result, and the next dispatcher does the same.
func TestFoundThatNobodyWaitsFor(t *testing.T) {
	for _, answer := range []hosts.Answer{hosts.IsRunning, hosts.Buffered, hosts.Unknown} {
		s := damagedStage(t, Config{}, 1, testHost("a", 1), testHost("b", 1))
		s.up("a", "b")
		s.reportList("a", "1.1", hosts.HasExited, &succeeded, false)
		s.wantState(1, jobs.Succeeded)
		want(t, "end", s.finishText(), "")
		o := s.reportList("a", "1.2", answer, nil, true)
		s.reportList("b", "", hosts.Dead, nil, true)
		want(t, "killed", formatCommands[Kill](o), "{a [1.2] its job had its result already}")
		want(t, "event", len(s.eventsAbout("attempt 1.2 on a had lost its record; "+
			"it was found by its files; its job has a result, so it is ended")), 1)
		want(t, "end", s.finishText(), "")
		s = restart(s, testHost("a", 1), testHost("b", 1))
		s.wantState(1, jobs.Succeeded)
		s.up("a", "b")
		s.reportList("b", "", hosts.Dead, nil, true)
		s.reportList("a", "1.2", answer, nil, true)
		s.wantState(1, jobs.Succeeded)
		o = s.step(Requeue{Jobs: []jobs.ID{1}})
		want(t, "too early", launchedOn(o, "a")+launchedOn(o, "b"), "")
		o = s.ended("a", "1.2", jobs.Outcome{Stopped: true})
		want(t, "launched", launchedOn(o, "a")+launchedOn(o, "b"), "1.3")
	}
}

// TestFoundAttemptsAreBounded checks that a host that claims to run ever more attempts of one job is not
// believed beyond the most that a host can run, whether the job has a result or another attempt.
func TestFoundAttemptsAreBounded(t *testing.T) {
	for _, answer := range []hosts.Answer{hosts.HasExited, hosts.IsRunning} {
		s := damagedStage(t, Config{}, 1, testHost("a", 1))
		s.up("a")
		s.reportList("a", "1.1", answer, &succeeded, false)
		m := &hosts.Listed{All: true}
		for n := range 2 * jobs.MaxSlots {
			m.Jobs = append(m.Jobs, hosts.ProbedJob{Attempt: jobs.AttemptID{Job: 1, N: n + 2}, Answer: hosts.IsRunning})
		}
		s.step(HostListed{"a", m})
		want(t, "attempts", len(s.c.inFlight), jobs.MaxSlots)
	}
}

// TestEndWaitsForLists checks that after damage a run whose jobs have results does not end, or end
// its drain, before the hosts have listed what they run.
func TestEndWaitsForLists(t *testing.T) {
	for _, drains := range []bool{false, true} {
		s := damagedStage(t, Config{}, 1, testHost("a", 1), testHost("b", 1))
		if drains {
			s.step(Drain{})
		} else {
			s.step(Cancel{Jobs: []jobs.ID{1}})
			s.wantState(1, jobs.Canceled)
		}
		s.up("a", "b")
		// What is in a pack has ended, so no end waits until a person has put the pack right.
		s.step(HostListed{"a", &hosts.Listed{Last: true, All: true, LacksPack: true, Why: "000.x.zip is damaged"}})
		want(t, "end before the list of b", s.finishText(), "")
		s.reportList("b", "1.1", hosts.IsRunning, nil, true)
		s.wait(reconcileTime/2, "a", "b")
		want(t, "end", s.finishText(), "")
		s.ended("b", "1.1", jobs.Outcome{Stopped: true})
		want(t, "end before the list of a", s.finishText(), "")
		s.wait(reconcileTime, "a", "b")
		want(t, "ended", s.finishText() != "", true)
	}
}

// TestIncompleteListIsRequestedAgain checks that an incomplete list is requested again.
func TestIncompleteListIsRequestedAgain(t *testing.T) {
	s := damagedStage(t, Config{}, 1, testHost("a", 1))
	s.up("a")
	s.step(HostListed{"a", &hosts.Listed{Last: true, All: true, Why: "input/output error"}})
	s.wantState(1, jobs.Queued)
	want(t, "again", formatCommands[List](s.wait(6*time.Second, "a")), "{a }")
	want(t, "then", launchedOn(s.reportList("a", "", hosts.Dead, nil, true), "a"), "1.1")
}

// TestDamagedPackStopsLaunching checks that nothing is launched after damage to the journal while a host
// reports a damaged pack, too: jobs without records may have run. It does not matter how long that takes.
func TestDamagedPackStopsLaunching(t *testing.T) {
	s := damagedStage(t, Config{}, 1, testHost("a", 1), testHost("b", 1))
	s.up("a", "b")
	s.step(HostListed{"a", &hosts.Listed{Last: true, All: true, LacksPack: true, Why: "000.x.zip is damaged"}})
	s.reportList("b", "", hosts.Dead, nil, true)
	o := s.wait(10*time.Minute, "a", "b")
	want(t, "launched", launchedOn(o, "a")+launchedOn(o, "b"), "")
	want(t, "once it is put right", launchedOn(s.reportList("a", "", hosts.Dead, nil, true), "a"), "1.1")
}

// TestCancelOutlivesDamage checks that a job does not run if a user canceled it and the record of
// its launch was lost (K9).
func TestCancelOutlivesDamage(t *testing.T) {
	s := damagedStage(t, Config{}, 2, testHost("a", 1))
	folded(t, s.c.table, jobs.Record{Kind: jobs.KindCanceling, Job: 1, Reason: "asked"})
	s.up("a")
	want(t, "launched", launchedOn(s.reportList("a", "", hosts.Dead, nil, true), "a"), "2.1")
	s.wantState(1, jobs.Canceled)
}

// TestNumberOfAnUnneededAttemptIsNotReused checks that the number of an unrecorded attempt that has
// ended, and whose job has a result, is not used again.
func TestNumberOfAnUnneededAttemptIsNotReused(t *testing.T) {
	s := damagedStage(t, Config{}, 2, testHost("a", 1), testHost("b", 1))
	s.up("a", "b")
	s.reportList("a", "1.1", hosts.HasExited, &succeeded, true)
	s.reportList("b", "1.2", hosts.HasExited, &succeeded, true)
	s.wantState(1, jobs.Succeeded)
	s.step(Cancel{Jobs: []jobs.ID{2}})
	o := s.step(Requeue{Jobs: []jobs.ID{1}})
	want(t, "launched", launchedOn(o, "a")+launchedOn(o, "b"), "1.3")
	r := restart(s, testHost("a", 1), testHost("b", 1))
	r.wantState(1, jobs.Running)
}

// TestUnstartedAttemptThatIsFoundLateIsWithdrawn checks that an attempt that is found late, has not
// started, and whose job has another attempt by then is withdrawn (promise 2).
func TestUnstartedAttemptThatIsFoundLateIsWithdrawn(t *testing.T) {
	s := damagedStage(t, Config{}, 1, testHost("a", 1), testHost("b", 1))
	s.up("a")
	s.reportList("a", "", hosts.Dead, nil, true)
	want(t, "with a gap", launchedOn(s.wait(92*time.Second, "a"), "a"), "1.11")
	s.up("b")
	want(t, "taken back", formatCommands[Withdraw](s.reportList("b", "1.1", hosts.Buffered, nil, true)), "{b [1.1]}")
	s.step(AttemptsWithdrawn{"b", &hosts.Withdrawn{Attempts: attemptIDs("1.1")}})
	s.wantState(1, jobs.Running)
}

// TestUnstartedAttemptThatIsFoundWhereNothingStartsIsWithdrawn checks that an attempt that has not started is
// withdrawn if it is found where nothing may start. Otherwise its job and a drain would wait for it for ever.
func TestUnstartedAttemptThatIsFoundWhereNothingStartsIsWithdrawn(t *testing.T) {
	for name, ask := range map[string]func(*stage){
		"drained host": func(s *stage) { s.step(DrainHost{Host: "a", On: true}) },
		"drained run":  func(s *stage) { s.step(Drain{}) },
		"paused host":  func(s *stage) { s.c.pauseHost(s.c.byName["a"], time.Hour, "it refuses jobs") },
	} {
		s := damagedStage(t, Config{}, 1, testHost("a", 1), testHost("b", 1))
		s.up("a")
		ask(s)
		got := formatCommands[Withdraw](s.reportList("a", "1.1", hosts.Buffered, nil, true))
		want(t, name+": taken back", got, "{a [1.1]}")
	}
}

// TestUnstartedAttemptOfADrainedHostThatIsAddedIsWithdrawn checks that an attempt is withdrawn from a drained host
// that is in the inventory only some time after a takeover, like the host of an instance.
func TestUnstartedAttemptOfADrainedHostThatIsAddedIsWithdrawn(t *testing.T) {
	s := connectedStage(t, Config{}, testHost("a", 1))
	s.submitPlain(1)
	s.step(hostDown("a", hosts.Unreachable, "gone"))
	s.step(DrainHost{Host: "a", On: true})
	r := restart(s, testHost("b", 1))
	r.step(SetInventory{inventoryOf(testHost("a", 1), testHost("b", 1))})
	r.up("a")
	want(t, "taken back", formatCommands[Withdraw](r.probedAs("a", "1.1", hosts.Buffered, nil)), "{a [1.1]}")
}

// TestNewResultNumbersAreBeyondLostOnes checks that new result numbers start beyond all that a
// consumer may have, because records of earlier results may be lost. From there they continue
// without gaps. This includes a result that is decided before any host is asked, such as that of a
// job that no host can run. The next dispatcher uses different numbers, even if it starts with the
// same table, because the journal may be damaged again (promise 1).
func TestNewResultNumbersAreBeyondLostOnes(t *testing.T) {
	given := map[int64]bool{}
	for epoch := range 4 {
		table := &jobs.Table{Damaged: true,
			Specs: specsOf(1, jobs.NoOptions, jobs.NoOptions, &jobs.Options{Tags: []string{"gpu"}})}
		folded(t, table, jobs.Record{Kind: jobs.KindEpoch, Epoch: epoch + 1},
			jobs.Record{Kind: jobs.KindAccepted, Job: 1, Count: 3})
		s := &stage{t: t, c: New(Config{}, table, inventoryOf(testHost("a", 1)))}
		s.step(Cancel{All: true})
		s.wantState(3, jobs.Failed)
		first := s.job(3).Seq
		for i, id := range []jobs.ID{3, 1, 2} {
			if seq := s.job(id).Seq; seq <= seqGap || seq != first+int64(i) || given[seq] {
				t.Errorf("epoch %d: the result of job %d has number %d, the first one is %d; so far: %v", epoch+1, id,
					seq, first, given)
			}
			given[s.job(id).Seq] = true
		}
	}
}

// TestNothingIsLaunchedBeforeHostsHaveListed checks that a dispatcher that resumes a run launches
// nothing before the hosts that are up have listed their attempts (promises 1 and 2). It does not
// wait for a host that has failed to answer, and waits only a few seconds for a first connection.
func TestNothingIsLaunchedBeforeHostsHaveListed(t *testing.T) {
	for name, c := range map[string]struct {
		then func(s *stage) []Command
		want string
	}{
		"one has not listed": {func(s *stage) []Command { return s.wait(4*time.Second, "a") }, ""},
		"both have listed": {func(s *stage) []Command {
			s.up("b")
			return s.reportList("b", "", hosts.Dead, nil, true)
		}, "1.1"},
		"the other is not up": {func(s *stage) []Command { return s.step(hostDown("b", hosts.Unreachable, "gone")) },
			"1.1"},
		"the other takes long": {func(s *stage) []Command { return s.wait(6*time.Second, "a") }, "1.1"},
		"a list in two pieces": {func(s *stage) []Command {
			s.up("b")
			return s.reportList("b", "", hosts.Dead, nil, false)
		}, ""},
		"a list that is not whole": {func(s *stage) []Command {
			s.up("b")
			return s.step(HostListed{"b", &hosts.Listed{Last: true, Why: "input/output error"}})
		}, ""},
		"a tombstone": {func(s *stage) []Command {
			s.up("b")
			return s.reportList("b", "3.1", hosts.NeverStarted, nil, true)
		}, "1.1"},
	} {
		t.Run(name, func(t *testing.T) {
			s := continuedStage(t, &jobs.Table{Epoch: 2}, Config{}, 4, testHost("a", 1), testHost("b", 1))
			want(t, "asked", formatCommands[List](s.up("a")), "{a 1-4,5-2147483647}")
			want(t, "too early", launchedOn(s.reportList("a", "", hosts.Dead, nil, true), "a"), "")
			want(t, "launched on a", launchedOn(c.then(s), "a"), c.want)
			want(t, "taken for damage", s.c.table.Damaged, false)
		})
	}
}

// TestUnrecordedAttemptCountsAsDamage checks that an attempt without a record counts as damage. All
// hosts must then list everything, including a host that comes up after launching has begun, and
// later dispatchers know of the damage.
func TestUnrecordedAttemptCountsAsDamage(t *testing.T) {
	s := continuedStage(t, &jobs.Table{Epoch: 2}, Config{}, 4, testHost("a", 1), testHost("b", 1))
	s.up("a")
	s.step(hostDown("b", hosts.Unreachable, "gone"))
	want(t, "launched on a", launchedOn(s.reportList("a", "", hosts.Dead, nil, true), "a"), "1.1")
	want(t, "launched on b", launchedOn(s.up("b"), "b"), "2.1")
	want(t, "asked again", formatCommands[List](s.reportList("b", "3.1", hosts.HasExited, &succeeded, true)),
		"{a } {b }")
	want(t, "taken for damage", s.c.table.Damaged, true)
	want(t, "too early", launchedOn(s.ended("a", "1.1", succeeded), "a"), "")
	s.reportList("a", "1.1", hosts.HasExited, &succeeded, true)
	o := s.reportList("b", "3.1", hosts.HasExited, &succeeded, true)
	s.wantState(3, jobs.Succeeded)
	want(t, "launched then", launchedOn(o, "a"), "4.1")
	if seq := s.job(3).Seq; seq < 2*seqBase {
		t.Errorf("result number %d may have been given before", seq)
	}
	want(t, "known to the next dispatcher", restart(s, testHost("a", 1), testHost("b", 1)).c.table.Damaged, true)
}

// TestLaunchingWaitsForLateHosts checks that launching also waits for hosts that all come up late,
// and that it waits only once for a host that comes and goes without a list (promises 1 and 2).
func TestLaunchingWaitsForLateHosts(t *testing.T) {
	begin := func(t *testing.T) *stage {
		return continuedStage(t, &jobs.Table{Epoch: 2}, Config{}, 4, testHost("a", 1), testHost("b", 1))
	}
	t.Run("slow", func(t *testing.T) {
		s := begin(t)
		s.wait(20 * time.Second)
		want(t, "before any list", launchedOn(s.up("a"), "a"), "")
		want(t, "before the other is up", launchedOn(s.reportList("a", "", hosts.Dead, nil, true), "a"), "")
		want(t, "before the other's list", launchedOn(s.up("b"), "a"), "")
		s.reportList("b", "1.1", hosts.HasExited, &succeeded, true)
		s.reportList("b", "1.1", hosts.HasExited, &succeeded, true) // lists all jobs
		want(t, "launched", launchedOn(s.reportList("a", "", hosts.Dead, nil, true), "a"), "2.1")
		s.wantState(1, jobs.Succeeded)
	})
	t.Run("not reached at first", func(t *testing.T) {
		s := begin(t)
		s.step(hostDown("a", hosts.Unreachable, "gone"))
		s.step(hostDown("b", hosts.Unreachable, "gone"))
		s.wait(20 * time.Second)
		want(t, "before any list", launchedOn(s.up("a"), "a"), "")
	})
	t.Run("comes and goes", func(t *testing.T) {
		s := begin(t)
		s.up("a")
		want(t, "too early", launchedOn(s.reportList("a", "", hosts.Dead, nil, true), "a"), "")
		var o []Command
		for range 20 {
			o = append(o, s.up("b")...)
			o = append(o, s.wait(time.Second, "a", "b")...)
			o = append(o, s.step(hostDown("b", hosts.Unreachable, "gone"))...)
			o = append(o, s.wait(time.Second, "a")...)
		}
		want(t, "launched", launchedOn(o, "a"), "1.1")
	})
}

// TestNumberThatWasUsedTwice checks that an attempt that is recorded for another host is ended where
// it is, and that nothing else changes: the word of that host stands against the journal (promise 2).
func TestNumberThatWasUsedTwice(t *testing.T) {
	s := continuedStage(t, &jobs.Table{Epoch: 2}, Config{}, 1, testHost("a", 1), testHost("b", 1))
	s.step(hostDown("b", hosts.Unreachable, "gone"))
	s.up("a")
	want(t, "launched", launchedOn(s.reportList("a", "", hosts.Dead, nil, true), "a"), "1.1")
	s.ended("a", "1.1", succeeded)
	s.wantState(1, jobs.Succeeded)
	want(t, "asked", formatCommands[List](s.up("b")), "{b 1,2-2147483647}")
	o := s.reportList("b", "1.1", hosts.IsRunning, nil, true)
	want(t, "asked again", formatCommands[List](o), "")
	want(t, "ended", formatCommands[Kill](o), "{b [1.1] its number was given to another host}")
	want(t, "damaged", s.c.table.Damaged, false)
}

// TestListWithAnUnreadableAttemptIsIncomplete checks that a list is incomplete if a part of it has
// an attempt that cannot be read, and that this is reported once.
func TestListWithAnUnreadableAttemptIsIncomplete(t *testing.T) {
	s := continuedStage(t, &jobs.Table{Epoch: 2}, Config{}, 1, testHost("a", 1))
	s.up("a")
	for range 3 {
		s.reportList("a", "1.1", hosts.Unknown, nil, false)
		want(t, "launched", launchedOn(s.reportList("a", "", hosts.Dead, nil, true), "a"), "")
		want(t, "asked again", formatCommands[List](s.wait(probeInterval, "a")), "{a 1,2-2147483647}")
	}
	want(t, "times that it is said", s.numEvents("could not list all"), 1)
}

// TestEarlierListDoesNotCount checks that after an unrecorded attempt only a list of everything
// counts, complete or not. A list that was already under way does not count. A host that is down is
// asked when it comes up.
func TestEarlierListDoesNotCount(t *testing.T) {
	s := continuedStage(t, &jobs.Table{Epoch: 2}, Config{}, 2, testHost("a", 1), testHost("b", 1))
	s.up("a", "b")
	s.step(hostDown("b", hosts.Unreachable, "gone"))
	s.reportList("a", "1.1", hosts.HasExited, &succeeded, false)
	want(t, "a host that is down is asked", s.c.byName["b"].outbox.list, false)
	s.up("b")
	s.reportList("b", "", hosts.Dead, nil, true)
	want(t, "after the rest of the first list", launchedOn(s.step(HostListed{"a", &hosts.Listed{Last: true}}), "a"), "")
	want(t, "after all", launchedOn(s.reportList("a", "1.1", hosts.HasExited, &succeeded, true), "a"), "2.1")
}

// TestListOfUnfinishedJobsSuffices checks that a list of the unfinished jobs suffices if no record
// is missing. It is requested once, and may contain recorded attempts that cannot be read.
func TestListOfUnfinishedJobsSuffices(t *testing.T) {
	table := folded(t, &jobs.Table{Epoch: 2, Specs: specsOf(1, jobs.NoOptions, jobs.NoOptions)},
		jobs.Record{Kind: jobs.KindAccepted, Job: 1, Count: 2}, jobs.Record{Kind: jobs.KindLaunching, Job: 1, N: 1,
			Host: "a"})
	s := &stage{t: t, c: New(Config{}, table, inventoryOf(testHost("a", 2))), at: time.Minute}
	s.step(Submit{Last: true})
	s.up("a")
	m := &hosts.Listed{Last: true, Jobs: []hosts.ProbedJob{{Attempt: jobs.AttemptID{Job: 1, N: 1},
		Answer: hosts.Unknown}}}
	want(t, "launched", launchedOn(s.step(HostListed{"a", m}), "a"), "2.1")
	s.step(hostDown("a", hosts.Unreachable, "gone"))
	want(t, "asked again", formatCommands[List](s.up("a")), "")
}

// TestJobsToListAreFewRanges checks that the jobs to list are few ranges even if most jobs have
// finished, and that after damage all jobs are listed.
func TestJobsToListAreFewRanges(t *testing.T) {
	table := &jobs.Table{Jobs: make([]jobs.Job, 1000)}
	for i := range table.Jobs {
		table.Jobs[i].State = jobs.Succeeded
	}
	for _, id := range []jobs.ID{2, 3, 60, 500} {
		table.Jobs[id-1].State = jobs.Queued
	}
	want(t, "unfinished", UnfinishedJobs(table).String(), "2-60,500,1001-2147483647")
	table.Damaged = true
	if list := UnfinishedJobs(table); list != nil {
		t.Errorf("after damage: %v", list)
	}
}

// TestStoredJobsBelongToTheRun checks that jobs that a dispatcher stored, but did not accept before
// it died, belong to the run. An unrecorded claim of such a job counts as damage.
func TestStoredJobsBelongToTheRun(t *testing.T) {
	for name, found := range map[string][]Found{
		"nothing": nil,
		"a claim": {{"a", hosts.ProbedJob{Attempt: jobs.AttemptID{Job: 1, N: 1}, Answer: hosts.HasExited,
			Outcome: &succeeded}}},
	} {
		table := &jobs.Table{Epoch: 2, Specs: specsOf(1, jobs.NoOptions)}
		s := &stage{t: t, c: New(Config{Found: found}, table, inventoryOf(testHost("a", 1))), at: time.Minute}
		s.step(Submit{Last: true})
		want(t, name+": jobs", len(table.Jobs), 1)
		want(t, name+": damaged", table.Damaged, found != nil)
		want(t, name, s.job(1).State.String(), map[bool]string{false: "queued", true: "succeeded"}[found != nil])
	}
}
