package sched

import (
	"time"

	"dcs-tui/dispatch/sched/forecast"
)

// etaInterval is how long a forecast is used, because screens ask more often.
const etaInterval = time.Second

// maxUnknownShare is the largest share of jobs in queues of unknown run times. Those jobs are
// assumed to be like the others.
const maxUnknownShare = 0.1

// etaCache is the newest forecast.
type etaCache struct {
	computedAt  time.Duration
	known, ok   bool
	eta, spread time.Duration
}

// isStalled reports whether an attempt waits for a silent host, or is suspended. A forecast treats
// its job as one that has not started.
func (c *Core) isStalled(f *inFlight) bool {
	return f.isSuspended() || c.isAwaited(f)
}

// isAwaited reports whether an attempt waits for a silent host.
func (c *Core) isAwaited(f *inFlight) bool {
	return !f.host.linked && c.now.Mono-f.host.lastReceivedAt >= f.host.suspectAfter &&
		!c.isHeartbeatFileChanging(f.host)
}

// awaitTime returns in how many seconds the last of the jobs that wait for silent hosts is done if
// these do not come back. ends is false if a job waits without a limit, as a suspended one does
// after a drain.
func (c *Core) awaitTime(now Time) (longest float64, ends bool) {
	var newest answers
	for _, h := range c.allHosts() {
		if c.drain != nil && h.status().Suspended > 0 {
			return 0, false
		}
		for f := h.oldest; f != nil && c.isAwaited(f); f = f.nextOnHost {
			if newest == nil {
				newest = c.newestAnswers()
			}
			a := c.awaitOf(f, newest)
			if a.kind == awaitForever {
				return 0, false
			}
			longest = max(longest, (a.until-now.Mono).Seconds()+f.stats.dist.Mean)
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
			e, s, ok := w.Forecast()
			wait, ends := c.awaitTime(now)
			e = max(e, c.poolTime(now), wait)
			l.eta, l.spread, l.ok = durationOfSeconds(e), durationOfSeconds(max(s, w.MinSpread(e))), ok && ends
		}
	}
	return max(0, l.eta-(now.Mono-l.computedAt)), l.spread, l.ok
}

// remainingWork returns the work that is left. ok is false if too little is known about it.
func (c *Core) remainingWork(now Time) (*forecast.Workload, bool) {
	w := &forecast.Workload{Running: make([]forecast.Running, 0, len(c.inFlight))}
	var runTimes []*forecast.RunTimes
	for _, st := range c.queues {
		st.sent, st.sentSlots = 0, 0
		runTimes = append(runTimes, &st.RunTimes)
	}
	for h := range c.everyHost() {
		w.Slots += float64(c.slotsFor(h, c.queue.kinds.Set))
	}
	if n := float64(c.cfg.MaxSlots); n > 0 {
		w.Slots = min(w.Slots, n)
	}
	for _, h := range c.allHosts() {
		for f := h.oldest; f != nil; f = f.nextOnHost {
			if !f.started && !f.killed || c.isStalled(f) {
				f.stats.sent++
				f.stats.sentSlots += f.slots
			}
		}
	}
	like, known := forecast.Pooled(runTimes)
	guessed, all := 0.0, 0.0
	for _, st := range c.queues {
		if c.drain != nil { // the rest is left to another dispatcher
			st.dist, _, _ = st.distribution(like)
			continue
		}
		q := forecast.Queue{N: float64(st.queued + st.sent), Slots: float64(st.queuedSlots + st.sentSlots)}
		sure := false
		q.Distribution, q.NumFinished, sure = st.distribution(like)
		if !sure {
			guessed += q.N
		}
		st.dist = q.Distribution
		all += q.N
		if q.N > 0 {
			w.Queues = append(w.Queues, q)
		}
	}
	for _, h := range c.allHosts() {
		for f := h.oldest; f != nil; f = f.nextOnHost {
			if !f.started || f.killed || f.hasOutcome || c.isStalled(f) {
				continue
			}
			r := forecast.Running{Distribution: f.stats.dist, Age: f.age(now.Mono).Seconds(), Slots: float64(f.slots)}
			if left, ok := f.progress.remaining(f.age(now.Mono)); ok {
				// Its progress is more precise than the run times of others.
				r.Distribution, r.Age = left, 0
			} else if f.stats.N < forecast.MinFinished && f.spec.Estimate > 0 {
				r.Distribution = forecast.Estimated(f.spec.Estimate.Seconds())
			} else if f.stats.N < forecast.MinFinished {
				guessed++
			}
			all++
			w.Running = append(w.Running, r)
		}
	}
	return w, guessed == 0 || known && guessed <= maxUnknownShare*all
}

// distribution returns the distribution of the queue's run times, and the number of jobs on which
// it is based. If there are too few, it returns like, which is that of all queues.
func (st *queueStats) distribution(like forecast.Distribution) (l forecast.Distribution, finished int, sure bool) {
	if mean, dev, ok := st.Moments(); ok {
		return forecast.NewDistribution(mean, dev), st.N, true
	}
	if st.estimated > 0 && st.estimated == st.queued {
		return forecast.Estimated(st.estimateSum / float64(st.estimated)), forecast.MinFinished, true
	}
	return like, forecast.MinFinished, false
}
