package sched

import (
	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// A host may be kept for some queues, or some of its slots and GPUs (hosts.Kept). Slots that
// are kept stay free for their queue, also when the host has fewer for a time.

// keptFor returns how many free slots and devices of the host are kept for one queue, and for all others.
func (h *host) keptFor(queue string) (its, others hosts.Kept) {
	for _, k := range h.spec.Queues {
		var gpus jobs.GPUs
		for f := h.head; f != nil; f = f.next {
			if f.stats.turn.name == k.Queue {
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
// handed to it ahead of need then: it would start wherever a slot becomes free.
func (h *host) keepsPart() bool {
	slots, gpus := h.spec.KeptFrom("")
	return slots+gpus > 0
}

// keepsFrom reports whether the host would have room for a job of the class if it kept
// nothing for other queues.
func (h *host) keepsFrom(cl *class) bool {
	k := cl.key
	slots, gpus := h.freeFor(k.queue, k.gpus)
	return h.takes() && h.free() >= k.slots && h.freeGPUs(k.gpus) >= k.gpus.Devices() && (!h.spec.IsOpenTo(k.queue) || slots < k.slots || gpus < k.gpus.Devices())
}
