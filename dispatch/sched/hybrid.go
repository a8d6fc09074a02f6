package sched

import (
	"cmp"
	"math"
	"slices"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// The hybrid order. In a run with slots on this machine and on others, the local slots take the job
// with the shortest estimate first, so that short jobs are done while remote hosts are still being
// connected to. The remote slots keep the common order. Jobs of lost hosts, the priorities of
// queues and jobs, and deadlines take precedence over estimates. Jobs of unknown run time come
// last.

// hasLocalAndRemote reports whether there are local hosts and others.
func hasLocalAndRemote(hs []*hosts.Host) bool {
	isLocal := func(h *hosts.Host) bool { return h.Link == "local" }
	isRemote := func(h *hosts.Host) bool { return !isLocal(h) }
	return slices.ContainsFunc(hs, isLocal) && slices.ContainsFunc(hs, isRemote)
}

func (h *host) isLocal() bool { return h.spec.Link == "local" }

// estimateSteps is the number of classes of estimates per factor of two. It bounds the number of
// classes, however many different estimates there are.
const estimateSteps = 4

// estimateStep returns the class of a job's estimate.
func (c *Core) estimateStep(s *jobs.Spec) int {
	if !c.hybrid || s.Estimate <= 0 {
		return 0
	}
	return max(1, int(math.Round(estimateSteps*math.Log2(float64(s.Estimate)))))
}

// estimate returns the expected run time of a job of the class in seconds, or infinity if it is
// not known.
func (cl *class) estimate() float64 {
	switch {
	case cl.key.estimateStep > 0:
		return math.Exp2(float64(cl.key.estimateStep)/estimateSteps) / 1e9
	case cl.stats.share.MeanRunTime > 0:
		return cl.stats.share.MeanRunTime
	}
	return math.Inf(1)
}

// beforeOnLocal replaces before for local slots.
func (cl *class) beforeOnLocal(o *class) bool {
	if cl.firstRank.IsUrgent != o.firstRank.IsUrgent {
		return cl.firstRank.IsUrgent
	}
	d := cmp.Or(cmp.Compare(cl.stats.share.Priority, o.stats.share.Priority),
		cl.firstRank.Urgency.Compare(o.firstRank.Urgency),
		cmp.Compare(cl.estimate(), o.estimate()))
	if d != 0 {
		return d < 0
	}
	return cl.before(o)
}

// launchShortest fills the local slots of a hybrid run.
func (c *Core) launchShortest(l candidates) {
	if !c.hybrid {
		return
	}
	for h := range c.everyHost() {
		for h.isLocal() && h.acceptsJobs() && h.freeSlots() > 0 && !c.isLaunchDelayed() && !c.hasLaunchedMost() {
			cl := c.firstFor(h, l, func(cl *class) bool { return c.fitsNow(h, cl) })
			if cl == nil {
				break
			}
			c.launchAt(cl, h)
		}
	}
}

// fitsNow reports whether the host has space for the class now.
func (c *Core) fitsNow(h *host, cl *class) bool {
	c.updateFits(cl)
	_, why := c.freeOn(h, cl, cl.isAvoidingHosts(c))
	return why == notPassed && !c.waitsForPool(cl)
}

// Hybrid reports whether local slots take the shortest job first, unlike the other slots.
func (c *Core) Hybrid() bool { return c.hybrid }
