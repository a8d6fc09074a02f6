package sched

import (
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// A host is shared with other runs and users (docs/sharing.md). Its helper works out how
// many slots they leave to us; that bounds the slots like the load of others. The helper
// is told how many slots there are for all, and how many we would use.

// shareEvery is how often a helper is told that we want another number of slots.
const shareEvery = time.Second

// sharesSlots reports whether slots of the host are shared: those of an instance are ours.
func (c *Core) sharesSlots(h *host) bool { return c.cfg.RunShare > 0 && h.inst == nil }

// boundByOthers returns how many of n slots others leave to us.
func (c *Core) boundByOthers(h *host, n int) int {
	if s := h.beat.Sharing; s != nil && c.sharesSlots(h) {
		return min(n, max(s.Slots, 0))
	}
	return n
}

// heldByOthers returns how many slots other runs hold on the host. Their jobs use a core
// each, which is not counted again as load of others.
func (c *Core) heldByOthers(b *hosts.Beat, h *host) float64 {
	if b.Sharing == nil || !c.sharesSlots(h) {
		return 0
	}
	return float64(min(max(b.Sharing.Held, 0), jobs.MaxSlots))
}

// tellShare tells the helper what we want of n slots.
func (c *Core) tellShare(h *host, n int) {
	if !c.sharesSlots(h) || h.toldShare.Weight > 0 && c.now.Mono-h.shareAt < shareEvery {
		return
	}
	s := hosts.Share{Slots: max(n, 1), Weight: c.cfg.RunShare, Want: h.occupied}
	if h.takes() && !c.closed() && len(c.hosts) > 0 { // our part of what waits
		s.Want += (c.queue.ready + len(c.hosts) - 1) / len(c.hosts)
	}
	if s.Want = min(s.Want, s.Slots); s != h.toldShare {
		h.toldShare, h.shareAt, h.out.share = s, c.now.Mono, true
	}
}

// sharedWhy says who uses the slots of a host.
func (h *host) sharedWhy() string {
	return "other runs and users have its slots: " + h.beat.Sharing.Text()
}
