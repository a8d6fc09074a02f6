package sched

import (
	"cmp"
	"math"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// defaultHalfLife is the default of Config.HalfLife.
const defaultHalfLife = time.Hour

// defaultChargeAhead is the number of seconds for which running attempts are charged ahead while no
// run time is known.
const defaultChargeAhead = 1

// fairShare determines which queue is next: the one with the smallest relative usage. That is the
// used slot time, averaged with a half-life, divided by the queue's weight. An attempt is charged
// its CPU time, but at least the time of its slots. Attempts that run or were sent to hosts are
// charged ahead, so that slots that become free together are shared immediately. An idle queue
// saves for later, but not forever, because the usage of the others decays.
type fairShare struct {
	name     string
	weight   float64 // at least 1
	priority int     // of the queue: a smaller one goes first, whatever the shares are

	usage        float64 // slot seconds, or CPU seconds if those are more, as of usageAt
	usageAt      time.Duration
	runningSlots int // slots of attempts known to run
	sentSlots    int // slots of open attempts not known to have started

	meanRunTime   float64 // mean run time of its jobs in seconds; 0: not known
	sentCharge    float64 // slot seconds that an attempt in sentSlots is charged ahead
	relativeUsage float64 // set only while jobs are placed; with a lottery, the result of its draw
}

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
		st.share.weight = float64(o.Share)
	}
	if o.QueuePriority != nil {
		st.share.priority = *o.QueuePriority
	}
	if o.QueueSlots > 0 && o.QueueSlots != st.slotPool.limit {
		st.slotPool.limit = o.QueueSlots
		c.queue.capacityChanged()
	}
}

// decay updates used to the current time.
func (t *fairShare) decay(now, halfLife time.Duration) {
	dt := now - t.usageAt
	if dt <= 0 {
		return
	}
	t.usageAt = now
	if t.usage == 0 && t.runningSlots == 0 {
		return
	}
	kept := math.Exp2(-dt.Seconds() / halfLife.Seconds())
	t.usage = t.usage*kept + float64(t.runningSlots)*(1-kept)*halfLife.Seconds()/math.Ln2
}

// chargeSent charges an attempt that was sent to a host.
func (c *Core) chargeSent(f *inFlight) {
	t := &f.stats.share
	t.sentSlots += f.slots
	if c.tickets != nil {
		c.drawTickets()
		return
	}
	t.updateRelativeUsage(c.chargeAhead)
}

// chargeStarted charges an attempt as running. It has run for ran already.
func (c *Core) chargeStarted(f *inFlight, ran time.Duration) {
	t := &f.stats.share
	t.decay(c.now.Mono, c.cfg.HalfLife)
	t.sentSlots -= f.slots
	t.runningSlots += f.slots
	t.usage += float64(f.slots) * ran.Seconds()
}

// chargeEnded stops charging an attempt. The charge is corrected if its host has reported its run
// time and CPU time, because start and end may be reported together.
func (c *Core) chargeEnded(f *inFlight) {
	t := &f.stats.share
	t.decay(c.now.Mono, c.cfg.HalfLife)
	was := c.chargeSoFar(f)
	if f.started {
		t.runningSlots -= f.slots
	} else {
		t.sentSlots -= f.slots
	}
	if f.runTime > 0 {
		t.usage = max(0, t.usage+charge(f.slots, f.runTime, f.cpuTime)-was)
	}
}

// charge returns the charge of an attempt with this run time and CPU time, in seconds.
func charge(slots int, took, cpu time.Duration) float64 {
	return max(float64(slots)*took.Seconds(), cpu.Seconds())
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
			f.stats.share.decay(c.now.Mono, c.cfg.HalfLife)
			f.excessCharge += beyond * since.Seconds()
			f.stats.share.usage += beyond * since.Seconds()
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
	half := c.cfg.HalfLife.Seconds()
	oldest := c.now.Wall - jobs.Stamp(20*min(c.cfg.HalfLife, 365*24*time.Hour))
	for i := range c.table.Jobs {
		j := &c.table.Jobs[i]
		for _, a := range j.Attempts {
			if a.Outcome == nil || a.Outcome.Ended < oldest {
				continue
			}
			ran := min(a.Outcome.Elapsed(), c.maxElapsed(j))
			took := ran.Seconds()
			if took == 0 {
				continue
			}
			rate := charge(j.Spec.SlotCount(), ran, boundedCPU(a.Outcome.CPU, jobs.MaxSlots, ran)) / took
			ago := max(0, c.now.Wall.Sub(a.Outcome.Ended)).Seconds()
			t := &c.statsOf(j.Spec).share
			t.usage += rate * math.Exp2(-ago/half) * (1 - math.Exp2(-took/half)) * half / math.Ln2
		}
	}
	for _, st := range c.queues {
		st.share.usageAt = c.now.Mono
	}
}

// updateRelativeUsages computes the relative usages for this Step. All queues are charged ahead for
// the same time, which is that of the longest jobs. A queue that has one slot too many or too few
// is thus corrected by one slot, not by all slots at once.
func (c *Core) updateRelativeUsages() {
	if len(c.queues) < 2 && !c.hybrid {
		return
	}
	if c.tickets != nil {
		c.drawTickets()
		return
	}
	c.chargeAhead = 0
	sum, known := 0.0, 0
	for _, st := range c.queues {
		t := &st.share
		t.decay(c.now.Mono, c.cfg.HalfLife)
		t.meanRunTime = st.recent.All
		if t.meanRunTime == 0 && st.estimated > 0 {
			t.meanRunTime = st.estimateSum / float64(st.estimated)
		}
		if t.meanRunTime > 0 && t.runningSlots+t.sentSlots+st.queued > 0 {
			c.chargeAhead = max(c.chargeAhead, t.meanRunTime)
			sum, known = sum+t.meanRunTime, known+1
		}
	}
	if known == 0 {
		c.chargeAhead, sum, known = defaultChargeAhead, defaultChargeAhead, 1
	}
	c.chargeAhead = min(c.chargeAhead, c.cfg.HalfLife.Seconds())
	for _, st := range c.queues {
		st.share.sentCharge = st.share.meanRunTime
		if st.share.meanRunTime == 0 { // like the other queues
			st.share.sentCharge = sum / float64(known)
		}
		st.share.updateRelativeUsage(c.chargeAhead)
	}
}

func (t *fairShare) updateRelativeUsage(ahead float64) {
	t.relativeUsage = (t.usage + float64(t.runningSlots)*ahead + float64(t.sentSlots)*t.sentCharge) / t.weight
}

// compare returns which of two queues goes first: -1, 0, or 1.
func (t *fairShare) compare(o *fairShare) int {
	return cmp.Or(cmp.Compare(t.priority, o.priority), cmp.Compare(t.relativeUsage, o.relativeUsage))
}

// chargeLateOutcome corrects the charge of a lost attempt whose outcome is known now.
func (c *Core) chargeLateOutcome(a *jobs.Attempt, j *jobs.Job, o *jobs.Outcome) {
	h := c.hostWith(a.Host, a.Machine)
	if took := min(o.Elapsed(), c.maxElapsed(j)); h != nil && c.orphaned[a.ID] && took > 0 {
		t := &c.statsOf(j.Spec).share
		t.decay(c.now.Mono, c.cfg.HalfLife)
		t.usage = max(0, t.usage+charge(j.Spec.SlotCount(), took,
			boundedCPU(o.CPU, h.cores(), took))-c.orphanCharge[a.ID])
	}
}
