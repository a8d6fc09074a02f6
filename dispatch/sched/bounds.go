package sched

import (
	"math"
	"slices"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// Numbers from hosts are bounded before they are used, so that a broken or hostile host harms only
// itself.
const (
	maxMem   = 1 << 50 // bytes
	maxCount = 1 << 30

	maxSuspended = 10 * 365 * oneDay
)

// boundedHello returns a bounded copy of a hello.
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

// boundedGPUs returns the valid device numbers, sorted and without repeats.
func boundedGPUs(numbers []int) []int {
	numbers = slices.DeleteFunc(slices.Clone(numbers), func(n int) bool { return n < 0 || n >= jobs.MaxGPUs })
	slices.Sort(numbers)
	return slices.Compact(numbers)
}

// boundedHeartbeat returns a bounded copy of a heartbeat.
func boundedHeartbeat(m *hosts.Heartbeat) hosts.Heartbeat {
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

// boundedCores returns 0 if f is not a number of cores.
func boundedCores(f float64) float64 {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return 0
	}
	return min(max(f, 0), jobs.MaxSlots)
}

// boundedCPU returns the CPU time of an attempt, limited to what is possible.
func boundedCPU(cpu time.Duration, cores int, took time.Duration) time.Duration {
	return time.Duration(min(max(0, float64(cpu)), float64(cores)*float64(took), math.MaxInt64/2))
}

// boundedSlot returns n, or 0 for unknown if n is not a slot.
func boundedSlot(n int) int {
	if n < 0 || n > jobs.MaxSlots {
		return 0
	}
	return n
}

// maxElapsed returns the longest possible run time of an attempt of the job. It allows for clocks
// that differ by a day: a wrong clock must not spoil the mean run time of a queue.
func (c *Core) maxElapsed(j *jobs.Job) time.Duration {
	return max(0, c.now.Wall.Sub(j.Attempts[0].Launched)) + 24*time.Hour
}
