package sched

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// TestETA: from the core's own books, in a run that is driven to its end: nothing is said
// before enough is known, and the end comes about when it was said.
func TestETA(t *testing.T) {
	within, worlds := 0, 60
	for seed := range uint64(worlds) {
		r := rand.New(rand.NewPCG(seed, 3))
		s := newStage(t, Config{}, box("a", 4))
		s.up("a")
		s.plain(120)
		var ends []hosts.StartedJob // At: when it ends
		running := map[jobs.AttemptID]bool{}
		begin := func() { // what the helper does: the next one in each free slot
			h := s.c.hosts[0]
			m := &hosts.Started{}
			for f := h.head; f != nil && len(running) < 4; f = f.next {
				if !running[f.id] && !f.started {
					running[f.id] = true
					m.Jobs = append(m.Jobs, hosts.StartedJob{Attempt: f.id, Slot: 1, At: s.now().Wall})
					ends = append(ends, hosts.StartedJob{Attempt: f.id, At: s.now().Wall + jobs.Stamp((10+10*r.Float64())*1e9)})
				}
			}
			s.step(AttemptsStarted{"a", m})
		}
		begin()
		if _, _, ok := s.c.ETA(s.now()); ok {
			t.Fatal("known before any job has ended")
		}
		var said, spread, at time.Duration
		done := 0
		for len(ends) > 0 {
			first := 0
			for i := range ends {
				if ends[i].At < ends[first].At {
					first = i
				}
			}
			e := ends[first]
			ends = append(ends[:first], ends[first+1:]...)
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
				if later, _, _ := s.c.ETA(Time{s.at + etaEvery/2, s.now().Wall}); said-later != etaEvery/2 {
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

// TestETANotKnown: nothing is made up.
func TestETANotKnown(t *testing.T) {
	ready := func(opts ...*jobs.Options) *stage {
		s := newStage(t, Config{}, box("a", 1))
		s.up("a")
		s.submit(true, opts...)
		for i := range 5 {
			s.ranFor("a", fmt.Sprintf("%d.1", i+1), 10*time.Second)
		}
		return s
	}
	q := &jobs.Options{Queue: "new", QueuePriority: new(1)} // after the others
	n := jobs.NoOptions
	s := ready(n, n, n, n, n, n, n)
	eta, spread, ok := s.c.ETA(s.now())
	if !ok || eta < 15*time.Second || eta > 22*time.Second {
		t.Errorf("%s ± %s, %v; want about 20 s", eta, spread, ok)
	}
	s.at += etaEvery
	s.step(Pause{true})
	if _, _, ok := s.c.ETA(s.now()); ok {
		t.Error("known while paused")
	}
	s = ready(n, n, n, n, n, n, q, q)
	if _, _, ok := s.c.ETA(s.now()); ok {
		t.Error("known though nothing is known of most of what is left")
	}
	g := &jobs.Options{Queue: "new", QueuePriority: new(1), Estimate: 30 * time.Second}
	s = ready(n, n, n, n, n, g, g)
	if eta, _, ok := s.c.ETA(s.now()); !ok || eta < 50*time.Second || eta > 65*time.Second {
		t.Errorf("%s, %v; want about 60 s by their user's estimate", eta, ok)
	}
	s = newStage(t, Config{})
	if _, _, ok := s.c.ETA(s.now()); ok {
		t.Error("known without jobs")
	}
}

// BenchmarkETA is a forecast with 10,000 running jobs.
func BenchmarkETA(b *testing.B) {
	w := &work{slots: 10_000, queues: []queued{{lawOf(100, 30), 1e6, 1e6, 500}}}
	for i := range 10_000 {
		w.running = append(w.running, runs{lawOf(100, 30), float64(i % 150), 1})
	}
	for b.Loop() {
		w.forecast()
	}
}
