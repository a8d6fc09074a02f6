package sched

import (
	"strings"

	"dcs-tui/jobs"
)

// What people ask of hosts, and of the whole run, holds until they take it back (D7).
// It is recorded, and the next dispatcher begins with it.

// wish is what a person asked of the host.
func (h *host) wish() jobs.HostWish {
	w := jobs.HostWish{Slots: int32(h.given)}
	switch {
	case h.stopped:
		w.Use = jobs.HostStopped
	case h.draining:
		w.Use = jobs.HostDrained
	}
	return w
}

// keepWish records what a person has just asked of a host, if it is something new.
func (c *Core) keepWish(h *host) {
	if w := h.wish(); w != c.table.Hosts[h.spec.Name] {
		c.emit(jobs.Record{Kind: jobs.KindHost, Host: h.spec.Name, Count: int(w.Use), Slot: int(w.Slots)})
	}
}

// pauseRun records that a person pauses or continues launching. It returns why it does
// nothing.
func (c *Core) pauseRun(on bool) (refused string) {
	r := jobs.Record{Kind: jobs.KindPause}
	switch {
	case on && c.table.Paused:
		return pausedAlready
	case on:
		r.Count = 1
	case !c.table.Paused:
		return notHeldBack
	}
	c.emit(r)
	return ""
}

// heedWishes applies the recorded requests when a dispatcher begins. It reports them,
// so that a host that is up and takes no jobs is no surprise.
func (c *Core) heedWishes() {
	if c.table.Paused {
		c.say("", 0, "launching is still paused, as a person asked; p on the screen (dcs-tui attach) continues it")
	}
	for _, h := range c.hosts {
		c.heedWish(h)
	}
}

// heedWish applies what was asked of a host.
func (c *Core) heedWish(h *host) {
	w := c.table.Hosts[h.spec.Name]
	h.draining, h.stopped, h.given = w.Use != jobs.HostUsed, w.Use == jobs.HostStopped, min(int(w.Slots), jobs.MaxSlots)
	var still []string
	switch w.Use {
	case jobs.HostDrained:
		still = append(still, "is still drained")
	case jobs.HostStopped:
		still = append(still, "is still stopped")
	}
	if h.given > 0 {
		still = append(still, "still has "+jobs.Plural(h.given, "slot"))
	}
	if still != nil {
		c.say(h.spec.Name, 0, "%s %s, as a person asked", h.spec.Name, strings.Join(still, " and "))
	}
}
