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

// earliest is the earliest of some times after now.
type earliest struct{ now, at time.Duration }

func (e *earliest) add(t time.Duration) {
	if t > e.now && t < e.at {
		e.at = t
	}
}

// Next returns the latest time, in Time.Mono, at which the core needs a Tick. It is at most
// TickInterval away. ok is false if the core needs no more Ticks.
func (c *Core) Next() (time.Duration, bool) {
	next := earliest{c.now.Mono, timeNever}
	if !c.hasBegun {
		return 0, true
	}
	if c.stopped || c.fenced {
		return 0, false
	}
	next.add(c.nodes[1].wakeAt)
	for _, h := range c.absent {
		next.add(c.nextWake(h))
	}
	c.nextProvision(&next)
	if len(c.queue.timers) > 0 {
		next.add(max(c.queue.timers[0].at, c.now.Mono+1))
	}
	next.add(c.now.Mono + TickInterval) // otherwise the gap would be treated as a stall
	next.add(c.surplusCheckAt)
	next.add(c.reconcileUntil)
	next.add(c.waitLostUntil)
	next.add(c.failUnsatisfiableAt)
	if len(c.requests) > 0 && !c.mustDelayRequest() {
		next.add(c.now.Mono + 1)
	}
	if c.hasLaunchedMost() || c.hardness.IsPending() && !c.mustDelaySkipping() {
		next.add(c.now.Mono + 1)
	}
	if c.queue.hasUnsatisfiable {
		next.add(c.now.Mono + 1)
	}
	if !c.isLaunchingClosed() {
		if c.queue.ready > 0 {
			next.add(c.launchAfter)
		}
		if c.queue.numWide > 0 {
			for _, cl := range c.queue.list {
				if cl.stuckSince > 0 {
					next.add(cl.stuckSince + reserveAfter)
				}
			}
		}
	}
	if !c.finished && c.table.Unfinished() > 0 {
		next.add(c.lastPossibleAt + c.cfg.GiveUpAfter)
	}
	return next.at, next.at != timeNever
}

// nextWake returns the next time at which a timer of the host expires, which needs a Tick.
func (c *Core) nextWake(h *host) time.Duration {
	next := earliest{c.now.Mono, timeNever}
	if h.linked {
		next.add(h.lastSeenAt + h.suspectAfter)
	} else if h.wasUsed || h.numOpen > 0 {
		next.add(h.graceUntil)
		next.add(h.lastReceivedAt + c.outageAfter(h))
		next.add(h.lostAt())
		if h.numOpen > 0 {
			next.add(c.leaseEnd(h))
		}
		next.add(h.sharedDir.nextAt)
		if h.sharedDir.firstAskedAt > 0 {
			next.add(h.sharedDir.firstAskedAt + inspectAnswerTimeout)
			next.add(h.sharedDir.firstAnswerAt + inspectInterval)
			next.add(h.sharedDir.firstAnswerAt + inspectInterval + inspectAnswerTimeout)
		}
		next.add(h.lostAt() + inspectAnswerTimeout)
		next.add(h.sharedDir.changedAt + heartbeatFileTimeout)
	}
	next.add(h.leaveBy)
	next.add(h.warnBy)
	next.add(h.retryAt)
	next.add(h.probeAt)
	next.add(h.listAt)
	if h.probation.paused {
		next.add(h.probation.until)
	}
	if h.probation.onTrial {
		next.add(h.probation.restsUntil)
		if h.probation.mayBeReconsidered() {
			next.add(h.probation.checkedAt + evidenceTime)
		}
		if f := h.triedAttempt(); f != nil && f.started {
			next.add(c.now.Mono + h.probation.trialTime() - f.age(c.now.Mono))
		}
	}
	if h.linked {
		next.add(h.quietChangeAt)
	}
	return next.at
}

// nextVisit returns the next time at which a timer of the host expires that needs no Tick: it takes
// effect in the next Step.
func (c *Core) nextVisit(h *host) time.Duration {
	next := earliest{c.now.Mono, timeNever}
	next.add(h.shareSentAt + shareInterval)
	next.add(h.processes.growAt)
	next.add(h.sharedDir.nextAt)
	if h.hold != h.reportedHold {
		next.add(h.holdReportedAt + reportInterval)
	}
	return next.at
}
