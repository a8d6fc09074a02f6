package sched

import (
	"math"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// smoothing is the time constant of what others use: a short burst of theirs
// takes no slot away, a job of theirs does after some seconds.
const smoothing = 10 * time.Second

// load is what the formula looks at.
type load struct {
	slots  int     // by the host's rule
	others float64 // cores used by others, smoothed
	excess float64 // cores our jobs use beyond one per slot, smoothed
	yield  bool    // make way for others
}

// usableSlots is the formula solved for what we may occupy:
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
// near it: half a core of noise must not make slots come and go with each heartbeat.
func wholeSlots(usable float64, last int) int {
	if last >= 0 && math.Abs(usable-float64(last)) <= 0.65 {
		return last
	}
	return int(math.Round(usable))
}

// measure handles a heartbeat. What others use is what is busy less what our jobs
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
// those sent to a host and not yet reported as started count.
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
		if h.special > 0 && h.occupied > n && n > 0 {
			h.withdrawWide()
		}
		c.release(h)
	}
}

// withdrawWide asks back what needs more slots than the host may use by now: it would wait
// there while other hosts have room.
func (h *host) withdrawWide() {
	for f := h.head; f != nil; f = f.next {
		if f.slots > h.limit && f.waiting() {
			h.withdraw(f)
		}
	}
}

// SetSlots gives a host so many slots from now on, more or fewer than its rule says;
// 0 gives it back to its rule. What runs beyond them continues. It holds until it is taken
// back: when the host comes back, and for every later dispatcher.
type SetSlots struct {
	Host  string
	Slots int
	By    string // who asked, for the event log; "": is not said
}

func (SetSlots) event() {}

// setSlots returns why it does nothing, "" if it does.
func (c *Core) setSlots(e SetSlots) (refused string) {
	h := c.byName[e.Host]
	n := min(max(e.Slots, 0), jobs.MaxSlots)
	switch {
	case h == nil:
		return c.noHost(e.Host)
	case n == h.given && n == 0:
		return e.Host + " has the slots of its rule already"
	case n == h.given:
		return e.Host + " has " + jobs.Plural(n, "slot") + " already"
	}
	was := h.slots()
	h.given = n
	by := ""
	if e.By != "" {
		by = ": asked for by " + e.By
	}
	switch {
	case n == 0 && h.hello == nil:
		c.say(h.spec.Name, 0, "%s gets the slots of its rule again%s", h.spec.Name, by)
	case n == 0:
		c.say(h.spec.Name, 0, "%s gets the slots of its rule again, %d%s", h.spec.Name, h.slots(), by)
	case was == 0:
		c.say(h.spec.Name, 0, "%s gets %s%s", h.spec.Name, jobs.Plural(n, "slot"), by)
	default:
		c.say(h.spec.Name, 0, "%s gets %s instead of %d%s", h.spec.Name, jobs.Plural(n, "slot"), was, by)
	}
	c.keepWish(h)
	c.queue.capacityChanged()
	return ""
}

// most is how many slots the host has at most, by its rule or as it was given: a job that
// needs more than it has for a time waits, and does not fail. 0: not known.
func (h *host) most() int {
	rule := h.rule()
	if rule == 0 {
		return 0
	}
	return max(rule, h.given)
}

// A host is shared with other runs and users (docs/sharing.md). Its helper works out how
// many slots they leave to us; that bounds the slots like the load of others. The helper
// is told how many slots there are for all, and how many we would use.

// shareEvery is the interval at which a helper is told that we want another number of slots.
const shareEvery = time.Second

// sharesSlots reports whether slots of the host are shared: those of an instance are ours.
func (c *Core) sharesSlots(h *host) bool { return c.cfg.RunShare > 0 && h.inst == nil }

// boundByOthers returns how many of n slots others leave to us.
func (c *Core) boundByOthers(h *host, n int) int {
	if s := h.beat.Sharing; s != nil && c.sharesSlots(h) {
		return min(n, max(s.Slots, 0))
	}
	return n
}

// heldByOthers returns how many slots other runs hold on the host. Their jobs use a core
// each, which is not counted again as load of others.
func (c *Core) heldByOthers(b *hosts.Beat, h *host) float64 {
	if b.Sharing == nil || !c.sharesSlots(h) {
		return 0
	}
	return float64(min(max(b.Sharing.Held, 0), jobs.MaxSlots))
}

// tellShare tells the helper what we want of n slots.
func (c *Core) tellShare(h *host, n int) {
	if !c.sharesSlots(h) || h.toldShare.Weight > 0 && c.now.Mono-h.shareAt < shareEvery {
		return
	}
	s := hosts.Share{Slots: max(n, 1), Weight: c.cfg.RunShare, Want: h.occupied}
	if h.takes() && !c.closed() && len(c.hosts) > 0 { // our part of what waits
		s.Want += (c.queue.ready + len(c.hosts) - 1) / len(c.hosts)
	}
	if s.Want = min(s.Want, s.Slots); s != h.toldShare {
		h.toldShare, h.shareAt, h.out.share = s, c.now.Mono, true
	}
}

// memoryOfOthers returns the bytes that jobs of other runs may use on the host.
func (c *Core) memoryOfOthers(h *host) int64 {
	if s := h.beat.Sharing; s != nil && c.sharesSlots(h) {
		return s.Memory
	}
	return 0
}

// sharedWhy describes who uses the slots of a host. Claims that name no user have no text.
func (h *host) sharedWhy() string {
	if users := h.beat.Sharing.Text(); users != "" {
		return "other runs and users have its slots: " + users
	}
	return "other runs and users have its slots"
}
