package sched

import (
	"math"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// Silence and its remedies.
const (
	HeartbeatInterval = 3 * time.Second
	SuspectAfter      = 5 * HeartbeatInterval // five missed heartbeats
)

const noSign = "no heartbeat for "

// linkState is the state of the link to a host.
type linkState struct {
	state        HostState // Connecting, Up, Suspect, Lost, BackingOff, or Disabled
	linked       bool      // a helper answers
	dialing      bool      // a Connect has not been answered
	known        bool      // it was up, or may have attempts of ours
	hasHeartbeat bool      // a heartbeat came over the present link
	failures     int       // connection failures in a row
	retryAt      time.Duration
	muteLinks    int           // links in a row that ended without a heartbeat (lost.go)
	lastSeen     time.Duration // last heartbeat, or hello
	lastHeard    time.Duration // the same, without hellos of a mute helper: lost_after counts from here
	heartbeatAt  time.Duration // last heartbeat; 0: never
	heartbeat    hosts.Beat    // the last one
	cutAt        time.Duration // when the last link was cut: no later heartbeat was accepted
	downSince    time.Duration // since when the host has not been usable; 0: it is
	reason       string        // why it is not up
	ineligible   string        // why jobs cannot run there though the helper answers; "": they can
	inherited    bool          // not linked yet: an earlier dispatcher may still extend its lease
	leasedBefore time.Duration // when the leases of earlier dispatchers have run out; 0: not later than ours
}

// connect asks for a connection to the host.
func (c *Core) connect(h *host) {
	if h.linked || h.dialing || h.index < 0 {
		return
	}
	h.dialing, h.retryAt = true, 0
	h.outbox.connect = true
}

// cut marks the link as down. The fate of all attempts there is then unknown.
func (c *Core) cut(h *host) {
	if !h.isMute() {
		h.cutAt = c.now.Mono
	}
	if h.hasHeartbeat {
		h.awaySince, h.muteLinks = c.now.Mono, 0
	} else {
		h.muteLinks++
	}
	h.linked, h.hasHeartbeat, h.sentLimit, h.sentShare = false, false, -1, hosts.Share{}
	h.unknownAttempts, h.probeAt = nil, 0
	h.reserved = nil
	for f := h.head; f != nil; f = f.next {
		f.withdrawn = false // asked again if it is still wanted when the host is back
	}
	c.noteOutage(h)
}

func (c *Core) hostUp(e HostUp) {
	h := c.byName[e.Host]
	if h == nil || e.At != nil && addressDiffers(e.At, h.spec) { // its address has changed since: the link is about to be cut
		return
	}
	if e.Hello.FencedBy > 0 {
		c.fence(h, e.Hello.FencedBy)
		return
	}
	if h.linked {
		c.cut(h) // a second hello: the helper is a new one
	}
	c.identify(h, e.Hello.Machine)
	h.linked, h.dialing, h.known, h.hasHeartbeat = true, false, true, false
	if h.inherited && c.cfg.Copies > 1 && c.table.Epoch > 1 {
		h.leasedBefore = c.now.Mono + c.longLease(h) + OwnerFor
	}
	h.inherited = false // its helper shuts earlier dispatchers out
	h.retryAt = 0
	h.lastSeen = c.now.Mono
	if !h.isMute() {
		h.state, h.reason, h.lastHeard = Up, "", c.now.Mono
		h.sharedDir.reset()
		c.backFromOutage(h)
	}
	h.others, h.excess, h.peak = 0, 0, 0
	h.heartbeat = hosts.Beat{MemFree: -1, DiskFree: -1, Owner: e.Hello.Owner, Sharing: e.Hello.Sharing, Suspended: h.heartbeat.Suspended}
	h.measured, h.diskFree, h.reportedHold = false, -1, notHeld
	if learn := func() { h.storeHello(e.Hello) }; c.cfg.MemGrowth > 1 {
		c.regroup(hasAttempts, learn) // memory that has grown is bounded by the largest host
	} else {
		learn()
	}
	if h.helloGPUs(h.hello, c.now.Mono); h.hasForeignGPUs() {
		c.sayForeign(h, "some of its GPUs are in use by others")
	}
	if h.ineligible = ""; e.Hello.CwdError != "" {
		h.ineligible = "the directory to run in does not exist there: " + e.Hello.CwdError + " (choose another with --cwd)"
		h.reason = h.ineligible
		c.logf(h.spec.Name, 0, "%s: %s", h.spec.Name, h.ineligible)
	} else if !h.isMute() {
		c.logf(h.spec.Name, 0, "%s is up", h.spec.Name)
	}
	c.probeAll(h)
	c.list(h)
	c.queue.capacityChanged()
}

func (c *Core) hostHeartbeat(e HostBeat) {
	h := c.byName[e.Host]
	if h == nil || !h.linked {
		return
	}
	b := boundedHeartbeat(e.Beat)
	h.storeMeasurement(&b)
	if b.MemFree < 0 && h.spec.MinMemFree > 0 && !h.memUnknownReported {
		h.memUnknownReported = true
		c.logf(h.spec.Name, 0, "%s: free memory cannot be read, so min_mem_free has no effect there", h.spec.Name)
	}
	h.handleProgress(&b, c.now.Mono)
	h.heartbeatGPUs(&b, c.now.Mono)
	if b.Early && !h.hasHeartbeat {
		// It serves the floors. That the helper lives, and what others use, is for a
		// beat to show that covers more than the helper's own start.
		h.heartbeatAt = c.now.Mono
		return
	}
	c.measure(h, &b)
	c.chargeExcess(h, &b)
	if h.isMute() {
		h.state, h.reason = Up, ""
		c.logf(h.spec.Name, 0, "%s is up", h.spec.Name)
	}
	h.lastSeen, h.lastHeard, h.heartbeatAt = c.now.Mono, c.now.Mono, c.now.Mono
	h.hasHeartbeat, h.failures = true, 0
	c.checkCounts(h)
}

// hostDown handles a failed connection attempt, or the end of a link. After a link with at least
// one heartbeat the connection is tried again at once. Otherwise the delay grows.
func (c *Core) hostDown(e HostDown) {
	h := c.byName[e.Host]
	if h == nil {
		return
	}
	worked := h.linked && h.hasHeartbeat
	if h.linked {
		c.cut(h)
		if h.state != Lost { // a mute host may be
			h.state = Suspect
		}
	}
	h.dialing = false
	what := "the link ended"
	if e.Err != nil {
		what = e.Err.Error()
	}
	switch {
	case worked:
		c.logf(h.spec.Name, 0, "%s; connecting again", what)
	case h.reason != what:
		c.logf(h.spec.Name, 0, "%s", what)
	}
	h.reason = what
	if class := hosts.ClassOf(e.Err); class.Permanent() {
		// A person must act: no use in hurrying. A wrong host key is never tried again by itself.
		h.state, h.failures, h.retryAt = Disabled, h.failures+1, 0
		if class != hosts.HostKey {
			h.retryAt = c.now.Mono + permanentPause
		}
		return
	}
	if worked {
		c.connect(h)
		return
	}
	h.failures++
	h.retryAt = c.now.Mono + c.pause(h.failures, c.now.Mono-h.awaySince)
	if h.state != Suspect && h.state != Lost {
		h.state = BackingOff
	}
}

// watchLinks acts on links whose timers have expired.
func (c *Core) watchLinks() {
	for _, h := range c.hosts {
		if h.linked && c.now.Mono-h.lastSeen >= SuspectAfter {
			c.cut(h)
			if h.state != Lost {
				h.state = Suspect
			}
			if why := noSign + short(SuspectAfter); h.reason != why {
				h.reason = why
				c.logf(h.spec.Name, 0, "%s: %s; connecting again", h.spec.Name, h.reason)
			}
			h.outbox.disconnect = true
			h.dialing = false
			c.connect(h)
		}
		if h.retryAt > 0 && c.now.Mono >= h.retryAt {
			if h.state == BackingOff || h.state == Disabled {
				h.state = Connecting
			}
			c.connect(h)
		}
		if h.probeAt > 0 && c.now.Mono >= h.probeAt {
			c.probeAgain(h)
		}
	}
}

// fence stops everything, because another dispatcher owns the run.
func (c *Core) fence(h *host, epoch int) {
	if !c.fenced {
		c.fenced = true
		c.logf(h.spec.Name, 0, "%s takes commands from a newer dispatcher of this run (epoch %d)", h.spec.Name, epoch)
	}
}

// accepts resets the refusals of a host that has really started an attempt. A supervisor that has
// an attempt proves less, because it may be failing to make its claim.
func (c *Core) accepts(id jobs.AttemptID) {
	if f := c.inFlight[id]; f != nil {
		f.host.probation.refusals = 0
		if f.wantGPUs > 0 {
			f.host.foreign.refusals = 0
		}
	}
}

// handleRefused handles attempts that a host refused. A host that keeps refusing pauses for longer
// each time. Otherwise launches and refusals would follow each other without end.
func (c *Core) handleRefused(e HostRefused) {
	h := c.byName[e.Host]
	if h != nil && e.Msg.FencedBy > 0 {
		c.fence(h, e.Msg.FencedBy)
		return
	}
	news := false // something is wrong with the host, not only with some of its GPUs
	for _, id := range e.Msg.Attempts {
		if !c.isAuthoritative(e.Host, id) {
			continue
		}
		if f := c.inFlight[id]; f != nil && !c.avoidGPUs(f, e.Msg) {
			news = true // neither a repeat nor a launch whose attempt is settled
		}
		c.neverStarted(id, e.Msg.Why)
	}
	if h != nil && news && !h.probation.paused { // what several supervisors refuse at a time counts once
		c.pauseRefusing(h, "it refused jobs: "+e.Msg.Why)
	}
}

// permanentPause is the delay before a host is tried again that only a person can repair.
const permanentPause = time.Minute

// shortPause bounds the pause while a host has been away for less than
// shortAway: 8 s and the time of a dial are less than the 10 s within which a
// host must be in use again after less than a minute away.
const (
	shortAway  = time.Minute
	shortPause = 8 * time.Second
)

// pause returns how long to wait after n >= 1 failures in a row: random(0.5, 1) x min(2^n s, cap),
// as in BOINC. The cap is lower for a host that has not been away for long.
func (c *Core) pause(n int, away time.Duration) time.Duration {
	limit := c.cfg.BackoffCap
	if away < shortAway {
		limit = min(limit, shortPause)
	}
	return c.jitter(min(doubling(n), limit))
}

// doubling returns 2^n s, without overflow.
func doubling(n int) time.Duration {
	if n < 0 {
		return time.Second
	}
	return time.Second << min(n, 30)
}

// jitter returns random(0.5, 1) x d.
func (c *Core) jitter(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (0.5 + c.rng.Float64()/2))
}

// never is a timer that is not set.
const never = time.Duration(math.MaxInt64)
