package sched

import (
	"iter"

	"dcs-tui/dispatch/sched/blame"
	"dcs-tui/jobs"
)

// place launches what can be launched now: the most urgent job first, each on the host with the
// most free slots. Then it fills the buffers of hosts.
func (c *Core) place() {
	c.checkPolicyInputs()
	c.updateLimits()
	if c.keeper != nil && !c.canKeep(c.keeper) {
		c.setKeeper(nil)
	}
	c.reportHolds()
	if c.isLaunchingClosed() || c.queue.ready == 0 {
		c.withdrawSurplus()
		c.launchCopies()
		return
	}
	c.launchCopies()
	wide := c.queue.numWide > 0
	if c.hasSlotForReady() || wide {
		list := c.candidates(false)
		c.launchShortest(list)
		stuck := c.launchFrom(list)
		if wide && !c.hasLaunchedMost() {
			c.reserve(append(stuck, list.sorted()...))
		}
		c.copySubmitted()
	}
	c.fillBuffers()
	c.withdrawSurplus()
}

// launchFrom launches the candidates that have space now. It returns the classes whose next job
// does not, in the order of their ranks.
func (c *Core) launchFrom(l candidates) (stuck []*class) {
	for p := c.first(l); p != nil && c.hasSlotForReady() && !c.hasLaunchedMost(); p = c.first(l) {
		cl := p.rest()[0]
		c.updateFits(cl)
		if h := c.chooseHost(cl); h != nil {
			c.launchAt(cl, h)
			continue
		}
		if (c.keeper == nil || !c.isKeptFrom(c.keeper, cl)) && c.waitsForPool(cl) && c.canKeep(cl) {
			c.setKeeper(cl)
		}
		stuck = append(stuck, cl)
		p.next++
	}
	return stuck
}

// launchAt launches the next job of a candidate on a host.
func (c *Core) launchAt(cl *class, h *host) {
	if h.reserved == cl {
		h.reserved = nil
	}
	if c.keeper == cl {
		c.setKeeper(nil)
	}
	cl.stuckSince = 0
	id := cl.first
	c.launch(id, h)
	if c.cfg.CopyAt == CopyAtSubmit {
		c.submitted = append(c.submitted, id)
	}
	c.launchAfter = c.now.Mono + c.cfg.LaunchDelay
	c.sortLine(cl.line)
}

// isLaunchDelayed reports whether the next launch waits for the delay after the last one.
func (c *Core) isLaunchDelayed() bool { return c.cfg.LaunchDelay > 0 && c.now.Mono < c.launchAfter }

// maxLaunches is the default of Config.MaxLaunches. It bounds a Step, so that reports of hosts and
// requests of people do not wait for the launches of a large fleet: with 5,000 hosts of 64 slots, the
// longest Step takes 12 ms. The rest follows in the next Step, at once.
const maxLaunches = 1000

// hasLaunchedMost reports whether the Step may launch no more.
func (c *Core) hasLaunchedMost() bool { return c.numLaunched >= c.cfg.MaxLaunches }

// isLaunchingClosed reports whether nothing more may be launched.
func (c *Core) isLaunchingClosed() bool {
	return c.table.Paused || c.holders != 0 || c.drain != nil || c.stopped || c.fenced || c.finished ||
		c.reconcileUntil > 0 || len(c.requests) > 0 || c.hardness.IsPending()
}

// hasFreeSlot reports whether a slot is free on a host that does not rest from all kinds of jobs.
func (c *Core) hasFreeSlot() bool {
	if c.slots.used >= c.slots.limit && c.isSlotLimitBinding() || c.isLaunchDelayed() {
		return false
	}
	c.summarize()
	return c.nodes[1].open|c.nodes[1].openAgain != 0
}

// hasSlotForReady reports whether a slot is free on a host that does not rest from all kinds of the ready
// jobs. Most Steps end here.
func (c *Core) hasSlotForReady() bool {
	return c.hasFreeSlot() && (c.nodes[1].open|c.nodes[1].openAgain)&c.queue.kinds.Set != 0
}

// numFreeSlots returns how many free slots jobs of a kind could get now.
func (c *Core) numFreeSlots(kind blame.Kinds) int {
	c.summarize()
	return c.total.free - c.closed.Of(kind)
}

// HasUsableSlot reports whether a slot that may be used is idle.
func (c *Core) HasUsableSlot() bool { return c.hasFreeSlot() && !c.isLaunchingClosed() }

// passReason is why placement passes over a host for a class.
type passReason uint8

const (
	notPassed     passReason = iota // it can start a job of the class now
	passedUnfit                     // it cannot run the class
	passedClosed                    // it accepts no jobs, or may use no slot
	passedForeign                   // others use GPUs that the job needs
	passedGPUs
	passedMemory
	passedSlots
	passedAvoided // the job failed there
	passedTime    // its allocation ends too soon
	passedReserved
	passedTrial // it gets one job at a time, and has one or rests
	numPassReasons
)

// placement is the host that was chosen for a class, or why each host was passed over.
type placement struct {
	host   *host // nil: none has space now
	passed [numPassReasons]struct {
		n     int
		first *host
	}
}

// placementOf looks among hosts for the one for a class's next job. It chooses the host with the most free
// slots, weighted, and among equals the first of the inventory. A job that has failed prefers a
// host where other jobs succeed.
func (c *Core) placementOf(cl *class, among iter.Seq[*host]) (p placement) {
	picky := cl.isAvoidingHosts(c)
	var score float64
	proven := false
	for h := range among {
		free, why := c.freeOn(h, cl, picky)
		if why != notPassed {
			if r := &p.passed[why]; r.n == 0 {
				r.first = h
			}
			p.passed[why].n++
			continue
		}
		s, isProven := float64(free)*weight(h), cl.key.avoid != "" && h.records[cl.stats].IsProven(0)
		if p.host == nil || isProven && !proven || isProven == proven && s > score {
			p.host, score, proven = h, s, isProven
		}
	}
	return p
}

// chooseHost returns the host for a class's next job, or nil if none has space now or a pool has
// too little left.
func (c *Core) chooseHost(cl *class) *host {
	if c.waitsForPool(cl) {
		return nil
	}
	if cl.key.avoid != "" {
		return c.placementOf(cl, c.withSpace(cl)).host
	}
	c.summarize()
	return c.best(hasSpaceFor(cl), func(h *host) (float64, bool) {
		free, why := c.freeOn(h, cl, false)
		return float64(free) * weight(h), why == notPassed
	})
}

func weight(h *host) float64 { return orDefault(h.spec.Weight, 1) }

// freeOn returns how many slots jobs of the class may take on the host now, which are those of one job if it is on
// trial, or why the host is passed over.
func (c *Core) freeOn(h *host, cl *class, picky bool) (slots int, why passReason) {
	why = h.whyClosedTo(cl)
	if why == notPassed {
		slots, why = c.spaceOn(h, cl)
	}
	if why == notPassed {
		why = c.whyBarredFrom(h, cl, picky)
	}
	if h.probation.limited()&cl.kind != 0 {
		slots = min(slots, cl.key.slots)
	}
	return slots, why
}

// spaceOn returns how many slots are free on the host for jobs of the class, or what it has too
// little of.
func (c *Core) spaceOn(h *host, cl *class) (slots int, why passReason) {
	k := &cl.key
	slots, gpus := h.freeFor(k.queue, k.gpus)
	switch {
	case h.hold != jobs.NotHeld:
		return 0, passedClosed
	case k.gpus.Devices() > gpus && h.hasForeignGPUs():
		return 0, passedForeign
	case k.gpus.Devices() > gpus:
		return 0, passedGPUs
	case k.mem > 0 && h.hello.MemBytes > 0 && h.mem+k.mem > h.hello.MemBytes-c.memoryOfOthers(h):
		return 0, passedMemory
	case slots < k.slots:
		return 0, passedSlots
	}
	return slots, notPassed
}

// whyClosedTo returns why the host takes no job of the class for now, or notPassed.
func (h *host) whyClosedTo(cl *class) passReason {
	switch {
	case !cl.fitsOn(h):
		return passedUnfit
	case !h.acceptsJobs():
		return passedClosed
	}
	return notPassed
}

// whyBarredFrom returns why the class is kept from the host even if there is space, or notPassed.
func (c *Core) whyBarredFrom(h *host, cl *class, picky bool) passReason {
	switch {
	case picky && cl.avoids(h):
		return passedAvoided
	case !c.hasTimeFor(h, cl.key.maxRunTime):
		return passedTime
	case c.isReservedFrom(h, cl):
		return passedReserved
	case c.restingKinds(h, cl.key.avoid != "")&cl.kind != 0:
		return passedTrial
	}
	return notPassed
}

// canRunOn reports whether the class may run on the host if there is space.
func (c *Core) canRunOn(h *host, cl *class, picky bool) bool {
	return h.whyClosedTo(cl) == notPassed && c.whyBarredFrom(h, cl, picky) == notPassed
}

// isAvoidingHosts reports whether jobs of the class avoid the hosts where they failed. They do
// while another host could run them. Jobs that may return after avoidanceTime are in another class.
func (cl *class) isAvoidingHosts(c *Core) bool { return cl.key.avoid != "" && cl.hasUntriedHost(c) }

// hasUsableHost reports whether a host other than but could start a job of the class now or as soon
// as a slot is free, and has not failed any of its jobs.
func (cl *class) hasUsableHost(c *Core, but *host) bool {
	return c.anyHost(func(h *host) bool {
		return h != but && h.acceptsJobs() && h.limit > 0 && cl.fitsOn(h) && !cl.avoids(h)
	})
}
