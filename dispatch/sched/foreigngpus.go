package sched

import (
	"slices"
	"time"

	"dcs-tui/hosts"
)

// foreignGPUs are the devices of a host that other runs or users hold. The host
// refuses a job that would use one; the device is given out again when a beat
// shows that it is free. Beats never add devices: one may have been composed just
// before a job of ours released its device.
type foreignGPUs struct {
	list     []foreignGPU
	refusals int           // in a row; the next job with a GPU that starts ends the row
	saidAt   time.Duration // when people were last told; 0: never
}

type foreignGPU struct {
	device int
	until  time.Duration // Time.Mono before which it is not tried again
}

// maxGPURefusals bounds how far the delay after a refusal grows: jobs of others end
// at any time.
const maxGPURefusals = 5

func (g *foreignGPUs) has(device int) bool {
	return slices.ContainsFunc(g.list, func(f foreignGPU) bool { return f.device == device })
}

// reset replaces what is known by what a hello says: of the locked devices those are
// foreign that no attempt of ours has.
func (g *foreignGPUs) reset(locked []int, ours []bool, now time.Duration) {
	g.list = nil
	for _, d := range locked {
		if d >= 0 && d < len(ours) && !ours[d] {
			g.list = append(g.list, foreignGPU{d, now})
		}
	}
}

// update gives devices out again that are not locked any more.
func (g *foreignGPUs) update(locked []int, now time.Duration) {
	g.list = slices.DeleteFunc(g.list, func(f foreignGPU) bool {
		return now >= f.until && !slices.Contains(locked, f.device)
	})
}

// hasForeignGPUs reports whether others hold devices for certain: while an attempt of
// ours holds some that the journal does not name, they may be those.
func (h *host) hasForeignGPUs() bool { return len(h.foreign.list) > 0 && h.vagueGPUs == 0 }

// avoidGPUs notes that devices of an attempt which was refused are used by others. It
// reports whether that is why: then the host itself is well, and goes on with other
// jobs and devices.
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

// sayForeign tells people that GPUs of a host are in use, once in holdEvery.
func (c *Core) sayForeign(h *host, what string) {
	if g := &h.foreign; g.saidAt == 0 || c.now.Mono-g.saidAt >= holdEvery {
		g.saidAt = max(c.now.Mono, 1)
		c.say(h.spec.Name, 0, "%s: %s", h.spec.Name, what)
	}
}
