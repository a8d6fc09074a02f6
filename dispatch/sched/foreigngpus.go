package sched

import (
	"slices"
	"time"

	"dcs-tui/hosts"
)

// foreignGPUs holds the devices of a host that other runs or users use. The host
// refuses a job that would use one of them. A device is used again when a heartbeat
// shows that it is free. Heartbeats never add devices: a heartbeat may have been
// composed just before a job of ours released its device.
type foreignGPUs struct {
	list     []foreignGPU
	refusals int           // consecutive refusals; reset when a job with a GPU starts
	saidAt   time.Duration // when this was last reported; 0: never
}

type foreignGPU struct {
	device int
	until  time.Duration // Time.Mono before which the device is not tried again
}

// maxGPURefusals bounds the growth of the delay after refusals, because jobs of others
// may end at any time.
const maxGPURefusals = 5

func (g *foreignGPUs) has(device int) bool {
	return slices.ContainsFunc(g.list, func(f foreignGPU) bool { return f.device == device })
}

// reset sets the list from a hello: a locked device is foreign unless an attempt of
// ours has it.
func (g *foreignGPUs) reset(locked []int, ours []bool, now time.Duration) {
	g.list = nil
	for _, d := range locked {
		if d >= 0 && d < len(ours) && !ours[d] {
			g.list = append(g.list, foreignGPU{d, now})
		}
	}
}

// update removes the devices that are not locked any more.
func (g *foreignGPUs) update(locked []int, now time.Duration) {
	g.list = slices.DeleteFunc(g.list, func(f foreignGPU) bool {
		return now >= f.until && !slices.Contains(locked, f.device)
	})
}

// hasForeignGPUs reports whether others certainly hold devices. While an attempt of
// ours holds devices that the journal does not name, the locked devices may be those.
func (h *host) hasForeignGPUs() bool { return len(h.foreign.list) > 0 && h.vagueGPUs == 0 }

// avoidGPUs notes that others use devices of a refused attempt. It reports whether that
// is the reason for the refusal: then the host itself is well and gets other jobs, and
// the job gets other devices.
func (c *Core) avoidGPUs(f *flight, m *hosts.Refused) bool {
	g := &f.h.foreign
	why := false
	for _, d := range f.gpus {
		if !slices.Contains(m.GPUs, d) {
			continue
		}
		if !why {
			g.refusals = min(g.refusals+1, maxGPURefusals)
		}
		why = true
		g.list = append(g.list, foreignGPU{d, c.now.Mono + c.pause(g.refusals, shortAway)})
	}
	if why {
		c.sayForeign(f.h, m.Why)
	}
	return why
}

// sayForeign reports that GPUs of a host are in use, at most once per holdEvery.
func (c *Core) sayForeign(h *host, what string) {
	if g := &h.foreign; g.saidAt == 0 || c.now.Mono-g.saidAt >= holdEvery {
		g.saidAt = max(c.now.Mono, 1)
		c.say(h.spec.Name, 0, "%s: %s", h.spec.Name, what)
	}
}
