package sched

import (
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// probeEvery is the pause before an attempt of unknown fate is asked about again.
const probeEvery = 5 * time.Second

// probeAll asks a host that has just answered about everything that may be
// there: open attempts, and those given up as lost while it was away.
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

// probedOne takes in what became of an attempt of the host's.
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
	case c.cancelled(f.id.Job):
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
