package sched

import (
	"time"
)

// If more than half of the hosts that were up go silent together, our own network or a gateway is
// down. Their jobs could not run anywhere else, so they wait on their hosts. The hosts of such an
// outage come back one by one, each with its next connection attempt. The others are awaited in the
// meantime.

// dialSlack is the maximum duration of a connection attempt.
const dialSlack = 30 * time.Second

// inSameOutage reports whether two hosts that are both away went silent in one outage. A host from
// whose outage others have just come back may be away because of a new one.
func (c *Core) inSameOutage(h, o *host) bool {
	apart := o.lastReceivedAt - h.lastReceivedAt
	return h == o || h.outage > 0 && h.outage == o.outage || c.now.Mono < o.graceUntil ||
		max(apart, -apart) <= h.spec.LostAfterOrDefault()
}

// outageGroup returns the hosts that are away together with this one, or nil if they are not
// more than half of the hosts that were up. A single host is.
func (c *Core) outageGroup(h *host) (group []*host) {
	n := 0
	for _, o := range c.hosts {
		if o.wasUsed {
			n++
			if !o.linked && c.inSameOutage(h, o) {
				group = append(group, o)
			}
		}
	}
	if len(group)*2 > n {
		return group
	}
	return nil
}

// recordOutage records which hosts are away together with h, if there are many.
func (c *Core) recordOutage(h *host) {
	if h.index < 0 {
		return
	}
	group := c.outageGroup(h)
	if group == nil {
		return
	}
	id := h.outage
	for _, o := range group {
		id = max(id, o.outage)
	}
	if id == 0 {
		c.numOutages++
		id = c.numOutages
	}
	for _, o := range group {
		o.outage = id
	}
}

// leaveOutage gives the other hosts of the outage time to come back.
func (c *Core) leaveOutage(h *host) {
	if h.outage > 0 {
		for _, o := range c.hosts {
			if o != h && !o.linked && o.outage == h.outage {
				o.graceUntil = c.now.Mono + max(o.spec.LostAfterOrDefault(), c.cfg.MaxBackoff+dialSlack)
			}
		}
	}
	h.outage, h.graceUntil = 0, 0
}

// TickInterval is the longest time without a Step (see Core.Next). A gap longer than stallAfter is
// a stall of this dispatcher: a stopped process, a disk that did not answer, or a starved machine.
const (
	TickInterval = 3 * time.Second
	stallAfter   = 2 * TickInterval
)

// stallReportInterval is the shortest time between two reports of stalls, because the record of one
// may cause the next.
const stallReportInterval = time.Minute

// handleStall subtracts the time of our own stall from the silence of the hosts, because their
// heartbeats wait to be read. A stall counts as one tick, so that a dispatcher that stalls all the
// time still notices a dead host. Instants only move later: a lease that has expired remains
// expired. Waits without consequences, such as that for the next connection attempt, continue
// during a stall.
func (c *Core) handleStall(gap time.Duration) {
	shift := gap - TickInterval
	var always, ifSet []*time.Duration // 0 is "not set" for those of ifSet
	always = append(always, &c.lastUsableAt)
	ifSet = append(ifSet, &c.reconcileUntil, &c.missingHostsUntil, &c.lastUpAt, &c.waitLostUntil)
	for _, h := range c.allHosts() {
		l := &h.sharedDir
		always = append(always, &h.lastSeenAt, &h.lastReceivedAt, &h.cutAt, &h.awaySince)
		ifSet = append(ifSet, &h.mismatchSince, &l.firstAskedAt, &l.firstAnswerAt, &l.changedAt, &h.graceUntil, &h.listUntil)
	}
	for _, at := range always {
		*at += shift
	}
	for _, at := range ifSet {
		if *at > 0 {
			*at += shift
		}
	}
	if c.stallReportedAt == 0 || c.now.Mono-c.stallReportedAt >= stallReportInterval {
		c.stallReportedAt = c.now.Mono
		c.logf("", 0, "this dispatcher was suspended for %s (stopped, or its disk did not answer); the hosts' silence in that time does not count", formatDuration(gap))
	}
}
