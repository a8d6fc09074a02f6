package sched

import "time"

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
	free := -c.comingBack()
	for _, h := range c.hosts {
		if h.takes() && h.reserved == nil {
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
			if !f.waiting() || !f.single() || !c.elsewhere(f) {
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
func (c *Core) comingBack() int {
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
		if f.waiting() {
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

// elsewhere says whether another host has room for a buffered job now.
func (c *Core) elsewhere(f *flight) bool {
	cl := c.classOf(c.table.Job(f.id.Job))
	ok := false
	for _, h := range c.hosts {
		free, _ := h.freeFor(cl.key.queue, cl.key.gpus)
		ok = ok || h != f.h && free > 0 && c.mayGo(h, cl, cl.avoid != nil)
	}
	return ok
}
