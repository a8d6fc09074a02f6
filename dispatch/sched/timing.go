package sched

import (
	"fmt"
	"time"
)

// passTime lets every wait that has run out take effect.
func (c *Core) passTime() {
	c.watchLinks()
	c.wakeHosts()
	c.keepQuiet()
	c.relist()
	c.reconcile()
	c.lookAround()
	c.giveUpLost()
	c.moveHosts()
	c.wake()
	c.cancelSome()
	c.carryOut()
	c.skipHarder()
	c.refuseUnsatisfiable()
	c.judge()
	c.watchDeadlines()
	for _, h := range c.hosts {
		c.endWarned(h)
		switch {
		case h.answers() && !h.removed:
			c.anyUp, h.downAt = c.now.Mono, 0
		case h.downAt == 0:
			h.downAt = max(1, c.now.Mono)
		}
	}
}

// Next returns when (in Time.Mono) the core wants a Tick at the latest, TickEvery
// from now or sooner; false means that it wants none any more.
func (c *Core) Next() (time.Duration, bool) {
	at := never
	soon := func(t time.Duration) {
		if t > c.now.Mono && t < at {
			at = t
		}
	}
	if !c.begun {
		return 0, true
	}
	if c.stopped || c.fenced {
		return 0, false
	}
	for _, h := range c.everyHost() {
		if h.linked {
			soon(h.seen + SuspectAfter)
		} else if h.known || h.open > 0 {
			soon(h.grace)
			if soon(h.lostAt()); h.open > 0 {
				soon(c.leaseEnd(h))
			}
			soon(h.looks.at)
			if h.looks.first > 0 {
				soon(h.looks.first + lookWait)
				soon(h.looks.since + lookEvery)
				soon(h.looks.since + lookEvery + lookWait)
			}
			soon(h.lostAt() + lookWait)
			soon(h.looks.movedAt + beatFresh)
		}
		soon(h.leaveBy)
		soon(h.warnBy)
		soon(h.retryAt)
		soon(h.probeAt)
		soon(h.listAt)
		if h.rest.resting {
			soon(h.rest.until)
		}
		if h.linked {
			soon(h.quietTurn)
		}
	}
	c.nextProvision(soon)
	if len(c.queue.timers) > 0 {
		soon(max(c.queue.timers[0].at, c.now.Mono+1))
	}
	soon(c.now.Mono + TickEvery) // or the gap would pass for a stall
	soon(c.balanceAt)
	soon(c.reconcileBy)
	soon(c.clearUntil)
	soon(c.neverAt)
	if c.sweep.pending() || len(c.asked) > 0 && !c.editWaits() {
		soon(c.now.Mono + 1)
	}
	if c.hardnessPending() && !c.skipsWait() {
		soon(c.now.Mono + 1)
	}
	for _, cl := range c.queue.list {
		if cl.never != "" {
			soon(c.now.Mono + 1)
		}
	}
	if !c.closed() {
		if c.queue.ready > 0 {
			soon(c.launchAfter)
		}
		for _, cl := range c.queue.list {
			if cl.stuckAt > 0 {
				soon(cl.stuckAt + reserveAfter)
			}
		}
	}
	if !c.finished && c.table.Unfinished() > 0 {
		soon(c.anyUp + c.cfg.GiveUp)
	}
	return at, at != never
}

// short writes a duration for people: "15 s", "2 min", "3 h".
func short(d time.Duration) string {
	switch {
	case d < 2*time.Minute:
		return fmt.Sprintf("%d s", int(d.Round(time.Second)/time.Second))
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min", int(d.Round(time.Minute)/time.Minute))
	}
	return fmt.Sprintf("%d h", int(d.Round(time.Hour)/time.Hour))
}

// size writes a number of bytes for people: "512 MiB", "1.5 GiB".
func size(b int64) string {
	const mib, gib = 1 << 20, 1 << 30
	switch {
	case b < gib:
		return fmt.Sprintf("%d MiB", (b+mib-1)/mib)
	case b >= 100*gib:
		return fmt.Sprintf("%.0f GiB", float64(b)/gib)
	}
	return fmt.Sprintf("%.3g GiB", float64(b)/gib)
}
