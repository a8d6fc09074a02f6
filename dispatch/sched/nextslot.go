package sched

import (
	"cmp"
	"slices"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// NextSlot returns when the next slot is due for jobs that are ready or were sent in advance, and
// from whom. It returns nil if there is none of them or nothing may be launched. Its cost is
// proportional to the number of running attempts.
func (c *Core) NextSlot() *jobs.NextSlot {
	if c.isLaunchingClosed() {
		return nil
	}
	const maxClasses = 8 // of jobs with different needs
	var first *jobs.NextSlot
	for h := range c.everyHost() {
		if !h.linked || h.limit == 0 || h.numBuffered() == 0 {
			continue
		}
		if n := c.slotForBuffered(h, 1); n != nil && (first == nil || isEarlier(n, first)) {
			first = n
		}
	}
	for _, cl := range c.queue.list[:min(len(c.queue.list), maxClasses)] {
		if c.waitsForPool(cl) {
			continue
		}
		if n := c.nextSlotFor(cl); n != nil && (first == nil || isEarlier(n, first)) {
			first = n
		}
	}
	return first
}

// isEarlier reports whether a slot is due before another one. An unknown time is the latest, after
// that of a job which takes longer than expected.
func isEarlier(a, b *jobs.NextSlot) bool {
	if a.From == jobs.SlotUnknown || b.From == jobs.SlotUnknown {
		return a.From != jobs.SlotUnknown
	}
	return cmpRest(a.In, b.In) < 0
}

// cmpRest compares the times until two slots are due. Nobody knows when an overdue job ends, so its 0 is
// the latest.
func cmpRest(a, b time.Duration) int {
	return cmp.Or(-cmp.Compare(min(a, 1), min(b, 1)), cmp.Compare(a, b))
}

// nextSlotFor returns when the next slot is due for jobs of the class. It returns nil if no host
// that can run them lets them wait for a slot.
func (c *Core) nextSlotFor(cl *class) *jobs.NextSlot {
	c.updateFits(cl)
	var first *jobs.NextSlot
	for h := range c.everyHost() {
		if h.whyClosedTo(cl) != notPassed {
			continue
		}
		var n *jobs.NextSlot
		switch {
		case h.hold == jobs.HeldByOtherRuns && cl.key.slots <= 1:
			n = c.slotOfOthers(h)
		case h.hold == jobs.NotHeld && h.limit > 0 && h.freeSlots() < cl.key.slots:
			n = c.slotOfJob(h, h.freeSlots(), cl.key.slots)
		}
		if n != nil && (first == nil || isEarlier(n, first)) {
			first = n
		}
	}
	return first
}

// slotOfOthers describes the slot of a host on which other runs and users hold all. The rule of
// hosts.LastSlotDelay ends the wait.
func (c *Core) slotOfOthers(h *host) *jobs.NextSlot {
	n := &jobs.NextSlot{From: jobs.SlotOfOthers, Host: h.spec.Name,
		In: max(0, h.heldByOthersSince+hosts.LastSlotDelay-c.now.Mono)}
	for _, u := range h.heartbeat.Sharing.Users {
		switch {
		case len(u.OwnRuns) > 0:
			n.Runs = u.OwnRuns[:min(len(u.OwnRuns), jobs.MaxSlotUsers)]
		case u.Slots > 0 && len(n.Users) < jobs.MaxSlotUsers:
			n.Users = append(n.Users, u.Name)
		}
	}
	return n
}

// slotForBuffered describes when an attempt that was sent to the host in advance can start. It
// returns nil if so many slots are free.
func (c *Core) slotForBuffered(h *host, slots int) *jobs.NextSlot {
	free := h.limit - h.runningSlots
	if free >= slots {
		return nil
	}
	return c.slotOfJob(h, free, slots)
}

// slotOfJob describes when so many of our jobs on the host have ended that the slots are free, and
// the last of these jobs. free slots are free now.
func (c *Core) slotOfJob(h *host, free, slots int) *jobs.NextSlot {
	type end struct {
		in    time.Duration
		job   jobs.ID
		slots int
	}
	var ends []end
	for f := h.oldest; f != nil; f = f.nextOnHost {
		if in, ok := f.expectedRest(c.now.Mono); ok {
			ends = append(ends, end{in, f.id.Job, f.slots})
		}
	}
	slices.SortFunc(ends, func(a, b end) int { return cmp.Or(cmpRest(a.in, b.in), cmp.Compare(a.job, b.job)) })
	for _, e := range ends {
		free += e.slots
		if free >= slots {
			return &jobs.NextSlot{From: jobs.SlotOfJob, Host: h.spec.Name, Job: e.job, In: e.in}
		}
	}
	return &jobs.NextSlot{From: jobs.SlotUnknown}
}

// expectedRest returns in how long a running attempt is expected to end, 0 if it is overdue. ok is
// false if that is not known.
func (f *inFlight) expectedRest(now time.Duration) (rest time.Duration, ok bool) {
	if !f.started || f.hasOutcome {
		return 0, false
	}
	age := f.age(now)
	if left, ok := f.progress.remaining(age); ok {
		return durationOfSeconds(left.Mean), true
	}
	d, ok := f.expectedRunTime(age)
	return max(0, d-age), ok
}
