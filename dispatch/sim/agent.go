package sim

import (
	"errors"
	"slices"
	"time"

	"dcs-tui/dispatch/sched"
	"dcs-tui/hosts"
	"dcs-tui/jobs"
	"dcs-tui/jobs/attempts"
)

// agent is a dispatcher's side of one host, like the link of package dispatch. It connects, passes
// commands on, and sends the pings that extend the host's lease.
type agent struct {
	l         *dispatcher
	spec      *hosts.Host // each connection resolves its address to a machine anew
	link      *link
	dialing   int           // odd while a connection is being made
	greeted   bool          // the first ping was sent; it renews the lease, so withdrawals precede it
	uptime    time.Duration // of the host in the newest heartbeat that the core has seen
	isLeaving bool          // it is leaving the host
	endRun    bool          // the run is over: the host is cleaned
	clean     bool
	hasEnded  bool
}

func (a *agent) carryOut(o sched.Command) {
	switch o.(type) {
	case sched.Connect:
		a.connect()
		return
	case sched.Disconnect:
		a.hangUp()
		return
	}
	k := a.link
	if k == nil {
		return
	}
	epoch := a.l.epoch
	// fenced sends a command about attempts that the helper refuses if it knows a newer dispatcher.
	fenced := func(ids []jobs.AttemptID, do func(*helper)) {
		k.toHost(func(p *helper) {
			if by := p.newerEpoch(epoch); by != 0 {
				p.refuse(ids, by)
				return
			}
			do(p)
		})
	}
	switch o := o.(type) {
	case sched.Launch:
		if !a.greeted {
			a.l.w.fail(SlotsHold, "a launch is sent to %s before any limit", a.spec.Name)
		}
		if a.uptime == 0 {
			a.l.w.fail(NoStartAfterLease, "a launch is sent to %s before a lease has begun", a.spec.Name)
		}
		m := &hosts.Launch{Epoch: epoch, ExpireUptime: a.uptime}
		if a.uptime > 0 {
			m.ExpireUptime += min(a.spec.LostAfterOrDefault(), a.lease())
		}
		a.l.w.recordLaunches(o.Jobs, k.h)
		k.toHost(func(p *helper) { p.launch(m, o.Jobs) })
		if a.l.w.oneInWhileFaults(30) {
			k.kept = append(k.kept, keptLaunch{k.h.boot, m, slices.Clone(o.Jobs)})
		}
	case sched.SetLimit:
		k.toHost(func(p *helper) { p.setLimit(o.Slots) })
		if !a.greeted {
			a.greeted = true
			a.ping()
		}
	case sched.SetShare:
		k.toHost(func(p *helper) { p.setShare(o.Share) })
	case sched.Withdraw:
		fenced(o.Attempts, func(p *helper) { p.withdraw(o.Attempts) })
	case sched.Kill:
		fenced(o.Attempts, func(p *helper) { p.kill(epoch, o.Attempts) })
	case sched.Probe:
		fenced(o.Attempts, func(p *helper) { p.answer(o.Attempts) })
	case sched.List:
		fenced(nil, func(p *helper) { p.list(o.Jobs) })
	case sched.Inspect:
		k.toHost(func(p *helper) { p.inspectOther(o.Host, o.Attempts) })
	}
}

// pack lets the host pack attempts.
func (a *agent) pack(ids []jobs.AttemptID) {
	if a.link != nil && len(ids) > 0 {
		a.link.toHost(func(p *helper) { p.pack(attempts.Among(ids)) })
	}
}

// ping keeps the helper alive and extends the lease.
func (a *agent) ping() {
	lease := a.uptime
	if lease > 0 {
		lease += a.lease()
	}
	a.link.toHost(func(p *helper) { p.extend(lease) })
}

// lease returns for how long after a heartbeat the host may start jobs.
func (a *agent) lease() time.Duration {
	return a.l.w.cfg.Lease(a.spec.LostAfterOrDefault(), a.spec.HeartbeatOrDefault())
}

// sendPings sends pings while the link is open, at the longest intervals of the real agent.
func (a *agent) sendPings(k *link) {
	interval := max(time.Second, min(8*time.Second, (a.lease()-a.spec.HeartbeatOrDefault())/2))
	a.l.w.after(interval, func() {
		if a.link != k {
			return
		}
		if a.greeted && a.l.numPauses == 0 {
			a.ping()
		}
		a.sendPings(k)
	})
}

// connect tries to reach the host.
func (a *agent) connect() {
	if a.link != nil || a.dialing%2 == 1 {
		return
	}
	w, h := a.l.w, a.l.w.machineAt(a.spec)
	a.dialing++
	dial := a.dialing
	done := func(do func()) func() {
		return func() {
			if a.dialing == dial {
				a.l.later(0, func() {
					if a.dialing == dial {
						a.dialing++
						do()
					}
				})
			}
		}
	}
	fail := func(why string) func() {
		return done(func() {
			if a.isLeaving {
				a.recordLeft()
				return
			}
			a.l.queueReport(sched.HostDown{Host: h.name, Err: &hosts.Error{Host: h.name, Class: hosts.Unreachable,
				Err: errors.New(why)}})
		})
	}
	switch {
	case !h.reachable(a.l.m):
		w.after(w.between(500*time.Millisecond, 10*time.Second), fail("timed out"))
	case w.now < h.refusesUntil:
		w.after(w.between(10*time.Millisecond, time.Second), fail("connection refused"))
	default:
		w.after(w.between(10*time.Millisecond, 2*time.Second), func() {
			if !h.reachable(a.l.m) || w.now < h.refusesUntil {
				fail("connection reset")()
				return
			}
			if a.dialing != dial || a.l.dead {
				return
			}
			p := h.startHelper(a)
			done(func() { a.handleConnected(p) })()
		})
	}
}

func (a *agent) handleConnected(p *helper) {
	name := a.spec.Name
	if p.newerDispatcher > 0 {
		if a.isLeaving {
			a.recordLeft()
			return
		}
		a.l.queueReport(sched.HostDown{Host: name, Err: &hosts.FencedError{Host: name, By: p.newerDispatcher}})
		return
	}
	if !p.alive { // it died in the meantime
		a.l.queueReport(sched.HostDown{Host: name,
			Err: &hosts.Error{Host: name, Class: hosts.Broken, Err: errors.New("the helper died")}})
		return
	}
	k := p.link
	a.link, a.greeted, k.open = k, false, true
	if a.isLeaving {
		a.sayGoodbye()
		return
	}
	a.l.queueReport(sched.HostUp{Host: name, Hello: p.hello, Spec: a.spec})
	k.flush()
	a.sendPings(k)
}

// handleEnd handles a link that was ended by the other side.
func (a *agent) handleEnd(k *link, why error) {
	if a.link != k {
		return
	}
	a.hangUp()
	if a.isLeaving {
		a.clean = a.clean || errors.Is(why, errLeft)
		a.recordLeft()
		return
	}
	a.l.queueReport(sched.HostDown{Host: a.spec.Name, Err: why})
}

// hangUp closes the link or cancels the attempt to connect.
func (a *agent) hangUp() {
	if a.dialing%2 == 1 {
		a.dialing++
	}
	if a.link != nil {
		a.link.close(true)
		a.link = nil
	}
}

// link is a connection between a dispatcher and a helper. Messages arrive in order, and from some
// point on possibly not at all. A network cut holds back the messages in transit. They may arrive
// when the cut heals, even if the dispatcher has closed its end in the meantime. (On real hosts, a
// launch that was written into a cut link was carried out after the cut healed.)
type link struct {
	a           *agent
	h           *host
	p           *helper
	open        bool // the dispatcher's end is open
	closed      bool // the dispatcher's end was closed
	arrivesLate bool // messages in transit at the time of closing still arrive
	lost        bool // messages in transit and all later ones are lost
	toHostAt    time.Duration
	toUsAt      time.Duration
	forHost     []func() // messages in transit, in their order; a cut that heals changes only their times
	forUs       []func()
	early       []sched.Event // reports that arrived before the hello was handled
	kept        []keptLaunch
}

// keptLaunch is a launch that arrives once more after the end of its connection. TCP does not do that,
// but a relay that connects again by itself may, if nothing has shown it that the launch has arrived.
type keptLaunch struct {
	boot   int
	m      *hosts.Launch
	placed []sched.LaunchItem // those whose outcomes were not reported over the connection
}

func (k *link) latency() time.Duration {
	w := k.h.w
	if w.oneInWhileFaults(40) {
		return w.between(0, 3*time.Second)
	}
	return w.between(time.Millisecond, 20*time.Millisecond)
}

// toHost sends a message to the helper.
func (k *link) toHost(do func(*helper)) {
	w := k.h.w
	k.toHostAt = max(k.toHostAt, w.now+k.latency())
	k.forHost = append(k.forHost, func() { k.p.deliver(do) })
	w.agenda.add(k.toHostAt, func() { k.deliver(true) })
}

// toUs sends a message to the dispatcher.
func (k *link) toUs(after time.Duration, do func()) {
	w := k.h.w
	k.toUsAt = max(k.toUsAt, w.now+after)
	k.forUs = append(k.forUs, do)
	w.agenda.add(k.toUsAt, func() { k.deliver(false) })
}

// deliver delivers the oldest message in transit, at the time of one of them or when the network heals.
func (k *link) deliver(toHost bool) {
	switch {
	case k.lost || toHost && !k.p.alive || !toHost && k.a.l.dead:
		return
	case toHost && k.closed && !k.arrivesLate, !toHost && k.closed:
		return
	case !k.h.reachable(k.a.l.m):
		if k.h.w.choices.Draw(2) == 1 {
			k.lost = true
			return
		}
		k.h.waiting = append(k.h.waiting, func() { k.deliver(toHost) })
		return
	}
	queue := &k.forUs
	if toHost {
		queue = &k.forHost
	}
	do := (*queue)[0]
	*queue = (*queue)[1:]
	do()
}

// report sends an event to the dispatcher, sometimes twice.
func (k *link) report(ev sched.Event) {
	w := k.h.w
	for n := 0; n == 0 || n < 3 && w.oneInWhileFaults(12); n++ {
		k.toUs(k.latency(), func() {
			k.confirm(ev)
			if !k.open {
				k.early = append(k.early, ev)
				return
			}
			k.a.l.passReport(k.h, ev)
		})
	}
}

// confirm drops what is kept of attempts whose outcomes have arrived.
func (k *link) confirm(ev sched.Event) {
	var found []hosts.ProbedJob
	var ended []hosts.ExitedJob
	switch ev := ev.(type) {
	case sched.AttemptsEnded:
		ended = ev.Msg.Jobs
	case sched.AttemptsProbed:
		found = ev.Msg.Jobs
	case sched.HostListed:
		found = ev.Msg.Jobs
	}
	for i := range k.kept {
		k.kept[i].placed = slices.DeleteFunc(k.kept[i].placed, func(j sched.LaunchItem) bool {
			return slices.ContainsFunc(ended, func(x hosts.ExitedJob) bool { return x.Attempt == j.Attempt }) ||
				slices.ContainsFunc(found, func(p hosts.ProbedJob) bool {
					return p.Attempt == j.Attempt && p.Answer == hosts.HasExited
				})
		})
	}
}

// flush passes on the reports that arrived before the hello was handled.
func (k *link) flush() {
	for _, ev := range k.early {
		k.a.l.passReport(k.h, ev)
	}
	k.early = nil
}

// close closes the dispatcher's end. The helper notices if eof is set and the network lets the
// message through.
func (k *link) close(eof bool) {
	if k.closed {
		return
	}
	w := k.h.w
	k.open, k.closed = false, true
	for _, kept := range k.kept {
		w.after(w.between(0, kept.m.ExpireUptime-k.h.uptime()), func() { k.h.launchAgain(kept) })
	}
	k.arrivesLate = !w.faultsAreOver() && w.choices.Draw(3) == 1
	if eof {
		k.toHostAt = max(k.toHostAt, w.now+k.latency())
		w.agenda.add(k.toHostAt, k.handleEOF)
	}
}

func (k *link) handleEOF() {
	switch {
	case !k.p.alive:
	case !k.h.reachable(k.a.l.m):
		k.h.waiting = append(k.h.waiting, k.handleEOF)
	default:
		k.p.inputEnded()
	}
}

// reportBroken tells the dispatcher that the helper's end is gone.
func (k *link) reportBroken(after time.Duration, why error) {
	k.toUs(after, func() { k.a.handleEnd(k, why) })
}
