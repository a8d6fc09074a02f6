package sched

import (
	"cmp"
	"math"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/internal/text"
	"dcs-tui/jobs"
)

// HeartbeatInterval is the default interval of the heartbeats of hosts.
const HeartbeatInterval = hosts.DefaultHeartbeat

const noSign = "no heartbeat for "

// linkState is the state of the link to a host.
type linkState struct {
	state        jobs.HostState // none of the states of an instance, nor draining
	linked       bool           // a helper responds
	dialing      bool           // a Connect has not been answered
	wasUsed      bool           // it was up, or may have attempts of ours
	hasHeartbeat bool           // a heartbeat came over the current link
	unleased     bool           // no lease has begun over the current link
	failures     int            // consecutive connection failures
	retryAt      time.Duration
	// Interval of the heartbeats, and silence after which the host is suspect, as of the newest link.
	heartbeatInterval, suspectAfter time.Duration
	maxHeartbeat                    time.Duration // longest interval so far, because leases depend on it

	silentLinks int           // consecutive links that ended without a heartbeat (lost.go)
	lastSeenAt  time.Duration // last heartbeat, or hello
	// lastSeenAt without hellos of a helper that never sends heartbeats; lost_after starts here.
	lastReceivedAt time.Duration
	heartbeatAt    time.Duration   // last heartbeat; 0: never
	heartbeat      hosts.Heartbeat // the last one
	cutAt          time.Duration   // when the last link was cut; later heartbeats were not accepted
	downSince      time.Duration   // since when the host has not been usable; 0: it is usable
	reason         string          // why it is not up
	silent         bool            // it is not up because it sent no heartbeats, which reason describes
	ineligible     string          // why jobs cannot run there though the helper answers; "": they can
	inherited      bool            // not linked yet: an earlier dispatcher may still extend its lease
	// When the leases of earlier dispatchers have expired; 0: not later than ours.
	leasedBefore time.Duration
}

// setHeartbeat sets the interval of the heartbeats over the next link. A change of the inventory
// begins with the next connection, because the helper learns the interval there.
func (h *host) setHeartbeat(s *hosts.Host) {
	h.heartbeatInterval, h.suspectAfter = s.HeartbeatOrDefault(), s.SuspectAfterOrDefault()
	h.maxHeartbeat = max(h.maxHeartbeat, h.heartbeatInterval)
}

// connect requests a connection to the host.
func (c *Core) connect(h *host) {
	if h.linked || h.dialing || h.index < 0 {
		return
	}
	h.touch()
	h.dialing, h.retryAt = true, 0
	h.outbox.connect = true
}

// markLinkDown marks the link as down. The fate of all attempts there is unknown from then on.
func (c *Core) markLinkDown(h *host) {
	h.touch()
	if !h.isSilent() {
		h.cutAt = c.now.Mono
	}
	if h.hasHeartbeat {
		h.awaySince, h.silentLinks = c.now.Mono, 0
	} else {
		h.silentLinks++
	}
	h.linked, h.hasHeartbeat, h.sentLimit, h.sentShare = false, false, -1, hosts.Share{}
	h.unknownAttempts, h.probeAt, h.listsAwaited = nil, 0, 0
	h.reserved = nil
	for f := h.oldest; f != nil; f = f.nextOnHost {
		f.abandoned = false
		f.sentOverLink = false
	}
}

func (e HostUp) apply(c *Core) {
	h := c.byName[e.Host]
	// Its address has changed, and the link is about to be cut.
	if h == nil || e.Spec != nil && addressDiffers(e.Spec, h.spec) {
		return
	}
	if e.Hello.FencedBy > 0 {
		c.stopFenced(h, e.Hello.FencedBy)
		return
	}
	if h.linked {
		c.markLinkDown(h) // a second hello comes from a new helper
	}
	c.identifyMachine(h, e.Hello.Machine)
	if !h.isSilent() {
		c.endOutage(h)
	}
	h.setHeartbeat(cmp.Or(e.Spec, h.spec))
	h.linked, h.dialing, h.wasUsed, h.hasHeartbeat = true, false, true, false
	h.unleased = true
	h.beginLease(e.Unowned)
	if h.inherited && c.cfg.Copies > 1 && c.table.Epoch > 1 {
		h.leasedBefore = c.now.Mono + c.maxLease(h) + OwnershipTime
	}
	h.inherited = false // its helper now refuses earlier dispatchers
	h.retryAt = 0
	h.lastSeenAt = c.now.Mono
	if !h.isSilent() {
		h.lastReceivedAt = c.now.Mono
		h.setState(jobs.HostUp, "")
		h.sharedDir = sharedDirView{}
	}
	h.othersLoad, h.excessCores, h.peakBusy = 0, 0, 0
	h.heartbeat = hosts.Heartbeat{MemFree: -1, DiskFree: -1, Owner: e.Hello.Owner, Sharing: e.Hello.Sharing,
		Suspended: h.heartbeat.Suspended}
	h.isMeasured, h.diskFree, h.reportedHold = false, -1, jobs.NotHeld
	if learn := func() { h.storeHello(e.Hello) }; c.cfg.MemGrowth > 1 {
		c.reclassifyTried(learn) // memory that grows is bounded by the largest host
	} else {
		learn()
	}
	if h.setForeignGPUs(h.hello, c.now.Mono); h.hasForeignGPUs() {
		c.reportForeignGPUs(h, "some of its GPUs are in use by others")
	}
	h.ineligible = ""
	if e.Hello.CwdError != "" {
		h.ineligible = "the directory to run in does not exist there: " + e.Hello.CwdError +
			" (choose another with --cwd)"
		h.setState(h.state, h.ineligible)
		c.logf(h.spec.Name, 0, "%s: %s", h.spec.Name, h.ineligible)
	} else if !h.isSilent() {
		c.reportUp(h)
	}
	c.probeAll(h)
	c.requestList(h)
	c.queue.capacityChanged(h)
}

func (e HostHeartbeat) apply(c *Core) {
	h := c.byName[e.Host]
	if h == nil || !h.linked {
		return
	}
	b := *e.Heartbeat
	hosts.Bound(&b)
	h.storeMeasurement(&b)
	if b.ZoneSeconds != nil && h.hello != nil && *b.ZoneSeconds != h.hello.ZoneSeconds {
		hello := *h.hello // shared with views
		hello.ZoneSeconds = *b.ZoneSeconds
		h.hello = &hello
	}
	if b.MemFree < 0 && h.spec.MinMemFree > 0 && !h.memUnknownReported {
		h.memUnknownReported = true
		c.logf(h.spec.Name, 0, "%s: free memory cannot be read, so min_mem_free has no effect there", h.spec.Name)
	}
	h.handleProgress(&b, c.now.Mono)
	h.releaseForeignGPUs(&b, c.now.Mono)
	if b.Early && !h.hasHeartbeat {
		// The early heartbeat only serves the limits of the host. It covers too little time to show
		// that the helper works, or what others use.
		h.heartbeatAt = c.now.Mono
		h.beginLease(e.Unowned)
		return
	}
	c.handleLoad(h, &b)
	c.chargeExcess(h, &b)
	if h.isSilent() {
		c.endOutage(h)
		h.setState(jobs.HostUp, "")
		c.reportUp(h)
	}
	h.lastSeenAt, h.lastReceivedAt, h.heartbeatAt = c.now.Mono, c.now.Mono, c.now.Mono
	h.hasHeartbeat, h.failures = true, 0
	h.beginLease(e.Unowned)
	c.checkCounts(h)
}

// beginLease begins the first lease over the current link, unless the dispatcher may have lost the run
// or the helper never sends heartbeats.
func (h *host) beginLease(unowned bool) { h.unleased = h.unleased && (unowned || h.isSilent()) }

// apply handles a failed connection attempt, or the end of a link. After a link with at least
// one heartbeat the connection is tried again at once. Otherwise the delay grows.
func (e HostDown) apply(c *Core) {
	h := c.byName[e.Host]
	if h == nil {
		return
	}
	worked := h.linked && h.hasHeartbeat
	if h.linked {
		c.markLinkDown(h)
		if h.state != jobs.HostLost { // a host that never sends heartbeats may be lost
			h.state = jobs.HostSuspect
		}
	}
	h.dialing = false
	what := "the link ended"
	if e.Err != nil {
		what = e.Err.Error()
	}
	switch {
	case worked && !hosts.ClassOf(e.Err).Permanent():
		c.logf(h.spec.Name, 0, "%s; connecting again", what)
	case h.reason != what:
		c.logf(h.spec.Name, 0, "%s", what)
	}
	h.setState(h.state, what)
	if class := hosts.ClassOf(e.Err); class.Permanent() {
		// A person must act, so there is no hurry. A wrong host key is never retried automatically.
		h.state, h.retryAt = jobs.HostDisabled, 0
		c.countFailure(h)
		if class != hosts.HostKey {
			h.retryAt = c.now.Mono + permanentPause
		}
		return
	}
	if worked {
		c.connect(h)
		return
	}
	c.countFailure(h)
	h.retryAt = c.now.Mono + c.backoff(h.failures, c.now.Mono-h.awaySince)
	if h.state != jobs.HostSuspect && h.state != jobs.HostLost {
		h.state = jobs.HostBackingOff
	}
}

// rereadAfter is the number of connection failures in a row after which the inventory is read again.
// A file system may report an old time of the file until somebody opens it.
const rereadAfter = 5

// countFailure counts a connection failure, and asks for the inventory after every few of them.
func (c *Core) countFailure(h *host) {
	h.failures++
	if h.failures%rereadAfter == 0 {
		c.rereads = []Command{RereadInventory{}}
	}
}

// checkLinks acts on links whose timers have expired.
func (c *Core) checkLinks() {
	for h := range c.visits() {
		if h.linked && c.now.Mono-h.lastSeenAt >= h.suspectAfter {
			c.markLinkDown(h)
			if h.state != jobs.HostLost {
				h.state = jobs.HostSuspect
			}
			if !h.silent {
				h.setState(h.state, noSign+text.Span(h.suspectAfter))
				h.silent = true
				c.logf(h.spec.Name, 0, "%s: %s; connecting again", h.spec.Name, h.reason)
			}
			h.outbox.disconnect = true
			h.dialing = false
			c.connect(h)
		}
		if h.retryAt > 0 && c.now.Mono >= h.retryAt {
			if h.state == jobs.HostBackingOff || h.state == jobs.HostDisabled {
				h.state = jobs.HostConnecting
			}
			c.connect(h)
		}
		if h.probeAt > 0 && c.now.Mono >= h.probeAt {
			c.probeUnknownAttempts(h)
		}
	}
}

// stopFenced stops everything, because another dispatcher owns the run.
func (c *Core) stopFenced(h *host, epoch int) {
	if !c.fenced {
		c.fenced = true
		c.logf(h.spec.Name, 0, "%s takes commands from a newer dispatcher of this run (epoch %d)", h.spec.Name, epoch)
	}
}

// resetRefusals resets the refusals of a host that has really started an attempt. That a supervisor
// has an attempt proves less, because the supervisor may fail to write its claim.
func (c *Core) resetRefusals(id jobs.AttemptID) {
	if f := c.inFlight[id]; f != nil {
		f.host.probation.refusals, f.host.probation.returned = 0, 0
		if f.wantGPUs > 0 {
			f.host.foreign.refusals = 0
		}
	}
}

// apply handles attempts that a host refused. A host that keeps refusing is paused for
// longer each time. Otherwise launches and refusals would alternate forever.
func (e HostRefused) apply(c *Core) {
	h := c.byName[e.Host]
	if h != nil && e.Msg.FencedBy > 0 {
		c.stopFenced(h, e.Msg.FencedBy)
		return
	}
	news := false // the host itself has a problem, not only some of its GPUs
	for _, id := range e.Msg.Attempts {
		if f := c.inFlight[id]; f != nil && !c.avoidGPUs(f, e.Msg) {
			news = true // neither a repeated refusal nor that of a settled attempt
		}
		c.handleNeverStarted(id, e.Msg.Why)
	}
	// Simultaneous refusals of several supervisors count once.
	switch {
	case h == nil || !news:
	case e.Msg.Limit.IsSet():
		c.boundByProcesses(h, e.Msg.Limit, e.Msg.Slots)
	case !h.probation.paused:
		c.pauseRefusing(h, "it refused jobs: "+e.Msg.Why)
	}
}

// permanentPause is the delay before a host that only a person can repair is tried again.
const permanentPause = time.Minute

// shortPause bounds the pause while a host has been away for less than shortAway. A host that was
// away for less than a minute must be in use again within 10 s, which allows for 8 s and a dial.
const (
	shortAway  = time.Minute
	shortPause = 8 * time.Second
)

// backoff returns how long to wait after n >= 1 failures in a row: random(0.5, 1) x min(2^n s,
// cap), as in BOINC. The cap is lower for a host that has not been away for long.
func (c *Core) backoff(n int, away time.Duration) time.Duration {
	limit := c.cfg.MaxBackoff
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

// timeNever is the value of a timer that is not set.
const timeNever = time.Duration(math.MaxInt64)
