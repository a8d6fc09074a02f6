package sched

import (
	"time"

	"dcs-tui/dispatch/sched/fairshare"
	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// The queues are charged what their attempts use (package fairshare).

// defaultHalfLife is the default of Config.HalfLife.
const defaultHalfLife = time.Hour

// applyQueueOptions applies the options of a job's queue. Those of the newest job count.
func (c *Core) applyQueueOptions(s *jobs.Spec) {
	o := s.Options
	if o == c.appliedOptions {
		return
	}
	c.appliedOptions = o
	if o.Share == 0 && o.QueuePriority == nil && o.QueueSlots == 0 {
		return
	}
	st := c.statsOf(s)
	if o.Share > 0 {
		st.share.Weight = float64(o.Share)
	}
	if o.QueuePriority != nil {
		st.share.Priority = *o.QueuePriority
	}
	if o.QueueSlots > 0 && o.QueueSlots != st.slotPool.limit {
		st.slotPool.limit = o.QueueSlots
		c.queue.epoch++
	}
}

// chargeStarted charges an attempt as running. It has run for ran already.
func (c *Core) chargeStarted(f *inFlight, ran time.Duration) {
	f.stats.share.Start(c.now.Mono, f.slots, ran)
}

// chargeEnded stops charging an attempt. The charge is corrected if its host has reported its run
// time and CPU time, because start and end may be reported together.
func (c *Core) chargeEnded(f *inFlight) {
	q := f.stats.share
	q.End(c.now.Mono, f.slots, f.started)
	if f.runTime > 0 {
		q.Charge(c.now.Mono, fairshare.Cost(f.slots, f.runTime, f.cpuTime)-c.chargeSoFar(f))
	}
}

// chargeSoFar returns the charge of an open attempt so far.
func (c *Core) chargeSoFar(f *inFlight) float64 {
	if !f.started {
		return 0
	}
	return float64(f.slots)*f.age(c.now.Mono).Seconds() + f.excessCharge
}

// chargeExcess charges the use of a host's running attempts beyond their slots since its last
// heartbeat.
func (c *Core) chargeExcess(h *host, b *hosts.Heartbeat) {
	for f := h.oldest; f != nil && len(b.Cores) > 0; f = f.nextOnHost {
		beyond := min(hosts.BoundedCores(b.Cores[f.id.String()]), float64(h.cores())) - float64(f.slots)
		if since := c.now.Mono - max(h.heartbeatAt, f.startedAt); f.started && beyond > 0 && since > 0 {
			f.excessCharge += beyond * since.Seconds()
			f.stats.share.Charge(c.now.Mono, beyond*since.Seconds())
		}
	}
}

// cores returns how many cores the host has. Before its first hello it returns the largest
// possible number.
func (h *host) cores() int {
	if h.hello == nil || h.hello.Cores == 0 {
		return jobs.MaxSlots
	}
	return h.hello.Cores
}

// learnUsage charges the use of earlier dispatchers' attempts.
func (c *Core) learnUsage() {
	oldest := c.now.Wall - jobs.Stamp(20*min(c.cfg.HalfLife, 365*24*time.Hour))
	for j := range c.table.RowsWithOptions() {
		for _, a := range j.Attempts {
			if a.Outcome == nil || a.Outcome.Ended < oldest {
				continue
			}
			if took := min(a.Outcome.Elapsed(), c.maxElapsed(j)); took > 0 {
				cost := fairshare.Cost(j.Spec.SlotCount(), took, boundedCPU(a.Outcome.CPU, jobs.MaxSlots, took))
				c.statsOf(j.Spec).share.Learn(cost, took, max(0, c.now.Wall.Sub(a.Outcome.Ended)))
			}
		}
	}
}

// updateShares determines for this Step which queue goes before another.
func (c *Core) updateShares() {
	if len(c.queues) < 2 && !c.hybrid {
		return
	}
	for _, st := range c.queues {
		mean := st.recent.All
		if mean == 0 && st.estimated > 0 {
			mean = st.estimateSum / float64(st.estimated)
		}
		st.share.MeanRunTime, st.share.HasWaiting = mean, st.queued > 0
	}
	c.shares.Update(c.now.Mono)
}

// chargeLateOutcome corrects the charge of a lost attempt whose outcome is known now.
func (c *Core) chargeLateOutcome(a *jobs.Attempt, j *jobs.Job, o *jobs.Outcome) {
	h := c.hostWith(a.Host, a.Machine)
	if took := min(o.Elapsed(), c.maxElapsed(j)); h != nil && c.orphaned[a.ID] && took > 0 {
		cost := fairshare.Cost(j.Spec.SlotCount(), took, boundedCPU(o.CPU, h.cores(), took))
		c.statsOf(j.Spec).share.Charge(c.now.Mono, cost-c.orphanCharge[a.ID])
	}
}
