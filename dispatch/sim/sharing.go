package sim

import (
	"math/rand/v2"
	"slices"
	"time"

	"dcs-tui/dispatch/sched"
	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// neighbor is the dispatcher of another user, reduced to what its run has on a host. It obeys the
// same rules as helpers and supervisors. It has its own random source, so it does not change worlds
// without neighbors.
type neighbor struct {
	h    *host
	boot int // of the host; what was started in an earlier boot is dead
	rng  *rand.Rand
	want int
	held int
	life int // number of times that it died
}

// lastSlot is how long a user waits before it uses a slot although others hold all.
const lastSlot = 30 * time.Second

// shared reports whether the hosts of this world have other users.
func (w *World) shared() bool { return len(w.specs)%3 == 1 }

// setShare handles the share that the run wants. The first call starts the neighbor.
func (p *helper) setShare(m hosts.Share) {
	h := p.h
	if p.superseded() {
		return
	}
	if h.wants = m; h.other == nil {
		h.other = &neighbor{h: h, boot: h.boot, rng: rand.New(rand.NewPCG(uint64(len(h.w.specs)), uint64(h.idx)))}
		h.other.useHost()
	}
	h.fill()
}

// useHost starts jobs where the rules allow it. Sometimes the neighbor dies with all its jobs.
func (b *neighbor) useHost() {
	h, w := b.h, b.h.w
	if b.boot != h.boot {
		b.boot, b.held = h.boot, 0
		b.life++
	}
	switch n := b.rng.IntN(20); {
	case w.faultsAreOver():
		b.want = 0
	case n == 0:
		w.logf("the neighbor on %s dies", h.name)
		b.life, b.held, b.want = b.life+1, 0, 0
	case n < 6:
		b.want = b.rng.IntN(h.wants.Slots + 2)
	}
	for b.held < hosts.SlotBound(h.wants.Slots, nil, h.claims(0), 1, 0.5) {
		b.held++ // publish first, then count
		if !hosts.SlotsFit(h.wants.Slots, h.claims(0), 1, false) {
			b.held--
			break
		}
		w.checkShared(h, false)
		life := b.life
		w.after(time.Duration(b.rng.Int64N(int64(time.Minute))), func() {
			if b.life == life && b.boot == h.boot {
				b.held--
				h.fill()
			}
		})
	}
	if b.want > 0 || b.held > 0 || !w.faultsAreOver() {
		w.after(time.Second+time.Duration(b.rng.Int64N(int64(4*time.Second))), b.useHost)
	}
}

// claims returns the published claims on the host: that of the run, plus more slots that it is
// about to use, and that of the neighbor.
func (h *host) claims(more int) []hosts.SlotClaim {
	us := hosts.SlotClaim{User: 1, Run: "us", Weight: 1, Held: h.busy() + more}
	if p := h.helper; p != nil && p.alive {
		us.Want = max(h.wants.Want, 1)
	}
	if h.other == nil || h.other.boot != h.boot {
		return []hosts.SlotClaim{us}
	}
	return []hosts.SlotClaim{us, {User: 2, Run: "neighbor", Weight: 1, Want: h.other.want, Held: h.other.held}}
}

// hasSpace reports whether a supervisor that has published n slots may keep them. Otherwise it
// tries again later.
func (h *host) hasSpace(n int) bool {
	if h.wants.Weight == 0 || hosts.SlotsFit(h.wants.Slots, h.claims(n), 0, h.last) {
		return true
	}
	if !h.retries {
		h.retries = true
		h.w.after(time.Second, func() {
			h.retries = false
			h.fill()
		})
	}
	return false
}

// sharing returns what the helper reports about the neighbor.
func (h *host) sharing() *hosts.Sharing {
	claims := h.claims(0)
	if h.wants.Weight == 0 || len(claims) == 1 || claims[1].Want+claims[1].Held == 0 {
		h.last, h.starved = false, 0
		return nil
	}
	bound := hosts.SlotBound(h.wants.Slots, nil, claims, 0, 0.5)
	switch {
	case bound > 0:
		h.last, h.starved = false, 0
	case h.starved == 0:
		h.starved = h.w.now
	case h.w.now-h.starved > lastSlot:
		h.last, bound = true, 1
	}
	return &hosts.Sharing{Slots: bound, Held: claims[1].Held, Users: []hosts.SharedUser{{Name: "neighbor", Slots: claims[1].Held}}}
}

// checkShared checks, after a start on a shared host, that no more slots are held than there are.
// Only a user's last slot may exceed the limit.
func (w *World) checkShared(h *host, ours bool) {
	if h.other == nil || h.wants.Weight == 0 || h.other.boot != h.boot {
		return
	}
	held := h.busy()
	if ours && held == 1 && h.last {
		return
	}
	if slots := h.wants.Slots; held+h.other.held > slots && h.other.held > 0 && (ours || held <= slots) {
		w.fail(SharedSlotsHold, "%s has %d slots for all; the run has %d of them and its neighbor %d", h.name, slots, held, h.other.held)
	}
}

// Owners come back to their hosts, and jobs are suspended in the meantime. The simulation follows
// hosts/helper/remote (suspend.go).

const (
	suspendFor = 10 * time.Second // the suspender renews this lease
	tickEvery  = 10 * time.Second // how often a supervisor checks whether the lease has expired
	// How long process trees may stay suspended after they should continue.
	suspendBound = 30 * time.Second
)

// suspension is the state of all jobs of a host.
type suspension struct {
	owner      time.Duration // the owner wants the host until then
	on         bool          // the process trees are stopped
	since      time.Duration
	total      time.Duration // duration of all completed suspensions
	alive      int           // number of the living suspender; 0: none
	made       int
	receivedAt time.Duration // when the suspender last had a message from the helper
	lease      time.Duration
	late       time.Duration // since when the jobs should continue; 0: they need not
}

func (h *host) currentOwner() (o hosts.Owner) {
	if h.w.now < h.jobs.owner {
		o = hosts.Owner{Who: "alice uses the screen", Suspend: true}
	}
	return o
}

func (h *host) suspended() time.Duration {
	if s := &h.jobs; s.on {
		return s.total + h.w.now - s.since
	}
	return h.jobs.total
}

// watchOwner is the helper's check for the owner.
func (p *helper) watchOwner() {
	h, s := p.h, &p.h.jobs
	switch wanted := h.currentOwner().Suspend && len(p.running) > 0; {
	case wanted && s.alive == 0:
		s.made++
		s.alive, s.receivedAt = s.made, h.w.now
		if !s.on {
			s.on, s.since = true, h.w.now
			h.w.logf("jobs of %s are suspended", h.name)
			h.tick(s.since)
		}
		h.suspender(s.alive)
	case wanted:
		s.receivedAt = h.w.now
	default:
		h.resume()
	}
}

// suspender renews the lease of the suspension once, or resumes the jobs.
func (h *host) suspender(n int) {
	s := &h.jobs
	if s.alive != n {
		return
	}
	if p := h.helper; p == nil || !p.alive || h.w.now-s.receivedAt > suspendFor {
		h.resume()
		return
	}
	s.lease = h.w.now + suspendFor
	h.w.after(sched.HeartbeatInterval, func() { h.suspender(n) })
}

// tick is the periodic check of the supervisor of a suspended job.
func (h *host) tick(since time.Duration) {
	h.w.after(tickEvery, func() {
		s := &h.jobs
		switch {
		case !s.on || s.since != since:
			return
		case h.w.now > s.lease:
			h.resume()
		default:
			h.tick(since)
		}
	})
}

// resume continues all jobs.
func (h *host) resume() {
	s := &h.jobs
	if s.on {
		s.total, s.on = h.suspended(), false
		h.w.logf("jobs of %s go on", h.name)
	}
	s.alive = 0
}

// ranFor calls do after d, not counting the time during which jobs are suspended.
func (h *host) ranFor(d time.Duration, do func()) {
	credit := h.suspended()
	h.w.after(d, func() {
		if more := h.suspended() - credit; more > 0 || h.jobs.on {
			h.ranFor(max(more, time.Second), do)
			return
		}
		do()
	})
}

// checkOwners looks for suspended jobs that nobody continues.
func (w *World) checkOwners() {
	for _, h := range w.hosts {
		s, p := &h.jobs, h.helper
		if !s.on || h.currentOwner().Suspend && p != nil && p.alive && w.now >= p.thaw {
			s.late = 0
			continue
		}
		if s.late == 0 {
			s.late = max(1, w.now)
		}
		for _, r := range h.runs {
			if r.job && w.now-s.late > suspendBound {
				w.fail(NothingSuspended, "%s on %s is suspended since %v, and should run since %v", r.s.id, h.name, s.since, s.late)
			}
		}
	}
}

func killSuspender(w *World) bool {
	s := &w.anyHost().jobs
	killed := s.alive > 0
	s.alive = 0
	return killed
}

// The devices of the simulated hosts. A job holds its devices until it has ended, even if its
// supervisor is dead. Other users hold some devices from time to time.

// given lists the devices that a dispatcher gave to an attempt.
type given struct {
	gpus  []int
	share int // number of halves of each device
}

func shareOf(s *jobs.Spec) int {
	if s.GPUs == jobs.HalfGPU {
		return 1
	}
	return 2
}

// checkGPUs checks the devices that a dispatcher gives to an attempt. Each half belongs to at most
// one attempt whose end the dispatcher does not know.
func (w *World) checkGPUs(l *life, id jobs.AttemptID) {
	mine, entry := l.handed[id], w.ledger.entry(id)
	if w.damaged || entry == nil {
		return
	}
	for _, n := range mine.gpus {
		held := 0
		for other, g := range l.handed {
			if e := w.ledger.entry(other); slices.Contains(g.gpus, n) && e != nil && e.open && e.machine == entry.machine {
				held += g.share
			}
		}
		if held > 2 {
			w.fail(DevicesHold, "%s gets device %d of %s, of which %d halves are given", id, n, entry.machine, held)
		}
	}
}

// isLocking reports whether a run has locked a device.
func (r *run) isLocking(device int) bool {
	return r.locked && r.boot == r.h.boot && (r.sup || r.job) && slices.Contains(r.s.gpus, device)
}

// lockedHalves returns how many halves of a device are locked by other users and by runs other than
// but.
func (h *host) lockedHalves(device int, but *run) (halves int) {
	for _, r := range h.runs {
		if r != but && r.isLocking(device) {
			halves += shareOf(r.s.spec)
		}
	}
	if halves == 0 && !h.w.faultsAreOver() {
		halves = []int{0, 0, 1, 0, 2}[(int(h.w.now/(40*time.Second))+h.idx)%5]
	}
	return halves
}

// lockGPUs locks the devices of a run, or returns the devices that others hold.
func (h *host) lockGPUs(r *run) (taken []int) {
	for _, n := range r.s.gpus {
		if h.lockedHalves(n, r)+shareOf(r.s.spec) > 2 {
			taken = append(taken, n)
		}
	}
	r.locked = len(taken) == 0
	return taken
}

// lockedDevices returns the devices that are in use, and those of which one half is free.
func (h *host) lockedDevices() (whole, half []int) {
	for n := range h.gpus {
		switch h.lockedHalves(n, nil) {
		case 0:
		case 1:
			half = append(half, n)
		default:
			whole = append(whole, n)
		}
	}
	return whole, half
}

// checkHeld checks that a job that starts holds its devices and nobody else does.
func (w *World) checkHeld(r *run) {
	for _, n := range r.s.gpus {
		halves := 0
		for _, other := range r.h.runs {
			if other.job && other.boot == r.h.boot && slices.Contains(other.s.gpus, n) {
				halves += shareOf(other.s.spec)
			}
		}
		if halves > 2 {
			w.fail(DevicesHold, "%s starts on device %d of %s, of which %d halves are in use", r.s.id, n, r.h.name, halves)
		}
	}
}

// Limits over all hosts: tokens and slots of queues. Also the slots that hosts keep for a queue.

// limitedOptions are options of jobs that use something limited. Any of them can run in every
// world.
var limitedOptions = []*jobs.Options{
	{Tokens: []jobs.Token{{Name: "license", Count: 1}}}, {Tokens: []jobs.Token{{Name: "license", Count: 2}}},
	{Tokens: []jobs.Token{{Name: "license", Count: 1}, {Name: "seat", Count: 2}}, Slots: 2}, {Tokens: []jobs.Token{{Name: "seat", Count: 1}}, Queue: "second"},
	{Queue: "second", QueueSlots: 3}, {Queue: "second", QueueSlots: 2}, {Queue: "second", Slots: 2},
}

// drawTokens chooses the number of tokens.
func (w *World) drawTokens() []jobs.Token {
	return []jobs.Token{{Name: "license", Count: 2 + w.choices.Draw(2)}, {Name: "seat", Count: 2 + w.choices.Draw(3)}}
}

// drawKept chooses the slots that a host keeps for the queue named second.
func (w *World) drawKept(slots int) []hosts.Kept {
	k := hosts.Kept{Queue: "second"}
	if slots > 1 && w.choices.Draw(3) > 0 {
		k.Slots = 1 + w.choices.Draw(slots-1)
	}
	return []hosts.Kept{k}
}

// changeTokens changes the number of tokens in the inventory file.
func changeTokens(w *World) bool {
	l := w.owner()
	if l == nil {
		return false
	}
	list := w.drawTokens()
	w.cfg.Tokens = list
	l.enqueue(func() { l.step(sched.SetTokens{Tokens: list}) })
	return true
}

// checkLimits checks that a launch exceeds no limit. It counts the open attempts of the table.
func (w *World) checkLimits(l *life, r *jobs.Record) {
	t := l.core.Table()
	is := t.Job(r.Job)
	spec, tokens, ofQueue, most := is.Spec, map[string]int{}, 0, 0
	onHost, byQueue := 0, map[string]int{}
	for i := range t.Jobs {
		j := &t.Jobs[i]
		if j.Spec.Queue == spec.Queue && t.Specs[i].QueueSlots > 0 {
			most = t.Specs[i].QueueSlots // an edit does not change the limit
		}
		for _, a := range j.Attempts {
			if !a.State.Open() {
				continue
			}
			for _, k := range j.Spec.Tokens {
				tokens[k.Name] += k.Count
			}
			if j.Spec.Queue == spec.Queue {
				ofQueue += j.Spec.SlotCount()
			}
			if a.Host == r.Host && a.Machine == is.Attempts[r.N-1].Machine {
				onHost += j.Spec.SlotCount()
				byQueue[j.Spec.Queue] += j.Spec.SlotCount()
			}
		}
	}
	for _, k := range spec.Tokens {
		i := slices.IndexFunc(l.tokens, func(t jobs.Token) bool { return t.Name == k.Name })
		if tokens[k.Name] > l.tokens[i].Count {
			w.fail(LimitsHold, "%s is launched, and of %d tokens %s %d are held then", r.Attempt(), l.tokens[i].Count, k.Name, tokens[k.Name])
		}
	}
	if most > 0 && ofQueue > most {
		w.fail(LimitsHold, "%s is launched, and its queue has %d slots of %d then", r.Attempt(), ofQueue, most)
	}
	s := l.specs[r.Host]
	if !s.IsOpenTo(spec.Queue) {
		w.fail(KeptHolds, "%s of queue %q is launched on %s, which is kept for queue %s", r.Attempt(), spec.Queue, r.Host, s.KeptText())
	}
	for _, k := range s.Queues {
		if unused := k.Slots - byQueue[k.Queue]; k.Queue != spec.Queue && unused > 0 && onHost+unused > w.maxSlots(r.Host) {
			w.fail(KeptHolds, "%s of queue %q is launched on %s, which then has %d slots busy of %d and keeps %d more for %s",
				r.Attempt(), spec.Queue, r.Host, onHost, w.maxSlots(r.Host), unused, k.Queue)
		}
	}
}
