package sched

import (
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// Silence and its remedies (D6).
const (
	BeatEvery    = 3 * time.Second
	SuspectAfter = 5 * BeatEvery // five missed beats
)

const noSign = "no sign of life for "

// connect asks for a connection now.
func (c *Core) connect(h *host) {
	if h.linked || h.dialing || h.idx < 0 {
		return
	}
	h.dialing, h.retryAt = true, 0
	h.out.connect = true
}

// cut marks the link as gone: the fate of everything there is unknown.
func (c *Core) cut(h *host) {
	if !h.doubted() {
		h.cutAt = c.now.Mono
	}
	if h.beaten {
		h.away, h.mute = c.now.Mono, 0
	} else {
		h.mute++
	}
	h.linked, h.beaten, h.told, h.toldShare = false, false, -1, hosts.Share{}
	h.again, h.probeAt = nil, 0
	h.reserved = nil
	for f := h.head; f != nil; f = f.next {
		f.withdrawn = false // asked again if it is still wanted when the host is back
	}
	c.noteOutage(h)
}

func (c *Core) hostUp(e HostUp) {
	h := c.byName[e.Host]
	if h == nil || e.At != nil && elsewhere(e.At, h.spec) { // its address has changed since: the link is about to be cut
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
	h.linked, h.dialing, h.known, h.beaten = true, false, true, false
	if h.inherited && c.cfg.Copies > 1 && c.table.Epoch > 1 {
		h.leasedBefore = c.now.Mono + c.longLease(h) + OwnerFor
	}
	h.inherited = false // its helper shuts earlier dispatchers out
	h.retryAt = 0
	h.seen = c.now.Mono
	if !h.doubted() {
		h.state, h.reason, h.heard = Up, "", c.now.Mono
		h.looks.back()
		c.backFromOutage(h)
	}
	h.others, h.excess, h.peak = 0, 0, 0
	h.beat = hosts.Beat{MemFree: -1, DiskFree: -1, Owner: e.Hello.Owner, Sharing: e.Hello.Sharing, Suspended: h.beat.Suspended}
	h.measured, h.diskFree, h.holdSaid = false, -1, notHeld
	if learn := func() { h.learn(e.Hello) }; c.cfg.MemGrowth > 1 {
		c.regroup(tried, learn) // memory that has grown is bounded by the largest host
	} else {
		learn()
	}
	if h.helloGPUs(h.hello, c.now.Mono); h.hasForeignGPUs() {
		c.sayForeign(h, "some of its GPUs are in use by others")
	}
	if h.barred = ""; e.Hello.CwdError != "" {
		h.barred = "the directory to run in does not exist there: " + e.Hello.CwdError + " (choose another with --cwd)"
		h.reason = h.barred
		c.say(h.spec.Name, 0, "%s: %s", h.spec.Name, h.barred)
	} else if !h.doubted() {
		c.say(h.spec.Name, 0, "%s is up", h.spec.Name)
	}
	c.probeAll(h)
	c.list(h)
	c.queue.capacityChanged()
}

func (c *Core) hostBeat(e HostBeat) {
	h := c.byName[e.Host]
	if h == nil || !h.linked {
		return
	}
	b := boundedBeat(e.Beat)
	h.take(&b)
	if b.MemFree < 0 && h.spec.MinMemFree > 0 && !h.blind {
		h.blind = true
		c.say(h.spec.Name, 0, "%s: free memory cannot be read, so min_mem_free has no effect there", h.spec.Name)
	}
	h.hear(&b, c.now.Mono)
	h.beatGPUs(&b, c.now.Mono)
	if b.Early && !h.beaten {
		// It serves the floors. That the helper lives, and what others use, is for a
		// beat to show that covers more than the helper's own start.
		h.beatAt = c.now.Mono
		return
	}
	c.measure(h, &b)
	c.exceed(h, &b)
	if h.doubted() {
		h.state, h.reason = Up, ""
		c.say(h.spec.Name, 0, "%s is up", h.spec.Name)
	}
	h.seen, h.heard, h.beatAt = c.now.Mono, c.now.Mono, c.now.Mono
	h.beaten, h.failures = true, 0
	c.heal(h)
}

// hostDown hears that a connection attempt failed or that a link ended. A link
// that gave at least one beat is tried again at once; otherwise the pause grows.
func (c *Core) hostDown(e HostDown) {
	h := c.byName[e.Host]
	if h == nil {
		return
	}
	worked := h.linked && h.beaten
	if h.linked {
		c.cut(h)
		if h.state != Lost { // a mute one may be
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
		c.say(h.spec.Name, 0, "%s; connecting again", what)
	case h.reason != what:
		c.say(h.spec.Name, 0, "%s", what)
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
	h.retryAt = c.now.Mono + c.pause(h.failures, c.now.Mono-h.away)
	if h.state != Suspect && h.state != Lost {
		h.state = BackingOff
	}
}

// watchLinks does what the passing of time asks of the links.
func (c *Core) watchLinks() {
	for _, h := range c.hosts {
		if h.linked && c.now.Mono-h.seen >= SuspectAfter {
			c.cut(h)
			if h.state != Lost {
				h.state = Suspect
			}
			if why := noSign + short(SuspectAfter); h.reason != why {
				h.reason = why
				c.say(h.spec.Name, 0, "%s: %s; connecting again", h.spec.Name, h.reason)
			}
			h.out.disconnect = true
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

// drainHost returns why it does nothing, "" if it does.
func (c *Core) drainHost(e DrainHost) (refused string) {
	h := c.byName[e.Host]
	switch {
	case h == nil:
		return c.noHost(e.Host)
	case !e.On && !h.draining:
		return e.Host + " is in use already"
	case e.On && e.Now && h.stopped:
		return e.Host + " is stopped already"
	case e.On && !e.Now && h.draining:
		return e.Host + " starts nothing already"
	}
	h.draining, h.stopped = e.On, e.On && (e.Now || h.stopped)
	c.keepWish(h)
	if !e.On {
		return ""
	}
	h.reserved = nil
	h.withdrawAll()
	if !e.Now {
		return ""
	}
	h.warnBy = c.now.Mono
	if c.cfg.Warn > 0 {
		h.warnAttempts()
		h.warnBy += c.cfg.Warn
	}
	c.endWarned(h)
	return ""
}

// endWarned ends what runs on a host that is to be stopped when the warning has had its time.
func (c *Core) endWarned(h *host) {
	if h.stopped && h.warnBy <= c.now.Mono {
		c.endAttempts(h, "the host is being drained")
	}
}

// endAttempts ends the running attempts of a host and queues their jobs again, without
// charging a try.
func (c *Core) endAttempts(h *host, why string) {
	for f := h.head; f != nil; f = f.next {
		if !f.killed && !f.withdrawn {
			f.requeue = true
			c.killFlight(f, why)
		}
	}
}

// noHost returns that the inventory has no host of this name.
func (c *Core) noHost(name string) string {
	names := make([]string, len(c.hosts))
	for i, h := range c.hosts {
		names[i] = h.spec.Name
	}
	why := "there is no host " + name
	if near := jobs.Nearest(name, names); near != "" {
		why += "; did you mean " + near + "?"
	}
	return why
}

// fence stops everything: another dispatcher owns the run now.
func (c *Core) fence(h *host, epoch int) {
	if !c.fenced {
		c.fenced = true
		c.say(h.spec.Name, 0, "%s takes orders from a newer dispatcher of this run (epoch %d)", h.spec.Name, epoch)
	}
}

// accepts notes that a host has really started an attempt. An answer that one is in
// a supervisor's hands proves less: that one may be failing to make its claim.
func (c *Core) accepts(id jobs.AttemptID) {
	if f := c.flights[id]; f != nil {
		f.h.rest.refusals = 0
		if f.wantGPUs > 0 {
			f.h.foreign.refusals = 0
		}
	}
}

// refused hears that a host did not take attempts. A host that goes on refusing
// rests a little longer each time, or launch and refusal would chase each other.
func (c *Core) refused(e HostRefused) {
	h := c.byName[e.Host]
	if h != nil && e.Msg.FencedBy > 0 {
		c.fence(h, e.Msg.FencedBy)
		return
	}
	news := false // something is wrong with the host, not only with some of its GPUs
	for _, id := range e.Msg.Attempts {
		if !c.mayTell(e.Host, id) {
			continue
		}
		if f := c.flights[id]; f != nil && !c.avoidGPUs(f, e.Msg) {
			news = true // neither a repeat nor a launch whose attempt is settled
		}
		c.neverStarted(id, e.Msg.Why)
	}
	if h != nil && news && !h.rest.resting { // what several supervisors refuse at a time counts once
		c.pauseHost(h, "it refused jobs: "+e.Msg.Why)
	}
}
