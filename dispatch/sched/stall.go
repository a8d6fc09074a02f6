package sched

import "time"

// TickEvery is the longest time without a Step (Core.Next sees to it). A gap
// longer than stallAfter is a stall of our own: a stopped process, a disk that did
// not answer, a starved machine.
const (
	TickEvery  = 3 * time.Second
	stallAfter = 2 * TickEvery
)

// stallEvery is how seldom stalls are told: the record of one may cause the next.
const stallEvery = time.Minute

// stalled takes our own stall out of what the hosts are blamed for (DESIGN 7): their
// signs of life wait to be read. A stall counts as one tick, so that a dispatcher
// which stalls all the time still notices a dead host. Instants only move later:
// a lease that is over in these books is over. Waits that cost nothing (the next
// connection attempt, a job's next try) have run out meanwhile as they should.
func (c *Core) stalled(gap time.Duration) {
	shift := gap - TickEvery
	for _, h := range c.everyHost() {
		h.seen += shift
		h.heard += shift
		h.cutAt += shift
		h.away += shift
		if h.oddAt > 0 {
			h.oddAt += shift
		}
		if h.looks.first > 0 {
			h.looks.first += shift
		}
		if h.looks.answers > 0 {
			h.looks.since += shift
		}
		if h.looks.movedAt > 0 {
			h.looks.movedAt += shift
		}
		if h.grace > 0 {
			h.grace += shift
		}
		if h.listBy > 0 {
			h.listBy += shift
		}
	}
	c.anyUp += shift
	for _, by := range []*time.Duration{&c.reconcileBy, &c.strangersBy, &c.lastUp} {
		if *by > 0 {
			*by += shift
		}
	}
	if c.clearUntil > 0 {
		c.clearUntil += shift
	}
	if c.stallSaid == 0 || c.now.Mono-c.stallSaid >= stallEvery {
		c.stallSaid = c.now.Mono
		c.say("", 0, "this dispatcher stood still for %s (stopped, or its disk did not answer); the hosts' silence meanwhile does not count", short(gap))
	}
}
