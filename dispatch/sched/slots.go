package sched

import (
	"math"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// smoothingTime is the time constant of the load of others. A short burst takes no slot away, but a
// job of theirs does so after some seconds.
const smoothingTime = 10 * time.Second

// capacity holds how many slots of a host may be used.
type capacity struct {
	othersLoad  float64 // cores used by others, smoothed
	excessCores float64 // cores that our jobs use beyond one per slot, smoothed
	peakBusy    int     // maximum number of slots that we had busy since the last heartbeat
	usable      float64
	limit       int // whole slots that may be busy
	sentLimit   int // limit that the helper has; -1: none
	processes   processBound
	sentShare   hosts.Share // share that the helper has; Slots 0: none
	shareSentAt time.Duration
	// Since when other runs and users have held all slots; 0: they do not.
	heldByOthersSince time.Duration
}

// usableSlots returns how many slots of a host we may occupy. If yield is set, other users' load
// reduces them. The number is derived from
//
// free = slots - max(our running, our CPU) - others
//
// Usable slots are free plus our running ones. excess is our CPU time beyond our running slots.
func usableSlots(slots int, others, excess float64, yield bool) float64 {
	if !yield {
		return float64(slots)
	}
	return max(0, float64(slots)-others-excess)
}

// wholeSlots rounds usable. It keeps the previous result while usable is near it, so that half a
// core of noise does not change the number of slots with each heartbeat.
func wholeSlots(usable float64, last int) int {
	if last >= 0 && math.Abs(usable-float64(last)) <= 0.65 {
		return last
	}
	return int(math.Round(usable))
}

// handleLoad updates the load of others and our excess from a heartbeat. Our use is compared with
// the most slots that we had busy in the same time, so that jobs that have just ended do not count
// as excess.
func (c *Core) handleLoad(h *host, b *hosts.Heartbeat) {
	others := max(0, b.Busy-b.Ours-c.heldByOthers(b, h)-h.coresOfOthers())
	excess := max(0, b.Ours-float64(max(h.peakBusy, h.busySlots())))
	share := 1.0 // weight of the new value
	if h.hasHeartbeat {
		dt := c.now.Mono - h.heartbeatAt
		share = 1 - math.Exp(-dt.Seconds()/smoothingTime.Seconds())
	}
	h.othersLoad += share * (others - h.othersLoad)
	h.excessCores += share * (excess - h.excessCores)
	h.peakBusy = h.busySlots()
}

// coresOfOthers returns the number of cores of the machine that our sessions, or the slots that its
// administrators allow us, may not use. The load of others takes these first.
func (h *host) coresOfOthers() float64 {
	if h.hello == nil {
		return 0
	}
	return float64(h.hello.MachineCores - h.allowedSlots(h.hello.Cores))
}

// busySlots returns how many slots our attempts keep busy, including those sent and not yet
// reported as started.
func (h *host) busySlots() int { return max(h.runningSlots, min(h.occupiedSlots, h.limit)) }

// updateLimits computes how many slots each host may have busy, and sends changes to the helpers.
func (c *Core) updateLimits() {
	for h := range c.visits() {
		h.markStale()
		h.hold = jobs.NotHeld
		if !h.linked {
			h.limit, h.usable, h.heldByOthersSince = 0, 0, 0
			continue
		}
		h.usable = usableSlots(h.slots(), h.othersLoad, h.excessCores, h.spec.Yield)
		alone := len(c.hosts) == 1 && h.spec.Link == "local" && h.spec.File == ""
		if alone {
			// Without an inventory, this machine always runs at least one job.
			h.usable = max(1, h.usable)
		}
		last := h.sentLimit
		if h.limit != h.sentLimit {
			last = -1
		}
		n := wholeSlots(h.usable, last)
		if n == 0 {
			h.hold = jobs.HeldByOthersLoad
		}
		c.sendShare(h, n)
		if bound := c.limitByOthers(h, n); bound < n {
			n, h.usable = bound, min(h.usable, float64(bound))
			if n == 0 {
				h.hold = jobs.HeldByOtherRuns
			}
		}
		if bound := c.withinProcesses(h, n); bound < n {
			n, h.usable = bound, min(h.usable, float64(bound))
		}
		if floor := h.limitingHold(); floor != jobs.NotHeld {
			h.hold, h.usable, n = floor, 0, 0
			if floor == jobs.HeldByOwner {
				h.withdrawAll()
			}
		}
		if h.hold != jobs.HeldByOtherRuns {
			h.heldByOthersSince = 0
		} else if h.heldByOthersSince == 0 {
			h.heldByOthersSince = max(c.now.Mono, 1)
		}
		if len(c.hosts) == 1 && c.cfg.MaxSlots > 0 {
			n = min(n, c.cfg.MaxSlots)
		}
		if alone && h.numSpecial > 0 {
			n = max(n, h.occupiedSlots) // jobs that the empty machine was given may run
		}
		if c.Paused() || c.drain != nil || !h.acceptsJobs() {
			n = 0
		}
		hasFallen := n < h.limit
		if n != h.limit {
			h.touch()
		}
		h.limit = n
		if n != h.sentLimit {
			h.sentLimit = n
			h.outbox.setLimit = true
		}
		h.peakBusy = max(h.peakBusy, h.busySlots())
		if h.numSpecial > 0 && h.occupiedSlots > n && n > 0 {
			h.withdrawWide()
		}
		if hasFallen && h.occupiedSlots > n {
			c.withdrawBeyondLimit(h)
		}
		c.releaseReservation(h)
	}
}

// withdrawWide withdraws jobs that need more slots than the host may use now. They would wait there
// although other hosts have space.
func (h *host) withdrawWide() {
	for f := h.oldest; f != nil; f = f.nextOnHost {
		if f.slots > h.limit && f.isWaiting() {
			h.withdraw(f)
		}
	}
}

// maxSlots returns the maximum number of slots of the host, by its rule or by request. A job that
// needs more than the host has temporarily waits, and does not fail. It is 0 if the maximum is not
// known.
func (h *host) maxSlots() int {
	rule := h.ruleSlots()
	if rule == 0 {
		return 0
	}
	return h.allowedSlots(max(rule, int(h.asked.Slots)))
}

// A host may be shared with other runs and users (docs/sharing.md). Its helper computes how many
// slots they leave to us, which limits the slots like the load of others. We send the helper the
// number of slots for all runs, and the number that we would use.

// shareInterval is the shortest time between two messages to a helper about the slots that we
// want.
const shareInterval = time.Second

// sharesSlots reports whether slots of the host are shared. Those of an instance are not.
func (c *Core) sharesSlots(h *host) bool { return c.cfg.RunShare > 0 && h.instance == nil }

// limitByOthers returns how many of n slots others leave to us.
func (c *Core) limitByOthers(h *host, n int) int {
	if s := h.heartbeat.Sharing; s != nil && c.sharesSlots(h) {
		return min(n, max(s.Slots, 0))
	}
	return n
}

// heldByOthers returns how many slots other runs hold on the host. Their jobs use a core each,
// which is not counted again as load of others.
func (c *Core) heldByOthers(b *hosts.Heartbeat, h *host) float64 {
	if b.Sharing == nil || !c.sharesSlots(h) {
		return 0
	}
	return float64(min(max(b.Sharing.Held, 0), jobs.MaxSlots))
}

// sendShare sends the helper the number of slots that we want, out of n.
func (c *Core) sendShare(h *host, n int) {
	if !c.sharesSlots(h) || h.sentShare.Slots > 0 && c.now.Mono-h.shareSentAt < shareInterval {
		return
	}
	s := hosts.Share{Rule: max(h.slots(), n, 1), Slots: max(n, 1), Want: h.occupiedSlots}
	if h.acceptsJobs() && !c.isLaunchingClosed() && len(c.hosts) > 0 { // our part of the waiting jobs
		s.Want += c.readyPerHost()
	}
	s.Want = min(s.Want, s.Slots)
	if s != h.sentShare {
		h.sentShare, h.shareSentAt, h.outbox.setShare = s, c.now.Mono, true
	}
}

// readyPerHost returns the number of ready jobs per host, rounded up.
func (c *Core) readyPerHost() int { return (c.queue.ready + len(c.hosts) - 1) / max(1, len(c.hosts)) }

// memoryOfOthers returns how many bytes jobs of other runs may use on the host.
func (c *Core) memoryOfOthers(h *host) int64 {
	if s := h.heartbeat.Sharing; s != nil && c.sharesSlots(h) {
		return s.Memory
	}
	return 0
}

// whyShared describes who uses the slots of a host. Claims that name no user have no text.
func (h *host) whyShared() string {
	if users := h.heartbeat.Sharing.Text(); users != "" {
		return "other runs and users have its slots: " + users
	}
	return "other runs and users have its slots"
}
