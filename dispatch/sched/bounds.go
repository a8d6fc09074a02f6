package sched

import (
	"math"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// maxClockError is how far the clock of a host may be wrong. Times beyond that are replaced.
const maxClockError = 24 * time.Hour

func (c *Core) boundExitTimes(list []hosts.ExitedJob) {
	for i := range list {
		c.boundTimes(list[i].Attempt, &list[i].Outcome)
	}
}

func (c *Core) boundProbedTimes(list []hosts.ProbedJob) {
	for i := range list {
		p := &list[i]
		if a := c.table.Attempt(p.Attempt); a != nil {
			p.Started = c.boundedTime(a, p.Started)
		}
		if p.Outcome != nil {
			c.boundTimes(p.Attempt, p.Outcome)
		}
	}
}

// boundTimes bounds the times of the outcome of an attempt that was launched: it cannot have run for
// longer than since then, or used more CPU time than the largest host has. If the clock of its host
// is wrong by more than maxClockError, the attempt counts as started at its launch.
func (c *Core) boundTimes(id jobs.AttemptID, o *jobs.Outcome) {
	a := c.table.Attempt(id)
	if a == nil {
		return
	}
	took := min(max(0, o.Ended.Sub(o.Started)), max(0, c.now.Wall.Sub(a.Launched))+maxClockError)
	o.Started = c.boundedTime(a, o.Started)
	o.Ended = o.Started + jobs.Stamp(took)
	o.CPU, o.Suspended = boundedCPU(o.CPU, jobs.MaxSlots, took+time.Second), min(o.Suspended, took)
}

// boundedTime returns a time of an attempt by the clock of its host, or that of its launch if that
// clock is wrong by more than maxClockError. A time that is 0 is unknown.
func (c *Core) boundedTime(a *jobs.Attempt, at jobs.Stamp) jobs.Stamp {
	if at != 0 && (at < a.Launched-jobs.Stamp(maxClockError) || at > c.now.Wall+jobs.Stamp(maxClockError)) {
		return a.Launched
	}
	return at
}

// boundedHello returns a bounded copy of a hello, with at most the slots of the inventory. Numbers of
// slots and cores that are 0 are unknown.
func boundedHello(spec *hosts.Host, m *hosts.Hello) *hosts.Hello {
	b := *m
	hosts.Bound(&b)
	most := jobs.MaxSlots
	if spec.Slots.Fixed > 0 {
		most = spec.Slots.Fixed
	}
	b.Slots = min(max(m.Slots, 0), most)
	b.Cores = min(max(m.Cores, 0), jobs.MaxSlots)
	b.MachineCores = max(b.MachineCores, b.Cores)
	return &b
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
