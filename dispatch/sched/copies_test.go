package sched

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"dcs-tui/jobs"
)

var success15s = jobs.Outcome{Signal: "SIGTERM", Stopped: true}

// TestRunningJobIsCopiedToAFreeSlot checks that a running job is copied when slots are free and no
// job waits (D3). The number of copies and of tries limits this, and both the run and the job must
// allow it.
func TestRunningJobIsCopiedToAFreeSlot(t *testing.T) {
	for _, tt := range []struct {
		name string
		cfg  Config
		opts jobs.Options
		want string
	}{
		{"copied", Config{Copies: 2}, jobs.Options{}, "running: a running, b launching"},
		{"three at a time", Config{Copies: 3}, jobs.Options{}, "running: a running, b launching, c launching"},
		{"within its tries", Config{Copies: 3, Tries: 2}, jobs.Options{}, "running: a running, b launching"},
		{"within the job's tries", Config{Copies: 3}, jobs.Options{Tries: 1}, "running: a running"},
		{"not unless asked", Config{}, jobs.Options{}, "running: a running"},
		{"not if the job says so", Config{Copies: 2}, jobs.Options{NoCopies: true}, "running: a running"},
		{"not where it cannot run", Config{Copies: 3}, jobs.Options{Tags: []string{"big"}},
			"running: a running, b launching"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a, b := testHost("a", 1), testHost("b", 1)
			a.Tags, b.Tags = []string{"big"}, []string{"big"}
			s := newStage(t, tt.cfg, a, b, testHost("c", 1))
			s.up("a")
			s.submit(true, &tt.opts)
			s.started("a", "1.1")
			s.up("b", "c")
			s.wait(10*time.Second, "a", "b", "c")
			want(t, "job 1", s.history(1), tt.want)
		})
	}
}

// TestFirstSuccessOfCopiesCounts checks that the first success is the job's result, and that the
// other attempt is stopped without a charge. After a failure, the job depends on the other attempt.
func TestFirstSuccessOfCopiesCounts(t *testing.T) {
	for _, tt := range []struct {
		name string
		ends func(s *stage)
		want string
	}{
		{"the copy succeeds", func(s *stage) { s.ended("b", "1.2", succeeded); s.ended("a", "1.1", success15s) },
			"succeeded: a superseded, b exited"},
		{"the original succeeds", func(s *stage) { s.ended("a", "1.1", succeeded); s.ended("b", "1.2", success15s) },
			"succeeded: a exited, b superseded"},
		{"both succeed", func(s *stage) { s.ended("b", "1.2", succeeded); s.ended("a", "1.1", succeeded) },
			"succeeded: a superseded, b exited"},
		{"the copy fails", func(s *stage) { s.ended("b", "1.2", exit1); s.ended("a", "1.1", succeeded) },
			"succeeded, 1 failure: a exited, b exited"},
		{"both fail", func(s *stage) { s.ended("b", "1.2", exit1); s.ended("a", "1.1", exit1) },
			"failed, 2 failures: a exited, b exited"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := stageWithJobs(t, 1, Config{Copies: 2, Tries: 2}, testHost("a", 1), testHost("b", 1))
			s.started("a", "1.1")
			s.wait(5*time.Second, "a", "b")
			s.started("b", "1.2")
			tt.ends(s)
			want(t, "job 1", s.history(1), tt.want)
			want(t, "its result", s.job(1).Seq, 1)
			want(t, "open attempts", len(s.c.inFlight), 0)
		})
	}
}

// TestNoJobWaitsBecauseOfACopy checks that no job waits because of a copy.
func TestNoJobWaitsBecauseOfACopy(t *testing.T) {
	s := stageWithJobs(t, 3, Config{Copies: 2}, testHost("a", 1), testHost("b", 1))
	s.started("a", "1.1")
	s.started("b", "2.1")
	s.wait(10*time.Second, "a", "b")
	s.ended("b", "2.1", succeeded)
	s.wantState(3, jobs.Running)
	s.started("b", "3.1")
	s.wait(10*time.Second, "a", "b")
	want(t, "job 1 while job 3 needs the slot", s.history(1), "running: a running")
	s.ended("b", "3.1", succeeded)
	s.wait(5*time.Second, "a", "b")
	want(t, "job 1", s.history(1), "running: a running, b launching")
}

// TestStragglerIsCopiedBeforeWaitingJobsStart checks that a straggler gets its second attempt
// before waiting jobs start (D4).
func TestStragglerIsCopiedBeforeWaitingJobsStart(t *testing.T) {
	s := stageWithJobs(t, 20, Config{Copies: 2}, testHost("a", 1), testHost("b", 1))
	s.started("a", "1.1")
	for id := 2; id <= 12 && len(s.job(1).Attempts) == 1; id++ {
		s.started("b", fmt.Sprintf("%d.1", id))
		s.wait(time.Second, "a", "b")
		s.ended("b", fmt.Sprintf("%d.1", id), succeeded)
	}
	s.wait(10*time.Second, "a", "b")
	for _, id := range []jobs.ID{13, 14, 15} { // whichever of them runs on b
		if s.job(id).State == jobs.Running {
			s.ended("b", fmt.Sprintf("%d.1", id), succeeded)
		}
	}
	want(t, "job 1", s.history(1), "running: a running, b launching")
}

// TestStragglerIsCopiedWhileAHostRests checks that a straggler gets the next slot on another host although
// jobs wait and a host on trial, which rests, has free slots: they are free for no job.
func TestStragglerIsCopiedWhileAHostRests(t *testing.T) {
	s := newStage(t, Config{Copies: 2}, testHost("a", 1), testHost("b", 1), testHost("bad", 4))
	s.up("a", "b", "bad")
	s.letRest("bad", time.Hour)
	s.submitPlain(500)
	s.started("a", "1.1")
	for n := 0; n < 100 && len(s.job(1).Attempts) == 1; n++ {
		s.started("b", s.attemptsOn("b")[0].String())
		s.wait(time.Second, "a", "b", "bad")
		s.endAfter("b", s.attemptsOn("b")[0].String(), time.Second)
	}
	want(t, "free slots of the host that rests", s.c.byName["bad"].freeSlots(), 4)
	want(t, "hosts of the straggler", s.hostsOf(1), "a b")
}

// TestHostsThatTakeNoCopyGetJobsAhead checks that a host gets jobs ahead of need while a straggler waits for a
// slot, if it is on trial because of jobs like the straggler (D4, B3).
func TestHostsThatTakeNoCopyGetJobsAhead(t *testing.T) {
	s := newStage(t, Config{Copies: 2}, testHost("a", 1), testHost("b", 1))
	s.up("a")
	s.submit(false, repeatOptions(7, &jobs.Options{Queue: "slow"})...)
	for range 6 {
		s.endFirst("a", s.quickOutcome())
	}
	s.started("a", "7.1")
	s.up("b")
	s.submit(true, repeatOptions(100, &jobs.Options{Queue: "other"})...)
	s.letRestFrom("b", 7, time.Hour)
	s.wait(10*time.Second, "a", "b")
	want(t, "a straggler", s.isStraggler(7), true)
	s.endFirst("b", s.quickOutcome())
	wantBetween(t, "jobs on b", len(s.attemptsOn("b")), 2, 100)
}

// TestOrderOfCopies checks the order in which jobs are copied: first the jobs of a host that
// does not answer, then stragglers, then others. The run does not wait for the host once it has all
// results (D3, D4).
func TestOrderOfCopies(t *testing.T) {
	s := newStage(t, Config{Copies: 2}, testHost("a", 2), testHost("b", 2), testHost("c", 1))
	s.up("a", "b")
	s.submit(true, &jobs.Options{Estimate: time.Hour}, jobs.NoOptions,
		&jobs.Options{Estimate: time.Second}, jobs.NoOptions)
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
				s.ended("c", fmt.Sprintf("%d.2", id), succeeded)
				if j.Attempts[0].Host == there {
					s.ended(there, fmt.Sprintf("%d.1", id), success15s)
				}
			}
		}
	}
	if len(order) != 4 || s.job(order[0]).Attempts[0].Host != gone || s.job(order[1]).Attempts[0].Host != gone {
		t.Fatalf("copied in the order %v, want the jobs of %s first", order, gone)
	}
	want(t, "finish, although a host is away", s.finishText(), "done")
}

// TestCopiesAtSubmit checks that with CopyAtSubmit a job starts with all its attempts if that many
// more slots are free than jobs are queued, and that no job waits because of them (D2, D3). Other
// jobs are not copied later unless they are stragglers or their host is silent.
func TestCopiesAtSubmit(t *testing.T) {
	for _, tt := range []struct {
		name string
		cfg  Config
		opts []*jobs.Options
		want []string // the hosts of each job's attempts
	}{
		{"three more slots than jobs", Config{Copies: 3}, repeatOptions(1, jobs.NoOptions), []string{"a b c"}},
		{"two more slots than jobs", Config{Copies: 3}, repeatOptions(2, jobs.NoOptions), []string{"a", "b"}},
		{"the first of two jobs", Config{Copies: 2}, repeatOptions(2, jobs.NoOptions), []string{"a c", "b"}},
		{"as many slots as jobs", Config{Copies: 2}, repeatOptions(4, jobs.NoOptions), []string{"a", "b", "c", "d"}},
		{"one more slot than jobs", Config{Copies: 2}, repeatOptions(3, jobs.NoOptions), []string{"a", "b", "c"}},
		{"more jobs than slots", Config{Copies: 2}, repeatOptions(5, jobs.NoOptions), []string{"a", "b", "c", "d", ""}},
		{"within their tries", Config{Copies: 3, Tries: 2}, repeatOptions(1, jobs.NoOptions), []string{"a b"}},
		{"not if the job says so", Config{Copies: 3}, []*jobs.Options{{NoCopies: true}}, []string{"a"}},
		{"within the slots of the run", Config{Copies: 3, MaxSlots: 3}, repeatOptions(1, jobs.NoOptions),
			[]string{"a"}},
		{"not unless asked", Config{}, repeatOptions(1, jobs.NoOptions), []string{"a"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.cfg.CopyAt = CopyAtSubmit
			s := connectedStage(t, tt.cfg, testHost("a", 1), testHost("b", 1), testHost("c", 1), testHost("d", 1))
			s.submit(true, tt.opts...)
			for i, hosts := range tt.want {
				want(t, fmt.Sprintf("hosts of job %d", i+1), s.hostsOf(jobs.ID(i+1)), hosts)
			}
			for i := range tt.opts {
				for _, a := range s.job(jobs.ID(i + 1)).Attempts {
					s.started(a.Host, a.ID.String())
				}
			}
			s.wait(10*time.Second, "a", "b", "c", "d")
			for i, hosts := range tt.want {
				want(t, fmt.Sprintf("later, hosts of job %d", i+1), s.hostsOf(jobs.ID(i+1)), hosts)
			}
		})
	}
}

// TestSlotsOfHostsOnTrialAreNotIdle checks that with CopyAtSubmit a host on trial has at most one idle slot,
// and none while it rests.
func TestSlotsOfHostsOnTrialAreNotIdle(t *testing.T) {
	for _, tt := range []struct {
		name string
		b    int // slots of b
		rest time.Duration
		want string // the hosts of the job
	}{
		{"one slot is idle", 1, time.Hour, "a"},
		{"two slots are idle", 2, time.Hour, "b a"},
		{"one slot of a host on trial is idle", 0, 0, "a"},
		{"two slots are idle, of which one is of a host on trial", 1, 0, "a b"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cfg := Config{Copies: 2, CopyAt: CopyAtSubmit}
			s := newStage(t, cfg, testHost("a", 1), testHost("b", tt.b), testHost("bad", 4))
			s.up("a", "bad")
			if tt.b > 0 {
				s.up("b")
			}
			s.letRest("bad", tt.rest)
			s.submitPlain(1)
			want(t, "hosts", s.hostsOf(1), tt.want)
		})
	}
}

// TestCopiesOnTheSameHost checks that with CopyOnAny a copy runs on the host of another attempt of
// its job only if no other host has a free slot, and that it never does without (D3).
func TestCopiesOnTheSameHost(t *testing.T) {
	for _, tt := range []struct {
		name string
		cfg  Config
		want string // the hosts of the attempts
	}{
		{"others", Config{Copies: 3}, "a b"},
		{"any", Config{Copies: 3, CopyOn: CopyOnAny}, "a b a"},
		{"at once", Config{Copies: 3, CopyOn: CopyOnAny, CopyAt: CopyAtSubmit}, "a b a"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := connectedStage(t, tt.cfg, testHost("a", 3), testHost("b", 1))
			s.submit(true, jobs.NoOptions)
			for range 3 {
				for _, a := range s.job(1).Attempts {
					if a.State == jobs.AttemptLaunching {
						s.started(a.Host, a.ID.String())
					}
				}
				s.wait(3*time.Second, "a", "b")
			}
			want(t, "hosts", s.hostsOf(1), tt.want)
		})
	}
}

// hostsOf returns the hosts of all attempts of a job, in the order of their launches.
func (s *stage) hostsOf(id jobs.ID) string {
	var names []string
	for _, a := range s.job(id).Attempts {
		names = append(names, a.Host)
	}
	return strings.Join(names, " ")
}
