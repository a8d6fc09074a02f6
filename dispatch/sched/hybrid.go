package sched

import (
	"cmp"
	"math"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// The hybrid order (D5): in a run with slots of this machine and of others, the local
// ones take the job first that is estimated to be the shortest, so that short jobs are
// over while remote hosts are still being connected to; the remote ones keep the common
// order. Jobs of failed hosts, the priorities of queues and of jobs, and deadlines go
// before; jobs whose run time nobody has estimated come last.

// bothKinds says that there are local hosts and others.
func bothKinds(hs []*hosts.Host) bool {
	local, remote := false, false
	for _, h := range hs {
		if h.Link == "local" {
			local = true
		} else {
			remote = true
		}
	}
	return local && remote
}

func (h *host) local() bool { return h.spec.Link == "local" }

// estimateSteps is how many classes of estimates there are for a factor of two: so
// many, and no more, whatever estimates a million jobs have.
const estimateSteps = 4

// estimateStep returns the class of a job's estimate.
func (c *Core) estimateStep(s *jobs.Spec) int {
	if !c.hybrid || s.Estimate <= 0 {
		return 0
	}
	return max(1, int(math.Round(estimateSteps*math.Log2(float64(s.Estimate)))))
}

// estimate is what a job of the class is expected to take, seconds; infinite if nobody
// knows.
func (cl *class) estimate() float64 {
	switch {
	case cl.key.est > 0:
		return math.Exp2(float64(cl.key.est)/estimateSteps) / 1e9
	case cl.stats.turn.mean > 0:
		return cl.stats.turn.mean
	}
	return math.Inf(1)
}

// shorter is before for local slots.
func (w *waiting) shorter(o *waiting) bool {
	if w.rank.calm != o.rank.calm {
		return o.rank.calm
	}
	d := cmp.Or(cmp.Compare(w.class.stats.turn.priority, o.class.stats.turn.priority), w.rank.presses(o.rank),
		cmp.Compare(w.class.estimate(), o.class.estimate()))
	if d != 0 {
		return d < 0
	}
	return w.before(o)
}

// launchShort fills the local slots of a hybrid run.
func (c *Core) launchShort(l *line) {
	if !c.hybrid {
		return
	}
	for _, h := range c.hosts {
		for h.local() && h.takes() && len(*l) > 0 && !c.delayed() {
			best := -1
			for i := range *l {
				w := &(*l)[i]
				if (best < 0 || w.shorter(&(*l)[best])) && c.fitsNow(h, w) {
					best = i
				}
			}
			if best < 0 {
				break
			}
			c.launchAt(l, best, h)
		}
	}
}

// fitsNow says that the host has room for a class's head now.
func (c *Core) fitsNow(h *host, w *waiting) bool {
	slots := w.class.key.slots
	free, _ := h.freeFor(w.class.key.queue, w.class.key.gpus)
	return free >= slots && !c.lacking(w.class) &&
		c.mayGo(h, w.class, w.class.picky(c)) && h.holds(w.class)
}

// Hybrid says that slots of this machine take the shortest job first and the others do
// not (D5).
func (c *Core) Hybrid() bool { return c.hybrid }
