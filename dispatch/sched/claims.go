package sched

import (
	"maps"
	"time"

	"dcs-tui/jobs"
)

// The claim of an attempt guards against a second copy of its launch. A launch is sent once, and a
// connection delivers it at most once: if the outcome has arrived while the connection of the launch
// was still up, no copy can come. Otherwise the claim is needed until a lease is over.
//
// After a takeover, launches of earlier dispatchers may be valid for a lease, and if records were lost, some
// may have had the same numbers as those of this dispatcher. A host refuses them from the moment at which it
// lists its attempts for this dispatcher, and lists those that it has.

// claims holds which attempts that have ended still need their claims.
type claims struct {
	neededUntil map[jobs.AttemptID]time.Duration
	maxNeeded   int           // number of elements from which on those that are over are removed
	startedAt   time.Duration // when this dispatcher took the run over
	leftLease   time.Duration // the longest lease of the hosts that have left the run
	// Attempts that this dispatcher has launched and that have ended before ownUntil, and whose claims guard
	// only against launches of earlier dispatchers. ownUntil is a lease after a takeover.
	own      map[jobs.AttemptID]bool
	ownUntil time.Duration
}

// keepClaim makes the claim of an attempt that has ended last for a lease, unless f has been sent over
// the connection that its host still has. So do the outputs of an attempt that has left processes, which
// may still write.
func (c *Core) keepClaim(id jobs.AttemptID, f *inFlight, o *jobs.Outcome) {
	if f != nil && f.sentOverLink && o.LeftChildren == 0 {
		if c.now.Mono < c.claims.ownUntil {
			jobs.Insert(&c.claims.own, id, true)
		} else {
			c.claims.own = nil
		}
		return
	}
	if len(c.claims.neededUntil) >= c.claims.maxNeeded {
		maps.DeleteFunc(c.claims.neededUntil,
			func(_ jobs.AttemptID, until time.Duration) bool { return until <= c.now.Mono })
		c.claims.maxNeeded = max(1000, 2*len(c.claims.neededUntil))
	}
	if c.claims.neededUntil == nil {
		c.claims.neededUntil = make(map[jobs.AttemptID]time.Duration)
	}
	c.claims.neededUntil[id] = c.now.Mono + c.LongestLease()
}

// isEarlierKnown reports whether no launch of an earlier dispatcher can have a number of this one.
func (c *Core) isEarlierKnown() bool {
	return !c.table.Damaged && len(c.absent) == 0 && c.claims.leftLease == 0 &&
		!c.anyHost(func(h *host) bool { return !h.listed })
}

// SplitClaims divides attempts whose outcomes are recorded into those whose claims guard against
// nothing any more, and the others, which need them for at most LongestLease.
func (c *Core) SplitClaims(ids []jobs.AttemptID) (spent, guarded []jobs.AttemptID) {
	isEarly := c.table.Epoch > 1 && c.now.Mono < c.claims.startedAt+c.LongestLease()
	if isEarly && !c.isEarlierKnown() {
		return nil, ids
	}
	for _, id := range ids {
		if isEarly && !c.claims.own[id] || c.now.Mono < c.claims.neededUntil[id] {
			guarded = append(guarded, id)
		} else {
			spent = append(spent, id)
		}
	}
	return spent, guarded
}
