package sched

import (
	"math"
	"time"

	"dcs-tui/hosts"
)

// smoothing is the time constant of what others use: a short burst of theirs
// takes no slot away, a job of theirs does after some seconds.
const smoothing = 10 * time.Second

// load is what the formula looks at.
type load struct {
	slots  int     // by the host's rule
	others float64 // cores used by others, smoothed
	excess float64 // cores our jobs use beyond one a slot, smoothed
	yield  bool    // make way for others
}

// usableSlots is the formula of DESIGN 7 (K6) solved for what we may occupy:
//
//	free = slots - max(our running, our CPU) - others, never negative
//
// usable is free plus our running. Our CPU beyond our running slots is excess.
func usableSlots(l load) float64 {
	if !l.yield {
		return float64(l.slots)
	}
	return max(0, float64(l.slots)-l.others-l.excess)
}

// wholeSlots rounds usable to slots, keeping the last answer while usable is
// near it: half a core of noise must not make slots come and go with each beat.
func wholeSlots(usable float64, last int) int {
	if last >= 0 && math.Abs(usable-float64(last)) <= 0.65 {
		return last
	}
	return int(math.Round(usable))
}

// measure takes in a beat. What others use is what is busy less what our jobs
// use. Our jobs' use is compared with the most slots that we had busy in the same
// time, so that jobs which have just ended are not taken for greedy ones.
func (c *Core) measure(h *host, b *hosts.Beat) {
	others := max(0, b.Busy-b.Ours-c.heldByOthers(b, h))
	excess := max(0, b.Ours-float64(max(h.peak, h.busySlots())))
	share := 1.0 // of the new value
	if h.beaten {
		dt := c.now.Mono - h.beatAt
		share = 1 - math.Exp(-dt.Seconds()/smoothing.Seconds())
	}
	h.others += share * (others - h.others)
	h.excess += share * (excess - h.excess)
	h.peak = h.busySlots()
}

// busySlots returns how many slots our attempts keep busy, as far as we know;
// those handed over and not yet reported as started count (DESIGN 7).
func (h *host) busySlots() int { return max(h.running, min(h.occupied, h.limit)) }

// limits works out how many slots each host may have busy and tells the helpers
// when that has changed.
func (c *Core) limits() {
	for _, h := range c.hosts {
		h.hold = notHeld
		if !h.linked {
			h.limit, h.usable = 0, 0
			continue
		}
		h.usable = usableSlots(load{h.slots(), h.others, h.excess, h.spec.Yield})
		alone := len(c.hosts) == 1 && h.spec.Link == "local" && h.spec.File == ""
		if alone {
			h.usable = max(1, h.usable) // on this machine without an inventory one job always runs
		}
		last := h.told
		if h.limit != h.told {
			last = -1
		}
		n := wholeSlots(h.usable, last)
		if n == 0 {
			h.hold = yielding
		}
		c.tellShare(h, n)
		if bound := c.boundByOthers(h, n); bound < n {
			if n, h.usable = bound, min(h.usable, float64(bound)); n == 0 {
				h.hold = sharing
			}
		}
		if floor := h.floored(); floor != notHeld {
			h.hold, h.usable, n = floor, 0, 0
			if floor == owned {
				h.withdrawAll()
			}
		}
		if len(c.hosts) == 1 && c.cfg.MaxSlots > 0 {
			n = min(n, c.cfg.MaxSlots)
		}
		if alone && h.special > 0 {
			n = max(n, h.occupied) // what the empty machine was given may run
		}
		if c.Paused() || c.drain != "" || !h.takes() {
			n = 0
		}
		if h.limit = n; n != h.told {
			h.told = n
			h.out.limit = true
		}
		h.peak = max(h.peak, h.busySlots())
		c.release(h)
	}
}
