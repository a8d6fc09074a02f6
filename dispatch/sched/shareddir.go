package sched

import (
	"time"

	"dcs-tui/jobs"
)

// A host that cannot be queried is observed through the shared directory. A sentinel there is a
// result like any other. A claim shows that an attempt has started. A heartbeat file that changes
// shows that the host is alive and only unreachable. The directory is read through this machine's
// own mount, or through another host that has the same directory.

const (
	// After the last heartbeat, because most hosts come back at once.
	inspectDelay        = 5 * time.Second
	inspectInterval     = 10 * time.Second // equals the interval of the supervisors' heartbeat file
	inspectLongInterval = time.Minute      // for a host that has been away for longer than longAbsence
	longAbsence         = 10 * time.Minute
	// For the first answer; without an answer, only lost_after counts.
	inspectAnswerTimeout = 5 * time.Second
	// heartbeatFileTimeout is how long a change of the heartbeat file counts: three of its
	// intervals, and the delay of another machine's cache.
	heartbeatFileTimeout = 45 * time.Second
)

// sharedDirView holds what the shared directory shows about an absent host.
type sharedDirView struct {
	nextAt               time.Duration // time of the next inspection; 0: not planned
	firstAskedAt         time.Duration // time of the first request of this absence; 0: none
	answers              int           // number of answers
	firstAnswerAt        time.Duration // when the first answer came
	inspector            string        // who was asked last: a host, or "" for our own mount
	isAwaited            bool          // an answer is awaited
	heartbeatFile        string        // last content of the heartbeat file during this absence
	changedAt            time.Duration // when the content last changed; 0: it has not changed
	continuationReported bool          // it was reported that the host's jobs continue
}

// isHeartbeatFileChanging reports whether the heartbeat file of an absent host has changed lately.
func (c *Core) isHeartbeatFileChanging(h *host) bool {
	return !h.linked && h.sharedDir.changedAt > 0 && c.now.Mono-h.sharedDir.changedAt < heartbeatFileTimeout
}

// mayShowLife reports whether the shared directory shows that an absent host with open attempts is
// alive, or may show it soon.
func (c *Core) mayShowLife(h *host) bool {
	isInspected := h.numOpen > 0 && h.sharedDir.firstAskedAt > 0
	return isInspected && (c.isHeartbeatFileChanging(h) || !c.isSharedDirSettled(h))
}

// isSharedDirSettled reports whether inspecting the shared directory cannot show more: it was
// inspected for long enough to see a heartbeat file change, or nobody can inspect it.
func (c *Core) isSharedDirSettled(h *host) bool {
	l := &h.sharedDir
	if l.answers == 0 {
		return l.firstAskedAt == 0 && c.now.Mono >= h.lostAt()+inspectAnswerTimeout || l.firstAskedAt > 0 &&
			c.now.Mono-l.firstAskedAt >= inspectAnswerTimeout
	}
	return c.now.Mono-l.firstAnswerAt >= inspectInterval+inspectAnswerTimeout || l.answers > 1 &&
		c.now.Mono-l.firstAnswerAt >= inspectInterval
}

// inspectAbsentHosts requests an inspection of every absent host that may have attempts of ours.
func (c *Core) inspectAbsentHosts() {
	for h := range c.visitsWithAbsent() {
		l := &h.sharedDir
		if h.linked || h.numOpen == 0 && len(h.orphans) == 0 || c.stopped || c.fenced {
			l.nextAt = 0
			continue
		}
		if l.nextAt == 0 {
			l.nextAt = max(h.cutAt, h.lastReceivedAt+inspectDelay)
		}
		if c.now.Mono < l.nextAt {
			continue
		}
		every := inspectInterval
		if c.now.Mono-h.cutAt > longAbsence {
			every = inspectLongInterval
		}
		l.nextAt = c.now.Mono + every
		c.inspectHost(h)
	}
}

// inspectHost requests an inspection of all attempts that may be on the host.
func (c *Core) inspectHost(h *host) {
	via, ok := c.chooseInspector(h)
	if !ok {
		return
	}
	if h.sharedDir.firstAskedAt == 0 {
		h.sharedDir.firstAskedAt = max(c.now.Mono, 1)
	}
	h.sharedDir.inspector, h.sharedDir.isAwaited = via, true
	c.inspections = append(c.inspections, Inspect{Host: h.spec.Name, Via: via, Attempts: h.possiblyAlive()})
}

// chooseInspector chooses who inspects the shared directory: our own mount, unless the host is
// known not to share the run directory or the mount did not respond last time. Otherwise it chooses
// a host with the same directory, a different one each time.
func (c *Core) chooseInspector(h *host) (via string, ok bool) {
	l := &h.sharedDir
	own := h.hello == nil || h.hello.Shared
	if own && (l.inspector != "" || !l.isAwaited) {
		return "", true
	}
	from := 0
	if o := c.byName[l.inspector]; o != nil {
		from = o.index + 1
	}
	for i := range c.hosts {
		o := c.hosts[(from+i)%len(c.hosts)]
		if o.spec.Name != h.spec.Name && o.isAnswering() && (h.hello == nil || o.hello.Dir == h.hello.Dir) {
			return o.spec.Name, true
		}
	}
	return "", own
}

// apply handles what the shared directory shows about an absent host.
func (e HostInspected) apply(c *Core) {
	h := c.inspected(e)
	l := &h.sharedDir
	l.isAwaited = false
	l.answers++
	if l.answers == 1 {
		l.firstAnswerAt = c.now.Mono
	}
	name := h.spec.Name
	for i := range e.Msg.Jobs {
		x := &e.Msg.Jobs[i]
		if a := c.table.Attempt(x.Attempt); !a.State.Open() && a.State != jobs.AttemptLost {
			continue
		}
		c.logf(name, x.Attempt.Job, "%s cannot be reached; how %s ended was read from the shared directory",
			name, x.Attempt)
		c.handleEnded(x.Attempt, x.Slot, &x.Outcome)
	}
	for _, id := range e.Msg.Never {
		c.handleNeverStarted(id, "the shared directory shows that it never started there")
	}
	for _, id := range e.Msg.Runs {
		if f := c.inFlight[id]; f != nil && !f.started {
			c.handleStarted(id, 0, 0)
		}
	}
	// The content must not be that of another machine that has the name now.
	if b := e.Msg.Heartbeat; b != "" && (h.index >= 0 || c.byName[name] == nil) {
		if l.heartbeatFile != "" && l.heartbeatFile != b {
			l.changedAt = c.now.Mono
		}
		l.heartbeatFile = b
	}
}

// reportHeartbeatFile reports, once, that the jobs of a lost host continue.
func (c *Core) reportHeartbeatFile(h *host) {
	if !h.sharedDir.continuationReported {
		h.sharedDir.continuationReported = true
		c.logf(h.spec.Name, 0, "%s cannot be reached, but its heartbeat file in the shared directory changes: "+
			"its jobs continue, and the run waits for them", h.spec.Name)
	}
}
