package sched

import (
	"slices"
	"strings"
	"testing"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// TestCancel checks that queued jobs end at once and running jobs when their attempts do. Repeating
// the cancel changes nothing (K9).
func TestCancel(t *testing.T) {
	s := newStage(t, Config{}, box("a", 2))
	s.up("a")
	s.plain(4)
	s.started("a", "1.1 2.1")
	o := s.step(Cancel{Jobs: []jobs.ID{1, 3, 99}, Why: "not wanted"})
	s.wantState(3, jobs.Canceled)
	s.wantState(1, jobs.Running)
	want(t, "kill", said[Kill](o), "{a [1.1] not wanted}")
	want(t, "again", said[Kill](s.step(Cancel{Jobs: []jobs.ID{1, 3}})), "")
	s.ended("a", "1.1", jobs.Outcome{Signal: "SIGTERM", Stopped: true})
	s.wantState(1, jobs.Canceled)
	want(t, "reason", s.job(1).Reason, "not wanted")
	if a := s.job(1).Attempts[0]; a.State != jobs.AttemptCanceled || a.Outcome == nil {
		t.Errorf("attempt %+v", a)
	}
	s.step(Cancel{All: true})
	s.ended("a", "2.1", okay) // it ended before the cancel took effect
	s.wantState(2, jobs.Succeeded)
	s.step(AttemptsWithdrawn{"a", &hosts.Withdrawn{Attempts: attemptIDs("4.1")}})
	s.wantState(4, jobs.Canceled)
	if s.finish == nil || s.finish.How != AllDone {
		t.Errorf("finish %+v", s.finish)
	}
}

// TestCancelMany checks that a cancel of many jobs takes several bounded steps, and that nothing is
// launched in the meantime.
func TestCancelMany(t *testing.T) {
	s := newStage(t, Config{}, box("a", 1))
	s.plain(3*maxPerStep + 5)
	s.step(Cancel{All: true})
	for i := 0; len(s.c.requests) > 0 && i < 10; i++ {
		if len(s.records) > maxPerStep+10 {
			t.Fatalf("%d records in a step", len(s.records))
		}
		if i == 0 {
			want(t, "launched", on(s.up("a"), "a"), "")
		}
		at, ok := s.c.Next()
		if !ok || at != s.at+1 {
			t.Fatalf("no tick is asked for")
		}
		s.at = at
		s.step(Tick{})
	}
	if n := s.c.table.Counts[jobs.Canceled]; n != 3*maxPerStep+5 || s.finish == nil {
		t.Errorf("%d jobs canceled, finish %+v", n, s.finish)
	}
}

// TestCancelUnreachable checks that a cancel waits until the host returns or is given up.
func TestCancelUnreachable(t *testing.T) {
	s := newStage(t, Config{}, box("a", 1), box("b", 1), box("c", 1))
	s.up("a", "b", "c")
	s.plain(1)
	s.started("a", "1.1")
	s.step(down("a", hosts.Unreachable, "gone"))
	s.step(Cancel{All: true})
	s.wantState(1, jobs.Running)
	contains(t, "why", s.c.Why(s.now(), 1), "as soon as a can be reached or is given up")
	o := append(s.up("a"), s.probedAs("a", "1.1", hosts.IsRunning, nil)...)
	contains(t, "kill on return", said[Kill](o), "{a [1.1]")
	s.step(down("a", hosts.Unreachable, "gone"))
	s.wait(61*time.Second, "b", "c")
	s.wantState(1, jobs.Canceled)
	if s.finish == nil {
		t.Fatalf("the run goes on")
	}
	contains(t, "what may be left is named", s.journal[len(s.journal)-1].Reason, "1.1 on a")
}

// TestCancelBuffered checks that a canceled attempt that is found buffered when its host returns is
// killed. Attempts that a drain had withdrawn when the link broke are withdrawn again.
func TestCancelBuffered(t *testing.T) {
	s := newStage(t, Config{}, box("a", 2), box("b", 1))
	s.up("a")
	s.plain(2)
	s.step(down("a", hosts.Unreachable, "gone"))
	s.step(Cancel{Jobs: []jobs.ID{1}})
	s.up("a")
	contains(t, "kill", said[Kill](s.probedAs("a", "1.1 2.1", hosts.Buffered, nil)), "{a [1.1]")
	contains(t, "drain", said[Withdraw](s.step(Drain{})), "{a [2.1]}")
	s.step(down("a", hosts.Unreachable, "gone"))
	s.up("a")
	contains(t, "asked again", said[Withdraw](s.probedAs("a", "2.1", hosts.Buffered, nil)), "{a [2.1]}")
}

// TestRequeue checks that a requeue starts a new round with all tries, and that a finished run
// continues.
func TestRequeue(t *testing.T) {
	s := newStage(t, Config{Tries: 1}, box("a", 1))
	s.up("a")
	s.submit(true, &jobs.Options{After: []jobs.ID{2}}, jobs.NoOptions)
	s.ended("a", "2.1", exit1)
	s.wantState(1, jobs.Skipped)
	if s.finish == nil {
		t.Fatalf("the run goes on")
	}
	s.finish = nil
	o := s.step(Requeue{[]jobs.ID{1, 2}})
	want(t, "the one it comes after", on(o, "a"), "2.2")
	s.wantState(1, jobs.Queued)
	want(t, "then it", on(s.ended("a", "2.2", okay), "a"), "1.1")
	s.ended("a", "1.1", okay)
	if s.finish == nil || s.job(2).Round != 2 || s.c.table.Seq != 4 {
		t.Errorf("finish %+v, round %d, %d results", s.finish, s.job(2).Round, s.c.table.Seq)
	}
}

// TestRequeueWaitsForOldAttempt checks that a new round starts nothing while an attempt of the old
// round may be alive (promise 2).
func TestRequeueWaitsForOldAttempt(t *testing.T) {
	s := lostStage(t, Config{})
	s.ended("b", "2.1", okay)
	s.started("b", "1.2")
	s.up("a")
	s.probedAs("a", "1.1", hosts.HasExited, &okay) // 1.2 is being stopped
	s.step(Requeue{[]jobs.ID{1}})
	s.wantState(1, jobs.Queued)
	contains(t, "why", s.c.Why(s.now(), 1), "earlier round")
	o := s.ended("b", "1.2", okay) // too late: that round has its result
	if on(o, "a")+on(o, "b") != "1.3" || s.job(1).State != jobs.Running {
		t.Errorf("job 1 is %s, commands %v", s.job(1).State, o)
	}
}

// TestPauseRun checks that during a pause nothing starts, not even from the buffers, and that the
// run continues afterward.
func TestPauseRun(t *testing.T) {
	s := newStage(t, Config{}, box("a", 1))
	s.up("a")
	s.plain(3)
	want(t, "limit", said[SetLimit](s.step(Pause{true})), "{a 0}")
	contains(t, "why", s.c.Why(s.now(), 3), "paused")
	want(t, "paused", on(s.ended("a", "1.1", okay), "a"), "")
	o := s.step(Pause{false})
	want(t, "limit", said[SetLimit](o), "{a 1}")
	contains(t, "on", on(o, "a"), "2.1")
}

// TestDrain checks that a drain withdraws buffered jobs and finishes when nothing runs.
func TestDrain(t *testing.T) {
	s := newStage(t, Config{}, box("a", 1))
	s.up("a")
	s.plain(20)
	s.started("a", "1.1")
	s.ended("a", "1.1", okay)
	s.started("a", "2.1")
	want(t, "withdrawn", said[Withdraw](s.step(Drain{"asked"})), "{a [3.1]}")
	s.step(AttemptsWithdrawn{"a", &hosts.Withdrawn{Attempts: attemptIDs("3.1")}})
	if s.finish != nil {
		t.Fatalf("finished while a job runs")
	}
	want(t, "nothing more", on(s.ended("a", "2.1", okay), "a"), "")
	if s.finish == nil || s.finish.How != Drained || s.finish.Why != "asked" {
		t.Errorf("finish %+v", s.finish)
	}
	s.wantState(3, jobs.Queued)
}

// TestEndDrain checks that launching continues as before the drain. It does not end a drain with
// another reason, nor one that has finished.
func TestEndDrain(t *testing.T) {
	s := newStage(t, Config{}, box("a", 1))
	s.up("a")
	s.plain(20)
	s.started("a", "1.1")
	s.step(Drain{"asked"})
	s.step(EndDrain{Of: "the file STOP"})
	if s.c.Draining() != "asked" {
		t.Error("a drain for another reason was ended")
	}
	s.step(EndDrain{Why: "asked for by ada"})
	contains(t, "launched", on(s.ended("a", "1.1", okay), "a"), "2.1")
	s.step(Drain{"asked"})
	for f := s.c.hosts[0].head; f != nil; f = s.c.hosts[0].head {
		s.step(AttemptsWithdrawn{"a", &hosts.Withdrawn{Attempts: []jobs.AttemptID{f.id}}})
	}
	s.step(EndDrain{})
	if s.finish == nil || s.finish.How != Drained || s.c.Draining() == "" {
		t.Errorf("a drain that has finished was ended: %+v, %q", s.finish, s.c.Draining())
	}
}

// TestEndDrainOfHalt checks that failures from before the end of a drain are not counted again.
func TestEndDrainOfHalt(t *testing.T) {
	s := newStage(t, Config{Halt: Halt{Jobs: 1}, Tries: 1}, box("a", 2))
	s.up("a")
	s.plain(20)
	s.started("a", "2.1")
	s.ended("a", "1.1", exit1)
	if s.c.Draining() == "" {
		t.Fatal("--halt 1 does not drain")
	}
	s.step(EndDrain{Of: s.c.Draining()})
	s.ended("a", "2.1", okay)
	if s.c.Draining() != "" || s.finish != nil {
		t.Errorf("draining %q, finish %+v", s.c.Draining(), s.finish)
	}
	s.ended("a", "3.1", exit1)
	if s.c.Draining() == "" {
		t.Error("the next failure does not drain")
	}
}

// TestStop checks that a stop finishes at once and leaves running jobs open.
func TestStop(t *testing.T) {
	s := newStage(t, Config{}, box("a", 1))
	s.up("a")
	s.plain(2)
	s.step(Stop{"bye"})
	if s.finish == nil || s.finish.How != Stopped {
		t.Errorf("finish %+v", s.finish)
	}
	s.wantState(1, jobs.Running)
	want(t, "nothing more", on(s.ended("a", "1.1", okay), "a"), "")
}

// TestDrainHost checks that a drained host gets no jobs, and that with Now its jobs move elsewhere,
// uncharged (D7).
func TestDrainHost(t *testing.T) {
	s := newStage(t, Config{}, box("a", 1), box("b", 1))
	s.up("a", "b")
	s.plain(3)
	s.started("a", "1.1")
	s.started("b", "2.1")
	o := s.step(DrainHost{Host: "a", On: true, Now: true})
	contains(t, "kill", said[Kill](o), "{a [1.1]")
	s.ended("a", "1.1", jobs.Outcome{Stopped: true, Signal: "SIGTERM"})
	s.wantState(1, jobs.Queued)
	if s.job(1).Failures != 0 {
		t.Errorf("the move is charged")
	}
	if v := s.c.Hosts()[0]; v.State != Disabled || !v.Stopped {
		t.Errorf("host is %s", v.State)
	}
	want(t, "elsewhere", on(s.ended("b", "2.1", okay), "b"), "1.2")
	want(t, "used again", on(s.step(DrainHost{Host: "a"}), "a"), "3.1")
}

// TestHaltNow checks that a halt with Now also kills the running attempts, without charging their
// jobs.
func TestHaltNow(t *testing.T) {
	s := newStage(t, Config{Halt: Halt{Of: HaltOfSuccesses, Jobs: 1, Now: true}, Tries: 1}, box("a", 3))
	s.up("a")
	s.plain(5)
	s.started("a", "1.1")
	s.started("a", "2.1")
	o := s.ended("a", "1.1", okay)
	want(t, "launched", on(o, "a"), "")
	if got := said[Kill](o); !strings.Contains(got, "2.1") || s.c.Draining() != "1 job has succeeded" {
		t.Errorf("killed %q, draining %q", got, s.c.Draining())
	}
	want(t, "asked back", said[Withdraw](o), "{a [3.1]}")
	contains(t, "ended although it was asked back", said[Kill](s.started("a", "3.1")), "3.1")
	s.ended("a", "3.1", jobs.Outcome{Signal: "SIGTERM", Stopped: true})
	s.ended("a", "2.1", jobs.Outcome{Signal: "SIGTERM", Stopped: true})
	if j := s.c.table.Job(2); j.State != jobs.Queued || s.finish == nil || s.finish.How != Drained {
		t.Errorf("job 2 is %s, finish %+v", j.State, s.finish)
	}
}

// TestHalt checks that launching stops after the given number or share of failures, successes, or
// ends.
func TestHalt(t *testing.T) {
	for _, tt := range []struct {
		cfg  Config
		fail func(i int) bool
		want int // jobs ended when it drains; 0 means never
	}{
		{Config{Halt: Halt{Jobs: 3}}, func(i int) bool { return i%2 == 1 }, 5},
		{Config{Halt: Halt{Percent: 50}}, func(i int) bool { return i < 6 }, 10},
		{Config{Halt: Halt{Percent: 50}}, func(i int) bool { return i%3 == 0 }, 0},
		{Config{Halt: Halt{Jobs: 30}}, func(i int) bool { return true }, 0},
		{Config{Halt: Halt{Of: HaltOfSuccesses, Jobs: 2}}, func(i int) bool { return i != 4 && i != 7 }, 7},
		{Config{Halt: Halt{Of: HaltOfSuccesses, Percent: 20}}, func(i int) bool { return i < 11 }, 13},
		{Config{Halt: Halt{Of: HaltOfAll, Jobs: 6}}, func(i int) bool { return i%2 == 1 }, 6},
	} {
		tt.cfg.Tries = 1
		s := newStage(t, tt.cfg, box("a", 1))
		s.up("a")
		s.plain(25)
		ended := 0
		for i := range s.c.table.Jobs {
			if s.c.drain != "" {
				break
			}
			o := okay
			if tt.fail(i + 1) {
				o = exit1
			}
			s.ended("a", jobs.AttemptID{Job: jobs.ID(i + 1), N: 1}.String(), o)
			ended++
		}
		if tt.want == 0 {
			if s.c.drain != "" {
				t.Errorf("%+v drains after %d: %s", tt.cfg, ended, s.c.drain)
			}
			continue
		}
		if ended != tt.want {
			t.Errorf("%+v drains after %d jobs, want %d", tt.cfg, ended, tt.want)
		}
		for _, f := range slices.Collect(func(yield func(*inFlight) bool) {
			for f := s.c.hosts[0].head; f != nil && yield(f); f = f.next {
			}
		}) {
			s.step(AttemptsWithdrawn{"a", &hosts.Withdrawn{Attempts: []jobs.AttemptID{f.id}}})
		}
		if s.finish == nil || s.finish.How != Drained {
			t.Errorf("finish %+v", s.finish)
		}
	}
}

// TestAcked checks that an acknowledgment is recorded once, and only for results that exist.
func TestAcked(t *testing.T) {
	s := newStage(t, Config{}, box("a", 1))
	s.up("a")
	s.plain(1)
	s.ended("a", "1.1", okay)
	for _, n := range []int64{0, 2, 1, 1} {
		s.step(Acked{n})
	}
	n := 0
	for _, r := range s.journal {
		if r.Kind == jobs.KindAcked {
			n++
		}
	}
	if n != 1 || s.c.table.Acked != 1 {
		t.Errorf("%d records, acked %d", n, s.c.table.Acked)
	}
}

// TestSubmitGap checks that ids with a gap are reported as a defect and do not cause a crash.
func TestSubmitGap(t *testing.T) {
	c := New(Config{}, &jobs.Table{}, nil)
	c.Step(Time{}, Submit{Specs: []*jobs.Spec{{ID: 7, Options: jobs.NoOptions}}})
	if c.Defects != 1 || len(c.table.Jobs) != 0 {
		t.Errorf("%d defects, %d jobs", c.Defects, len(c.table.Jobs))
	}
}

// TestUnknownNames checks events about unknown hosts, jobs, and attempts.
func TestUnknownNames(t *testing.T) {
	s := newStage(t, Config{}, box("a", 1))
	s.step(HostUp{Host: "x", Hello: &hosts.Hello{}})
	s.step(HostBeat{"x", &hosts.Beat{}})
	s.step(HostBeat{"a", &hosts.Beat{}})
	s.step(down("x", hosts.Broken, "?"))
	s.step(HostDown{Host: "a"})
	s.step(HostRefused{"x", &hosts.Refused{Attempts: attemptIDs("5.5")}})
	s.started("x", "5.5")
	s.ended("x", "5.5", okay)
	s.step(AttemptsWithdrawn{"x", &hosts.Withdrawn{Attempts: attemptIDs("5.5")}})
	s.probedAs("x", "5.5", hosts.Dead, nil)
	s.step(Requeue{[]jobs.ID{5}})
	s.step(SetPriority{Jobs: []jobs.ID{5}, Priority: 1})
	s.step(DrainHost{Host: "x", On: true})
	want(t, "why", s.c.Why(s.now(), 5), "There is no job 5.")
}

// TestWarnedBeforeStop checks that the jobs of a stopped host are warned, and are killed after the
// warning time. A host that is used again in the meantime keeps its jobs (T2).
func TestWarnedBeforeStop(t *testing.T) {
	for _, again := range []bool{false, true} {
		s := newStage(t, Config{Warn: time.Minute}, box("a", 1))
		s.up("a")
		s.plain(1)
		s.started("a", "1.1")
		kills := func(commands []Command) (warned, killed int) {
			for _, o := range commands {
				switch o.(type) {
				case Warn:
					warned++
				case Kill:
					killed++
				}
			}
			return warned, killed
		}
		if warned, killed := kills(s.step(DrainHost{Host: "a", On: true, Now: true})); warned != 1 || killed != 0 {
			t.Errorf("%d warnings and %d kills at once, want 1 and 0", warned, killed)
		}
		if warned, killed := kills(s.wait(59*time.Second, "a")); warned != 0 || killed != 0 {
			t.Errorf("%d warnings and %d kills within a minute, want none", warned, killed)
		}
		if again {
			s.step(DrainHost{Host: "a"})
		}
		if _, killed := kills(s.wait(5*time.Second, "a")); killed != 1 && !again || killed != 0 && again {
			t.Errorf("used again %v: %d kills after a minute", again, killed)
		}
	}
}

// TestWithdrawnTooLate checks that a job that started although it was withdrawn counts as running,
// and is killed with the other jobs of its host.
func TestWithdrawnTooLate(t *testing.T) {
	s := newStage(t, Config{}, box("a", 1))
	s.up("a")
	s.plain(20)
	s.started("a", "1.1")
	s.ended("a", "1.1", okay)
	s.started("a", "2.1")
	want(t, "withdrawn", said[Withdraw](s.step(Drain{"asked"})), "{a [3.1]}")
	s.ended("a", "2.1", okay)
	s.started("a", "3.1")
	want(t, "ended", said[Kill](s.step(DrainHost{Host: "a", On: true, Now: true})), "{a [3.1] the host is being drained}")
}
