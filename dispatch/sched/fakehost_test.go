package sched

import (
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// fakeHost simulates a host with its helper and its supervisors.
type fakeHost struct {
	w         *world
	spec      *hosts.Host
	slots     int
	up        bool // reachable
	linked    bool
	gen       int // generation of the link; messages of older links are lost
	toHost    time.Duration
	toUs      time.Duration // when the last message arrives; messages stay in order
	limit     int
	limitSent bool
	mute      time.Duration // the host sends no heartbeats until then
	confirmed time.Duration // uptime of the newest heartbeat that the core has processed
	lease     time.Duration // when a buffered job may no longer start
	attempts  map[jobs.AttemptID]*fakeAttempt
	spool     []*fakeAttempt
	busy      int
	zone      int // seconds east of UTC
	load      float64
	foreign   time.Duration // another run has device 0 until then
}

type fakeState int

const (
	fakeBuffered fakeState = iota
	fakeRunning
	fakeExited
	fakeTombstone
	fakeDead
)

type fakeAttempt struct {
	id      jobs.AttemptID
	spec    *jobs.Spec
	state   fakeState
	started jobs.Stamp
	outcome jobs.Outcome
}

// send delivers a message to the helper, in order, unless the link breaks first.
func (h *fakeHost) send(do func()) {
	gen := h.gen
	h.toHost = max(h.toHost, h.w.now+h.w.between(time.Millisecond, 40*time.Millisecond))
	h.w.after(h.toHost-h.w.now, func() {
		if h.gen == gen && h.up {
			do()
		}
	})
}

// report delivers an event to the dispatcher, sometimes more than once.
func (h *fakeHost) report(ev Event) {
	gen, life := h.gen, h.w.life
	if !h.linked {
		return
	}
	for n := 0; n == 0 || n < 3 && h.w.chance(10); n++ {
		h.toUs = max(h.toUs, h.w.now+h.w.between(time.Millisecond, 40*time.Millisecond))
		h.w.after(h.toUs-h.w.now, func() {
			if h.gen == gen && h.w.life == life && h.up {
				h.w.step(ev)
			}
		})
	}
}

func (h *fakeHost) cutLink() {
	h.gen++
	h.linked, h.limitSent = false, false
}

// connect carries out a Connect command.
func (h *fakeHost) connect() {
	life := h.w.life
	h.w.after(h.w.between(10*time.Millisecond, 2*time.Second), func() {
		if life != h.w.life {
			return
		}
		if !h.up || h.w.chance(15) {
			h.w.step(HostDown{h.spec.Name, errRefused})
			return
		}
		h.cutLink()
		h.linked = true
		h.w.step(HostUp{Host: h.spec.Name, Hello: &hosts.Hello{Cores: h.slots + 1, Slots: h.slots, MemBytes: 8 << 30, GPUs: max(0, h.spec.GPUs), Uptime: h.w.now, ZoneSeconds: h.zone, LockedGPUs: h.locked()}})
		h.early(h.gen)
		h.beats(h.gen)
	})
}

// confirm records the newest heartbeat as the engine does. Leases count from it.
func (w *world) confirm(name string, uptime time.Duration) {
	if w.core.Linked(name) {
		w.hosts[name].confirmed = uptime
	}
}

// extend sends a ping, as the agent does. The lease counts from the last heartbeat that the core
// processed while the host was linked.
func (h *fakeHost) extend() {
	lease := h.confirmed + h.spec.LostAfterOrDefault()
	h.send(func() { h.lease = lease; h.fill() })
}

func (h *fakeHost) beats(gen int) {
	h.w.after(HeartbeatInterval, func() {
		if h.gen != gen || !h.up || h.w.finished != nil {
			return
		}
		if h.limitSent {
			h.extend()
		}
		if h.w.now < h.mute {
			h.beats(gen)
			return
		}
		others := 0.0
		if h.w.chance(4) {
			others = 2 * h.w.rng.Float64()
		}
		h.report(HostBeat{h.spec.Name, &hosts.Beat{Load: h.draw(), Busy: float64(h.busy) + others, Ours: float64(h.busy), MemFree: 4 << 30, DiskFree: -1,
			Running: h.count(fakeRunning), Buffered: len(h.spool), Uptime: h.w.now, LockedGPUs: h.locked()}})
		h.beats(gen)
	})
}

func (h *fakeHost) count(s fakeState) int {
	n := 0
	for _, a := range h.attempts {
		if a.state == s {
			n++
		}
	}
	return n
}

func (h *fakeHost) launch(ps []LaunchItem) {
	var refused []jobs.AttemptID
	for _, p := range ps {
		if h.attempts[p.Attempt] != nil {
			continue
		}
		if h.w.faults > 0 && h.w.chance(40) {
			h.attempts[p.Attempt] = &fakeAttempt{id: p.Attempt, state: fakeTombstone}
			refused = append(refused, p.Attempt)
			continue
		}
		if len(p.GPUs) > 0 && h.gpuTaken() {
			h.attempts[p.Attempt] = &fakeAttempt{id: p.Attempt, state: fakeTombstone}
			h.report(HostRefused{h.spec.Name, &hosts.Refused{Attempts: []jobs.AttemptID{p.Attempt}, Why: "GPU 0 is in use", GPUs: h.locked()}})
			continue
		}
		a := &fakeAttempt{id: p.Attempt, spec: p.Spec}
		h.attempts[p.Attempt] = a
		h.spool = append(h.spool, a)
	}
	if refused != nil {
		h.report(HostRefused{h.spec.Name, &hosts.Refused{Attempts: refused, Why: "too late"}})
	}
	h.fill()
}

// gpuTaken reports whether another run has the device. Another run may take it during the call.
func (h *fakeHost) gpuTaken() bool {
	if h.w.now >= h.foreign && h.w.gpus.IntN(4) == 0 {
		h.foreign = h.w.now + time.Duration(h.w.gpus.Int64N(int64(2*time.Minute)))
	}
	return h.w.now < h.foreign
}

// locked returns the devices that another run holds.
func (h *fakeHost) locked() []int {
	if h.w.now < h.foreign {
		return []int{0}
	}
	return nil
}

// fill starts the buffered jobs that the limit and the lease allow.
func (h *fakeHost) fill() {
	for len(h.spool) > 0 && h.busy+h.spool[0].spec.SlotCount() <= h.limit && h.w.now < h.lease {
		a := h.spool[0]
		h.spool = h.spool[1:]
		h.start(a)
	}
}

func (h *fakeHost) start(a *fakeAttempt) {
	w := h.w
	for _, o := range w.order {
		for _, b := range o.attempts {
			if b.id.Job == a.id.Job && b.state == fakeRunning {
				if !w.givenUp[b.id] || a.id.N < b.id.N {
					w.fatalf("%s starts while %s runs on %s and is not given up", a.id, b.id, o.spec.Name)
				}
			}
		}
	}
	if at := timeOfDay(w.wall(), h.zone); quietLeft(h.spec.Quiet, at) > 0 && quietLeft(h.spec.Quiet, (at-quietLeeway+day)%day) > 0 && w.now > quietLeeway {
		w.fatalf("%s starts in the quiet hours of %s", a.id, h.spec.Name)
	}
	a.state, a.started = fakeRunning, w.wall()
	h.busy += a.spec.SlotCount()
	if h.busy > h.slots {
		w.fatalf("%s runs %d slots of %d", h.spec.Name, h.busy, h.slots)
	}
	h.report(AttemptsStarted{h.spec.Name, &hosts.Started{Jobs: []hosts.StartedJob{{Attempt: a.id, Slot: 1, At: a.started}}}})
	d := w.between(0, 2*time.Second)
	if w.chance(10) {
		d = w.between(0, 5*time.Minute)
	}
	o := jobs.Outcome{Started: a.started}
	if w.perFail > 0 && w.chance(w.perFail) {
		o.Exit = 1
	}
	if t := a.spec.Timeout; t > 0 && d > t {
		d, o.TimedOut, o.Signal = t, true, "SIGTERM"
	}
	w.after(d, func() {
		if a.state == fakeRunning {
			h.exit(a, o)
		}
	})
}

func (h *fakeHost) exit(a *fakeAttempt, o jobs.Outcome) {
	o.Ended = h.w.wall()
	a.state, a.outcome = fakeExited, o
	h.busy -= a.spec.SlotCount()
	h.reportExit(a)
	h.fill()
}

func (h *fakeHost) reportExit(a *fakeAttempt) {
	h.report(AttemptsEnded{h.spec.Name, &hosts.Exits{Jobs: []hosts.ExitedJob{{Attempt: a.id, Slot: 1, Outcome: a.outcome}}}})
}

func (h *fakeHost) unspool(a *fakeAttempt) {
	for i, s := range h.spool {
		if s == a {
			h.spool = append(h.spool[:i:i], h.spool[i+1:]...)
			return
		}
	}
}

// withdraw withdraws attempts that have not started and repeats the reports about the others.
func (h *fakeHost) withdraw(ids []jobs.AttemptID) {
	var gone []jobs.AttemptID
	for _, id := range ids {
		a := h.attempts[id]
		switch {
		case a == nil:
			h.attempts[id] = &fakeAttempt{id: id, state: fakeTombstone}
			gone = append(gone, id)
		case a.state == fakeBuffered:
			h.unspool(a)
			a.state = fakeTombstone
			gone = append(gone, id)
		case a.state == fakeTombstone:
			gone = append(gone, id)
		case a.state == fakeRunning:
			h.report(AttemptsStarted{h.spec.Name, &hosts.Started{Jobs: []hosts.StartedJob{{Attempt: id, Slot: 1, At: a.started}}}})
		case a.state == fakeExited:
			h.reportExit(a)
		}
	}
	if gone != nil {
		h.report(AttemptsWithdrawn{h.spec.Name, &hosts.Withdrawn{Attempts: gone, Why: "withdrawn"}})
	}
}

func (h *fakeHost) kill(ids []jobs.AttemptID) {
	var rest []jobs.AttemptID
	for _, id := range ids {
		if a := h.attempts[id]; a != nil && a.state == fakeRunning {
			h.w.after(h.w.between(0, 5*time.Second), func() {
				if a.state == fakeRunning {
					h.exit(a, jobs.Outcome{Started: a.started, Signal: "SIGTERM", Stopped: true})
				}
			})
			continue
		}
		rest = append(rest, id)
	}
	h.withdraw(rest)
}

func (h *fakeHost) probe(ids []jobs.AttemptID) {
	var ps []hosts.ProbedJob
	for _, id := range ids {
		p := hosts.ProbedJob{Attempt: id}
		a := h.attempts[id]
		switch {
		case h.w.chance(10): // unknown
		case a == nil:
			h.attempts[id] = &fakeAttempt{id: id, state: fakeTombstone}
			p.Answer = hosts.NeverStarted
		case a.state == fakeTombstone:
			p.Answer = hosts.NeverStarted
		case a.state == fakeBuffered:
			p.Answer = hosts.Buffered
		case a.state == fakeRunning:
			p.Answer, p.Started = hosts.IsRunning, a.started
		case a.state == fakeDead:
			p.Answer = hosts.Dead
		default:
			o := a.outcome
			p.Answer, p.Outcome = hosts.HasExited, &o
		}
		ps = append(ps, p)
	}
	h.report(AttemptsProbed{h.spec.Name, &hosts.Probed{Jobs: ps}})
}
