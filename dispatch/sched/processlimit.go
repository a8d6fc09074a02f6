package sched

import (
	"time"

	"dcs-tui/jobs"
)

// processBound bounds the slots of a host on which jobs have reached a limit on processes.
type processBound struct {
	slots  int           // 0: no bound
	growAt time.Duration // when one slot more is tried
}

// processGrowth is the interval at which a host gets one slot back. A limit that was reached
// because of other users may be far away by then.
const processGrowth = time.Minute

// boundByProcesses leaves a host only the slots of the jobs that still run there: so many have
// proved to fit below the limit. It also pauses the host, because jobs reach a limit together.
// running is the number of slots of these jobs.
func (c *Core) boundByProcesses(h *host, limit jobs.ProcessLimit, running int) {
	b := &h.processes
	if running = max(1, running); b.slots == 0 || running < b.slots {
		b.slots = running
	}
	b.growAt = c.now.Mono + processGrowth
	if !h.probation.paused {
		c.pauseRefusing(h, "no more processes can be started there: "+limit.Text()+"; it gets fewer jobs at a time")
	}
}

// withinProcesses returns how many of n slots a limit on processes leaves.
func (c *Core) withinProcesses(h *host, n int) int {
	b := &h.processes
	if b.slots == 0 {
		return n
	}
	if c.now.Mono >= b.growAt {
		b.slots++
		b.growAt = c.now.Mono + processGrowth
	}
	if b.slots >= h.slots() {
		*b = processBound{}
		return n
	}
	return min(n, b.slots)
}
