package sched

import (
	"fmt"
	"slices"

	"dcs-tui/jobs"
)

// pool is what the jobs on all hosts together use a limited amount of: slots of the run
// (--max-slots), slots of a queue (--queue-slots), or tokens of a kind. An attempt uses its
// part from its launch until its fate is known, also on a host that cannot be reached. So
// the use follows from the table.
type pool struct {
	unit string // "slot", "matlab token"
	rule string // who sets the limit, to stand before the number: "--max-slots allows"
	most int    // -1: there is no limit
	used int    // by open attempts
	kept int    // for a job of Core.keeper
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

// SetTokens says how many tokens the run has from now on, of each kind.
type SetTokens struct{ Tokens []jobs.Token }

func (SetTokens) event() {}

func (c *Core) setTokens(e SetTokens) {
	for _, p := range c.tokens {
		p.most = 0
	}
	for _, t := range e.Tokens {
		c.tokenPool(t.Name).most = t.Count
	}
	if c.begun && c.neverAt == 0 {
		c.neverAt = c.now.Mono + comeBackTime // a job may need more than there are now
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
func (c *Core) use(f *flight, sign int) {
	for p, n := range c.draws(f.spec) {
		p.used += sign * n
	}
}

// lacks returns the pool that has too little left for a job of the class, and how much of it
// the job needs; nil: none has.
func (c *Core) lacks(cl *class) (*pool, int) {
	for p, n := range c.draws(cl.spec) {
		if p.most < 0 {
			continue
		}
		left := p.most - p.used
		if p.kept > 0 && c.isKeptFrom(c.keeper, cl) {
			left -= p.kept
		}
		if n > left {
			return p, n
		}
	}
	return nil, 0
}

// lacking reports whether there is such a pool.
func (c *Core) lacking(cl *class) bool {
	p, _ := c.lacks(cl)
	return p != nil
}

// limited reports whether a job uses a pool besides the slots of the run. Such jobs are not
// handed to hosts ahead of need: what waits there would hold what others could use.
func (c *Core) limited(s *jobs.Spec) bool {
	return len(s.Tokens) > 0 || c.statsOf(s).slotPool.most >= 0
}

// withinPools returns how many jobs of the class the pools would let run beside those that run.
func (c *Core) withinPools(cl *class) int {
	n := cl.n
	for p, each := range c.draws(cl.spec) {
		if p.most >= 0 && p != &c.slots {
			n = min(n, max(0, p.most-p.used)/each)
		}
	}
	return n
}

// beyondPools says why no job of the class can ever run; "": the pools are large enough.
func (c *Core) beyondPools(cl *class) string {
	for p, n := range c.draws(cl.spec) {
		switch {
		case p.most == 0:
			return fmt.Sprintf("it needs %s and %s none (--tokens, or [tokens] of the inventory)", jobs.Plural(n, p.unit), p.rule)
		case p.most > 0 && n > p.most:
			return fmt.Sprintf("it needs %s and %s %d", jobs.Plural(n, p.unit), p.rule, p.most)
		}
	}
	return ""
}

// whyLacks says which pool a job of the class waits for, if there is one.
func (c *Core) whyLacks(cl *class) string {
	p, n := c.lacks(cl)
	if p.used+n <= p.most {
		id, _ := c.keeper.head(c)
		return fmt.Sprintf("it needs %s, and the free ones are kept for job %d, which needs %d", jobs.Plural(n, p.unit), id, p.kept)
	}
	return fmt.Sprintf("it needs %s, and %d of the %d that %s are in use", jobs.Plural(n, p.unit), min(p.used, p.most), p.most, p.rule)
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
func (c *Core) mayKeep(cl *class) bool {
	return c.beyondPools(cl) == "" && slices.ContainsFunc(c.hosts, func(h *host) bool {
		return h.limitFor(cl) >= cl.key.slots && c.mayGo(h, cl, cl.picky(c))
	})
}
