package sched

import (
	"math"
	"slices"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// Silence and its remedies.
const (
	BeatEvery    = 3 * time.Second
	SuspectAfter = 5 * BeatEvery // five missed heartbeats
)

const noSign = "no heartbeat for "

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

// hostDown handles a failed connection attempt or the end of a link. A link
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
		c.endAttempt(f, why)
	}
}

// endAttempt does so with one attempt. One that was withdrawn has probably not started.
func (c *Core) endAttempt(f *flight, why string) {
	if !f.killed && !f.withdrawn {
		f.requeue = true
		c.killFlight(f, why)
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
		c.say(h.spec.Name, 0, "%s takes commands from a newer dispatcher of this run (epoch %d)", h.spec.Name, epoch)
	}
}

// accepts records that a host has really started an attempt. An answer that one is in
// a supervisor's hands proves less: that one may be failing to make its claim.
func (c *Core) accepts(id jobs.AttemptID) {
	if f := c.flights[id]; f != nil {
		f.h.rest.refusals = 0
		if f.wantGPUs > 0 {
			f.h.foreign.refusals = 0
		}
	}
}

// refused handles attempts that a host refused. A host that keeps refusing
// pauses a little longer each time, or launch and refusal would chase each other.
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

// permanentPause is how long a host pauses that only a person can repair.
const permanentPause = time.Minute

// shortPause bounds the pause while a host has been away for less than
// shortAway: 8 s and the time of a dial are less than the 10 s within which a
// host must be in use again after less than a minute away.
const (
	shortAway  = time.Minute
	shortPause = 8 * time.Second
)

// pause returns how long to wait after n failures in a row, n >= 1, of a host
// that has been away so long: random(0.5, 1) x min(2^n s, cap) (as in BOINC).
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

// Hosts are believed within bounds: a broken or hostile one must cost only
// itself (promise 5). Its numbers reach the books through these functions only.
const (
	mostMem      = 1 << 50 // bytes
	mostAttempts = 1 << 30

	mostSuspended = 10 * 365 * day
)

// boundedHello returns a copy of what a host reports about itself.
func boundedHello(spec *hosts.Host, m *hosts.Hello) *hosts.Hello {
	b := *m
	most := jobs.MaxSlots
	if spec.Slots.Fixed > 0 {
		most = spec.Slots.Fixed
	}
	b.Slots = min(max(b.Slots, 0), most)
	b.Cores = min(max(b.Cores, 0), jobs.MaxSlots)
	b.GPUIDs = boundedGPUs(b.GPUIDs)
	b.GPUs = min(max(b.GPUs, 0), jobs.MaxGPUs)
	b.ZoneSeconds = min(max(b.ZoneSeconds, -mostZone), mostZone)
	b.MemBytes = min(max(b.MemBytes, 0), mostMem)
	return &b
}

// boundedGPUs returns the devices, in their order and each once.
func boundedGPUs(numbers []int) []int {
	numbers = slices.DeleteFunc(slices.Clone(numbers), func(n int) bool { return n < 0 || n >= jobs.MaxGPUs })
	slices.Sort(numbers)
	return slices.Compact(numbers)
}

// boundedBeat returns a copy of a measurement.
func boundedBeat(m *hosts.Beat) hosts.Beat {
	b := *m
	b.Busy, b.Ours = boundedCores(b.Busy), boundedCores(b.Ours)
	for i := range b.Load {
		if b.Load[i] = max(b.Load[i], 0); math.IsNaN(b.Load[i]) || math.IsInf(b.Load[i], 0) {
			b.Load[i] = 0
		}
	}
	b.Suspended = min(max(b.Suspended, 0), mostSuspended)
	b.Running = min(max(b.Running, 0), mostAttempts)
	b.Buffered = min(max(b.Buffered, 0), mostAttempts)
	return b
}

// boundedCores gives 0 for what is no number of cores.
func boundedCores(f float64) float64 {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return 0
	}
	return min(max(f, 0), jobs.MaxSlots)
}

// mostElapsed is how long an attempt of the job can have run, give or take a day of
// clocks that differ: one wrong clock must not spoil the mean run time of a queue.
func (c *Core) mostElapsed(j *jobs.Job) time.Duration {
	return max(0, c.now.Wall.Sub(j.Attempts[0].Launched)) + 24*time.Hour
}

// boundedSlot gives 0, not known, for what is no slot.
func boundedSlot(n int) int {
	if n < 0 || n > jobs.MaxSlots {
		return 0
	}
	return n
}
