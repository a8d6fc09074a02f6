package sched

import (
	"strings"

	"dcs-tui/jobs"
)

// begin takes over what the table says: attempts that may be alive are of
// unknown fate until their hosts answer a Probe, jobs that wait are queued. With
// an empty table it only asks for the connections.
func (c *Core) begin() {
	c.begun, c.beganAt = true, c.now.Wall
	c.anyUp = c.now.Mono
	for _, h := range c.hosts {
		h.seen, h.heard, h.cutAt, h.away, h.inherited = c.now.Mono, c.now.Mono, c.now.Mono, c.now.Mono, true
		c.connect(h)
	}
	c.beginProviding()
	c.heedWishes()
	if n := len(c.table.Specs) - len(c.table.Jobs); n > 0 && c.table.Epoch > 1 {
		// These jobs were stored by a dispatcher that died before it accepted them. If
		// only the record of their acceptance is missing, hosts may have attempts of
		// them.
		c.emit(jobs.Record{Kind: jobs.KindAccepted, Job: jobs.ID(len(c.table.Jobs) + 1), Count: n})
	}
	c.queue.grow(len(c.table.Jobs))
	for i := range c.cfg.Found {
		if f := &c.cfg.Found[i]; !c.table.Damaged && c.unrecorded(f.Host, f.ProbedJob) {
			c.recordMissing(f.Host, f.Attempt)
		}
	}
	c.leaveSeqsFree()
	c.learnTimes()
	c.learnUse()
	for i := range c.table.Jobs {
		c.heed(c.table.Jobs[i].Spec)
	}
	for i := range c.table.Jobs {
		j := &c.table.Jobs[i]
		c.hasDeadline(jobs.ID(i+1), j)
		open := false
		for _, a := range j.Attempts {
			switch {
			case a.State.Open():
				open = true
				h := c.hostOf(a.Host, a.Machine)
				h.known = true
				f := c.fly(h, a.ID, j.Spec)
				f.started = a.State == jobs.AttemptRunning
				f.startedAt, f.ran = c.now.Mono, c.ranBefore(a) // at the latest
				f.killed, f.requeue = h.stopped, h.stopped      // ended again when the host tells of it
				if f.started {
					c.moves(f, f.ran)
				}
				h.count(f)
			case a.State == jobs.AttemptLost:
				// Proved dead or only given up? The host knows.
				if a.Host != "" {
					c.goesAstray(c.hostOf(a.Host, a.Machine), a.ID)
				}
			}
		}
		id := jobs.ID(i + 1)
		c.countWaiting(j, 1)
		c.knowsHardness(id)
		switch {
		case j.State == jobs.Running && !open && c.canceled(id):
			c.emit(jobs.Record{Kind: jobs.KindJob, Job: id, Next: jobs.Canceled, Reason: c.table.Cancels[id].Reason})
		case j.State == jobs.Running && !open:
			c.emit(jobs.Record{Kind: jobs.KindJob, Job: id, Next: jobs.Queued, Reason: "no attempt of it is open any more"})
		case j.State == jobs.Queued:
			c.enqueue(id)
		}
	}
	c.startReconciling()
}

// submit takes new jobs in. Ids continue those the table has; a gap is a defect
// of the caller, which costs only the jobs behind it.
func (c *Core) submit(e Submit) {
	first := jobs.ID(len(c.table.Jobs) + 1)
	n := 0
	for _, s := range e.Specs {
		if s.ID != first+jobs.ID(n) {
			c.Defects++
			c.say("", 0, "internal error: job %d was submitted where job %d was expected", s.ID, first+jobs.ID(n))
			break
		}
		if int(s.ID) > len(c.table.Specs) {
			c.table.Specs = append(c.table.Specs, s)
		}
		n++
	}
	if e.Last {
		c.last = true
	}
	if n > 0 {
		c.finished = c.finished && c.drain != ""
		c.emit(jobs.Record{Kind: jobs.KindAccepted, Job: first, Count: n})
		c.queue.grow(len(c.table.Jobs))
		for i := range n {
			j := c.table.Job(first + jobs.ID(i))
			c.heed(j.Spec)
			c.countWaiting(j, 1)
			c.knowsHardness(first + jobs.ID(i))
			c.enqueue(first + jobs.ID(i))
		}
	}
	if c.last {
		c.refuseImpossibleOrder()
	}
}

// What people ask of hosts, and of the whole run, holds until they take it back.
// It is recorded, and the next dispatcher begins with it.

// wish is what a person asked of the host.
func (h *host) wish() jobs.HostWish {
	w := jobs.HostWish{Slots: int32(h.given)}
	switch {
	case h.stopped:
		w.Use = jobs.HostStopped
	case h.draining:
		w.Use = jobs.HostDrained
	}
	return w
}

// keepWish records what a person has just asked of a host, if it is something new.
func (c *Core) keepWish(h *host) {
	if w := h.wish(); w != c.table.Hosts[h.spec.Name] {
		c.emit(jobs.Record{Kind: jobs.KindHost, Host: h.spec.Name, Count: int(w.Use), Slot: int(w.Slots)})
	}
}

// pauseRun records that a person pauses launching or lets it continue. It returns why it does
// nothing.
func (c *Core) pauseRun(on bool) (refused string) {
	r := jobs.Record{Kind: jobs.KindPause}
	switch {
	case on && c.table.Paused:
		return pausedAlready
	case on:
		r.Count = 1
	case !c.table.Paused:
		return notHeldBack
	}
	c.emit(r)
	return ""
}

// heedWishes applies the recorded requests when a dispatcher begins. It reports them,
// so that a host that is up and takes no jobs is no surprise.
func (c *Core) heedWishes() {
	if c.table.Paused {
		c.say("", 0, "launching is still paused, as a person asked; p on the screen (dcs-tui attach) continues it")
	}
	for _, h := range c.hosts {
		c.heedWish(h)
	}
}

// heedWish applies what was asked of a host.
func (c *Core) heedWish(h *host) {
	w := c.table.Hosts[h.spec.Name]
	h.draining, h.stopped, h.given = w.Use != jobs.HostUsed, w.Use == jobs.HostStopped, min(int(w.Slots), jobs.MaxSlots)
	var still []string
	switch w.Use {
	case jobs.HostDrained:
		still = append(still, "is still drained")
	case jobs.HostStopped:
		still = append(still, "is still stopped")
	}
	if h.given > 0 {
		still = append(still, "still has "+jobs.Plural(h.given, "slot"))
	}
	if still != nil {
		c.say(h.spec.Name, 0, "%s %s, as a person asked", h.spec.Name, strings.Join(still, " and "))
	}
}
