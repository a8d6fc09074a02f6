package sched

import "time"

// reserveAfter is how long a job of several slots at the head of the queue waits
// for them to be free together before a host is kept for it.
const reserveAfter = 2 * time.Second

// reserve keeps a host for the stuck classes whose jobs need more than a slot:
// without it single-slot jobs would take every slot that becomes free. A class
// that others stand before on the same host must wait its turn.
func (c *Core) reserve(stuck []*class, rest line) {
	rest.sort()
	for _, w := range rest { // those never got a look, for want of any room; they stand behind
		stuck = append(stuck, w.class)
	}
	for i, cl := range stuck {
		if cl.key.slots < 2 || c.lacking(cl) {
			continue
		}
		if cl.stuckAt == 0 {
			cl.stuckAt = c.now.Mono + 1 // never 0
		}
		if c.now.Mono < cl.stuckAt+reserveAfter || c.hasReserved(cl) {
			continue
		}
		var best *host
		for _, h := range c.hosts {
			if h.limitFor(cl) < cl.key.slots || !c.mayGo(h, cl, cl.picky(c)) || c.isKeptFrom(h.reserved, cl) || c.wantedBefore(h, stuck[:i]) {
				continue
			}
			if best == nil || h.free() > best.free() {
				best = h
			}
		}
		if best != nil {
			best.reserved = cl
			best.withdrawAll()
		}
	}
}

// wide says that a job of several slots is ready.
func (c *Core) wide() bool {
	for _, cl := range c.queue.list {
		if cl.key.slots > 1 {
			return true
		}
	}
	return false
}

func (c *Core) hasReserved(cl *class) bool {
	for _, h := range c.hosts {
		if h.reserved == cl {
			return true
		}
	}
	return false
}

// isKeptFrom reports whether what is kept for the class r, nil for none, is kept from
// another class. What stands before that one still goes first: it may have come later, or
// been withdrawn from this very host. Only between queues of one priority that does not
// count: their turn changes all the time, and what is kept would never be free.
func (c *Core) isKeptFrom(r, cl *class) bool {
	if r == nil || r == cl {
		return false
	}
	if r.n == 0 || cl.n == 0 {
		return true
	}
	mine, theirs := waiting{class: cl}, waiting{class: r}
	mine.id, mine.rank = cl.head(c)
	theirs.id, theirs.rank = r.head(c)
	if mine.rank.calm == theirs.rank.calm && cl.stats != r.stats {
		return cl.stats.turn.priority >= r.stats.turn.priority
	}
	return !mine.before(&theirs)
}

// isReservedFrom reports whether the host is kept for a class other than this, unless the
// slots are kept for its queue anyway.
func (c *Core) isReservedFrom(h *host, cl *class) bool {
	if !c.isKeptFrom(h.reserved, cl) {
		return false
	}
	its, _ := h.keptFor(cl.key.queue)
	return cl.key.slots > its.Slots
}

// limitFor returns how many slots jobs of the class may occupy.
func (h *host) limitFor(cl *class) int {
	slots, _ := h.spec.KeptFrom(cl.key.queue)
	return h.limit - slots
}

// wantedBefore says whether a class that stands before could use the host.
func (c *Core) wantedBefore(h *host, before []*class) bool {
	for _, cl := range before {
		if cl.n > 0 && cl.fits[h.idx] && !c.lacking(cl) {
			return true
		}
	}
	return false
}

// release gives up a reservation that its class cannot use any more.
func (c *Core) release(h *host) {
	r := h.reserved
	if r != nil && r.epoch != c.queue.epoch {
		c.fit(r)
	}
	if r != nil && (h.limitFor(r) < r.key.slots || !c.mayGo(h, r, r.picky(c)) || c.lacking(r)) {
		h.reserved = nil
	}
}
