package sched

import (
	"slices"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// reserveAfter is how long a job of several slots or GPUs waits at the head of the queue before a
// host is reserved for it.
const reserveAfter = 2 * time.Second

// reserve reserves hosts for the stuck classes that need several slots or GPUs. Otherwise other
// jobs would take each slot that becomes free. A class waits until no class before it could use the
// same host.
func (c *Core) reserve(stuck []*class) {
	for i, cl := range stuck {
		c.updateFits(cl)
		if !cl.isWide() || c.waitsForPool(cl) {
			continue
		}
		if cl.stuckSince == 0 {
			cl.stuckSince = c.now.Mono + 1 // never 0
		}
		if c.now.Mono < cl.stuckSince+reserveAfter || cl.reservedHost() != nil {
			continue
		}
		var best *host
		for h := range c.everyHost() {
			if h.limitFor(cl) < cl.key.slots || !c.canRunOn(h, cl, cl.isAvoidingHosts(c)) ||
				c.isKeptFrom(h.reserved, cl) || c.isWantedBefore(h, stuck[:i]) {
				continue
			}
			if best == nil || h.freeSlots() > best.freeSlots() {
				best = h
			}
		}
		if best != nil {
			best.reserved, cl.reservedOn = cl, best
			best.touch()
			best.withdrawAll()
		}
	}
}

// isWide reports whether jobs of the class need several slots or GPUs at once.
func (cl *class) isWide() bool { return cl.key.slots > 1 || cl.key.gpus.Devices() > 1 }

// reservedHost returns the host that is reserved for the class, or nil.
func (cl *class) reservedHost() *host {
	if h := cl.reservedOn; h != nil && h.reserved == cl {
		return h
	}
	return nil
}

// isKeptFrom reports whether the slots that are kept for the class r, which may be nil, are kept
// from cl. A class that precedes r still goes first: it may be newer, or may have been withdrawn
// from this very host. This does not apply between queues of equal priority, because their order
// changes all the time, so the kept slots would never become free.
func (c *Core) isKeptFrom(r, cl *class) bool {
	if r == nil || r == cl {
		return false
	}
	if r.numReady == 0 || cl.numReady == 0 {
		return true
	}
	_, mine := cl.head(c)
	_, its := r.head(c)
	if mine.IsUrgent == its.IsUrgent && cl.stats != r.stats {
		return cl.stats.share.Priority >= r.stats.share.Priority
	}
	return !cl.before(r)
}

// isReservedFrom reports whether the host is reserved for another class, unless the slots are kept
// for the queue of this one anyway.
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

// isWantedBefore reports whether one of the classes before could use the host.
func (c *Core) isWantedBefore(h *host, before []*class) bool {
	return slices.ContainsFunc(before, func(cl *class) bool {
		return cl.numReady > 0 && cl.fitsOn(h) && !c.waitsForPool(cl)
	})
}

// releaseReservation drops a reservation that its class cannot use any more.
func (c *Core) releaseReservation(h *host) {
	r := h.reserved
	if r == nil {
		return
	}
	if c.updateFits(r); h.limitFor(r) < r.key.slots || !c.canRunOn(h, r, r.isAvoidingHosts(c)) || c.waitsForPool(r) {
		h.reserved = nil
		h.touch()
	}
}

// A host may be kept for some queues, or some of its slots and GPUs may be (hosts.KeptPart). Kept
// slots stay free for their queue, even while the host has fewer slots for a time.

// keptFor returns how many free slots and devices are kept for one queue, and for all others.
func (h *host) keptFor(queue string) (its, others hosts.KeptPart) {
	for _, k := range h.spec.Queues {
		var gpus jobs.GPUs
		for f := h.oldest; f != nil; f = f.nextOnHost {
			if f.stats.share.Name == k.Queue {
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

// freeFor returns how many whole slots a job of a queue may take, and how many devices have space
// for it.
func (h *host) freeFor(queue string, want jobs.GPUs) (slots, gpus int) {
	_, others := h.keptFor(queue)
	return h.freeSlots() - others.Slots, h.freeGPUs(want) - others.GPUs
}

// keepsSlots reports whether slots or devices are kept for a queue. Nothing is buffered on such a
// host, because it would start wherever a slot becomes free.
func (h *host) keepsSlots() bool {
	slots, gpus := h.spec.KeptFrom("")
	return slots+gpus > 0
}

// keepsFrom reports whether the host would have space for a job of the class if it kept nothing for
// other queues.
func (h *host) keepsFrom(cl *class) bool {
	k := cl.key
	slots, gpus := h.freeFor(k.queue, k.gpus)
	hasSpace := h.acceptsJobs() && h.freeSlots() >= k.slots && h.freeGPUs(k.gpus) >= k.gpus.Devices()
	return hasSpace && (!h.spec.IsOpenTo(k.queue) || slots < k.slots || gpus < k.gpus.Devices())
}
