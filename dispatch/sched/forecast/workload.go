package forecast

import (
	"math"
	"slices"
)

// Workload is the input of a forecast.
type Workload struct {
	Slots   float64 // slots that may be busy
	Queues  []Queue
	Running []Running
}

// Queue describes the jobs of a queue that have not started.
type Queue struct {
	Distribution
	N           float64
	Slots       float64 // slots that they need together
	NumFinished int     // number of results on which the distribution is based
}

// Running is a job that runs.
type Running struct {
	Distribution
	Age, Slots float64 // Age is in seconds
}

// maxRunningSampled bounds the number of running jobs that are examined to find when the last one
// ends. Each stands for its neighbors.
const maxRunningSampled = 256

// Forecast returns in how many seconds all work is done: within eta ± spread in about two of three
// cases. It assumes that the slots are busy until the queue is empty. At that time each slot holds
// a job that is partly done. The run ends with the last of those, or of the jobs that run now. The
// spread has three parts: that of the sum of the remaining work, that of the mean run times, which
// are based on few jobs, and that of the last job. Retries, the order of jobs, and dependencies are
// ignored.
func (w *Workload) Forecast() (eta, spread float64, ok bool) {
	var sum, variance, n, need, busy float64
	for _, r := range w.Running {
		rest := r.ExpectedRemaining(r.Age)
		sum += rest * r.Slots
		variance += square(min(rest, r.Dev) * r.Slots)
		busy += r.Slots
	}
	for _, q := range w.Queues {
		sum += q.Mean * q.Slots
		variance += q.N*square(q.Dev*q.Slots/max(q.N, 1)) + square(q.Slots*q.Dev)*varianceOfMean(q.NumFinished)
		n += q.N
		need += q.Slots
	}
	if n+float64(len(w.Running)) == 0 || need > 0 && w.Slots < 1 {
		return 0, 0, false
	}
	if need > 0 && w.Slots-busy < need {
		at := max(0, sum/w.Slots-w.meanRemaining(n)) // when the queue is empty
		places := min(n, w.Slots*n/need)
		lo, hi := w.lastEnd(at, func(x float64) float64 { return math.Pow(1-w.remainingSurvival(x), places) })
		return at + (lo+hi)/2, math.Hypot(math.Sqrt(variance)/w.Slots, (hi-lo)/2), true
	}
	// all of it runs, or can run at once
	lo, hi := w.lastEnd(0, func(x float64) float64 {
		p := 1.0
		for _, q := range w.Queues {
			p *= math.Pow(1-q.survival(x), q.N)
		}
		return p
	})
	return (lo + hi) / 2, (hi - lo) / 2, true
}

func square(x float64) float64 { return x * x }

// varianceOfMean returns the variance of a mean of n values, as a multiple of the variance of one
// value. It allows for the fact that this variance is estimated from the same values (Student's t).
func varianceOfMean(n int) float64 {
	f := float64(n)
	return (f - 1) / max(1, f-3) / max(f, 1)
}

// remainingSurvival returns the probability that the job in a slot needs more than x further
// seconds when the queue has just become empty. A slot is more likely to hold a long job.
func (w *Workload) remainingSurvival(x float64) float64 {
	var p, all float64
	for _, q := range w.Queues {
		p += q.Slots * q.expectedExcess(x)
		all += q.Slots * q.Mean
	}
	return min(1, p/all)
}

// meanRemaining returns the mean of that time over as many slots as n jobs can occupy.
func (w *Workload) meanRemaining(n float64) float64 {
	var squares, all float64
	for _, q := range w.Queues {
		squares += q.Slots * (q.Mean*q.Mean + q.Dev*q.Dev)
		all += q.Slots * q.Mean
	}
	return squares / all / 2 * min(1, n/w.Slots)
}

// lastEnd returns the middle two thirds of the distribution of the time at which the last job ends,
// in seconds after at. The jobs are those that run now, and others with the given completion
// probability.
func (w *Workload) lastEnd(at float64, others func(x float64) float64) (lo, hi float64) {
	step := (len(w.Running) + maxRunningSampled - 1) / maxRunningSampled
	over := func(x float64) float64 {
		p := others(x)
		for i := 0; i < len(w.Running) && p > 0; i += max(1, step) {
			k := float64(min(step, len(w.Running)-i))
			r := &w.Running[i]
			p *= math.Pow(r.completionProbability(r.Age, at+x), k)
		}
		return p
	}
	return quantile(over, 1./6), quantile(over, 5./6)
}

// quantile returns the x at which the increasing function f reaches p.
func quantile(f func(x float64) float64, p float64) float64 {
	hi := 1e-3
	for f(hi) < p && hi < 1e10 {
		hi *= 2
	}
	lo := hi / 2
	if hi <= 1e-3 {
		return 0
	}
	for range 20 {
		if mid := (lo + hi) / 2; f(mid) < p {
			lo = mid
		} else {
			hi = mid
		}
	}
	return hi
}

// minRelativeSpread is the smallest spread of a forecast, relative to it, until fewFinished jobs
// have ended and while none is queued. A job of another kind has a large effect then.
const (
	minRelativeSpread = 0.1
	fewFinished       = 30
)

// MinSpread returns the smallest spread of a forecast, in seconds.
func (w *Workload) MinSpread(eta float64) float64 {
	unsure := func(q Queue) bool { return q.NumFinished < fewFinished }
	if len(w.Queues) > 0 && !slices.ContainsFunc(w.Queues, unsure) {
		return 1
	}
	return max(1, minRelativeSpread*eta)
}
