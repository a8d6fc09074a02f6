package forecast

import (
	"math"
	"math/rand/v2"
	"testing"

	"dcs-tui/internal/heap"
)

// span is the time from the start to the end of a job, in seconds.
type span struct{ from, at float64 }

func (s span) Before(o span) bool { return s.at < o.at }

// runAll simulates n jobs on the given number of slots. When the given number of jobs has ended, it
// makes a forecast. It returns the true remaining time and the forecast.
func runAll(draw func() float64, slots, n, when int) (truth, eta, spread float64) {
	var st RunTimes
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
		st.Add(x.at - x.from)
		truth = x.at
		start(x.at)
		if done++; done == when {
			asked = x.at
			w := Workload{Slots: float64(slots)}
			for _, r := range e {
				st.AddRunning("a", asked-r.from)
			}
			mean, dev, _ := st.Moments()
			l := NewDistribution(mean, dev)
			for _, r := range e {
				w.Running = append(w.Running, Running{l, asked - r.from, 1})
			}
			if left := n - next; left > 0 {
				w.Queues = []Queue{{l, float64(left), float64(left), st.N}}
			}
			eta, spread, _ = w.Forecast()
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
		{"uniform, the queue is nearly empty", func(r *rand.Rand) float64 { return 5 + 10*r.Float64() }, 8, 100, 88,
			0.85},
		{"uniform, all run", func(r *rand.Rand) float64 { return 5 + 10*r.Float64() }, 16, 100, 84, 0.92},
		{"normal, half done", func(r *rand.Rand) float64 { return max(1, 20+3*r.NormFloat64()) }, 16, 600, 300, 0},
		{"exponential, all run", func(r *rand.Rand) float64 { return 10 * r.ExpFloat64() }, 16, 200, 184, 0.85},
		{"log-normal, all run", func(r *rand.Rand) float64 { return 10 * math.Exp(0.6*r.NormFloat64()) }, 16, 200, 184,
			0},
		{"exponential, half done", func(r *rand.Rand) float64 { return 10 * r.ExpFloat64() }, 8, 600, 300, 0},
		{"exponential, few done", func(r *rand.Rand) float64 { return 10 * r.ExpFloat64() }, 4, 200, 40, 0},
		{"log-normal, half done", func(r *rand.Rand) float64 { return 10 * math.Exp(0.6*r.NormFloat64()) }, 8, 400, 200,
			0},
		{"two kinds, half done", func(r *rand.Rand) float64 { return 5 + 20*float64(r.IntN(2)) + r.Float64() }, 8, 400,
			200, 0},
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

// BenchmarkForecast measures a forecast with 10,000 running jobs.
func BenchmarkForecast(b *testing.B) {
	w := &Workload{Slots: 10_000, Queues: []Queue{{NewDistribution(100, 30), 1e6, 1e6, 500}}}
	for i := range 10_000 {
		w.Running = append(w.Running, Running{NewDistribution(100, 30), float64(i % 150), 1})
	}
	for b.Loop() {
		w.Forecast()
	}
}
