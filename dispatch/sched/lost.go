package sched

import (
	"fmt"
	"strings"
	"time"

	"dcs-tui/jobs"
)

// leaseMargin covers the drift between two machines' clocks.
const leaseMargin = 2 * time.Second

// OwnerFor is how long after it has last seen that the run is its own a dispatcher may
// still extend leases. One that was taken over, and whose run directory hangs, would
// keep a host's lease alive that its successor believes to have run out.
const OwnerFor = 10 * time.Second

// giveUpLost gives up the attempts of hosts that have been silent for too long
// (D6, DESIGN 7). Nobody is charged. Attempts stay where they are when their job
// says so, while the host's beat file moves, or when more than half of all hosts went silent together: then it is
// our network that is gone, and nothing is gained elsewhere.
func (c *Core) giveUpLost() {
	for _, h := range c.everyHost() {
		if h.linked || !h.known && h.open == 0 || c.now.Mono < h.lostAt() {
			continue
		}
		breathes := c.breathes(h)
		if breathes {
			c.waitsFor(h)
		}
		wait := h.idx >= 0 && c.vanishedTogether(h)
		if h.state == Suspect || h.state == Connecting || h.state == BackingOff {
			if h.state = Lost; h.idx >= 0 {
				more := c.leased(h)
				if wait && h.open > 0 && len(c.hosts) > 1 {
					more = "; most of the hosts went with it, so it may be our network: what it has is waited for"
				}
				c.say(h.spec.Name, 0, "%s is lost: %s%s", h.spec.Name, c.silence(h), more)
			}
		}
		if h.open == 0 {
			continue
		}
		if wait && h.outage == 0 {
			c.noteOutage(h) // also one that an earlier dispatcher ran into
		}
		wait = wait || c.now.Mono < h.grace
		for f, next := h.head, (*flight)(nil); f != nil; f = next {
			next = f.next
			if c.mayLose(h, f, wait, breathes) {
				c.lose(f, "its host "+h.spec.Name+" is lost: "+c.silence(h))
			}
		}
	}
}

// silence says for how long a host has given no sign of life, and why.
func (c *Core) silence(h *host) string {
	s := noSign + short(c.now.Mono-h.heard)
	if h.reason != "" && !strings.HasPrefix(h.reason, noSign) {
		s += " (" + h.reason + ")"
	}
	return s
}

// lostAt returns when a silent host is given up.
func (h *host) lostAt() time.Duration { return h.heard + h.spec.LostAfterOrDefault() }

// Lease returns for how long after its last sign of life a host may start what it was
// handed. With copies (copies.go) that is shorter: the end of the run waits for it.
func (cfg *Config) Lease(lostAfter time.Duration) time.Duration {
	if cfg.Copies > 1 {
		lostAfter = min(lostAfter, copyLease)
	}
	return max(lostAfter, cfg.Buffer)
}

// leaseEnd returns when an attempt handed to a host that is cut off can certainly
// not start any more: the lease is extended only from signs of life that were taken in
// while the link was up, the last of them at the latest when it was cut. With copies
// the end of the run waits for this: then that last sign counts.
func (c *Core) leaseEnd(h *host) time.Duration {
	switch {
	case h.inherited:
		return h.cutAt + c.longLease(h) + OwnerFor
	case c.cfg.Copies > 1:
		return max(h.seen+c.cfg.Lease(h.leased)+leaseMargin, h.leasedBefore)
	}
	return h.cutAt + c.longLease(h)
}

// longLease is how long a lease of a run without copies lasts at most, as an earlier
// dispatcher may have given it.
func (c *Core) longLease(h *host) time.Duration {
	return max(h.leased, c.cfg.Buffer) + leaseMargin
}

// leased says of a lost host that what was just handed to it is not given up yet.
func (c *Core) leased(h *host) string {
	n, left := 0, c.leaseEnd(h)-c.now.Mono
	for f := h.head; f != nil; f = f.next {
		if !f.started {
			n++
		}
	}
	if n == 0 || left <= 0 {
		return ""
	}
	verb := "wait until their"
	if n == 1 {
		verb = "waits until its"
	}
	return fmt.Sprintf("; %s handed to it that may still start there %s lease has run out, in %s", jobs.Plural(n, "job"), verb, short(left))
}

func (c *Core) mayLose(h *host, f *flight, wait, breathes bool) bool {
	if (!f.started || f.undated) && c.now.Mono < c.leaseEnd(h) {
		return false // it could still start there
	}
	j := c.table.Job(f.id.Job)
	if j.State.Terminal() || c.cancelled(f.id.Job) || c.tooHard(j) {
		return true
	}
	if f.started && (breathes || !c.seen(h)) {
		return false
	}
	return h.idx < 0 || h.removed || !wait && c.onLost(j) != jobs.OnLostWait
}

func (c *Core) onLost(j *jobs.Job) jobs.OnLost {
	if j.Spec.OnLost != jobs.OnLostDefault {
		return j.Spec.OnLost
	}
	return c.cfg.OnLost
}

// goesAstray notes that an attempt given up may still be alive on its host. The
// host is asked when it is back, and until it has answered it does not get the job.
func (c *Core) goesAstray(h *host, id jobs.AttemptID) {
	h.missing = append(h.missing, id)
	c.astray[id] = true
}

// deadliest is how many hosts may die under a job before the job is to blame (B2). One
// that was given up and has not come back may have died: a job that takes its hosts down
// for good must not get the last of them. One that came back and knew the attempt was
// only out of reach.
const deadliest = 3

// lose closes an attempt without an outcome: its host is given up, or the
// attempt is proved dead. The job goes to the front of the queue (E6).
func (c *Core) lose(f *flight, why string) {
	j := c.table.Job(f.id.Job)
	a := j.Attempts[f.id.N-1]
	h := f.h
	r := jobs.Record{Kind: jobs.KindLost, Job: f.id.Job, N: f.id.N, Host: h.spec.Name, Reason: why}
	r.Next = c.without(j, a)
	if died := c.deaths(j); r.Next == jobs.Queued && f.started && a.Round == j.Round && died+1 >= deadliest {
		r.Next = jobs.Failed
		r.Reason = "its host or its supervisor died under it for the third time: " + why
	}
	was := c.charged(f)
	c.land(f)
	if !f.proved {
		c.goesAstray(h, f.id)
		c.lostUse[f.id] = was
	}
	c.emit(r)
}

// forgetOutlived forgets the attempts of j that deaths no longer needs: those that are
// not lost, those of earlier rounds, and all if the job has finished.
func (c *Core) forgetOutlived(j *jobs.Job) {
	if len(c.outlived) == 0 {
		return
	}
	for _, a := range j.Attempts {
		if !mayHaveDied(j, a) {
			delete(c.outlived, a.ID)
		}
	}
}

// mayHaveDied reports whether a counts for deaths unless it is in c.outlived.
func mayHaveDied(j *jobs.Job, a *jobs.Attempt) bool {
	return a.Round == j.Round && a.State == jobs.AttemptLost && !j.State.Terminal()
}

// deaths counts the attempts of this round that had started and may have died.
func (c *Core) deaths(j *jobs.Job) int {
	n := 0
	for _, a := range j.Attempts {
		if a.Round == j.Round && a.State == jobs.AttemptLost && a.Started != 0 && !c.outlived[a.ID] {
			n++
		}
	}
	return n
}
