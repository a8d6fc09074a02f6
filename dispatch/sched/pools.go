package sched

import (
	"fmt"
	"slices"

	"dcs-tui/internal/text"
	"dcs-tui/jobs"
)

// pool is a limited amount that the jobs on all hosts share: slots of the run (--max-slots), slots
// of a queue (--queue-slots), or tokens of a kind. An attempt uses its part from its launch until
// its fate is known, even on a host that cannot be reached. The use therefore follows from the
// table.
type pool struct {
	unit  string // "slot", "matlab token"
	rule  string // who sets the limit, to stand before the number: "--max-slots allows"
	limit int    // -1: there is no limit
	used  int    // by open attempts
	kept  int    // amount kept for a job of Core.keeper

	plannedUse  int     // set only in slotsNeeded: amount for jobs that new instances will run
	workSeconds float64 // set only in ETA: seconds of use by the remaining work
}

// pools holds the pools that all jobs share.
type pools struct {
	slots  pool    // of the run
	tokens []*pool // by kind
	keeper *class  // class for whose next job the pools keep the required amount; nil: none
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

// setTokens sets how many tokens of each kind the run has.
func (c *Core) setTokens() {
	for _, p := range c.tokens {
		p.limit = 0
	}
	for _, t := range c.inventory.TokensWith(c.cfg.Tokens) {
		c.tokenPool(t.Name).limit = t.Count
	}
	if c.hasBegun && c.failUnsatisfiableAt == 0 {
		// A job may need more tokens than exist now.
		c.failUnsatisfiableAt = c.now.Mono + unsatisfiableWait
	}
	c.queue.epoch++
}

// isSlotLimitBinding reports whether the hosts may have more slots together than --max-slots
// allows. If not, the limit has no effect, and buffered jobs need not be counted. If so, nothing is
// buffered on several hosts, because too many buffered jobs could start at once.
func (c *Core) isSlotLimitBinding() bool {
	if c.slots.limit < 0 {
		return false
	}
	n := 0
	for _, h := range c.allHosts() {
		slots := h.maxSlots()
		n += slots
		if slots == 0 || n > c.slots.limit {
			return true // 0: not known
		}
	}
	return false
}

// poolUse returns the pools that a job uses, and the amount of each.
func (c *Core) poolUse(s *jobs.Spec) func(yield func(*pool, int) bool) {
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

// addPoolUse adds an attempt's use to the pools. sign is 1 to add it, or -1 to remove it.
func (c *Core) addPoolUse(f *inFlight, sign int) {
	for p, n := range c.poolUse(f.spec) {
		p.used += sign * n
	}
}

// exhaustedPool returns a pool that has too little left for a job of the class, and how much the
// job needs. It returns nil if there is none.
func (c *Core) exhaustedPool(cl *class) (*pool, int) {
	for p, n := range c.poolUse(cl.spec) {
		if p.limit < 0 || p == &c.slots && !c.isSlotLimitBinding() {
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

// waitsForPool reports whether some pool has too little left for a job of the class.
func (c *Core) waitsForPool(cl *class) bool {
	p, _ := c.exhaustedPool(cl)
	return p != nil
}

// queueAndTokenPools returns all pools but that of the slots of the run.
func (c *Core) queueAndTokenPools() []*pool {
	list := slices.Clone(c.tokens)
	for _, st := range c.queues {
		list = append(list, &st.slotPool)
	}
	return list
}

// planWithinPools returns how many ready jobs of the class the pools allow to run, in addition to
// those that run and those that were planned before.
func (c *Core) planWithinPools(cl *class) int {
	n := cl.numReady
	for p, each := range c.poolUse(cl.spec) {
		if p.limit >= 0 && p != &c.slots {
			n = min(n, max(0, p.limit-p.used-p.plannedUse)/each)
		}
	}
	for p, each := range c.poolUse(cl.spec) {
		p.plannedUse += n * each
	}
	return n
}

// whyExceedsPools explains why no job of the class can ever run, or returns "" if the pools are
// large enough.
func (c *Core) whyExceedsPools(cl *class) string {
	for p, n := range c.poolUse(cl.spec) {
		switch {
		case p.limit == 0:
			return fmt.Sprintf("it needs %s and %s none (--tokens, or [tokens] of the inventory)",
				text.Plural(n, p.unit), p.rule)
		case p.limit > 0 && n > p.limit:
			return fmt.Sprintf("it needs %s and %s %d", text.Plural(n, p.unit), p.rule, p.limit)
		}
	}
	return ""
}

// whyWaitsForPool describes the pool that a job of the class waits for.
func (c *Core) whyWaitsForPool(cl *class) string {
	p, n := c.exhaustedPool(cl)
	if p.used+n <= p.limit {
		id, _ := c.keeper.head(c)
		return fmt.Sprintf("it needs %s, and the free ones are kept for job %d, which needs %d", text.Plural(n, p.unit),
			id, p.kept)
	}
	return fmt.Sprintf("it needs %s, and %d of the %d that %s are in use", text.Plural(n, p.unit), min(p.used, p.limit),
		p.limit, p.rule)
}

// setKeeper makes a class the keeper. nil means that there is none.
//
// The keeper is the first candidate for which a pool has too little left. All its pools then keep
// what a job of it needs. Otherwise jobs that use less would take everything that becomes free.
// There is one keeper at a time, and no host is reserved for a class that lacks something of a
// pool, so classes cannot wait for each other.
func (c *Core) setKeeper(cl *class) {
	if c.keeper != nil {
		for p := range c.poolUse(c.keeper.spec) {
			p.kept = 0
		}
	}
	c.keeper = cl
	if cl != nil {
		for p, n := range c.poolUse(cl.spec) {
			p.kept = n
		}
	}
}

// canKeep reports whether a host could take a job of the class as soon as it has free slots.
func (c *Core) canKeep(cl *class) bool {
	return c.whyExceedsPools(cl) == "" && c.anyHost(func(h *host) bool {
		return h.limitFor(cl) >= cl.key.slots && c.canRunOn(h, cl, cl.isAvoidingHosts(c))
	})
}

// poolTime returns the minimum time that the remaining work needs because of tokens and
// --queue-slots, in seconds. It uses the distributions that remainingWork has computed.
func (c *Core) poolTime(now Time) float64 {
	for _, p := range c.queueAndTokenPools() {
		p.workSeconds = 0
	}
	for _, h := range c.allHosts() {
		for f := h.oldest; f != nil; f = f.nextOnHost {
			if f.killed || f.hasOutcome {
				continue
			}
			left := f.stats.dist.Mean
			if f.started {
				left = f.stats.dist.ExpectedRemaining(f.age(now.Mono).Seconds())
			}
			for p, n := range c.poolUse(f.spec) {
				p.workSeconds += left * float64(n)
			}
		}
	}
	for _, cl := range c.queue.list {
		if c.drain != nil {
			break
		}
		for p, n := range c.poolUse(cl.spec) {
			p.workSeconds += cl.stats.dist.Mean * float64(n*cl.numReady)
		}
	}
	longest := 0.0
	for _, p := range c.queueAndTokenPools() {
		if p.limit > 0 {
			longest = max(longest, p.workSeconds/float64(p.limit))
		}
	}
	return longest
}
