package sim

import (
	"math/rand/v2"
	"slices"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// neighbor is the dispatcher of another user, or another one of ours, with an inventory of its own,
// reduced to what its run has on a host. It obeys the same rules as helpers and supervisors. It has
// its own random source, so it does not change worlds without neighbors.
type neighbor struct {
	h         *host
	boot      int // of the host; what was started in an earlier boot is dead
	rng       *rand.Rand
	user      int
	slots     int // of the host, by its inventory
	want      int
	held      int
	numDeaths int // number of times that it died
	starved   lastSlot
	// Since when it wants a slot of a host that has no more jobs than slots, and has none; 0: does not
	// apply.
	hungrySince time.Duration
}

// lastSlot determines whether a run may use a slot although others hold all.
type lastSlot struct {
	since time.Duration // since when it has no slot; 0: it has
	isDue bool
}

// bound returns how many slots the run may use if its part is n.
func (l *lastSlot) bound(n int, now time.Duration) int {
	switch {
	case n > 0:
		*l = lastSlot{}
	case l.since == 0:
		l.since = now
	case now-l.since > hosts.LastSlotDelay:
		l.isDue, n = true, 1
	}
	return n
}

// beyond returns how many slots the run may hold although others hold all.
func (l *lastSlot) beyond() int {
	if l.isDue {
		return 1
	}
	return 0
}

// slotsFor returns how many slots the host has for the claim with index me, which is ours or that of
// the neighbor.
func (h *host) slotsFor(claims []hosts.SlotClaim, me int) int {
	own := h.wantedShare
	if me == 1 {
		own = hosts.Share{Rule: h.neighbor.slots, Slots: h.neighbor.slots}
	}
	return hosts.SharedSlots(own, claims)
}

// hasOtherUsers reports whether the hosts of this world have other users.
func (w *World) hasOtherUsers() bool { return len(w.specs)%3 == 1 }

// setShare handles the share that the run wants. The first call starts the neighbor.
func (p *helper) setShare(m hosts.Share) {
	h := p.h
	if p.isSuperseded() {
		return
	}
	h.wantedShare = m
	if h.neighbor == nil {
		b := &neighbor{h: h, boot: h.boot, rng: rand.New(rand.NewPCG(uint64(len(h.w.specs)), uint64(h.idx)))}
		b.user, b.slots = 1+b.rng.IntN(2), max(1, m.Rule-1+b.rng.IntN(4))
		h.neighbor = b
		h.neighbor.useHost()
	}
	h.fill()
}

// useHost starts jobs where the rules allow it. Sometimes the neighbor dies with all its jobs.
func (b *neighbor) useHost() {
	h, w := b.h, b.h.w
	if b.boot != h.boot {
		b.boot, b.held = h.boot, 0
		b.numDeaths++
	}
	switch n := b.rng.IntN(20); {
	case w.faultsAreOver():
		b.want = 0
	case n == 0:
		w.logf("the neighbor on %s dies", h.name)
		b.numDeaths, b.held, b.want = b.numDeaths+1, 0, 0
	case n < 6:
		b.want = b.rng.IntN(b.slots + 1)
	}
	bound := func() int {
		claims := h.claims(0)
		return b.starved.bound(hosts.SlotBound(h.slotsFor(claims, 1), nil, claims, 1, 0.5), w.now)
	}
	for b.held < min(b.want, bound()) {
		b.held++ // publish first, then count
		claims := h.claims(0)
		if !hosts.SlotsFit(h.slotsFor(claims, 1), claims, 1, b.starved.beyond()) {
			b.held--
			break
		}
		w.checkShared(h, false)
		deaths := b.numDeaths
		w.after(time.Duration(b.rng.Int64N(int64(time.Minute))), func() {
			if b.numDeaths == deaths && b.boot == h.boot {
				b.held--
				h.fill()
			}
		})
	}
	b.checkHunger()
	if b.want > 0 || b.held > 0 || !w.faultsAreOver() {
		w.after(time.Second+time.Duration(b.rng.Int64N(int64(4*time.Second))), b.useHost)
	}
}

// checkHunger checks that the neighbor gets a slot in time.
func (b *neighbor) checkHunger() {
	claims := b.h.claims(0)
	switch now := b.h.w.now; {
	case b.want == 0 || b.held > 0 || claims[0].Held > b.h.slotsFor(claims, 1):
		b.hungrySince = 0
	case b.hungrySince == 0:
		b.hungrySince = now
	case now-b.hungrySince > hosts.LastSlotDelay+10*time.Second: // useHost runs every five seconds
		b.h.w.fail(NobodyStarves, "the neighbor on %s has no slot since %v", b.h.name, b.hungrySince)
	}
}

// claims returns the published claims on the host: that of the run, plus more slots that it is
// about to use, and that of the neighbor.
func (h *host) claims(more int) []hosts.SlotClaim {
	us := hosts.SlotClaim{User: 1, Run: "us", Weight: 1, Slots: h.wantedShare.Rule, Held: h.numBusy() + more}
	if p := h.helper; p != nil && p.alive {
		us.Want = max(h.wantedShare.Want, 1)
	}
	if h.neighbor == nil || h.neighbor.boot != h.boot {
		return []hosts.SlotClaim{us}
	}
	return []hosts.SlotClaim{us, {User: h.neighbor.user, Run: "neighbor", Weight: 1, Slots: h.neighbor.slots,
		Want: h.neighbor.want, Held: h.neighbor.held}}
}

// hasSpace reports whether a supervisor that has published n slots may keep them. Otherwise it
// tries again later.
func (h *host) hasSpace(n int) bool {
	claims := h.claims(n)
	if h.wantedShare.Slots == 0 || hosts.SlotsFit(h.slotsFor(claims, 0), claims, 0, h.starved.beyond()) {
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
	if h.wantedShare.Slots == 0 || len(claims) == 1 || claims[1].Want+claims[1].Held == 0 {
		h.starved = lastSlot{}
		return nil
	}
	bound := h.starved.bound(hosts.SlotBound(h.slotsFor(claims, 0), nil, claims, 0, 0.5), h.w.now)
	return &hosts.Sharing{Slots: bound, Held: claims[1].Held,
		Users: []hosts.SharedUser{{Name: "neighbor", Slots: claims[1].Held}}}
}

// checkShared checks, after a start on a shared host, that no more slots are held than there are.
// Only the last slot of a run may exceed the limit.
func (w *World) checkShared(h *host, ours bool) {
	if h.neighbor == nil || h.wantedShare.Slots == 0 || h.neighbor.boot != h.boot {
		return
	}
	b, held, claims := h.neighbor, h.numBusy(), h.claims(0)
	slots := h.slotsFor(claims, 0)
	isLast := held == 1 && h.starved.isDue
	if !ours {
		slots = h.slotsFor(claims, 1)
		isLast = b.held == 1 && b.starved.isDue
	}
	if !isLast && held+b.held > slots && b.held > 0 && (ours || held <= slots) {
		w.fail(SharedSlotsHold, "%s has %d slots for all; the run has %d of them and its neighbor %d",
			h.name, slots, held, b.held)
	}
}

// Owners come back to their hosts, and jobs are suspended in the meantime. Who continues them when
// helper, suspender, or supervisors die is tested with real processes (hosts/helper/remote).

// suspendLease is for how long jobs stay suspended if no helper renews that.
const suspendLease = 20 * time.Second

// suspension is the state of all jobs of a host.
type suspension struct {
	ownerUntil  time.Duration // the owner wants the host until then
	isSuspended bool          // the process trees are stopped
	since       time.Duration
	total       time.Duration // duration of all completed suspensions
	numRenewals int
}

func (h *host) currentOwner() (o hosts.Owner) {
	if h.w.now < h.jobs.ownerUntil {
		o = hosts.Owner{Who: "alice uses the screen", Suspend: true}
	}
	return o
}

func (h *host) suspended() time.Duration {
	if s := &h.jobs; s.isSuspended {
		return s.total + h.w.now - s.since
	}
	return h.jobs.total
}

// watchOwner is the helper's check for the owner.
func (p *helper) watchOwner() {
	h, s := p.h, &p.h.jobs
	if !h.currentOwner().Suspend || len(p.running) == 0 {
		h.resume()
		return
	}
	if !s.isSuspended {
		s.isSuspended, s.since = true, h.w.now
		h.w.logf("jobs of %s are suspended", h.name)
	}
	s.numRenewals++
	n := s.numRenewals
	h.w.after(suspendLease, func() {
		if s.numRenewals == n {
			h.resume()
		}
	})
}

// resume continues all jobs.
func (h *host) resume() {
	if s := &h.jobs; s.isSuspended {
		s.total, s.isSuspended = h.suspended(), false
		h.w.logf("jobs of %s go on", h.name)
	}
}

// ranFor calls do after d, not counting the time during which jobs are suspended.
func (h *host) ranFor(d time.Duration, do func()) {
	credit := h.suspended()
	h.w.after(d, func() {
		if more := h.suspended() - credit; more > 0 || h.jobs.isSuspended {
			h.ranFor(max(more, time.Second), do)
			return
		}
		do()
	})
}

// The devices of the simulated hosts. A job holds its devices until it has ended, even if its
// supervisor is dead. Other users hold some devices from time to time.

// givenGPUs lists the devices that a dispatcher gave to an attempt.
type givenGPUs struct {
	gpus  []int
	share jobs.GPUs // part of each device
}

// checkGPUs checks the devices that a dispatcher gives to an attempt. The attempts whose end the
// dispatcher does not know have at most the whole of each.
func (w *World) checkGPUs(l *dispatcher, id jobs.AttemptID) {
	mine, entry := l.givenGPUs[id], w.ledger.entry(id)
	if w.damaged || entry == nil {
		return
	}
	for _, n := range mine.gpus {
		held := jobs.GPUs(0)
		for other, g := range l.givenGPUs {
			e := w.ledger.entry(other)
			if slices.Contains(g.gpus, n) && e != nil && e.open && e.machine == entry.machine {
				held += g.share
			}
		}
		if held > jobs.WholeGPU {
			w.fail(DevicesHold, "%s gets device %d of %s, of which %s are given", id, n, entry.machine, held)
		}
	}
}

// isLocking reports whether a run has locked a device.
func (r *heldAttempt) isLocking(device int) bool {
	return r.locked && r.boot == r.h.boot && (r.supervisorLives || r.processLives) &&
		slices.Contains(r.spooled.gpus, device)
}

// lockedShare returns the part of a device that is locked by other users and by runs other than but.
func (h *host) lockedShare(device int, but *heldAttempt) (locked jobs.GPUs) {
	for _, r := range h.heldAttempts {
		if r != but && r.isLocking(device) {
			locked += r.spooled.spec.GPUs.Share()
		}
	}
	if locked == 0 && !h.w.faultsAreOver() {
		locked = []jobs.GPUs{0, 0, jobs.WholeGPU / 2, 0, jobs.WholeGPU}[(int(h.w.now/(40*time.Second))+h.idx)%5]
	}
	return locked
}

// lockGPUs locks the devices of a run, or returns the devices that others hold.
func (h *host) lockGPUs(r *heldAttempt) (taken []int) {
	for _, n := range r.spooled.gpus {
		if h.lockedShare(n, r)+r.spooled.spec.GPUs.Share() > jobs.WholeGPU {
			taken = append(taken, n)
		}
	}
	r.locked = len(taken) == 0
	return taken
}

// lockedDevices returns the devices that are in use, and those of which a part is free.
func (h *host) lockedDevices() (whole []int, parts []hosts.GPUPart) {
	for n := range h.gpus {
		switch used := h.lockedShare(n, nil); {
		case used >= jobs.WholeGPU:
			whole = append(whole, n)
		case used > 0:
			parts = append(parts, hosts.GPUPart{GPU: n, Used: used})
		}
	}
	return whole, parts
}

// Limits over all hosts: tokens and slots of queues. Also the slots that hosts keep for a queue.

// limitedOptions are options of jobs that use something limited. Any of them can run in every
// world.
var limitedOptions = []*jobs.Options{
	{Tokens: []jobs.Token{{Name: "license", Count: 1}}}, {Tokens: []jobs.Token{{Name: "license", Count: 2}}},
	{Tokens: []jobs.Token{{Name: "license", Count: 1}, {Name: "seat", Count: 2}}, Slots: 2},
	{Tokens: []jobs.Token{{Name: "seat", Count: 1}}, Queue: "second"},
	{Queue: "second", QueueSlots: 3}, {Queue: "second", QueueSlots: 2}, {Queue: "second", Slots: 2},
}

// drawTokens chooses the number of tokens.
func (w *World) drawTokens() []jobs.Token {
	return []jobs.Token{{Name: "license", Count: 2 + w.choices.Draw(2)}, {Name: "seat", Count: 2 + w.choices.Draw(3)}}
}

// drawKeptPart chooses the slots that a host keeps for the queue named second.
func (w *World) drawKeptPart(slots int) []hosts.KeptPart {
	k := hosts.KeptPart{Queue: "second"}
	if slots > 1 && w.choices.Draw(3) > 0 {
		k.Slots = 1 + w.choices.Draw(slots-1)
	}
	return []hosts.KeptPart{k}
}

// changeTokens changes the number of tokens in the inventory file.
func changeTokens(w *World) bool {
	if w.owner() == nil {
		return false
	}
	w.tokens = w.drawTokens()
	w.sendInventory()
	return true
}

// checkLimits checks that a launch exceeds no limit. It counts the open attempts of the table.
func (w *World) checkLimits(l *dispatcher, r *jobs.Record) {
	t := l.core.Table()
	is := t.Job(r.Job)
	spec, tokens, ofQueue, most := is.Spec, map[string]int{}, 0, 0
	onHost, byQueue := 0, map[string]int{}
	for j := range t.RowsWithOptions() {
		if j.Spec.Queue == spec.Queue && j.Spec.QueueSlots > 0 {
			most = j.Spec.QueueSlots // an edit does not change the limit
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
		i := slices.IndexFunc(l.inventory.Tokens, func(t jobs.Token) bool { return t.Name == k.Name })
		if tokens[k.Name] > l.inventory.Tokens[i].Count {
			w.fail(LimitsHold, "%s is launched, and of %d tokens %s %d are held then", r.Attempt(),
				l.inventory.Tokens[i].Count, k.Name, tokens[k.Name])
		}
	}
	if most > 0 && ofQueue > most {
		w.fail(LimitsHold, "%s is launched, and its queue has %d slots of %d then", r.Attempt(), ofQueue, most)
	}
	s := l.specs[r.Host]
	if !s.IsOpenTo(spec.Queue) {
		w.fail(KeptHolds, "%s of queue %q is launched on %s, which is kept for queue %s",
			r.Attempt(), spec.Queue, r.Host, s.KeptText())
	}
	for _, k := range s.Queues {
		unused := k.Slots - byQueue[k.Queue]
		if k.Queue != spec.Queue && unused > 0 && onHost+unused > w.maxSlots(r.Host) {
			w.fail(KeptHolds, "%s of queue %q is launched on %s, which then has %d slots busy of %d "+
				"and keeps %d more for %s",
				r.Attempt(), spec.Queue, r.Host, onHost, w.maxSlots(r.Host), unused, k.Queue)
		}
	}
}
