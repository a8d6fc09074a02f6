package sched

import (
	"math"
	"time"

	"dcs-tui/jobs"
)

// The buffer: hosts get single-slot jobs ahead of need, so that a slot that
// becomes free is refilled on the spot.
const (
	bufferTime         = 300 * time.Millisecond // of work a slot; covers a slow link's round trip
	maxBufferedRunTime = 30 * time.Second       // jobs longer than this are not worth holding back from others
	maxBuffered        = 256                    // a host
	aheadDivisor       = 2                      // 1/sharePart of the remaining queue is handed out ahead
)

// highWater returns how many jobs a host with so many slots should hold beyond
// them, given a mean run time in seconds. span is Config.Buffer.
func highWater(slots int, mean float64, known bool, span time.Duration) int {
	switch {
	case !known || slots <= 0:
		return 0
	case span > 0:
		return slots * int(min(math.Ceil(span.Seconds()/max(mean, 1e-3)), 1e6))
	case mean >= maxBufferedRunTime.Seconds():
		return 0
	}
	return min(maxBuffered, slots*max(1, int(math.Ceil(bufferTime.Seconds()/max(mean, 1e-3)))))
}

// meanFor returns the expected run time of a job, in seconds. It is false if nothing is known.
func (c *Core) meanFor(id jobs.ID) (float64, bool) {
	s := c.table.Job(id).Spec
	if m := &c.statsOf(s).recent; m.n > 0 {
		return m.all, true
	}
	return s.Estimate.Seconds(), s.Estimate > 0
}

// fillBuffers hands out jobs ahead of need. A host below half of its high water
// mark is filled up to it, but never beyond its part of what is left, so that the
// end of the queue is spread evenly (guided self-scheduling).
func (c *Core) fillBuffers() {
	if c.queue.ready == 0 || c.copiesWait() || c.nearHalt() || c.cfg.Delay > 0 || c.cfg.MaxSlots > 0 && len(c.hosts) > 1 && c.slotsLimited() {
		return
	}
	slots, ahead := 0, 0
	for _, h := range c.hosts {
		if h.acceptsJobs() {
			slots += h.limit
			ahead += max(0, -h.free())
		}
	}
	if slots == 0 {
		return
	}
	left := c.queue.ready + ahead
	var l candidates
	for _, h := range c.hosts {
		if !h.acceptsJobs() || h.limit == 0 || h.nSpecial > 0 || h.reserved != nil || h.keepsPart() || h.free() > 0 || h.probation.onTrial() {
			continue
		}
		part := left * h.limit / slots
		if c.cfg.Buffer == 0 {
			part /= aheadDivisor
		}
		if l == nil {
			l = c.bufferCandidates()
		}
		c.fillBuffer(h, &l, part)
	}
}

// fillBuffer tops up one host from the line of buffered classes.
func (c *Core) fillBuffer(h *host, l *candidates, part int) {
	want := -1
	for want < 0 || -h.free() < want {
		i := l.firstFor(c, h)
		if i < 0 {
			return
		}
		w := &(*l)[i]
		if want < 0 {
			mean, known := c.meanFor(w.id)
			high := highWater(h.limit, mean, known, c.cfg.Buffer)
			if want = min(high, part); -h.free() >= (high+1)/2 || -h.free() >= want {
				return
			}
		}
		c.launchAt(l, i, h)
	}
}

// plainLine returns the classes whose jobs may be buffered, in no order: there
// are few, and firstFor looks for the most urgent one that fits.
func (c *Core) bufferCandidates() candidates {
	c.updateLoads()
	l := candidates{}
	for _, cl := range c.queue.list {
		if cl.key.isPlain() && !c.limited(cl.spec) {
			id, r := cl.head(c)
			l = append(l, candidate{cl, id, r})
		}
	}
	return l
}

// firstFor returns the index of the most urgent head that the host may get, -1 if none.
func (l candidates) firstFor(c *Core, h *host) int {
	best, before := -1, (*candidate).before
	if c.hybrid && h.local() {
		before = (*candidate).shorterFirst
	}
	for i := range l {
		if (best < 0 || before(&l[i], &l[best])) && c.canRunOn(h, l[i].class, l[i].class.picky(c)) {
			best = i
		}
	}
	return best
}

func (l *candidates) take(i int) {
	n := len(*l) - 1
	(*l)[i] = (*l)[n]
	*l = (*l)[:n]
}

// slotsLimited reports whether --max-slots is less than the hosts have: then jobs
// handed out ahead could start in too many places at once.
func (c *Core) slotsLimited() bool {
	n := 0
	for _, h := range c.hosts {
		n += h.limit
	}
	return n > c.cfg.MaxSlots
}

// balanceWait is how long a job is left in a buffer before it is worth moving:
// most start sooner.
const balanceWait = 100 * time.Millisecond

// balance asks buffered jobs back when the queue is empty and another host has
// slots free for them: the end of a run must not wait for one host's buffer.
func (c *Core) balance() {
	c.balanceAt = 0
	if c.closed() || c.queue.ready > 0 {
		return
	}
	free := -c.numWithdrawing()
	for _, h := range c.hosts {
		if h.acceptsJobs() && h.reserved == nil {
			free += max(0, h.free())
		}
	}
	for free > 0 {
		h := c.fullest()
		if h == nil {
			return
		}
		n := 0
		quota := min(free, h.surplus())
		for f := h.tail; f != nil && n < quota; f = f.prev {
			if !f.isWaiting() || !f.isPlain() || !c.hasRoomElsewhere(f) {
				continue
			}
			if at := f.launchedAt + balanceWait; at > c.now.Mono {
				if c.balanceAt == 0 || at < c.balanceAt {
					c.balanceAt = at
				}
				continue
			}
			h.withdraw(f)
			n++
		}
		if n == 0 {
			return
		}
		free -= n
	}
}

// comingBack counts the jobs that were asked back and are not here yet.
func (c *Core) numWithdrawing() int {
	n := 0
	for _, h := range c.hosts {
		if h.linked && h.occupied > h.running {
			for f := h.head; f != nil; f = f.next {
				if f.withdrawn {
					n++
				}
			}
		}
	}
	return n
}

// surplus returns how many jobs wait on the host beyond its free slots.
func (h *host) surplus() int {
	n := 0
	for f := h.head; f != nil; f = f.next {
		if f.isWaiting() {
			n++
		}
	}
	return n - max(0, h.limit-h.running)
}

// fullest returns the host with the most jobs waiting beyond its slots.
func (c *Core) fullest() *host {
	var best *host
	most := 0
	for _, h := range c.hosts {
		if h.linked && h.occupied > h.limit {
			if n := h.surplus(); n > most {
				best, most = h, n
			}
		}
	}
	return best
}

// elsewhere reports whether another host has room for a buffered job now.
func (c *Core) hasRoomElsewhere(f *inFlight) bool {
	cl := c.classOf(c.table.Job(f.id.Job))
	ok := false
	for _, h := range c.hosts {
		free, _ := h.freeFor(cl.key.queue, cl.key.gpus)
		ok = ok || h != f.host && free > 0 && c.canRunOn(h, cl, cl.avoid != nil)
	}
	return ok
}
