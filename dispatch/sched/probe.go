package sched

import (
	"slices"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// probeEvery is the pause before an attempt of unknown fate is asked about again.
const probeEvery = 5 * time.Second

// probeAll asks a host that has just answered about everything that may be
// there: open attempts, and those declared lost while it was away.
func (c *Core) probeAll(h *host) {
	ids := make([]jobs.AttemptID, 0, h.open+len(h.missing))
	for f := h.head; f != nil; f = f.next {
		ids = append(ids, f.id)
	}
	h.out.probe = append(ids, h.missing...)
	for _, id := range h.missing {
		if c.table.Attempt(id).Started == 0 {
			h.out.withdraw = append(h.out.withdraw, id) // given up: it must not start now
		}
	}
	h.again, h.probeAt = nil, 0
}

func (c *Core) probeAgain(h *host) {
	c.tidyAgain(h)
	h.out.probe = append(h.out.probe, h.again...)
	h.again, h.probeAt = nil, 0
}

// tidyAgain leaves each attempt once, and those that are settled out: answers may
// come several times, and a host must not make us ask the more for it.
func (c *Core) tidyAgain(h *host) {
	seen := make(map[jobs.AttemptID]bool, len(h.again))
	kept := h.again[:0]
	for _, id := range h.again {
		if a := c.table.Attempt(id); !seen[id] && (a.State.Open() || a.State == jobs.AttemptLost) {
			seen[id] = true
			kept = append(kept, id)
		}
	}
	h.again = kept
}

func (c *Core) probed(e AttemptsProbed) {
	h := c.byName[e.Host]
	if h == nil {
		return
	}
	for i := range e.Msg.Jobs {
		p := &e.Msg.Jobs[i]
		if a := c.table.Attempt(p.Attempt); a != nil && h.has(a) {
			c.probedOne(h, p)
		}
	}
}

// probedOne handles what happened to an attempt of the host's.
func (c *Core) probedOne(h *host, p *hosts.ProbedJob) {
	a, f := c.table.Attempt(p.Attempt), c.flights[p.Attempt]
	if mayHaveDied(c.table.Job(p.Attempt.Job), a) && (p.Answer == hosts.IsRunning || p.Answer == hosts.HasExited) {
		c.outlived[p.Attempt] = true
	}
	switch p.Answer {
	case hosts.Unknown:
		if h.linked && (f != nil || a.State == jobs.AttemptLost) {
			if len(h.again) > 2*(h.open+len(h.missing)) {
				c.tidyAgain(h)
			}
			h.again = append(h.again, p.Attempt)
			h.probeAt = c.now.Mono + probeEvery
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
		c.started(p.Attempt, p.Slot, p.Started)
		if f != nil {
			c.killIfUnwanted(f)
		}
	case hosts.HasExited:
		if p.Outcome != nil {
			c.ended(p.Attempt, p.Slot, p.Outcome)
		}
	case hosts.NeverStarted:
		c.neverStarted(p.Attempt, reasonOr(p.Why, "it never started there"))
	case hosts.Dead:
		if f == nil {
			c.forget(p.Attempt)
			return
		}
		c.started(p.Attempt, p.Slot, p.Started) // only what had claimed its start can be proved dead
		f.proved = true
		c.lose(f, "it died on "+h.spec.Name+" without a result: "+reasonOr(p.Why, "its process is gone"))
	}
}

// killIfUnwanted repeats a kill that a lost link or a lost dispatcher swallowed,
// and ends what nobody waits for any more.
func (c *Core) killIfUnwanted(f *flight) {
	j := c.table.Job(f.id.Job)
	a := j.Attempts[f.id.N-1]
	switch {
	case c.canceled(f.id.Job):
		c.killFlight(f, c.table.Cancels[f.id.Job].Reason)
	case j.State.Terminal() || a.Round != j.Round:
		c.killFlight(f, "its job had its result already")
	case f.killed:
		c.killFlight(f, "asked for before")
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
	lookFirst = 5 * time.Second  // after the last heartbeat: most come back at once
	lookEvery = 10 * time.Second // as often as supervisors touch their heartbeat file
	lookLate  = time.Minute      // when it has been away for longer than lookLong
	lookLong  = 10 * time.Minute
	lookWait  = 5 * time.Second // for the first answer: without one lost_after alone counts
	// beatFresh is how long a change of the heartbeat file counts: three of its heartbeats, and
	// what another machine's cache may add.
	beatFresh = 45 * time.Second
)

// looks is what the core knows of an absent host through the shared directory.
type looks struct {
	at      time.Duration // when to look next; 0: not planned
	first   time.Duration // when the first look of this absence was asked for; 0: none was
	answers int           // that came
	since   time.Duration // when the first answer came
	asked   string        // who was asked last: a host, or "" for our own mount
	waiting bool          // for the answer
	beat    string        // content of the heartbeat file as last seen over this absence
	movedAt time.Duration // when a change of it was last seen; 0: none was
	told    bool          // that the host's jobs continue
}

// breathes reports whether the host, though away, was seen to write its heartbeat file lately.
func (c *Core) breathes(h *host) bool {
	return !h.linked && h.looks.movedAt > 0 && c.now.Mono-h.looks.movedAt < beatFresh
}

// seen reports whether the shared directory has shown what it can: it was looked at for as
// long as a heartbeat file that moves would have shown it, or nobody can look.
func (c *Core) seen(h *host) bool {
	l := &h.looks
	if l.answers == 0 {
		return l.first == 0 && c.now.Mono >= h.lostAt()+lookWait || l.first > 0 && c.now.Mono-l.first >= lookWait
	}
	return c.now.Mono-l.since >= lookEvery+lookWait || l.answers > 1 && c.now.Mono-l.since >= lookEvery
}

// lookAround asks for a look at every host that is away and has something of ours.
func (c *Core) lookAround() {
	for _, h := range c.everyHost() {
		l := &h.looks
		if h.linked || h.open == 0 && len(h.missing) == 0 || c.stopped || c.fenced {
			l.at = 0
			continue
		}
		if l.at == 0 {
			l.at = max(h.cutAt, h.heard+lookFirst)
		}
		if c.now.Mono < l.at {
			continue
		}
		every := lookEvery
		if c.now.Mono-h.cutAt > lookLong {
			every = lookLate
		}
		l.at = c.now.Mono + every
		c.look(h)
	}
}

// look asks about everything of ours that may be on the host.
func (c *Core) look(h *host) {
	via, ok := c.eyes(h)
	if !ok {
		return
	}
	ids := make([]jobs.AttemptID, 0, h.open+len(h.missing))
	for f := h.head; f != nil; f = f.next {
		ids = append(ids, f.id)
	}
	ids = append(ids, h.missing...)
	if h.looks.first == 0 {
		h.looks.first = max(c.now.Mono, 1)
	}
	h.looks.asked, h.looks.waiting = via, true
	c.looking = append(c.looking, Look{Host: h.spec.Name, Via: via, Attempts: ids})
}

// eyes chooses who looks: our own mount unless it is known that the host does not
// share the run directory, or the mount did not answer last time; else a host
// with the same directory, another one each time.
func (c *Core) eyes(h *host) (via string, ok bool) {
	l := &h.looks
	own := h.hello == nil || h.hello.Shared
	if own && (l.asked != "" || !l.waiting) {
		return "", true
	}
	from := 0
	if o := c.byName[l.asked]; o != nil {
		from = o.idx + 1
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
func (c *Core) looked(e HostLooked) {
	all := c.everyHost()
	i := slices.IndexFunc(all, func(h *host) bool {
		return h.spec.Name == e.Msg.Host && !h.linked && h.looks.waiting && h.looks.asked == e.Via
	})
	if i < 0 {
		return // it answers for itself, or nobody asked
	}
	h := all[i]
	l := &h.looks
	l.waiting = false
	if l.answers++; l.answers == 1 {
		l.since = c.now.Mono
	}
	name := h.spec.Name
	for i := range e.Msg.Jobs {
		x := &e.Msg.Jobs[i]
		if a := c.table.Attempt(x.Attempt); a == nil || a.Host != name || !a.State.Open() && a.State != jobs.AttemptLost {
			continue
		}
		c.say(name, x.Attempt.Job, "%s cannot be reached; how %s ended was read from the shared directory", name, x.Attempt)
		c.ended(x.Attempt, x.Slot, &x.Outcome)
	}
	for _, id := range e.Msg.Never {
		if a := c.table.Attempt(id); a != nil && a.Host == name {
			c.neverStarted(id, "the shared directory shows that it never started there")
		}
	}
	for _, id := range e.Msg.Runs {
		if f := c.flights[id]; f != nil && f.h == h && !f.started {
			c.started(id, 0, 0)
		}
	}
	if b := e.Msg.Beat; b != "" && (h.idx >= 0 || c.byName[name] == nil) { // else it may be of the machine that has the name now
		if l.beat != "" && l.beat != b {
			l.movedAt = c.now.Mono
		}
		l.beat = b
	}
}

// back forgets what was seen during an absence.
func (l *looks) back() { *l = looks{} }

// waitsFor reports for a host that is past its time that its jobs continue there.
func (c *Core) waitsFor(h *host) {
	if !h.looks.told {
		h.looks.told = true
		c.say(h.spec.Name, 0, "%s cannot be reached, but its heartbeat file in the shared directory changes: its jobs continue, and the run waits for them", h.spec.Name)
	}
}
