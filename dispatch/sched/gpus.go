package sched

import (
	"cmp"
	"slices"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// gpuState holds the state of a host's GPUs.
type gpuState struct {
	gpus    []gpu // in the order of their numbers
	foreign foreignGPUs
}

// gpu is a device of a host. An attempt gets all of it unless it requests a part.
type gpu struct {
	number       int
	isGone       bool          // the host no longer has it, but attempts of ours are still on it
	ours         jobs.GPUs     // part that our attempts have
	foreign      jobs.GPUs     // part that other runs, users, or processes use, as far as known
	foreignUntil time.Duration // Time.Mono before which foreign does not fall
}

// canHold reports whether a part of the device is free.
func (g *gpu) canHold(share jobs.GPUs) bool { return !g.isGone && g.used()+share <= jobs.WholeGPU }

func (g *gpu) used() jobs.GPUs { return g.ours + g.foreign }

// setGPUs sets the devices of the host. It keeps the state of those that remain.
func (h *host) setGPUs(numbers []int) {
	for i := range h.gpus {
		h.gpus[i].isGone = true
	}
	for _, n := range numbers {
		h.gpu(n).isGone = false
	}
	h.gpus = slices.DeleteFunc(h.gpus, func(g gpu) bool { return g.isGone && g.ours == 0 })
}

// gpu returns the device with a number. If there is none, it adds one that is gone.
func (h *host) gpu(number int) *gpu {
	i, ok := slices.BinarySearchFunc(h.gpus, number, func(g gpu, n int) int { return g.number - n })
	if !ok {
		h.gpus = slices.Insert(h.gpus, i, gpu{number: number, isGone: true})
	}
	return &h.gpus[i]
}

// numGPUs returns the number of the host's devices, in use or not.
func (h *host) numGPUs() (n int) {
	for i := range h.gpus {
		if !h.gpus[i].isGone {
			n++
		}
	}
	return n
}

// takeGPUs chooses devices for an attempt: first those of which most is in use, so that whole devices
// stay free, then the lowest numbers.
func (h *host) takeGPUs(want jobs.GPUs) (got []int) {
	var fitting []*gpu
	for i := range h.gpus {
		if h.gpus[i].canHold(want.Share()) {
			fitting = append(fitting, &h.gpus[i])
		}
	}
	slices.SortStableFunc(fitting, func(a, b *gpu) int { return cmp.Compare(b.used(), a.used()) })
	for _, g := range fitting[:min(len(fitting), want.Devices())] {
		got = append(got, g.number)
	}
	return got
}

// freeGPUs returns how many devices have space for such an attempt. It is 0 while an attempt of an
// earlier dispatcher uses devices that are not in the journal.
func (h *host) freeGPUs(want jobs.GPUs) (n int) {
	if h.numUnknownGPUs > 0 {
		return 0
	}
	for i := range h.gpus {
		if h.gpus[i].canHold(want.Share()) {
			n++
		}
	}
	return n
}

// foreignGPUs holds the effects of other users of a host's devices. The host refuses a job that
// would use one of their devices. A device is used again when a heartbeat shows that it is free.
// Heartbeats never add devices, because one may have been composed just before a job of ours
// released its device.
type foreignGPUs struct {
	refusals   int           // consecutive refusals; reset when a job with a GPU starts
	reportedAt time.Duration // when this was last reported; 0: never
}

// maxGPURefusals bounds the growth of the delay after refusals, because jobs of others
// may end at any time.
const maxGPURefusals = 5

// locked returns the part of the device that is locked, including ours.
func (g *gpu) locked(whole []int, parts []hosts.GPUPart) jobs.GPUs {
	if slices.Contains(whole, g.number) {
		return jobs.WholeGPU
	}
	for _, p := range parts {
		if p.GPU == g.number {
			return p.Used
		}
	}
	return 0
}

// setForeignGPUs sets the foreign use from a hello: all locks that are not ours.
func (h *host) setForeignGPUs(m *hosts.Hello, now time.Duration) {
	for i := range h.gpus {
		g := &h.gpus[i]
		g.foreign, g.foreignUntil = max(0, g.locked(m.LockedGPUs, m.PartGPUs)-g.ours), now
	}
}

// releaseForeignGPUs removes foreign use that has ended.
func (h *host) releaseForeignGPUs(b *hosts.Heartbeat, now time.Duration) {
	for i := range h.gpus {
		if g := &h.gpus[i]; g.foreign > 0 && now >= g.foreignUntil {
			g.foreign = min(g.foreign, max(0, g.locked(b.LockedGPUs, b.PartGPUs)-g.ours))
		}
	}
}

// hasForeignGPUs reports whether others certainly use devices. It is false while an attempt of ours
// uses devices that are not in the journal, because those may be the locked ones.
func (h *host) hasForeignGPUs() bool {
	return h.numUnknownGPUs == 0 && slices.ContainsFunc(h.gpus, func(g gpu) bool { return g.foreign > 0 })
}

// avoidGPUs records that others use devices of a refused attempt. It reports whether this is the
// reason for the refusal. If so, the host itself is usable, and the job gets other devices.
func (c *Core) avoidGPUs(f *inFlight, m *hosts.Refused) bool {
	why := false
	for _, d := range f.gpus {
		if !slices.Contains(m.GPUs, d) {
			continue
		}
		if !why {
			f.host.foreign.refusals = min(f.host.foreign.refusals+1, maxGPURefusals)
		}
		why = true
		g := f.host.gpu(d)
		g.foreign = jobs.WholeGPU - (g.ours - f.wantGPUs.Share())
		g.foreignUntil = c.now.Mono + c.backoff(f.host.foreign.refusals, shortAway)
	}
	if why {
		c.reportForeignGPUs(f.host, m.Why)
	}
	return why
}

// reportForeignGPUs reports that GPUs of a host are in use, at most once per reportInterval.
func (c *Core) reportForeignGPUs(h *host, what string) {
	if g := &h.foreign; g.reportedAt == 0 || c.now.Mono-g.reportedAt >= reportInterval {
		g.reportedAt = max(c.now.Mono, 1)
		c.logf(h.spec.Name, 0, "%s: %s", h.spec.Name, what)
	}
}
