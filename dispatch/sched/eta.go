package sched

import (
	"math"
	"time"
)

// etaEvery is how long a forecast is good for: screens ask more often.
const etaEvery = time.Second

// mostGuessed is the share of the jobs at most of whose queues nothing is known: they are
// taken to be like the others.
const mostGuessed = 0.1

// leastSpread is the part of itself by which a forecast is off at least, whatever the
// laws say, while few jobs have ended and when no more wait: a job of another kind
// then counts for much.
const (
	leastSpread = 0.1
	fewFinished = 30
)

// doubt is the least spread of a forecast, seconds.
func (w *work) doubt(eta float64) float64 {
	sure := len(w.queues) > 0
	for _, q := range w.queues {
		sure = sure && q.finished >= fewFinished
	}
	if sure {
		return 1
	}
	return max(1, leastSpread*eta)
}

// lastETA is the newest forecast.
type lastETA struct {
	at          time.Duration
	known, ok   bool
	eta, spread time.Duration
}

// ETA returns how long it will be until all accepted jobs are over, as far as slots and
// run times tell: in about two of three cases eta ± spread (forecast.go). False: not
// known, because too few have finished, nothing is left, or nothing can be launched. Its
// cost is that of the queues and of what runs.
func (c *Core) ETA(now Time) (eta, spread time.Duration, ok bool) {
	l := &c.lastETA
	if !l.known || now.Mono-l.at >= etaEvery || now.Mono < l.at {
		w, known := c.workLeft(now)
		*l = lastETA{at: now.Mono, known: true}
		if known {
			e, s, ok := w.forecast()
			l.eta, l.spread, l.ok = seconds(e), seconds(max(s, w.doubt(e))), ok
		}
	}
	return max(0, l.eta-(now.Mono-l.at)), l.spread, l.ok
}

// workLeft gathers what is left; false when too little is known of it.
func (c *Core) workLeft(now Time) (*work, bool) {
	w := &work{running: make([]runs, 0, len(c.flights))}
	for _, st := range c.queues {
		st.handed, st.handedSlots = 0, 0
	}
	for _, h := range c.hosts {
		w.slots += float64(h.limit)
	}
	if n := float64(c.cfg.MaxSlots); n > 0 {
		w.slots = min(w.slots, n)
	}
	for _, h := range c.everyHost() {
		for f := h.head; f != nil; f = f.next {
			if !f.started && !f.killed {
				f.stats.handed++
				f.stats.handedSlots += f.slots
			}
		}
	}
	like, known := c.lawOfAll()
	guessed, all := 0.0, 0.0
	for _, st := range c.queues {
		if c.drain != "" { // it is left to another dispatcher
			st.law, _, _ = st.lawFor(like)
			continue
		}
		q := queued{n: float64(st.queued + st.handed), slots: float64(st.slots + st.handedSlots)}
		sure := false
		if q.law, q.finished, sure = st.lawFor(like); !sure {
			guessed += q.n
		}
		st.law = q.law
		if all += q.n; q.n > 0 {
			w.queues = append(w.queues, q)
		}
	}
	for _, h := range c.everyHost() {
		for f := h.head; f != nil; f = f.next {
			if !f.started || f.killed || f.over {
				continue
			}
			r := runs{law: f.stats.law, age: f.age(now.Mono).Seconds(), slots: float64(f.slots)}
			if left, ok := f.said.left(r.age); ok {
				r.law, r.age = left, 0 // what it says counts more than what others took
			} else if f.stats.n < leastFinished && f.spec.Estimate > 0 {
				r.law = guess(f.spec.Estimate.Seconds())
			} else if f.stats.n < leastFinished {
				guessed++
			}
			all++
			w.running = append(w.running, r)
		}
	}
	return w, guessed == 0 || known && guessed <= mostGuessed*all
}

// lawFor returns the law of a queue's run times and from how many jobs it is known; not
// sure: it is that of all queues.
func (st *runStats) lawFor(like law) (l law, finished int, sure bool) {
	if mean, dev, ok := st.moments(0); ok {
		return lawOf(mean, dev), st.n, true
	}
	if st.guessed > 0 && st.guessed == st.queued {
		return guess(st.guess / float64(st.guessed)), leastFinished, true
	}
	return like, leastFinished, false
}

// guess is the law of jobs of which only their user's estimate is known.
func guess(mean float64) law { return lawOf(mean, mean/2) }

// lawOfAll is that of the jobs of all queues together.
func (c *Core) lawOfAll() (law, bool) {
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
		return lawOf(1, 1), false
	}
	mean := sum / float64(n)
	return lawOf(mean, math.Sqrt(max(0, squares/float64(n)-mean*mean))), true
}
