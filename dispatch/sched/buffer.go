package sched

import (
	"math"
	"slices"
	"time"

	"dcs-tui/jobs"
)

// The buffer: hosts get single-slot jobs ahead of need, so that a slot that becomes free is
// refilled immediately.
const (
	bufferTime = 300 * time.Millisecond // work per slot; covers a slow link's round trip
	// maxBufferedRunTime limits the jobs that are buffered: other hosts could run longer ones.
	maxBufferedRunTime = 30 * time.Second
	maxBuffered        = 256 // per host
	// bufferDivisor bounds the buffers: 1/bufferDivisor of the remaining queue is sent ahead of need.
	bufferDivisor = 2
)

// highWater returns how many jobs a host should hold beyond its slots. mean is the expected run
// time in seconds. span is the time that the jobs should last, or 0 for the usual one.
func highWater(slots int, mean float64, known bool, span time.Duration) int {
	switch {
	case slots <= 0:
		return 0
	case span > 0:
		return slots * highPerSlot(mean, known, span)
	}
	return min(maxBuffered, slots*highPerSlot(mean, known, span))
}

// highPerSlot is highWater for a single slot, without maxBuffered.
func highPerSlot(mean float64, known bool, span time.Duration) int {
	switch {
	case !known:
		return 0
	case span > 0:
		return int(min(math.Ceil(span.Seconds()/max(mean, 1e-3)), 1e6))
	case mean >= maxBufferedRunTime.Seconds():
		return 0
	}
	return max(1, int(math.Ceil(bufferTime.Seconds()/max(mean, 1e-3))))
}

// expectedSeconds returns the expected run time of a job, in seconds. ok is false if nothing is
// known.
func (c *Core) expectedSeconds(id jobs.ID) (float64, bool) {
	s := c.table.Job(id).Spec
	if m := &c.statsOf(s).recent; m.N > 0 {
		return m.All, true
	}
	return s.Estimate.Seconds(), s.Estimate > 0
}

// fillBuffers sends jobs to hosts ahead of need. A host that has fewer than half of its high-water
// mark is filled up to it. It never gets more than its part of the remaining queue, so that the
// end of the queue is spread evenly (guided self-scheduling).
func (c *Core) fillBuffers() {
	if c.queue.ready == 0 || c.isNearHalt() || c.cfg.LaunchDelay > 0 ||
		len(c.hosts) > 1 && c.isSlotLimitBinding() {
		return
	}
	c.summarize()
	slots, left := c.total.slots, c.queue.ready+c.total.ahead
	if slots == 0 {
		return
	}
	divisor := bufferDivisor
	if c.cfg.Buffer > 0 {
		divisor = 1
	}
	// No host with a larger minPart or minHigh gets a job.
	partPerSlot := float64(left) / float64(slots*divisor) * (1 + 1e-9)
	if c.nodes[1].minPart > partPerSlot || math.IsInf(c.nodes[1].minHigh, 1) ||
		c.nodes[1].ahead&c.queue.kinds.Set == 0 {
		return
	}
	l, waiting := c.candidates(true), c.waitingCopies()
	for i := 0; c.first(l) != nil && !c.hasLaunchedMost(); i++ {
		high := float64(c.maxHighPerSlot(l))
		i = c.next(i, func(s *hostSummary) bool {
			return s.minPart <= partPerSlot && s.minHigh <= high && s.ahead&c.queue.kinds.Set != 0
		})
		if i < 0 {
			return
		}
		h := c.hosts[i]
		c.numVisits++
		if c.nodes[c.firstLeaf+i].ahead&waiting != 0 {
			continue
		}
		c.fillBuffer(h, l, left*h.limit/slots/divisor)
	}
}

// mayBuffer reports whether the host, which has no free slot, may get jobs ahead of need, but for the kinds
// that it limits.
func (h *host) mayBuffer() bool {
	return h.acceptsJobs() && h.limit > 0 && h.numSpecial == 0 && h.reserved == nil && !h.keepsSlots() &&
		^h.probation.limited() != 0
}

// maxHighPerSlot returns the largest high-water mark of the candidates, per slot.
func (c *Core) maxHighPerSlot(l candidates) (high int) {
	for i := range l {
		for _, cl := range l[i].rest() {
			c.queue.numClassVisits++
			mean, known := c.expectedSeconds(cl.first)
			high = max(high, highPerSlot(mean, known, c.cfg.Buffer))
			if cl.stats.recent.N > 0 {
				break // the mean applies to all jobs of the queue
			}
		}
	}
	return high
}

// fillBuffer fills the buffer of one host. part is the host's part of the remaining queue.
func (c *Core) fillBuffer(h *host, l candidates, part int) {
	want := -1
	for want < 0 || -h.freeSlots() < want && !c.hasLaunchedMost() {
		cl := c.firstFor(h, l, func(cl *class) bool {
			c.updateFits(cl)
			return h.probation.limited()&cl.kind == 0 && c.canRunOn(h, cl, cl.isAvoidingHosts(c))
		})
		if cl == nil || want < 0 && c.isAwaitedBefore(h, cl) {
			return
		}
		if want < 0 {
			mean, known := c.expectedSeconds(cl.first)
			high := highWater(h.limit, mean, known, c.cfg.Buffer)
			want = min(high, part)
			if -h.freeSlots() >= (high+1)/2 || -h.freeSlots() >= want {
				return
			}
		}
		c.launchAt(cl, h)
	}
}

// isAwaitedBefore reports whether a job that goes before those of a class, and that cannot be buffered
// there, waits only for a slot of the host. If buffers were filled, buffered jobs would take each slot.
func (c *Core) isAwaitedBefore(h *host, cl *class) bool {
	for _, st := range c.queues {
		if c.isAwaitedOf(&st.others, h, cl) || h.probation.limited() != 0 && c.isAwaitedOf(&st.bufferable, h, cl) {
			return true
		}
	}
	return false
}

// isAwaitedOf is isAwaitedBefore for the jobs of a line.
func (c *Core) isAwaitedOf(l *line, h *host, cl *class) bool {
	c.sortLine(l)
	for _, o := range l.sorted {
		if !o.before(cl) {
			break
		}
		c.queue.numClassVisits++
		c.updateFits(o)
		if o.isWide() || c.waitsForPool(o) || !c.canRunOn(h, o, o.isAvoidingHosts(c)) {
			continue
		}
		if _, why := c.spaceOn(h, o); why == passedSlots {
			return true
		}
	}
	return false
}

// minBufferedTime is how long a job stays in a buffer before it may be moved: most start sooner.
const minBufferedTime = 100 * time.Millisecond

// surplusSearch holds when withdrawSurplus looks for jobs to move.
type surplusSearch struct {
	surplusCheckAt time.Duration // when a job that was buffered too recently may move; 0: there is none
	// The last search found nothing to move, and no host has got more free slots or jobs to move since.
	hasNoneToMove bool
	searchedFits  fitsVersion // as of the last search
}

// handleMoreToMove makes the next search due if a host has more free slots or jobs to move than it had.
func (s *surplusSearch) handleMoreToMove(had, has *fleetState, hadSurplus, hasSurplus int) {
	if has.counted.free-has.numClosed > had.counted.free-had.numClosed || has.counted.free > had.counted.free ||
		has.limited != had.limited || has.counted.withdrawing < had.counted.withdrawing || hasSurplus > hadSurplus {
		s.hasNoneToMove = false
	}
}

// withdrawSurplus withdraws buffered jobs when the queue is empty and another host has free slots
// for them, so that the end of a run does not wait for one host's buffer. The hosts with the largest surplus
// go first. After a search that found nothing to move, there is none until more slots are free or more jobs
// wait.
func (c *Core) withdrawSurplus() {
	if c.isLaunchingClosed() || c.queue.ready > 0 {
		c.surplusSearch = surplusSearch{}
		return
	}
	c.summarize()
	fits := c.queue.fitsVersion()
	isDue := c.surplusCheckAt > 0 && c.now.Mono >= c.surplusCheckAt
	withdrawing := c.total.withdrawing
	if withdrawing >= c.total.free || c.hasNoneToMove && fits == c.searchedFits && !isDue {
		return
	}
	c.surplusSearch = surplusSearch{hasNoneToMove: true, searchedFits: fits}
	hasRoom := map[*class]bool{}
	for _, h := range c.hostsWithSurplus() {
		n, surplus := 0, h.surplus()
		for f := h.newest; f != nil && n < surplus; f = f.prevOnHost {
			if !f.isWaiting() || !f.isPlain() || withdrawing >= c.numFreeSlots(f.kind) ||
				!c.hasRoomElsewhere(f, hasRoom) {
				continue
			}
			if at := f.launchedAt + minBufferedTime; at > c.now.Mono {
				if c.surplusCheckAt == 0 || at < c.surplusCheckAt {
					c.surplusCheckAt = at
				}
				continue
			}
			h.withdraw(f)
			n++
			withdrawing++
			c.hasNoneToMove = false
		}
		if withdrawing >= c.total.free {
			return
		}
	}
}

// withdrawBeyondLimit withdraws the newest jobs beyond what fillBuffer would send the host with its
// present limit, if other hosts can run them. It is called when the limit has fallen. fillBuffer
// does not send the host more at once, because the host keeps as much as fillBuffer would give it.
func (c *Core) withdrawBeyondLimit(h *host) {
	if c.isLaunchingClosed() {
		return
	}
	ahead := -h.limit
	for f := h.oldest; f != nil; f = f.nextOnHost {
		if !f.withdrawn {
			ahead += f.slots
		}
	}
	for f := h.newest; f != nil; f = f.prevOnHost {
		if !f.isWaiting() || !c.classOf(c.table.Job(f.id.Job)).hasUsableHost(c, h) {
			continue
		}
		mean, known := c.expectedSeconds(f.id.Job)
		if ahead <= highWater(h.limit, mean, known, c.cfg.Buffer) {
			return
		}
		h.withdraw(f)
		ahead -= f.slots
	}
}

// surplus returns how many jobs wait on the host beyond its free slots.
func (h *host) surplus() int {
	return h.numInFlight((*inFlight).isWaiting) - max(0, h.limit-h.runningSlots)
}

// hostsWithSurplus returns the hosts with a surplus, the largest first.
func (c *Core) hostsWithSurplus() (all []*host) {
	c.summarize()
	has := func(s *hostSummary) bool { return s.surplus > 0 }
	for i := c.next(0, has); i >= 0; i = c.next(i+1, has) {
		all = append(all, c.hosts[i])
	}
	surplus := func(h *host) int { return c.nodes[c.firstLeaf+h.index].surplus }
	slices.SortStableFunc(all, func(a, b *host) int { return surplus(b) - surplus(a) })
	return all
}

// hasRoomElsewhere reports whether another host has a free slot for a buffered job. known holds the results for
// jobs that have no other attempt, by their class. The host of such a job has no free slot.
func (c *Core) hasRoomElsewhere(f *inFlight, known map[*class]bool) (has bool) {
	cl, excluded := c.sharedClassOf(c.table.Job(f.id.Job))
	if len(excluded) == 1 {
		if has, ok := known[cl]; ok {
			return has
		}
		defer func() { known[cl] = has }()
	}
	for h := range c.withSpace(cl) {
		free, _ := h.freeFor(cl.key.queue, cl.key.gpus)
		if h != f.host && free > 0 && c.canRunOn(h, cl, cl.key.avoid != "") && !slices.Contains(excluded, h.spec.Name) {
			return true
		}
	}
	return false
}
