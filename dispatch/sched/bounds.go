package sched

import (
	"math"
	"slices"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// Hosts are believed within bounds: a broken or hostile one must cost only
// itself (promise 5). Its numbers reach the books through these functions only.
const (
	maxMem   = 1 << 50 // bytes
	maxCount = 1 << 30

	maxSuspended = 10 * 365 * day
)

// boundedHello returns a copy of what a host reports about itself.
func boundedHello(spec *hosts.Host, m *hosts.Hello) *hosts.Hello {
	b := *m
	most := jobs.MaxSlots
	if spec.Slots.Fixed > 0 {
		most = spec.Slots.Fixed
	}
	b.Slots = min(max(b.Slots, 0), most)
	b.Cores = min(max(b.Cores, 0), jobs.MaxSlots)
	b.GPUIDs = boundedGPUs(b.GPUIDs)
	b.GPUs = min(max(b.GPUs, 0), jobs.MaxGPUs)
	b.ZoneSeconds = min(max(b.ZoneSeconds, -maxZone), maxZone)
	b.MemBytes = min(max(b.MemBytes, 0), maxMem)
	return &b
}

// boundedGPUs returns the devices, in their order and each once.
func boundedGPUs(numbers []int) []int {
	numbers = slices.DeleteFunc(slices.Clone(numbers), func(n int) bool { return n < 0 || n >= jobs.MaxGPUs })
	slices.Sort(numbers)
	return slices.Compact(numbers)
}

// boundedBeat returns a copy of a measurement.
func boundedHeartbeat(m *hosts.Beat) hosts.Beat {
	b := *m
	b.Busy, b.Ours = boundedCores(b.Busy), boundedCores(b.Ours)
	for i := range b.Load {
		if b.Load[i] = max(b.Load[i], 0); math.IsNaN(b.Load[i]) || math.IsInf(b.Load[i], 0) {
			b.Load[i] = 0
		}
	}
	b.Suspended = min(max(b.Suspended, 0), maxSuspended)
	b.Running = min(max(b.Running, 0), maxCount)
	b.Buffered = min(max(b.Buffered, 0), maxCount)
	return b
}

// boundedCores gives 0 for what is no number of cores.
func boundedCores(f float64) float64 {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return 0
	}
	return min(max(f, 0), jobs.MaxSlots)
}

// boundedCPU returns the CPU time of an attempt, as far as it can be true.
func boundedCPU(cpu time.Duration, cores int, took time.Duration) time.Duration {
	return time.Duration(min(max(0, float64(cpu)), float64(cores)*float64(took), math.MaxInt64/2))
}

// boundedSlot gives 0, not known, for what is no slot.
func boundedSlot(n int) int {
	if n < 0 || n > jobs.MaxSlots {
		return 0
	}
	return n
}

// mostElapsed is how long an attempt of the job can have run, give or take a day of
// clocks that differ: one wrong clock must not spoil the mean run time of a queue.
func (c *Core) maxElapsed(j *jobs.Job) time.Duration {
	return max(0, c.now.Wall.Sub(j.Attempts[0].Launched)) + 24*time.Hour
}
