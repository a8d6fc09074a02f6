package sched

import "math"

// work is what a forecast is made of.
type work struct {
	slots   float64 // that may be busy
	queues  []queued
	running []runs
}

// queued are the jobs of a queue that have not started.
type queued struct {
	law
	n        float64
	slots    float64 // that they need, all together
	finished int     // what the law is known from
}

// runs is a job that runs.
type runs struct {
	law
	age, slots float64
}

// mostLast bounds how many running jobs are looked at for which is the last: the others
// are taken to be like them.
const mostLast = 256

// forecast says in how many seconds all of it is done: in about two of three cases
// within eta ± spread. Slots are taken to be kept busy until the queue is empty, when in
// each of them a job is somewhere in its run; the last of those, or of what runs now, is the end.
// The spread has three parts: that of the sum of what is left, that of the means, which
// are known from few jobs, and that of the last job. Retries, order and jobs that wait for
// others are left out.
func (w *work) forecast() (eta, spread float64, ok bool) {
	var sum, variance, n, need, busy float64
	for _, r := range w.running {
		rest := r.rest(r.age)
		sum += rest * r.slots
		variance += sqr(min(rest, r.dev) * r.slots)
		busy += r.slots
	}
	for _, q := range w.queues {
		sum += q.mean * q.slots
		variance += q.n*sqr(q.dev*q.slots/max(q.n, 1)) + sqr(q.slots*q.dev)*student(q.finished)
		n += q.n
		need += q.slots
	}
	if n+float64(len(w.running)) == 0 || need > 0 && w.slots < 1 {
		return 0, 0, false
	}
	if need > 0 && w.slots-busy < need {
		at := max(0, sum/w.slots-w.meanLate(n)) // when the queue is empty
		places := min(n, w.slots*n/need)
		lo, hi := w.last(at, func(x float64) float64 { return math.Pow(1-w.late(x), places) })
		return at + (lo+hi)/2, math.Hypot(math.Sqrt(variance)/w.slots, (hi-lo)/2), true
	}
	// All of it runs, or can at once.
	lo, hi := w.last(0, func(x float64) float64 {
		p := 1.0
		for _, q := range w.queues {
			p *= math.Pow(1-q.exceeds(x), q.n)
		}
		return p
	})
	return (lo + hi) / 2, (hi - lo) / 2, true
}

func sqr(x float64) float64 { return x * x }

// student is the variance of a mean of so many, in variances of one, with what is not
// known of those.
func student(n int) float64 {
	f := float64(n)
	return (f - 1) / max(1, f-3) / max(f, 1)
}

// late is the chance that of the job in a slot more than x is left when the queue has
// just become empty: jobs of all queues, the more of those that take longer.
func (w *work) late(x float64) float64 {
	var p, all float64
	for _, q := range w.queues {
		p += q.slots * q.beyond(x)
		all += q.slots * q.mean
	}
	return min(1, p/all)
}

// meanLate is its mean, for as many slots as n jobs can be in.
func (w *work) meanLate(n float64) float64 {
	var squares, all float64
	for _, q := range w.queues {
		squares += q.slots * (q.mean*q.mean + q.dev*q.dev)
		all += q.slots * q.mean
	}
	return squares / all / 2 * min(1, n/w.slots)
}

// last returns the bounds of the middle two thirds of when the last job ends, seconds
// after at: of those that run now, and of others whose chance to be over by x is given.
func (w *work) last(at float64, others func(x float64) float64) (lo, hi float64) {
	step := (len(w.running) + mostLast - 1) / mostLast
	over := func(x float64) float64 {
		p := others(x)
		for i := 0; i < len(w.running) && p > 0; i += max(1, step) {
			k := float64(min(step, len(w.running)-i))
			r := &w.running[i]
			p *= math.Pow(r.overBy(r.age, at+x), k)
		}
		return p
	}
	return quantile(over, 1./6), quantile(over, 5./6)
}

// quantile returns the x at which a growing function of x reaches p.
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
