package sched

import (
	"math"
	"slices"
	"time"
)

// workload is the input of a forecast.
type workload struct {
	slots   float64 // slots that may be busy
	queues  []queuedJobs
	running []runningJob
}

// queuedJobs are the jobs of a queue that have not started.
type queuedJobs struct {
	distribution
	n           float64
	slots       float64 // slots that they need together
	numFinished int     // number of results on which the distribution is based
}

// runningJob is a job that runs.
type runningJob struct {
	distribution
	age, slots float64
}

// maxRunningSampled bounds the number of running jobs that are examined to find when the last one
// ends. Each stands for its neighbors.
const maxRunningSampled = 256

// forecast returns in how many seconds all work is done: within eta ± spread in about two of three
// cases. It assumes that the slots are busy until the queue is empty. At that time each slot holds
// a job that is partly done. The run ends with the last of those, or of the jobs that run now. The
// spread has three parts: that of the sum of the remaining work, that of the mean run times, which
// are based on few jobs, and that of the last job. Retries, the order of jobs, and dependencies are
// ignored.
func (w *workload) forecast() (eta, spread float64, ok bool) {
	var sum, variance, n, need, busy float64
	for _, r := range w.running {
		rest := r.expectedRemaining(r.age)
		sum += rest * r.slots
		variance += square(min(rest, r.dev) * r.slots)
		busy += r.slots
	}
	for _, q := range w.queues {
		sum += q.mean * q.slots
		variance += q.n*square(q.dev*q.slots/max(q.n, 1)) + square(q.slots*q.dev)*varianceOfMean(q.numFinished)
		n += q.n
		need += q.slots
	}
	if n+float64(len(w.running)) == 0 || need > 0 && w.slots < 1 {
		return 0, 0, false
	}
	if need > 0 && w.slots-busy < need {
		at := max(0, sum/w.slots-w.meanRemaining(n)) // when the queue is empty
		places := min(n, w.slots*n/need)
		lo, hi := w.lastEnd(at, func(x float64) float64 { return math.Pow(1-w.remainingSurvival(x), places) })
		return at + (lo+hi)/2, math.Hypot(math.Sqrt(variance)/w.slots, (hi-lo)/2), true
	}
	// all of it runs, or can run at once
	lo, hi := w.lastEnd(0, func(x float64) float64 {
		p := 1.0
		for _, q := range w.queues {
			p *= math.Pow(1-q.survival(x), q.n)
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
func (w *workload) remainingSurvival(x float64) float64 {
	var p, all float64
	for _, q := range w.queues {
		p += q.slots * q.expectedExcess(x)
		all += q.slots * q.mean
	}
	return min(1, p/all)
}

// meanRemaining returns the mean of that time over as many slots as n jobs can occupy.
func (w *workload) meanRemaining(n float64) float64 {
	var squares, all float64
	for _, q := range w.queues {
		squares += q.slots * (q.mean*q.mean + q.dev*q.dev)
		all += q.slots * q.mean
	}
	return squares / all / 2 * min(1, n/w.slots)
}

// lastEnd returns the middle two thirds of the distribution of the time at which the last job ends,
// in seconds after at. The jobs are those that run now, and others with the given completion
// probability.
func (w *workload) lastEnd(at float64, others func(x float64) float64) (lo, hi float64) {
	step := (len(w.running) + maxRunningSampled - 1) / maxRunningSampled
	over := func(x float64) float64 {
		p := others(x)
		for i := 0; i < len(w.running) && p > 0; i += max(1, step) {
			k := float64(min(step, len(w.running)-i))
			r := &w.running[i]
			p *= math.Pow(r.completionProbability(r.age, at+x), k)
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

// etaInterval is how long a forecast is used, because screens ask more often.
const etaInterval = time.Second

// maxUnknownShare is the largest share of jobs in queues of unknown run times. Those jobs are
// assumed to be like the others.
const maxUnknownShare = 0.1

// minRelativeSpread is the smallest spread of a forecast, relative to it, until fewFinished jobs
// have ended and while none is queued. A job of another kind has a large effect then.
const (
	minRelativeSpread = 0.1
	fewFinished       = 30
)

// minSpread returns the smallest spread of a forecast, in seconds.
func (w *workload) minSpread(eta float64) float64 {
	unsure := func(q queuedJobs) bool { return q.numFinished < fewFinished }
	if len(w.queues) > 0 && !slices.ContainsFunc(w.queues, unsure) {
		return 1
	}
	return max(1, minRelativeSpread*eta)
}

// etaCache is the newest forecast.
type etaCache struct {
	computedAt  time.Duration
	known, ok   bool
	eta, spread time.Duration
}

// isAwaited reports whether an attempt waits for a silent host. A forecast treats its job as one
// that has not started.
func (c *Core) isAwaited(f *inFlight) bool {
	return !f.host.linked && c.now.Mono-f.host.lastReceivedAt >= f.host.suspectAfter && !c.isHeartbeatFileChanging(f.host)
}

// awaitTime returns in how many seconds the last of the jobs that wait for silent hosts is done if
// these do not come back. ends is false if a job waits without a limit.
func (c *Core) awaitTime(now Time) (longest float64, ends bool) {
	var newest answers
	for _, h := range c.allHosts() {
		for f := h.oldest; f != nil && c.isAwaited(f); f = f.nextOnHost {
			if newest == nil {
				newest = c.newestAnswers()
			}
			a := c.awaitOf(f, newest)
			if a.kind == awaitForever {
				return 0, false
			}
			longest = max(longest, (a.until-now.Mono).Seconds()+f.stats.dist.mean)
		}
	}
	return longest, true
}

// ETA returns how long it takes until all accepted jobs are finished: within eta ± spread in about
// two of three cases. ok is false if that is not known, because too few jobs have finished, no job
// is left, or nothing can be launched. Its cost is proportional to the number of queues and of
// running attempts.
func (c *Core) ETA(now Time) (eta, spread time.Duration, ok bool) {
	l := &c.etaCache
	if !l.known || now.Mono-l.computedAt >= etaInterval || now.Mono < l.computedAt {
		w, known := c.remainingWork(now)
		*l = etaCache{computedAt: now.Mono, known: true}
		if known {
			e, s, ok := w.forecast()
			wait, ends := c.awaitTime(now)
			e = max(e, c.poolTime(now), wait)
			l.eta, l.spread, l.ok = durationOfSeconds(e), durationOfSeconds(max(s, w.minSpread(e))), ok && ends
		}
	}
	return max(0, l.eta-(now.Mono-l.computedAt)), l.spread, l.ok
}

// remainingWork returns the work that is left. ok is false if too little is known about it.
func (c *Core) remainingWork(now Time) (*workload, bool) {
	w := &workload{running: make([]runningJob, 0, len(c.inFlight))}
	for _, st := range c.queues {
		st.sent, st.sentSlots = 0, 0
	}
	for h := range c.everyHost() {
		w.slots += float64(h.limit)
	}
	if n := float64(c.cfg.MaxSlots); n > 0 {
		w.slots = min(w.slots, n)
	}
	for _, h := range c.allHosts() {
		for f := h.oldest; f != nil; f = f.nextOnHost {
			if !f.started && !f.killed || c.isAwaited(f) {
				f.stats.sent++
				f.stats.sentSlots += f.slots
			}
		}
	}
	like, known := c.pooledDistribution()
	guessed, all := 0.0, 0.0
	for _, st := range c.queues {
		if c.drainReason != "" { // the rest is left to another dispatcher
			st.dist, _, _ = st.distribution(like)
			continue
		}
		q := queuedJobs{n: float64(st.queued + st.sent), slots: float64(st.queuedSlots + st.sentSlots)}
		sure := false
		q.distribution, q.numFinished, sure = st.distribution(like)
		if !sure {
			guessed += q.n
		}
		st.dist = q.distribution
		all += q.n
		if q.n > 0 {
			w.queues = append(w.queues, q)
		}
	}
	for _, h := range c.allHosts() {
		for f := h.oldest; f != nil; f = f.nextOnHost {
			if !f.started || f.killed || f.hasOutcome || c.isAwaited(f) {
				continue
			}
			r := runningJob{distribution: f.stats.dist, age: f.age(now.Mono).Seconds(), slots: float64(f.slots)}
			if left, ok := f.progress.remaining(r.age); ok {
				// Its progress is more precise than the run times of others.
				r.distribution, r.age = left, 0
			} else if f.stats.n < minFinished && f.spec.Estimate > 0 {
				r.distribution = estimatedDistribution(f.spec.Estimate.Seconds())
			} else if f.stats.n < minFinished {
				guessed++
			}
			all++
			w.running = append(w.running, r)
		}
	}
	return w, guessed == 0 || known && guessed <= maxUnknownShare*all
}

// distribution returns the distribution of the queue's run times, and the number of jobs on which
// it is based. If there are too few, it returns like, which is that of all queues.
func (st *queueStats) distribution(like distribution) (l distribution, finished int, sure bool) {
	if mean, dev, ok := st.moments(0); ok {
		return newDistribution(mean, dev), st.n, true
	}
	if st.estimated > 0 && st.estimated == st.queued {
		return estimatedDistribution(st.estimateSum / float64(st.estimated)), minFinished, true
	}
	return like, minFinished, false
}

// estimatedDistribution is the distribution of run times for which only the user's estimate is
// known.
func estimatedDistribution(mean float64) distribution { return newDistribution(mean, mean/2) }

// pooledDistribution is the distribution of the run times of all queues together.
func (c *Core) pooledDistribution() (distribution, bool) {
	var sum, squares float64
	n := 0
	for _, st := range c.queues {
		if mean, dev, ok := st.moments(0); ok {
			k := float64(st.n)
			n += st.n
			sum += k * mean
			squares += k * (mean*mean + dev*dev)
		}
	}
	if n == 0 {
		return newDistribution(1, 1), false
	}
	mean := sum / float64(n)
	return newDistribution(mean, math.Sqrt(max(0, squares/float64(n)-mean*mean))), true
}

// distribution is a log-normal distribution of run times, in seconds, with the observed mean and
// standard deviation.
type distribution struct {
	mean, dev       float64
	logMean, logDev float64 // of the logarithm
}

func newDistribution(mean, dev float64) distribution {
	mean = max(mean, 1e-3)
	dev = max(dev, mean/100) // a deviation of zero would be overconfident
	s2 := math.Log1p(dev * dev / mean / mean)
	return distribution{mean, dev, math.Log(mean) - s2/2, math.Sqrt(s2)}
}

func normalCDF(x float64) float64 { return 0.5 * math.Erfc(-x/math.Sqrt2) }

// survival is the probability that a job takes longer than x.
func (l distribution) survival(x float64) float64 {
	if x <= 0 {
		return 1
	}
	return normalCDF((l.logMean - math.Log(x)) / l.logDev)
}

// expectedExcess is the mean of max(0, run time - x).
func (l distribution) expectedExcess(x float64) float64 {
	if x <= 0 {
		return l.mean - x
	}
	d := (l.logMean - math.Log(x)) / l.logDev
	return max(0, l.mean*normalCDF(d+l.logDev)-x*normalCDF(d))
}

// minSurvival is the probability below which the distribution does not describe a job any more.
const minSurvival = 1e-6

// expectedRemaining returns the mean remaining run time of a job of that age. A job that is too old
// for the distribution is assumed to take as long again.
func (l distribution) expectedRemaining(age float64) float64 {
	if p := l.survival(age); p > minSurvival {
		return l.expectedExcess(age) / p
	}
	return age
}

// completionProbability is the probability that a job of that age ends within x seconds.
func (l distribution) completionProbability(age, x float64) float64 {
	if x <= 0 {
		return 0
	}
	if p := l.survival(age); p > minSurvival {
		return 1 - min(1, l.survival(age+x)/p)
	}
	return 1 - math.Exp(-x/max(age, 1e-3))
}
