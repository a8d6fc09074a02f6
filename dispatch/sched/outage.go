package sched

import "time"

// When more than half of the hosts that were there go silent together it is our
// network, or a gateway, that is gone: nothing is gained elsewhere, so jobs wait
// there (DESIGN 7). The hosts of such an outage come back one by one, each when its
// next connection attempt is due; the rest are waited for meanwhile.

// dialSlack is what a connection attempt may take beyond its pause.
const dialSlack = 30 * time.Second

// together says whether two hosts that are both away went silent in one outage.
// One from whose outage others have just come back may have taken them along again.
func (c *Core) together(h, o *host) bool {
	apart := o.heard - h.heard
	return h == o || h.outage > 0 && h.outage == o.outage || c.now.Mono < o.grace ||
		max(apart, -apart) <= h.spec.LostAfterOrDefault()
}

// vanishedTogether says whether more than half of the hosts that were there are
// away together with this one. A single host always is.
func (c *Core) vanishedTogether(h *host) bool {
	n, gone := 0, 0
	for _, o := range c.hosts {
		if !o.known {
			continue
		}
		n++
		if !o.linked && c.together(h, o) {
			gone++
		}
	}
	return gone*2 > n
}

// noteOutage remembers which hosts are away together with h, if they are many.
func (c *Core) noteOutage(h *host) {
	if h.idx < 0 || !c.vanishedTogether(h) {
		return
	}
	var group []*host
	id := h.outage
	for _, o := range c.hosts {
		if o.known && !o.linked && c.together(h, o) {
			group = append(group, o)
			id = max(id, o.outage)
		}
	}
	if id == 0 {
		c.outages++
		id = c.outages
	}
	for _, o := range group {
		o.outage = id
	}
}

// backFromOutage gives the others of the outage time to follow.
func (c *Core) backFromOutage(h *host) {
	if h.outage > 0 {
		for _, o := range c.hosts {
			if o != h && !o.linked && o.outage == h.outage {
				o.grace = c.now.Mono + max(o.spec.LostAfterOrDefault(), c.cfg.BackoffCap+dialSlack)
			}
		}
	}
	h.outage, h.grace = 0, 0
}
