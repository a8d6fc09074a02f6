package hosts

import (
	"fmt"
	"strconv"
	"strings"

	"dcs-tui/jobs"
)

// Kept is what a host keeps for the jobs of a queue: slots, GPUs, or, if both are 0, all
// of it.
type Kept struct {
	Queue       string
	Slots, GPUs int
}

// String returns k as it is written in the inventory.
func (k Kept) String() string {
	s := k.Queue
	if k.Slots > 0 {
		s += fmt.Sprintf(" slots=%d", k.Slots)
	}
	if k.GPUs > 0 {
		s += fmt.Sprintf(" gpus=%d", k.GPUs)
	}
	return s
}

// whole reports whether k keeps the host and not a part of it.
func (k Kept) whole() bool { return k.Slots == 0 && k.GPUs == 0 }

// setQueues reads `queues`: names of queues, each followed by slots=N, gpus=N, both, or
// nothing.
func setQueues(d *draft, items []string) error {
	d.host.Queues = nil
	for _, item := range items {
		k := Kept{Queue: item}
		for {
			at := strings.LastIndexByte(k.Queue, ' ')
			key, value, ok := strings.Cut(k.Queue[at+1:], "=")
			to, most := &k.Slots, jobs.MaxSlots
			if key == "gpus" {
				to, most = &k.GPUs, jobs.MaxGPUs
			}
			if !ok || key != "gpus" && key != "slots" {
				break
			}
			n, err := strconv.Atoi(value)
			if err != nil || n < 1 || n > most || *to > 0 {
				return fmt.Errorf("%q: %s=%s must be a number from 1 to %d, written once", item, key, value, most)
			}
			*to, k.Queue = n, strings.TrimRight(k.Queue[:max(at, 0)], " ")
		}
		if k.Queue == "" {
			return fmt.Errorf("%q names no queue", item)
		}
		for _, other := range d.host.Queues {
			if other.Queue == k.Queue {
				return fmt.Errorf("the queue %s is there twice", k.Queue)
			}
		}
		d.host.Queues = append(d.host.Queues, k)
	}
	return nil
}

// checkQueues says why a host cannot keep what its queues ask for, as far as is known.
func (h *Host) checkQueues() error {
	slots, gpus := h.KeptFrom("")
	switch {
	case h.Slots.Fixed > 0 && slots > h.Slots.Fixed:
		return fmt.Errorf("%s are kept, and the host has %d", jobs.Plural(slots, "slot"), h.Slots.Fixed)
	case h.GPUs >= 0 && gpus > h.GPUs:
		return fmt.Errorf("%s are kept, and the host has %d", jobs.Plural(gpus, "GPU"), h.GPUs)
	}
	return nil
}

// IsOpenTo reports whether jobs of a queue may run on the host.
func (h *Host) IsOpenTo(queue string) bool {
	open := true
	for _, k := range h.Queues {
		if k.Queue == queue {
			return true
		}
		open = open && !k.whole()
	}
	return open
}

// KeptFrom returns how many slots and GPUs of the host are kept for other queues than this.
func (h *Host) KeptFrom(queue string) (slots, gpus int) {
	for _, k := range h.Queues {
		if k.Queue != queue {
			slots += k.Slots
			gpus += k.GPUs
		}
	}
	return slots, gpus
}

// KeptText names the queues that the host, or a part of it, is kept for: "queues urgent, late slots=2".
func (h *Host) KeptText() string {
	var names []string
	for _, k := range h.Queues {
		names = append(names, k.String())
	}
	word := "queue "
	if len(names) > 1 {
		word = "queues "
	}
	return word + strings.Join(names, ", ")
}
