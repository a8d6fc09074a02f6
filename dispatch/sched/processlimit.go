package sched

import (
	"time"

	"dcs-tui/jobs"
)

// processBound bounds the slots of a host on which jobs have reached a limit on processes.
type processBound struct {
	slots  int           // 0: no bound
	growAt time.Duration // when one slot more is tried
	growth time.Duration // interval at which the host gets one slot back
}

// A limit that was reached because of other users may soon be far away, so slots return. The
// interval doubles each time that the limit is reached again.
const (
	processGrowth    = time.Minute
	maxProcessGrowth = 32 * time.Minute
)

// boundByProcesses leaves a host only the slots of the jobs that still run there: so many have
// proved to fit below the limit. It also pauses the host, because jobs reach a limit together.
// running is the number of slots of these jobs.
func (c *Core) boundByProcesses(h *host, limit jobs.ProcessLimit, running int) {
	b := &h.processes
	isFirst := b.slots == 0
	running = max(1, running)
	if isFirst || running < b.slots {
		b.slots = running
	}
	why := "no more processes can be started there: " + limit.Text() + "; it gets fewer jobs at a time"
	switch {
	case isFirst:
		b.growth = processGrowth
		c.pauseRefusing(h, why)
	case !h.probation.paused:
		b.growth = min(2*b.growth, maxProcessGrowth)
		c.pauseHost(h, c.backoff(1, shortAway), why)
	}
	b.growAt = c.now.Mono + b.growth
}

// withinProcesses returns how many of n slots a limit on processes leaves.
func (c *Core) withinProcesses(h *host, n int) int {
	b := &h.processes
	if b.slots == 0 {
		return n
	}
	if c.now.Mono >= b.growAt {
		b.slots++
		b.growAt = c.now.Mono + b.growth
	}
	if b.slots >= h.slots() {
		*b = processBound{}
		return n
	}
	return min(n, b.slots)
}
