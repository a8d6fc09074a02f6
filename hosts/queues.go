package hosts

import (
	"fmt"
	"regexp"
	"slices"
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

// keptForm is an item of `queues`.
var keptForm = regexp.MustCompile(`^(.*?\S)(?: slots=([1-9]\d{0,3}))?(?: gpus=([1-9]\d{0,3}))?$`)

// setQueues reads `queues`.
func setQueues(d *draft, items []string) error {
	d.host.Queues = nil
	for _, item := range items {
		m := keptForm.FindStringSubmatch(item)
		if m == nil || strings.Contains(m[1], "slots=") || strings.Contains(m[1], "gpus=") {
			return fmt.Errorf(`%q is none of "QUEUE", "QUEUE slots=N", "QUEUE gpus=N", and "QUEUE slots=N gpus=N"`, item)
		}
		slots, _ := strconv.Atoi(m[2])
		gpus, _ := strconv.Atoi(m[3])
		d.host.Queues = append(d.host.Queues, Kept{m[1], slots, gpus})
		if slices.ContainsFunc(d.host.Queues[:len(d.host.Queues)-1], func(k Kept) bool { return k.Queue == m[1] }) {
			return fmt.Errorf("the queue %s is there twice", m[1])
		}
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
		open = open && k.Slots+k.GPUs > 0
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

// KeptText names the queues that the host, or a part of it, is kept for: "urgent, late slots=2".
func (h *Host) KeptText() string {
	var names []string
	for _, k := range h.Queues {
		names = append(names, k.String())
	}
	return strings.Join(names, ", ")
}
