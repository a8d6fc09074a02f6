package sched

import (
	"cmp"
	"slices"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// probeInterval is the delay before a host is asked again about an attempt of unknown fate.
const probeInterval = 5 * time.Second

// maxUnknownWhys bounds the reasons for which it is reported, over one link, that a host does not know the
// fate of an attempt.
const maxUnknownWhys = 5

// probing holds the probes that a host has not answered.
type probing struct {
	orphans         []jobs.AttemptID // attempts given up as lost, whose fate the host may know
	unknownAttempts []jobs.AttemptID // attempts whose fate the host did not know
	unknownWhys     []string         // reasons of the host over this link that were reported
	probeAt         time.Duration    // when to ask about unknownAttempts again; 0: not planned
}

// possiblyAlive returns the attempts that may be on the host: the open ones, and those that were
// given up while it was away.
func (h *host) possiblyAlive() []jobs.AttemptID {
	ids := make([]jobs.AttemptID, 0, h.numOpen+len(h.orphans))
	for f := h.oldest; f != nil; f = f.nextOnHost {
		ids = append(ids, f.id)
	}
	return append(ids, h.orphans...)
}

// probeAll asks a host that has just responded about all attempts that may be there.
func (c *Core) probeAll(h *host) {
	h.outbox.probe = h.possiblyAlive()
	for _, id := range h.orphans {
		if c.table.Attempt(id).Started == 0 {
			// It was given up, so it must not start now.
			h.outbox.withdraw = append(h.outbox.withdraw, id)
		}
	}
	h.unknownAttempts, h.unknownWhys, h.probeAt = nil, nil, 0
}

func (c *Core) probeUnknownAttempts(h *host) {
	c.pruneUnknownAttempts(h)
	h.outbox.probe = append(h.outbox.probe, h.unknownAttempts...)
	h.unknownAttempts, h.probeAt = nil, 0
}

// pruneUnknownAttempts removes duplicates and settled attempts from the attempts to ask about, so
// that a host that answers several times does not cause more questions.
func (c *Core) pruneUnknownAttempts(h *host) {
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

func (e AttemptsProbed) apply(c *Core) {
	h := c.byName[e.Host]
	if h == nil {
		return
	}
	isReturned := slices.ContainsFunc(e.Msg.Jobs, func(p hosts.ProbedJob) bool {
		return p.Answer == hosts.NeverStarted && c.isReturned(p.Attempt)
	})
	for i := range e.Msg.Jobs {
		c.handleProbed(h, &e.Msg.Jobs[i])
	}
	if isReturned {
		c.countReturned(h, "they never started there")
	}
}

// handleProbed handles the answer to a probe of one attempt.
func (c *Core) handleProbed(h *host, p *hosts.ProbedJob) {
	a, f := c.table.Attempt(p.Attempt), c.inFlight[p.Attempt]
	if mayHaveDied(c.table.Job(p.Attempt.Job), a) && (p.Answer == hosts.IsRunning || p.Answer == hosts.HasExited) {
		c.stillRunning[p.Attempt] = true
	}
	switch p.Answer {
	case hosts.Unknown:
		if p.Why != "" && len(h.unknownWhys) < maxUnknownWhys && !slices.Contains(h.unknownWhys, p.Why) {
			h.unknownWhys = append(h.unknownWhys, p.Why)
			c.logf(h.spec.Name, p.Attempt.Job, "it is not known what became of attempt %s on %s: %s; it is asked again",
				p.Attempt, h.spec.Name, p.Why)
		}
		if f != nil {
			c.killIfNotNeeded(f)
		}
		if h.linked && (f != nil || a.State == jobs.AttemptLost) {
			if len(h.unknownAttempts) > 2*(h.numOpen+len(h.orphans)) {
				c.pruneUnknownAttempts(h)
			}
			h.unknownAttempts = append(h.unknownAttempts, p.Attempt)
			h.probeAt = c.now.Mono + probeInterval
		}
	case hosts.Buffered:
		if f == nil {
			h.kill(p.Attempt, "its job has a result or another attempt")
		} else {
			f.isAlive = h.linked
			c.killIfNotNeeded(f)
			switch {
			case f.killed:
			case f.withdrawn:
				h.sendWithdrawal(f)
			case h.isClosed() || h.probation.paused || c.drain != nil: // it was not known, or not to be there
				h.withdraw(f)
			}
		}
	case hosts.IsRunning:
		c.handleStarted(p.Attempt, p.Slot, p.Started)
		if f != nil {
			c.killIfNotNeeded(f)
		}
	case hosts.HasExited:
		if p.Outcome != nil {
			c.handleEnded(p.Attempt, p.Slot, p.Outcome)
		}
	case hosts.NeverStarted:
		c.handleNeverStarted(p.Attempt, cmp.Or(p.Why, "it never started there"))
	case hosts.Dead:
		if f == nil {
			c.settleOrphan(p.Attempt)
			return
		}
		// Only an attempt that had claimed its start can be proved dead.
		c.handleStarted(p.Attempt, p.Slot, p.Started)
		f.provedDead = true
		why := cmp.Or(p.Why, "its process is gone")
		c.loseAttempt(f, "it died on "+h.spec.Name+" without a result: "+why+h.sessionAdvice())
	}
}

// killIfNotNeeded repeats a kill that was lost with a link or a dispatcher, and ends an attempt
// that is no longer needed.
func (c *Core) killIfNotNeeded(f *inFlight) {
	j := c.table.Job(f.id.Job)
	a := j.Attempts[f.id.N-1]
	switch {
	case c.isCancelPending(f.id.Job):
		c.killAttempt(f, c.table.Cancels[f.id.Job].Reason)
	case j.State.Terminal() || a.Round != j.Round:
		c.killAttempt(f, "its job had its result already")
	case f.killed:
		c.killAttempt(f, "asked for before")
	}
}
