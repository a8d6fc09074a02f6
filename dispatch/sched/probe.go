package sched

import (
	"slices"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// probeEvery is the pause before an attempt of unknown fate is asked about again.
const probeInterval = 5 * time.Second

// probing is what a host is asked about its attempts.
type probing struct {
	orphans         []jobs.AttemptID // given up as lost; the host may know better
	unknownAttempts []jobs.AttemptID // whose fate the host did not know
	probeAt         time.Duration    // when to ask about those again; 0: not
}

// probeAll asks a host that has just answered about everything that may be
// there: open attempts, and those declared lost while it was away.
func (c *Core) probeAll(h *host) {
	ids := make([]jobs.AttemptID, 0, h.open+len(h.orphans))
	for f := h.head; f != nil; f = f.next {
		ids = append(ids, f.id)
	}
	h.outbox.probe = append(ids, h.orphans...)
	for _, id := range h.orphans {
		if c.table.Attempt(id).Started == 0 {
			h.outbox.withdraw = append(h.outbox.withdraw, id) // given up: it must not start now
		}
	}
	h.unknownAttempts, h.probeAt = nil, 0
}

func (c *Core) probeAgain(h *host) {
	c.tidyAgain(h)
	h.outbox.probe = append(h.outbox.probe, h.unknownAttempts...)
	h.unknownAttempts, h.probeAt = nil, 0
}

// tidyAgain leaves each attempt once, and those that are settled out: answers may
// come several times, and a host must not make us ask the more for it.
func (c *Core) tidyAgain(h *host) {
	seen := make(map[jobs.AttemptID]bool, len(h.unknownAttempts))
	kept := h.unknownAttempts[:0]
	for _, id := range h.unknownAttempts {
		if a := c.table.Attempt(id); !seen[id] && (a.State.Open() || a.State == jobs.AttemptLost) {
			seen[id] = true
			kept = append(kept, id)
		}
	}
	h.unknownAttempts = kept
}

func (c *Core) handleProbed(e AttemptsProbed) {
	h := c.byName[e.Host]
	if h == nil {
		return
	}
	for i := range e.Msg.Jobs {
		p := &e.Msg.Jobs[i]
		if a := c.table.Attempt(p.Attempt); a != nil && h.owns(a) {
			c.probedOne(h, p)
		}
	}
}

// probedOne handles what happened to an attempt of the host's.
func (c *Core) probedOne(h *host, p *hosts.ProbedJob) {
	a, f := c.table.Attempt(p.Attempt), c.inFlight[p.Attempt]
	if mayHaveDied(c.table.Job(p.Attempt.Job), a) && (p.Answer == hosts.IsRunning || p.Answer == hosts.HasExited) {
		c.stillRunning[p.Attempt] = true
	}
	switch p.Answer {
	case hosts.Unknown:
		if h.linked && (f != nil || a.State == jobs.AttemptLost) {
			if len(h.unknownAttempts) > 2*(h.open+len(h.orphans)) {
				c.tidyAgain(h)
			}
			h.unknownAttempts = append(h.unknownAttempts, p.Attempt)
			h.probeAt = c.now.Mono + probeInterval
		}
	case hosts.Buffered:
		if f == nil {
			h.kill(p.Attempt, "its job has a result or another attempt")
		} else {
			c.killIfUnwanted(f)
			if h.draining || h.removed || h.next != nil || h.quiet || c.drain != "" {
				h.withdraw(f)
			}
		}
	case hosts.IsRunning:
		c.handleStarted(p.Attempt, p.Slot, p.Started)
		if f != nil {
			c.killIfUnwanted(f)
		}
	case hosts.HasExited:
		if p.Outcome != nil {
			c.handleEnded(p.Attempt, p.Slot, p.Outcome)
		}
	case hosts.NeverStarted:
		c.neverStarted(p.Attempt, reasonOr(p.Why, "it never started there"))
	case hosts.Dead:
		if f == nil {
			c.settleOrphan(p.Attempt)
			return
		}
		c.handleStarted(p.Attempt, p.Slot, p.Started) // only what had claimed its start can be proved dead
		f.provedDead = true
		c.lose(f, "it died on "+h.spec.Name+" without a result: "+reasonOr(p.Why, "its process is gone"))
	}
}

// killIfUnwanted repeats a kill that a lost link or a lost dispatcher swallowed,
// and ends what nobody waits for any more.
func (c *Core) killIfUnwanted(f *inFlight) {
	j := c.table.Job(f.id.Job)
	a := j.Attempts[f.id.N-1]
	switch {
	case c.canceled(f.id.Job):
		c.killAttempt(f, c.table.Cancels[f.id.Job].Reason)
	case j.State.Terminal() || a.Round != j.Round:
		c.killAttempt(f, "its job had its result already")
	case f.killed:
		c.killAttempt(f, "asked for before")
	}
}

func reasonOr(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

// A host that cannot be asked is read through the shared directory: sentinels
// there are results like any, a claim shows that an attempt has started, and a heartbeat
// file that changes shows that the host lives and that only the way to it is gone.
// It is looked at through this machine's own mount, or through another host that
// has the same directory.

const (
	lookDelay        = 5 * time.Second  // after the last heartbeat: most come back at once
	lookInterval     = 10 * time.Second // as often as supervisors touch their heartbeat file
	lookLongInterval = time.Minute      // when it has been away for longer than lookLong
	longAbsence      = 10 * time.Minute
	lookAnswerTime   = 5 * time.Second // for the first answer: without one lost_after alone counts
	// beatFresh is how long a change of the heartbeat file counts: three of its heartbeats, and
	// what another machine's cache may add.
	heartbeatFileFresh = 45 * time.Second
)

// looks is what the core knows of an absent host through the shared directory.
type sharedDirView struct {
	nextAt        time.Duration // when to look next; 0: not planned
	firstAskedAt  time.Duration // when the first look of this absence was asked for; 0: none was
	answers       int           // that came
	firstAnswerAt time.Duration // when the first answer came
	observer      string        // who was asked last: a host, or "" for our own mount
	waiting       bool          // for the answer
	heartbeat     string        // content of the heartbeat file as last seen over this absence
	changedAt     time.Duration // when a change of it was last seen; 0: none was
	reported      bool          // that the host's jobs continue
}

// breathes reports whether the host, though away, was seen to write its heartbeat file lately.
func (c *Core) heartbeatFileChanges(h *host) bool {
	return !h.linked && h.sharedDir.changedAt > 0 && c.now.Mono-h.sharedDir.changedAt < heartbeatFileFresh
}

// seen reports whether the shared directory has shown what it can: it was looked at for as
// long as a heartbeat file that moves would have shown it, or nobody can look.
func (c *Core) sharedDirSettled(h *host) bool {
	l := &h.sharedDir
	if l.answers == 0 {
		return l.firstAskedAt == 0 && c.now.Mono >= h.lostAt()+lookAnswerTime || l.firstAskedAt > 0 && c.now.Mono-l.firstAskedAt >= lookAnswerTime
	}
	return c.now.Mono-l.firstAnswerAt >= lookInterval+lookAnswerTime || l.answers > 1 && c.now.Mono-l.firstAnswerAt >= lookInterval
}

// lookAround asks for a look at every host that is away and has something of ours.
func (c *Core) observeAbsent() {
	for _, h := range c.everyHost() {
		l := &h.sharedDir
		if h.linked || h.open == 0 && len(h.orphans) == 0 || c.stopped || c.fenced {
			l.nextAt = 0
			continue
		}
		if l.nextAt == 0 {
			l.nextAt = max(h.cutAt, h.lastHeard+lookDelay)
		}
		if c.now.Mono < l.nextAt {
			continue
		}
		every := lookInterval
		if c.now.Mono-h.cutAt > longAbsence {
			every = lookLongInterval
		}
		l.nextAt = c.now.Mono + every
		c.observe(h)
	}
}

// look asks about everything of ours that may be on the host.
func (c *Core) observe(h *host) {
	via, ok := c.chooseObserver(h)
	if !ok {
		return
	}
	ids := make([]jobs.AttemptID, 0, h.open+len(h.orphans))
	for f := h.head; f != nil; f = f.next {
		ids = append(ids, f.id)
	}
	ids = append(ids, h.orphans...)
	if h.sharedDir.firstAskedAt == 0 {
		h.sharedDir.firstAskedAt = max(c.now.Mono, 1)
	}
	h.sharedDir.observer, h.sharedDir.waiting = via, true
	c.looks = append(c.looks, Look{Host: h.spec.Name, Via: via, Attempts: ids})
}

// eyes chooses who looks: our own mount unless it is known that the host does not
// share the run directory, or the mount did not answer last time; else a host
// with the same directory, another one each time.
func (c *Core) chooseObserver(h *host) (via string, ok bool) {
	l := &h.sharedDir
	own := h.hello == nil || h.hello.Shared
	if own && (l.observer != "" || !l.waiting) {
		return "", true
	}
	from := 0
	if o := c.byName[l.observer]; o != nil {
		from = o.index + 1
	}
	for i := range c.hosts {
		o := c.hosts[(from+i)%len(c.hosts)]
		if o.spec.Name != h.spec.Name && o.answers() && (h.hello == nil || o.hello.Dir == h.hello.Dir) {
			return o.spec.Name, true
		}
	}
	return "", own
}

// looked handles what the shared directory shows of a host that is away.
func (c *Core) handleLooked(e HostLooked) {
	all := c.everyHost()
	i := slices.IndexFunc(all, func(h *host) bool {
		return h.spec.Name == e.Msg.Host && !h.linked && h.sharedDir.waiting && h.sharedDir.observer == e.Via
	})
	if i < 0 {
		return // it answers for itself, or nobody asked
	}
	h := all[i]
	l := &h.sharedDir
	l.waiting = false
	if l.answers++; l.answers == 1 {
		l.firstAnswerAt = c.now.Mono
	}
	name := h.spec.Name
	for i := range e.Msg.Jobs {
		x := &e.Msg.Jobs[i]
		if a := c.table.Attempt(x.Attempt); a == nil || a.Host != name || !a.State.Open() && a.State != jobs.AttemptLost {
			continue
		}
		c.logf(name, x.Attempt.Job, "%s cannot be reached; how %s ended was read from the shared directory", name, x.Attempt)
		c.handleEnded(x.Attempt, x.Slot, &x.Outcome)
	}
	for _, id := range e.Msg.Never {
		if a := c.table.Attempt(id); a != nil && a.Host == name {
			c.neverStarted(id, "the shared directory shows that it never started there")
		}
	}
	for _, id := range e.Msg.Runs {
		if f := c.inFlight[id]; f != nil && f.host == h && !f.started {
			c.handleStarted(id, 0, 0)
		}
	}
	if b := e.Msg.Beat; b != "" && (h.index >= 0 || c.byName[name] == nil) { // else it may be of the machine that has the name now
		if l.heartbeat != "" && l.heartbeat != b {
			l.changedAt = c.now.Mono
		}
		l.heartbeat = b
	}
}

// back forgets what was seen during an absence.
func (l *sharedDirView) reset() { *l = sharedDirView{} }

// waitsFor reports for a host that is past its time that its jobs continue there.
func (c *Core) reportHeartbeatFile(h *host) {
	if !h.sharedDir.reported {
		h.sharedDir.reported = true
		c.logf(h.spec.Name, 0, "%s cannot be reached, but its heartbeat file in the shared directory changes: its jobs continue, and the run waits for them", h.spec.Name)
	}
}
