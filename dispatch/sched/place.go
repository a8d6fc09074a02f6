package sched

import (
	"cmp"
	"math"
	"slices"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// place launches what can be launched now: the most urgent job first, each on the
// host with the most free slots, then some ahead of need (buffer.go).
func (c *Core) place() {
	c.limits()
	if c.keeper != nil && !c.canKeep(c.keeper) {
		c.keep(nil)
	}
	c.reportHolds()
	if c.closed() || c.queue.ready == 0 {
		c.balance()
		c.copyRunning()
		return
	}
	c.copyRunning()
	wide := c.wide()
	if c.hasFreeSlot() || wide {
		line := c.candidates()
		c.launchShortest(&line)
		stuck := c.launchFrom(&line)
		if wide {
			c.reserve(stuck, line)
		}
	}
	c.fillBuffers()
	c.balance()
}

// launchFrom launches from the line what has room now, and returns the classes
// whose next job has none, in the order of their ranks.
func (c *Core) launchFrom(l *candidates) (stuck []*class) {
	for len(*l) > 0 && c.hasFreeSlot() {
		i := l.first()
		w := &(*l)[i]
		h := c.choose(w.class)
		if h == nil {
			if (c.keeper == nil || !c.isKeptFrom(c.keeper, w.class)) && c.lacking(w.class) && c.canKeep(w.class) {
				c.keep(w.class)
			}
			stuck = append(stuck, w.class)
			l.take(i)
			continue
		}
		c.launchAt(l, i, h)
	}
	return stuck
}

// launchAt launches the head of a class in the line on a host.
func (c *Core) launchAt(l *candidates, i int, h *host) {
	w := &(*l)[i]
	if h.reserved == w.class {
		h.reserved = nil
	}
	if c.keeper == w.class {
		c.keep(nil)
	}
	w.class.stuckSince = 0
	c.launch(w.id, h)
	c.launchAfter = c.now.Mono + c.cfg.Delay
	if w.class.n == 0 {
		l.take(i)
		return
	}
	w.id, w.rank = w.class.head(c)
}

// delayed reports whether the next launch waits for the delay after the last one.
func (c *Core) delayed() bool { return c.cfg.Delay > 0 && c.now.Mono < c.launchAfter }

// closed reports whether nothing more may be launched.
func (c *Core) closed() bool {
	return c.Paused() || c.drain != "" || c.stopped || c.fenced || c.finished || c.reconcileUntil > 0 || len(c.requests) > 0 ||
		c.hardnessPending()
}

// roomLeft reports whether any slot is free at all: most steps end here.
func (c *Core) hasFreeSlot() bool {
	if c.slots.limit >= 0 && c.slots.used >= c.slots.limit || c.delayed() {
		return false
	}
	for _, h := range c.hosts {
		if h.limit > h.occupied {
			return true
		}
	}
	return false
}

// Idle reports whether a slot stands idle that may be used.
func (c *Core) Idle() bool { return c.hasFreeSlot() && !c.closed() }

// waiting is a class in the line, with its head.
type candidate struct {
	class *class
	id    jobs.ID
	rank  rank
}

// before reports whether it goes before another: jobs of failed hosts, then those of the
// queue whose turn it is, then by priority and deadline, then who came first.
func (w *candidate) before(o *candidate) bool {
	if w.rank.notUrgent != o.rank.notUrgent {
		return o.rank.notUrgent
	}
	if d := w.class.stats.share.compare(&o.class.stats.share); d != 0 {
		return d < 0
	}
	if d := w.rank.compare(o.rank); d != 0 {
		return d < 0
	}
	return w.id < o.id
}

// line holds the classes with ready jobs, in no order: a launch changes whose turn it
// is, so that the first is looked for each time. There are as many as there are queues
// times kinds of requirements.
type candidates []candidate

// first returns the index of the one that goes before all others.
func (l candidates) first() int {
	best := 0
	for i := 1; i < len(l); i++ {
		if l[i].before(&l[best]) {
			best = i
		}
	}
	return best
}

func (l candidates) sort() {
	slices.SortFunc(l, func(a, b candidate) int {
		if a.before(&b) {
			return -1
		}
		return 1
	})
}

// line returns the classes with ready jobs.
func (c *Core) candidates() candidates {
	c.updateLoads()
	l := make(candidates, 0, len(c.queue.list))
	for _, cl := range c.queue.list {
		if cl.epoch != c.queue.epoch {
			c.fit(cl)
		}
		if id, r := cl.head(c); id > 0 {
			l = append(l, candidate{cl, id, r})
		} else {
			c.Defects++ // a class without jobs is not in the list
		}
	}
	return l
}

// choose returns the host for a class's next job, nil if none has room now. Most
// free slots, weighted, win; among equals the first of the inventory.
func (c *Core) choose(cl *class) *host {
	if c.lacking(cl) {
		return nil
	}
	picky := cl.picky(c)
	var best *host
	var score float64
	for _, h := range c.hosts {
		free, _ := h.freeFor(cl.key.queue, cl.key.gpus)
		if free < cl.key.slots || !c.canRunOn(h, cl, picky) || !c.hasResources(h, cl) {
			continue
		}
		if s := float64(free) * weight(h); best == nil || s > score {
			best, score = h, s
		}
	}
	return best
}

func weight(h *host) float64 {
	if h.spec.Weight > 0 {
		return h.spec.Weight
	}
	return 1
}

// mayGo reports whether the class may be given to the host, room aside.
func (c *Core) canRunOn(h *host, cl *class, picky bool) bool {
	return h.acceptsJobs() && cl.fits[h.index] && c.hasTimeFor(h, cl.key.maxRunTime) && !c.isReservedFrom(h, cl) &&
		!(picky && cl.avoid[h.index]) && !(h.probation.onTrial() && h.open > 0)
}

// hasResources reports whether memory and GPUs suffice beside what is there.
func (c *Core) hasResources(h *host, cl *class) bool {
	k := cl.key
	if _, gpus := h.freeFor(k.queue, k.gpus); k.gpus > 0 && gpus < k.gpus.Devices() {
		return false
	}
	if k.mem == 0 || h.hello.MemBytes <= 0 {
		return true
	}
	return h.mem+k.mem <= h.hello.MemBytes-c.memoryOfOthers(h)
}

// picky reports whether jobs of the class avoid the hosts where they failed. They do
// while some other host could run them. Jobs that have waited for another host longer
// than their patience are in another class.
func (cl *class) picky(c *Core) bool { return cl.avoid != nil && cl.hasOtherHost(c, "") }

// hasOtherHost reports whether a host other than but takes work, could run the class,
// and has not failed any of its jobs.
func (cl *class) hasOtherHost(c *Core, but string) bool {
	return slices.ContainsFunc(c.hosts, func(h *host) bool {
		return h.acceptsJobs() && h.limit > 0 && cl.fits[h.index] && !(cl.avoid != nil && cl.avoid[h.index]) && h.spec.Name != but
	})
}

// The hybrid order: in a run with slots of this machine and of others, the local
// ones take the job first that is estimated to be the shortest, so that short jobs are
// over while remote hosts are still being connected to; the remote ones keep the common
// order. Jobs of failed hosts, the priorities of queues and of jobs, and deadlines go
// before; jobs whose run time nobody has estimated come last.

// bothKinds reports whether there are local hosts and others.
func bothKinds(hs []*hosts.Host) bool {
	local, remote := false, false
	for _, h := range hs {
		if h.Link == "local" {
			local = true
		} else {
			remote = true
		}
	}
	return local && remote
}

func (h *host) local() bool { return h.spec.Link == "local" }

// estimateSteps is how many classes of estimates there are for a factor of two: so
// many, and no more, whatever estimates a million jobs have.
const estimateSteps = 4

// estimateStep returns the class of a job's estimate.
func (c *Core) estimateStep(s *jobs.Spec) int {
	if !c.hybrid || s.Estimate <= 0 {
		return 0
	}
	return max(1, int(math.Round(estimateSteps*math.Log2(float64(s.Estimate)))))
}

// estimate is what a job of the class is expected to take, seconds; infinite if nobody
// knows.
func (cl *class) estimate() float64 {
	switch {
	case cl.key.estimateStep > 0:
		return math.Exp2(float64(cl.key.estimateStep)/estimateSteps) / 1e9
	case cl.stats.share.meanRunTime > 0:
		return cl.stats.share.meanRunTime
	}
	return math.Inf(1)
}

// shorter is before for local slots.
func (w *candidate) shorterFirst(o *candidate) bool {
	if w.rank.notUrgent != o.rank.notUrgent {
		return o.rank.notUrgent
	}
	d := cmp.Or(cmp.Compare(w.class.stats.share.priority, o.class.stats.share.priority), w.rank.compareUrgency(o.rank),
		cmp.Compare(w.class.estimate(), o.class.estimate()))
	if d != 0 {
		return d < 0
	}
	return w.before(o)
}

// launchShort fills the local slots of a hybrid run.
func (c *Core) launchShortest(l *candidates) {
	if !c.hybrid {
		return
	}
	for _, h := range c.hosts {
		for h.local() && h.acceptsJobs() && len(*l) > 0 && !c.delayed() {
			best := -1
			for i := range *l {
				w := &(*l)[i]
				if (best < 0 || w.shorterFirst(&(*l)[best])) && c.fitsNow(h, w) {
					best = i
				}
			}
			if best < 0 {
				break
			}
			c.launchAt(l, best, h)
		}
	}
}

// fitsNow reports whether the host has room for a class's head now.
func (c *Core) fitsNow(h *host, w *candidate) bool {
	slots := w.class.key.slots
	free, _ := h.freeFor(w.class.key.queue, w.class.key.gpus)
	return free >= slots && !c.lacking(w.class) &&
		c.canRunOn(h, w.class, w.class.picky(c)) && c.hasResources(h, w.class)
}

// Hybrid reports whether slots of this machine take the shortest job first and the others do
// not.
func (c *Core) Hybrid() bool { return c.hybrid }
