package sched

import (
	"fmt"
	"slices"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// reserveAfter is how long a job of several slots or GPUs at the head of the queue waits
// for them to be free together before a host is kept for it.
const reserveAfter = 2 * time.Second

// reserve keeps a host for the stuck classes that are wide: without it other jobs would
// take every slot or GPU that becomes free. A class
// that others stand before on the same host must wait its turn.
func (c *Core) reserve(stuck []*class, rest candidates) {
	rest.sort()
	for _, w := range rest { // those never got a look, for lack of any room; they stand behind
		stuck = append(stuck, w.class)
	}
	for i, cl := range stuck {
		if !cl.wide() || c.lacking(cl) {
			continue
		}
		if cl.stuckSince == 0 {
			cl.stuckSince = c.now.Mono + 1 // never 0
		}
		if c.now.Mono < cl.stuckSince+reserveAfter || c.hasReserved(cl) {
			continue
		}
		var best *host
		for _, h := range c.hosts {
			if h.limitFor(cl) < cl.key.slots || !c.canRunOn(h, cl, cl.picky(c)) || c.isKeptFrom(h.reserved, cl) || c.wantedBefore(h, stuck[:i]) {
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

// wide reports whether its jobs need several slots or GPUs at once.
func (cl *class) wide() bool { return cl.key.slots > 1 || cl.key.gpus.Devices() > 1 }

// wide reports whether a job that needs several slots or GPUs is ready.
func (c *Core) wide() bool {
	for _, cl := range c.queue.list {
		if cl.wide() {
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
	mine, theirs := candidate{class: cl}, candidate{class: r}
	mine.id, mine.rank = cl.head(c)
	theirs.id, theirs.rank = r.head(c)
	if mine.rank.notUrgent == theirs.rank.notUrgent && cl.stats != r.stats {
		return cl.stats.share.priority >= r.stats.share.priority
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

// wantedBefore reports whether a class that stands before could use the host.
func (c *Core) wantedBefore(h *host, before []*class) bool {
	for _, cl := range before {
		if cl.n > 0 && cl.fits[h.index] && !c.lacking(cl) {
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
	if r != nil && (h.limitFor(r) < r.key.slots || !c.canRunOn(h, r, r.picky(c)) || c.lacking(r)) {
		h.reserved = nil
	}
}

// A host may be kept for some queues, or some of its slots and GPUs (hosts.Kept). Slots that
// are kept stay free for their queue, also when the host has fewer for a time.

// keptFor returns how many free slots and devices of the host are kept for one queue, and for all others.
func (h *host) keptFor(queue string) (its, others hosts.Kept) {
	for _, k := range h.spec.Queues {
		var gpus jobs.GPUs
		for f := h.head; f != nil; f = f.next {
			if f.stats.share.name == k.Queue {
				k.Slots -= f.slots
				gpus += f.wantGPUs
			}
		}
		to := &others
		if k.Queue == queue {
			to = &its
		}
		to.Slots += max(0, k.Slots)
		to.GPUs += max(0, k.GPUs-gpus.Devices())
	}
	return its, others
}

// freeFor returns the whole slots that a job of a queue may take, and the devices that
// have room for one with that wish.
func (h *host) freeFor(queue string, want jobs.GPUs) (slots, gpus int) {
	_, others := h.keptFor(queue)
	return h.free() - others.Slots, h.freeGPUs(want) - others.GPUs
}

// keepsPart reports whether slots or devices of the host are kept for a queue. Nothing is
// sent to it ahead of need then: it would start wherever a slot becomes free.
func (h *host) keepsPart() bool {
	slots, gpus := h.spec.KeptFrom("")
	return slots+gpus > 0
}

// keepsFrom reports whether the host would have room for a job of the class if it kept
// nothing for other queues.
func (h *host) keepsFrom(cl *class) bool {
	k := cl.key
	slots, gpus := h.freeFor(k.queue, k.gpus)
	return h.acceptsJobs() && h.free() >= k.slots && h.freeGPUs(k.gpus) >= k.gpus.Devices() && (!h.spec.IsOpenTo(k.queue) || slots < k.slots || gpus < k.gpus.Devices())
}

// pool is what the jobs on all hosts together use a limited amount of: slots of the run
// (--max-slots), slots of a queue (--queue-slots), or tokens of a kind. An attempt uses its
// part from its launch until its fate is known, also on a host that cannot be reached. So
// the use follows from the table.
type pool struct {
	unit  string // "slot", "matlab token"
	rule  string // who sets the limit, to stand before the number: "--max-slots allows"
	limit int    // -1: there is no limit
	used  int    // by open attempts
	kept  int    // for a job of Core.keeper
}

// pools are what all jobs together use a limited amount of.
type pools struct {
	slots  pool    // of the run
	tokens []*pool // by kind
	keeper *class  // for whose next job the pools keep what it needs; nil: for none
}

// tokenPool returns the pool of a kind of tokens. There are few kinds.
func (c *Core) tokenPool(kind string) *pool {
	for _, p := range c.tokens {
		if p.unit == kind+" token" {
			return p
		}
	}
	c.tokens = append(c.tokens, &pool{unit: kind + " token", rule: "the run has"})
	return c.tokens[len(c.tokens)-1]
}

// SetTokens sets how many tokens the run has from now on, of each kind.
type SetTokens struct{ Tokens []jobs.Token }

func (SetTokens) event() {}

func (c *Core) setTokens(e SetTokens) {
	for _, p := range c.tokens {
		p.limit = 0
	}
	for _, t := range e.Tokens {
		c.tokenPool(t.Name).limit = t.Count
	}
	if c.begun && c.failUnsatisfiableAt == 0 {
		c.failUnsatisfiableAt = c.now.Mono + comeBackTime // a job may need more than there are now
	}
	c.queue.capacityChanged()
}

// draws returns the pools that a job uses, and how much of each.
func (c *Core) draws(s *jobs.Spec) func(yield func(*pool, int) bool) {
	return func(yield func(*pool, int) bool) {
		n := s.SlotCount()
		if !yield(&c.slots, n) || !yield(&c.statsOf(s).slotPool, n) {
			return
		}
		for _, t := range s.Tokens {
			if !yield(c.tokenPool(t.Name), t.Count) {
				return
			}
		}
	}
}

// use adds what an open attempt uses to the pools, with sign -1 it takes it off again.
func (c *Core) usePools(f *inFlight, sign int) {
	for p, n := range c.draws(f.spec) {
		p.used += sign * n
	}
}

// lacks returns the pool that has too little left for a job of the class, and how much of it
// the job needs; nil: none has.
func (c *Core) lacks(cl *class) (*pool, int) {
	for p, n := range c.draws(cl.spec) {
		if p.limit < 0 {
			continue
		}
		left := p.limit - p.used
		if p.kept > 0 && c.isKeptFrom(c.keeper, cl) {
			left -= p.kept
		}
		if n > left {
			return p, n
		}
	}
	return nil, 0
}

// lacking reports whether the run lacks tokens of a kind that the class needs.
func (c *Core) lacking(cl *class) bool {
	p, _ := c.lacks(cl)
	return p != nil
}

// limited reports whether a job uses a pool besides the slots of the run. Such jobs are not
// sent to hosts ahead of need: what waits there would hold what others could use.
func (c *Core) limited(s *jobs.Spec) bool {
	return len(s.Tokens) > 0 || c.statsOf(s).slotPool.limit >= 0
}

// withinPools returns how many jobs of the class the pools would let run beside those that run.
func (c *Core) withinPools(cl *class) int {
	n := cl.n
	for p, each := range c.draws(cl.spec) {
		if p.limit >= 0 && p != &c.slots {
			n = min(n, max(0, p.limit-p.used)/each)
		}
	}
	return n
}

// beyondPools explains why no job of the class can ever run; "": the pools are large enough.
func (c *Core) exceedsPools(cl *class) string {
	for p, n := range c.draws(cl.spec) {
		switch {
		case p.limit == 0:
			return fmt.Sprintf("it needs %s and %s none (--tokens, or [tokens] of the inventory)", jobs.Plural(n, p.unit), p.rule)
		case p.limit > 0 && n > p.limit:
			return fmt.Sprintf("it needs %s and %s %d", jobs.Plural(n, p.unit), p.rule, p.limit)
		}
	}
	return ""
}

// whyLacks describes which pool a job of the class waits for, if there is one.
func (c *Core) whyLacks(cl *class) string {
	p, n := c.lacks(cl)
	if p.used+n <= p.limit {
		id, _ := c.keeper.head(c)
		return fmt.Sprintf("it needs %s, and the free ones are kept for job %d, which needs %d", jobs.Plural(n, p.unit), id, p.kept)
	}
	return fmt.Sprintf("it needs %s, and %d of the %d that %s are in use", jobs.Plural(n, p.unit), min(p.used, p.limit), p.limit, p.rule)
}

// The keeper is the first class in the line of which a pool has too little left. What a job
// of it uses is then kept, in all of its pools: jobs that use less would otherwise take
// whatever becomes free. There is one keeper at a time, and no host is kept for a class
// that lacks something of a pool (reserve.go), so classes cannot wait for each other.

// keep makes a class the keeper; nil: there is none.
func (c *Core) keep(cl *class) {
	if c.keeper != nil {
		for p := range c.draws(c.keeper.spec) {
			p.kept = 0
		}
	}
	if c.keeper = cl; cl != nil {
		for p, n := range c.draws(cl.spec) {
			p.kept = n
		}
	}
}

// mayKeep reports whether a host could take a job of the class as soon as it has slots free.
func (c *Core) canKeep(cl *class) bool {
	return c.exceedsPools(cl) == "" && slices.ContainsFunc(c.hosts, func(h *host) bool {
		return h.limitFor(cl) >= cl.key.slots && c.canRunOn(h, cl, cl.picky(c))
	})
}
