package sched

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// TestForecastsOfSimulatedRuns checks the forecast of the core in simulated runs. The core makes no
// forecast before enough is known. The end is within the spread in about two of three runs.
func TestForecastsOfSimulatedRuns(t *testing.T) {
	within, worlds := 0, 60
	for seed := range uint64(worlds) {
		r := rand.New(rand.NewPCG(seed, 3))
		s := stageWithJobs(t, 120, Config{}, testHost("a", 4))
		var ends []hosts.StartedJob // At is when the job ends
		running := map[jobs.AttemptID]bool{}
		begin := func() { // starts the next job in each free slot, as the helper does
			h := s.c.hosts[0]
			m := &hosts.Started{}
			for f := h.oldest; f != nil && len(running) < 4; f = f.nextOnHost {
				if !running[f.id] && !f.started {
					running[f.id] = true
					m.Jobs = append(m.Jobs, hosts.StartedJob{Attempt: f.id, Slot: 1, At: s.now().Wall})
					ends = append(ends, hosts.StartedJob{Attempt: f.id,
						At: s.now().Wall + jobs.Stamp((10+10*r.Float64())*1e9)})
				}
			}
			s.step(AttemptsStarted{"a", m})
		}
		begin()
		s.wantETA("before any job has ended", 0, 0)
		var said, spread, at time.Duration
		done := 0
		for len(ends) > 0 {
			slices.SortStableFunc(ends, func(a, b hosts.StartedJob) int { return cmp.Compare(a.At, b.At) })
			e := ends[0]
			ends = ends[1:]
			s.wait(max(0, time.Duration(e.At-s.now().Wall)), "a")
			delete(running, e.Attempt)
			o := jobs.Outcome{Ended: s.now().Wall, Started: s.job(e.Attempt.Job).Attempts[0].Started}
			s.ended("a", e.Attempt.String(), o)
			begin()
			if done++; done == 50 {
				ok := false
				at = s.at
				if said, spread, ok = s.c.ETA(s.now()); !ok || spread <= 0 {
					t.Fatalf("seed %d: %s ± %s, %v", seed, said, spread, ok)
				}
				if later, _, _ := s.c.ETA(Time{s.at + etaInterval/2, s.now().Wall}); said-later != etaInterval/2 {
					t.Errorf("half a second later it is %s, was %s", later, said)
				}
			}
		}
		if _, _, ok := s.c.ETA(Time{s.at + time.Hour, 0}); ok || s.finish == nil {
			t.Errorf("seed %d: known though nothing is left", seed)
		}
		if off := s.at - at - said; max(off, -off) <= spread {
			within++
		}
	}
	if p := 100 * within / worlds; p < 55 || p > 85 {
		t.Errorf("the end is within the spread in %d %% of %d runs", p, worlds)
	}
}

// TestETANotKnown checks that there is no forecast while too little is known.
func TestETANotKnown(t *testing.T) {
	ready := func(opts ...*jobs.Options) *stage {
		s := connectedStage(t, Config{}, testHost("a", 1))
		s.submit(true, opts...)
		s.endAllAfter("a", 5, 10*time.Second)
		return s
	}
	q := &jobs.Options{Queue: "new", QueuePriority: new(1)} // sorts after the others
	n := jobs.NoOptions
	s := ready(n, n, n, n, n, n, n)
	s.wantETA("known", 15*time.Second, 22*time.Second)
	s.at += etaInterval
	s.step(Pause{true})
	s.wantETA("while paused", 0, 0)
	s = ready(n, n, n, n, n, n, q, q)
	s.wantETA("of most of what is left nothing is known", 0, 0)
	g := &jobs.Options{Queue: "new", QueuePriority: new(1), Estimate: 30 * time.Second}
	s = ready(n, n, n, n, n, g, g)
	s.wantETA("by their user's estimate", 50*time.Second, 65*time.Second)
	s = newStage(t, Config{})
	s.wantETA("without jobs", 0, 0)
}

// TestSuspendedJobsDoNotProgress checks that the forecast treats suspended jobs as ones that have not
// started, on the slots of the other hosts, and that it knows no end if these do not do them.
func TestSuspendedJobsDoNotProgress(t *testing.T) {
	s := connectedStage(t, Config{}, testHost("a", 1), testHost("b", 1))
	s.submitPlain(9)
	for range 5 {
		s.endAfter("a", s.c.byName["a"].oldest.id.String(), 10*time.Second)
	}
	for _, h := range s.c.hosts {
		s.started(h.spec.Name, h.oldest.id.String())
	}
	hold := func(host string, is bool) {
		s.heartbeat(host, hosts.Heartbeat{Owner: hosts.Owner{Who: "alice", Suspend: is}})
		s.at += etaInterval
	}
	s.at += 8 * time.Second
	hold("b", false)
	s.wantETA("both run", 15*time.Second, 25*time.Second)
	hold("b", true)
	s.wantETA("b is suspended", 30*time.Second, 42*time.Second)
	s.step(Drain{Why: "a person asked"})
	s.at += etaInterval
	s.wantETA("drained", 0, 0)
	hold("b", false)
	s.at += etaInterval
	if _, _, ok := s.c.ETA(s.now()); !ok {
		t.Error("drained, and nothing is suspended: not known")
	}
}

// TestHostsOnTrialAreFewSlots checks that the forecast counts one slot of a host on trial, and none while it
// rests.
func TestHostsOnTrialAreFewSlots(t *testing.T) {
	s := connectedStage(t, Config{}, testHost("a", 1), testHost("bad", 9))
	s.letRest("bad", time.Hour)
	s.submitPlain(25)
	s.endAllAfter("a", 5, 10*time.Second)
	s.at += etaInterval
	s.wantETA("it rests", 180*time.Second, 220*time.Second)
	s.letRest("bad", 0)
	s.step(Tick{})
	s.at += etaInterval
	s.wantETA("it gets a job", 90*time.Second, 120*time.Second)
}

// TestETAOfLimitedJobs checks that the forecast respects tokens and --queue-slots, which let fewer
// jobs run at a time than there are slots (T7).
func TestETAOfLimitedJobs(t *testing.T) {
	for _, o := range []*jobs.Options{{Tokens: []jobs.Token{{Name: "m", Count: 1}}}, {QueueSlots: 1}} {
		s := connectedStage(t, Config{Tokens: []jobs.Token{{Name: "m", Count: 1}}}, testHost("a", 10))
		s.submit(true, slices.Repeat([]*jobs.Options{o}, 30)...)
		s.endAllAfter("a", 10, 10*time.Second)
		s.at += etaInterval
		s.wantETA(fmt.Sprintf("%+v", o), 150*time.Second, 250*time.Second)
	}
}
