package sched

import (
	"slices"

	"dcs-tui/jobs"
)

// place launches what can be launched now: the most urgent job first, each on the
// host with the most free slots, then some ahead of need (buffer.go).
func (c *Core) place() {
	c.limits()
	if c.keeper != nil && !c.mayKeep(c.keeper) {
		c.keep(nil)
	}
	c.tellHolds()
	if c.closed() || c.queue.ready == 0 {
		c.balance()
		c.copyIdle()
		return
	}
	wide := c.wide()
	if c.roomLeft() || wide {
		line := c.line()
		c.launchShort(&line)
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
func (c *Core) launchFrom(l *line) (stuck []*class) {
	for len(*l) > 0 && c.roomLeft() {
		i := l.first()
		w := &(*l)[i]
		h := c.choose(w.class)
		if h == nil {
			if (c.keeper == nil || !c.isKeptFrom(c.keeper, w.class)) && c.lacking(w.class) && c.mayKeep(w.class) {
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
func (c *Core) launchAt(l *line, i int, h *host) {
	w := &(*l)[i]
	if h.reserved == w.class {
		h.reserved = nil
	}
	if c.keeper == w.class {
		c.keep(nil)
	}
	w.class.stuckAt = 0
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

// closed says that nothing more may be launched.
func (c *Core) closed() bool {
	return c.Paused() || c.drain != "" || c.stopped || c.fenced || c.finished || c.sweep.pending() || c.reconcileBy > 0 || len(c.asked) > 0 ||
		c.hardnessPending()
}

// roomLeft says whether any slot is free at all: most steps end here.
func (c *Core) roomLeft() bool {
	if c.slots.most >= 0 && c.slots.used >= c.slots.most || c.delayed() {
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
func (c *Core) Idle() bool { return c.roomLeft() && !c.closed() }

// waiting is a class in the line, with its head.
type waiting struct {
	class *class
	id    jobs.ID
	rank  rank
}

// before says whether it goes before another: jobs of failed hosts, then those of the
// queue whose turn it is, then by priority and deadline, then who came first (DESIGN 7).
func (w *waiting) before(o *waiting) bool {
	if w.rank.calm != o.rank.calm {
		return o.rank.calm
	}
	if d := w.class.stats.turn.compare(&o.class.stats.turn); d != 0 {
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
type line []waiting

// first returns the index of the one that goes before all others.
func (l line) first() int {
	best := 0
	for i := 1; i < len(l); i++ {
		if l[i].before(&l[best]) {
			best = i
		}
	}
	return best
}

func (l line) sort() {
	slices.SortFunc(l, func(a, b waiting) int {
		if a.before(&b) {
			return -1
		}
		return 1
	})
}

// line returns the classes with ready jobs.
func (c *Core) line() line {
	c.weighQueues()
	l := make(line, 0, len(c.queue.list))
	for _, cl := range c.queue.list {
		if cl.epoch != c.queue.epoch {
			c.fit(cl)
		}
		if id, r := cl.head(c); id > 0 {
			l = append(l, waiting{cl, id, r})
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
		if free < cl.key.slots || !c.mayGo(h, cl, picky) || !h.holds(cl) {
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

// mayGo says whether the class may be given to the host, room aside.
func (c *Core) mayGo(h *host, cl *class, picky bool) bool {
	return h.takes() && cl.fits[h.idx] && c.hasTimeFor(h, cl.key.lasts) && !c.isReservedFrom(h, cl) &&
		!(picky && cl.avoid[h.idx]) && !(h.rest.onTrial() && h.open > 0)
}

// holds says whether memory and GPUs suffice beside what is there.
func (h *host) holds(cl *class) bool {
	k := cl.key
	if _, gpus := h.freeFor(k.queue, k.gpus); k.gpus > 0 && gpus < k.gpus.Devices() {
		return false
	}
	return k.mem == 0 || h.hello.MemBytes <= 0 || h.mem+k.mem <= h.hello.MemBytes
}

// picky reports whether jobs of the class avoid the hosts where they failed. They do
// while some other host could run them. Jobs that have waited for another host longer
// than their patience are in another class.
func (cl *class) picky(c *Core) bool { return cl.avoid != nil && cl.hasOtherHost(c, "") }

// hasOtherHost reports whether a host other than but takes work, could run the class,
// and has not failed any of its jobs.
func (cl *class) hasOtherHost(c *Core, but string) bool {
	return slices.ContainsFunc(c.hosts, func(h *host) bool {
		return h.takes() && h.limit > 0 && cl.fits[h.idx] && !(cl.avoid != nil && cl.avoid[h.idx]) && h.spec.Name != but
	})
}
