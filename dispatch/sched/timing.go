package sched

import "time"

// handleTimers handles everything that is due.
func (c *Core) handleTimers() {
	c.checkLinks()
	c.endPauses()
	c.updateQuietHours()
	c.requestListsAgain()
	c.reconcile()
	c.continueRequests()
	c.inspectAbsentHosts()
	c.giveUpLost()
	c.moveHosts()
	c.endWaits()
	c.skipTooHard()
	c.refuseUnsatisfiable()
	c.updateStragglers()
	c.checkDeadlines()
	for h := range c.visits() {
		c.endWarned(h)
		switch {
		case h.isAnswering() && !h.removed:
			h.downSince = 0
		case h.downSince == 0:
			h.downSince = max(1, c.now.Mono)
		}
	}
}

// Next returns the latest time, in Time.Mono, at which the core needs a Tick. It is at most
// TickInterval away. ok is false if the core needs no more Ticks.
func (c *Core) Next() (time.Duration, bool) {
	at := timeNever
	soon := func(t time.Duration) {
		if t > c.now.Mono && t < at {
			at = t
		}
	}
	if !c.hasBegun {
		return 0, true
	}
	if c.stopped || c.fenced {
		return 0, false
	}
	soon(c.nodes[1].wakeAt)
	for _, h := range c.absent {
		soon(c.nextWake(h))
	}
	c.nextProvision(soon)
	if len(c.queue.timers) > 0 {
		soon(max(c.queue.timers[0].at, c.now.Mono+1))
	}
	soon(c.now.Mono + TickInterval) // otherwise the gap would be treated as a stall
	soon(c.surplusCheckAt)
	soon(c.reconcileUntil)
	soon(c.waitLostUntil)
	soon(c.failUnsatisfiableAt)
	if len(c.requests) > 0 && !c.mustDelayEdit() {
		soon(c.now.Mono + 1)
	}
	if c.hasLaunchedMost() || c.hardness.IsPending() && !c.mustDelaySkipping() {
		soon(c.now.Mono + 1)
	}
	for _, cl := range c.queue.list {
		if cl.unsatisfiable != "" {
			soon(c.now.Mono + 1)
		}
	}
	if !c.isLaunchingClosed() {
		if c.queue.ready > 0 {
			soon(c.launchAfter)
		}
		for _, cl := range c.queue.list {
			if cl.stuckSince > 0 {
				soon(cl.stuckSince + reserveAfter)
			}
		}
	}
	if !c.finished && c.table.Unfinished() > 0 {
		soon(c.lastPossibleAt + c.cfg.GiveUpAfter)
	}
	return at, at != timeNever
}

// nextWake returns the next time at which a timer of the host expires, which needs a Tick.
func (c *Core) nextWake(h *host) time.Duration {
	at := timeNever
	soon := func(t time.Duration) {
		if t > c.now.Mono && t < at {
			at = t
		}
	}
	if h.linked {
		soon(h.lastSeenAt + h.suspectAfter)
	} else if h.wasUsed || h.numOpen > 0 {
		soon(h.graceUntil)
		soon(h.lastReceivedAt + c.outageAfter(h))
		soon(h.lostAt())
		if h.numOpen > 0 {
			soon(c.leaseEnd(h))
		}
		soon(h.sharedDir.nextAt)
		if h.sharedDir.firstAskedAt > 0 {
			soon(h.sharedDir.firstAskedAt + inspectAnswerTimeout)
			soon(h.sharedDir.firstAnswerAt + inspectInterval)
			soon(h.sharedDir.firstAnswerAt + inspectInterval + inspectAnswerTimeout)
		}
		soon(h.lostAt() + inspectAnswerTimeout)
		soon(h.sharedDir.changedAt + heartbeatFileTimeout)
	}
	soon(h.leaveBy)
	soon(h.warnBy)
	soon(h.retryAt)
	soon(h.probeAt)
	soon(h.listAt)
	if h.probation.paused || h.probation.startsSlowly {
		soon(h.probation.until)
	}
	if h.linked {
		soon(h.quietChangeAt)
	}
	return at
}

// nextVisit returns the next time at which a timer of the host expires that needs no Tick: it takes
// effect in the next Step.
func (c *Core) nextVisit(h *host) time.Duration {
	at := timeNever
	soon := func(t time.Duration) {
		if t > c.now.Mono && t < at {
			at = t
		}
	}
	soon(h.shareSentAt + shareInterval)
	soon(h.processes.growAt)
	soon(h.sharedDir.nextAt)
	if h.hold != h.reportedHold {
		soon(h.holdReportedAt + reportInterval)
	}
	return at
}
