package sched

import (
	"slices"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/internal/text"
)

// A silent host is given up after lost_after if hosts that the same failure of the network would
// have cut off still answer. If none of them does, the network may be the cause, and its jobs wait
// for the host for up to outage_after. When the first of these hosts is back, the others get time
// to follow, because each of them returns with its next connection attempt.

// dialSlack is the maximum duration of a connection attempt.
const dialSlack = 30 * time.Second

// answerLead is how many of its heartbeat intervals later than the last heartbeat of a silent host
// the heartbeat of another one must be to show that the network worked when the first one went
// silent.
const answerLead = 2

// answers holds, for each part of the network, the time of the newest heartbeat from a host behind
// it that answers.
type answers map[hosts.NetworkPart]time.Duration

func (c *Core) newestAnswers() answers {
	newest := answers{}
	for h := range c.everyHost() {
		if !h.linked || h.isSilent() {
			continue
		}
		for _, part := range h.parts {
			newest[part] = max(newest[part], h.lastReceivedAt)
		}
	}
	return newest
}

// suspectedPart returns a part of the network whose failure may be why a host is silent: no host
// behind it answers. A single host behind a gateway, or in a network, is not a reason to suspect
// that part. Other hosts must have gone silent with it.
func (c *Core) suspectedPart(h *host, newest answers) (part hosts.NetworkPart, suspected bool) {
	for _, part := range h.parts {
		if newest[part]-h.lastReceivedAt >= answerLead*h.heartbeatInterval {
			continue
		}
		if part == (hosts.NetworkPart{}) || c.anyHost(func(o *host) bool {
			apart := o.lastReceivedAt - h.lastReceivedAt
			return o != h && !o.linked && o.wasUsed && max(apart, -apart) <= c.outageAfter(h) &&
				slices.Contains(o.parts, part)
		}) {
			return part, true
		}
	}
	return hosts.NetworkPart{}, false
}

// outageAfter returns how long the jobs of a silent host wait for it if the network may be the
// cause.
func (c *Core) outageAfter(h *host) time.Duration {
	return max(h.spec.OutageAfterOrDefault(), h.spec.LostAfterOrDefault())
}

// awaitedUntil returns until when the jobs of a silent host wait for it.
func (c *Core) awaitedUntil(h *host, newest answers) time.Duration {
	at := max(h.lostAt(), h.graceUntil)
	if _, suspected := c.suspectedPart(h, newest); suspected {
		at = max(at, h.lastReceivedAt+c.outageAfter(h))
	}
	return at
}

// endOutage gives the hosts that were cut off together with a host time to follow it. The host is
// about to answer again after a silence. A host gets that time only within outage_after, so that it
// is given up in the end even if another one comes and goes.
func (c *Core) endOutage(h *host) {
	h.graceUntil, h.outageReported = 0, false
	if c.now.Mono-h.lastReceivedAt < h.suspectAfter {
		return
	}
	newest := c.newestAnswers()
	for o := range c.everyHost() {
		if o == h || o.linked || !o.wasUsed || c.now.Mono >= o.lastReceivedAt+c.outageAfter(o) {
			continue
		}
		if part, suspected := c.suspectedPart(o, newest); suspected && slices.Contains(h.parts, part) {
			o.touch()
			o.graceUntil = c.now.Mono + max(o.spec.LostAfterOrDefault(), c.cfg.MaxBackoff+dialSlack)
		}
	}
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
	c.touchAll()
	shift := gap - TickInterval
	var always, ifSet []*time.Duration // 0 is "not set" for those of ifSet
	always = append(always, &c.lastPossibleAt)
	ifSet = append(ifSet, &c.reconcileUntil, &c.missingHostsUntil, &c.lastUpAt, &c.waitLostUntil)
	for _, h := range c.allHosts() {
		l := &h.sharedDir
		always = append(always, &h.lastSeenAt, &h.lastReceivedAt, &h.cutAt, &h.awaySince)
		ifSet = append(ifSet, &h.mismatchSince, &l.firstAskedAt, &l.firstAnswerAt, &l.changedAt, &h.graceUntil,
			&h.listUntil)
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
		c.logf("", 0, "this dispatcher was suspended for %s (stopped, or its disk did not answer); "+
			"the hosts' silence in that time does not count", text.Span(gap))
	}
}
