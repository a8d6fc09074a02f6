package sched

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/internal/heap"
	"dcs-tui/jobs"
)

// span is the time from the start to the end of a job, in seconds.
type span struct{ from, at float64 }

func (s span) Before(o span) bool { return s.at < o.at }

// runAll simulates n jobs on the given number of slots. When the given number of jobs has ended, it
// makes a forecast. It returns the true remaining time and the forecast.
func runAll(draw func() float64, slots, n, when int) (truth, eta, spread float64) {
	var st queueStats
	var e heap.Heap[span] // of the running jobs
	next := 0
	start := func(now float64) {
		if next < n {
			next++
			e.Push(span{now, now + draw()})
		}
	}
	for range slots {
		start(0)
	}
	asked := 0.0
	for done := 0; len(e) > 0; {
		x := e.Pop()
		st.add(x.at - x.from)
		truth = x.at
		start(x.at)
		if done++; done == when {
			asked = x.at
			w := workload{slots: float64(slots)}
			for _, r := range e {
				st.addCensored(asked - r.from)
			}
			mean, dev, _ := st.moments(0)
			l := newDistribution(mean, dev)
			for _, r := range e {
				w.running = append(w.running, runningJob{l, asked - r.from, 1})
			}
			if left := n - next; left > 0 {
				w.queues = []queuedJobs{{l, float64(left), float64(left), st.n}}
			}
			eta, spread, _ = w.forecast()
		}
	}
	return truth - asked, eta, spread
}

// TestEndIsWithinTheSpread checks that in about two of three cases the end falls within eta ±
// spread, whatever the distribution of run times and however many jobs are left. Near the end the
// share is higher if run times have no long tail, because the distribution assumes one.
func TestEndIsWithinTheSpread(t *testing.T) {
	for _, tt := range []struct {
		name           string
		draw           func(r *rand.Rand) float64
		slots, n, when int
		// 0 means 0.75; higher where run times are bounded, unlike the distribution.
		most float64
	}{
		{"uniform, a third done", func(r *rand.Rand) float64 { return 5 + 10*r.Float64() }, 8, 300, 100, 0},
		{"uniform, few done", func(r *rand.Rand) float64 { return 5 + 10*r.Float64() }, 8, 300, 24, 0},
		{"uniform, one slot", func(r *rand.Rand) float64 { return 5 + 10*r.Float64() }, 1, 60, 20, 0},
		{"uniform, the queue is nearly empty", func(r *rand.Rand) float64 { return 5 + 10*r.Float64() }, 8, 100, 88, 0.85},
		{"uniform, all run", func(r *rand.Rand) float64 { return 5 + 10*r.Float64() }, 16, 100, 84, 0.92},
		{"normal, half done", func(r *rand.Rand) float64 { return max(1, 20+3*r.NormFloat64()) }, 16, 600, 300, 0},
		{"exponential, all run", func(r *rand.Rand) float64 { return 10 * r.ExpFloat64() }, 16, 200, 184, 0.85},
		{"log-normal, all run", func(r *rand.Rand) float64 { return 10 * math.Exp(0.6*r.NormFloat64()) }, 16, 200, 184, 0},
		{"exponential, half done", func(r *rand.Rand) float64 { return 10 * r.ExpFloat64() }, 8, 600, 300, 0},
		{"exponential, few done", func(r *rand.Rand) float64 { return 10 * r.ExpFloat64() }, 4, 200, 40, 0},
		{"log-normal, half done", func(r *rand.Rand) float64 { return 10 * math.Exp(0.6*r.NormFloat64()) }, 8, 400, 200, 0},
		{"two kinds, half done", func(r *rand.Rand) float64 { return 5 + 20*float64(r.IntN(2)) + r.Float64() }, 8, 400, 200, 0},
	} {
		const seeds = 300
		within, bias, width := 0, 0.0, 0.0
		for seed := range uint64(seeds) {
			r := rand.New(rand.NewPCG(seed, 7))
			truth, eta, spread := runAll(func() float64 { return tt.draw(r) }, tt.slots, tt.n, tt.when)
			if math.Abs(truth-eta) <= spread {
				within++
			}
			bias += (eta - truth) / seeds
			width += spread / seeds
		}
		t.Logf("%-36s %5.1f %%, bias %.2f s, spread %.2f s", tt.name, 100*float64(within)/seeds, bias, width)
		if p := float64(within) / seeds; p < 0.60 || p > max(0.75, tt.most) {
			t.Errorf("%s: the end is within the spread in %.1f %% of the runs", tt.name, 100*p)
		}
	}
}

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
					ends = append(ends, hosts.StartedJob{Attempt: f.id, At: s.now().Wall + jobs.Stamp((10+10*r.Float64())*1e9)})
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

// BenchmarkETA measures a forecast with 10,000 running jobs.
func BenchmarkETA(b *testing.B) {
	w := &workload{slots: 10_000, queues: []queuedJobs{{newDistribution(100, 30), 1e6, 1e6, 500}}}
	for i := range 10_000 {
		w.running = append(w.running, runningJob{newDistribution(100, 30), float64(i % 150), 1})
	}
	for b.Loop() {
		w.forecast()
	}
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
