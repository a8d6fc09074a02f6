package sched

import (
	"fmt"
	"testing"
	"time"

	"dcs-tui/jobs"
)

// hostsOf returns the hosts and the states of a job's attempts, in order.
func (s *stage) hostsOf(id jobs.ID) (text string) {
	for _, a := range s.job(id).Attempts {
		text += fmt.Sprintf("%s %s; ", a.Host, a.State)
	}
	return text
}

var ended15 = jobs.Outcome{Signal: "SIGTERM", Stopped: true}

// TestCopies checks that a running job is copied when slots are free and no job waits (D3). The
// number of copies and of tries limits this, and both the run and the job must allow it.
func TestCopies(t *testing.T) {
	for _, tt := range []struct {
		name string
		cfg  Config
		opts jobs.Options
		want string
	}{
		{"copied", Config{Copies: 2}, jobs.Options{}, "a running; b launching; "},
		{"three at a time", Config{Copies: 3}, jobs.Options{}, "a running; b launching; c launching; "},
		{"within its tries", Config{Copies: 3, Tries: 2}, jobs.Options{}, "a running; b launching; "},
		{"within the job's tries", Config{Copies: 3}, jobs.Options{Tries: 1}, "a running; "},
		{"not unless asked", Config{}, jobs.Options{}, "a running; "},
		{"not if the job says so", Config{Copies: 2}, jobs.Options{NoCopies: true}, "a running; "},
		{"not where it cannot run", Config{Copies: 3}, jobs.Options{Tags: []string{"big"}}, "a running; b launching; "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a, b := box("a", 1), box("b", 1)
			a.Tags, b.Tags = []string{"big"}, []string{"big"}
			s := newStage(t, tt.cfg, a, b, box("c", 1))
			s.up("a")
			s.submit(true, &tt.opts)
			s.started("a", "1.1")
			s.up("b", "c")
			s.wait(10*time.Second, "a", "b", "c")
			if got := s.hostsOf(1); got != tt.want {
				t.Errorf("attempts %q, want %q", got, tt.want)
			}
		})
	}
}

// TestCopyEnds checks that the first success is the job's result, and that the other attempt is
// stopped without a charge. After a failure, the job depends on the other attempt.
func TestCopyEnds(t *testing.T) {
	for _, tt := range []struct {
		name   string
		ends   func(s *stage)
		want   string
		state  jobs.JobState
		failed int32
	}{
		{"the copy succeeds", func(s *stage) {
			s.ended("b", "1.2", okay)
			s.ended("a", "1.1", ended15)
		}, "a superseded; b exited; ", jobs.Succeeded, 0},
		{"the original succeeds", func(s *stage) {
			s.ended("a", "1.1", okay)
			s.ended("b", "1.2", ended15)
		}, "a exited; b superseded; ", jobs.Succeeded, 0},
		{"both succeed", func(s *stage) {
			s.ended("b", "1.2", okay)
			s.ended("a", "1.1", okay)
		}, "a superseded; b exited; ", jobs.Succeeded, 0},
		{"the copy fails", func(s *stage) {
			s.ended("b", "1.2", exit1)
			s.ended("a", "1.1", okay)
		}, "a exited; b exited; ", jobs.Succeeded, 1},
		{"both fail", func(s *stage) {
			s.ended("b", "1.2", exit1)
			s.ended("a", "1.1", exit1)
		}, "a exited; b exited; ", jobs.Failed, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newStage(t, Config{Copies: 2, Tries: 2}, box("a", 1), box("b", 1))
			s.up("a", "b")
			s.plain(1)
			s.started("a", "1.1")
			s.wait(5*time.Second, "a", "b")
			s.started("b", "1.2")
			tt.ends(s)
			j := s.job(1)
			if got := s.hostsOf(1); got != tt.want || j.State != tt.state || j.Failures != tt.failed || j.Seq != 1 {
				t.Errorf("attempts %q, %s, %d failures, result %d, want %q, %s, %d, 1", got, j.State, j.Failures, j.Seq, tt.want, tt.state, tt.failed)
			}
			if len(s.c.inFlight) > 0 || s.c.Defects > 0 {
				t.Errorf("%d attempts are open, %d defects", len(s.c.inFlight), s.c.Defects)
			}
		})
	}
}

// TestQueueBeforeCopies checks that no job waits because of a copy.
func TestQueueBeforeCopies(t *testing.T) {
	s := newStage(t, Config{Copies: 2}, box("a", 1), box("b", 1))
	s.up("a", "b")
	s.plain(3)
	s.started("a", "1.1")
	s.started("b", "2.1")
	s.wait(10*time.Second, "a", "b")
	s.ended("b", "2.1", okay)
	s.wantState(3, jobs.Running)
	s.started("b", "3.1")
	s.wait(10*time.Second, "a", "b")
	if got := s.hostsOf(1); got != "a running; " {
		t.Errorf("attempts %q while job 3 needs the slot", got)
	}
	s.ended("b", "3.1", okay)
	s.wait(5*time.Second, "a", "b")
	if got := s.hostsOf(1); got != "a running; b launching; " {
		t.Errorf("attempts %q, want a copy on b", got)
	}
}

// TestStragglerBeforeQueue checks that a straggler gets its second attempt before waiting jobs
// start (D4).
func TestStragglerBeforeQueue(t *testing.T) {
	s := newStage(t, Config{Copies: 2}, box("a", 1), box("b", 1))
	s.up("a", "b")
	s.plain(20)
	s.started("a", "1.1")
	for id := 2; id <= 12; id++ {
		s.started("b", fmt.Sprintf("%d.1", id))
		s.wait(time.Second, "a", "b")
		s.ended("b", fmt.Sprintf("%d.1", id), okay)
		if s.hostsOf(1) != "a running; " {
			break
		}
	}
	s.wait(10*time.Second, "a", "b")
	for _, id := range []jobs.ID{13, 14, 15} { // whichever of them runs on b
		if s.job(id).State == jobs.Running {
			s.ended("b", fmt.Sprintf("%d.1", id), okay)
		}
	}
	if got := s.hostsOf(1); got != "a running; b launching; " {
		t.Errorf("attempts %q, want a second one on b", got)
	}
}

// TestSuspectCopiedFirst checks the order in which jobs are copied: first the jobs of a host that
// does not answer, then stragglers, then others. The run does not wait for the host once it has all
// results (D3, D4).
func TestSuspectCopiedFirst(t *testing.T) {
	s := newStage(t, Config{Copies: 2}, box("a", 2), box("b", 2), box("c", 1))
	s.up("a", "b")
	s.submit(true, &jobs.Options{Estimate: time.Hour}, jobs.NoOptions, &jobs.Options{Estimate: time.Second}, jobs.NoOptions)
	for _, id := range []string{"1.1", "2.1", "3.1", "4.1"} {
		s.started(s.c.table.Attempt(attemptIDs(id)[0]).Host, id)
	}
	gone := s.job(2).Attempts[0].Host // runs job 2 and another one
	there := map[string]string{"a": "b", "b": "a"}[gone]
	s.wait(30*time.Second, there)
	s.up("c")
	var order []jobs.ID
	for range 10 {
		s.wait(3*time.Second, there, "c")
		for id := jobs.ID(1); id <= 4; id++ {
			if j := s.job(id); len(j.Attempts) == 2 && j.State == jobs.Running {
				order = append(order, id)
				s.started("c", fmt.Sprintf("%d.2", id))
				s.ended("c", fmt.Sprintf("%d.2", id), okay)
				if j.Attempts[0].Host == there {
					s.ended(there, fmt.Sprintf("%d.1", id), ended15)
				}
			}
		}
	}
	if len(order) != 4 || s.job(order[0]).Attempts[0].Host != gone || s.job(order[1]).Attempts[0].Host != gone {
		t.Fatalf("copied in the order %v, want the jobs of %s first", order, gone)
	}
	if s.finish == nil || s.finish.How != AllDone {
		t.Errorf("the run waits for %s though it has all results", gone)
	}
}
