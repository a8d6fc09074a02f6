package sim

import (
	"fmt"
	"slices"
	"time"

	"dcs-tui/dispatch/sched"
	"dcs-tui/hosts"
	"dcs-tui/jobs"
	"dcs-tui/jobs/rundir/memdisk"
)

// host is a machine that runs jobs, with its spool, its clock, and its processes. Its current
// helper is in helper.go, and its supervisors are in start.go.
type host struct {
	w      *World
	name   string // the name of the host behind which it is
	idx    int
	id     string
	gpus   int
	isDead bool           // it has died for good
	shared bool           // its attempts are in the shared directory
	disk   *memdisk.Mount // where its attempts are
	dir    string

	boot       int
	bootedAt   time.Duration
	clockAhead time.Duration    // how far its wall clock is ahead
	cuts       map[*machine]int // number of network cuts between it and a dispatcher's machine
	waiting    []func()         // deliveries that the cuts hold back
	load       float64          // cores used by others

	// When each fault of the host ends.
	refusesUntil       time.Duration // sshd refuses connections
	silentUntil        time.Duration // its helpers send no heartbeats
	hungUntil          time.Duration // its file systems do not answer
	failsFastUntil     time.Duration // jobs fail at once
	sentinelsFailUntil time.Duration // sentinels cannot be written to the attempts directory
	fullUntil          time.Duration // the spool is full

	// The spool, and the page of memory that helper and supervisors share.
	fence      int // the highest epoch that has opened the spool
	spoolBoot  int
	lease      time.Duration
	limit      int
	generation int

	// Other users of the host (sharing.go).
	wantedShare hosts.Share // what the run wants; Slots 0: it shares none
	neighbor    *neighbor
	starved     lastSlot
	retries     bool

	spool        []spooled
	everSpooled  map[jobs.AttemptID]bool // every attempt that ever was in the spool
	heldAttempts []*heldAttempt          // held by supervisors, dead ones included
	keptFiles    []keptFile              // status files that could not be written yet
	helper       *helper
	heartbeat    time.Duration // when its heartbeat file was last written
	jobs         suspension
}

// spooled is a job that waits in the spool.
type spooled struct {
	id      jobs.AttemptID
	spec    *jobs.Spec
	timeout time.Duration
	gpus    []int
}

// keptFile is the status file of an ended attempt that waits in the spool.
type keptFile struct {
	id     jobs.AttemptID
	status []byte
}

func (h *host) uptime() time.Duration { return h.w.now - h.bootedAt }
func (h *host) bootID() string        { return fmt.Sprintf("boot%d.%d", h.idx, h.boot) }
func (h *host) stamp() jobs.Stamp     { return wallStart + jobs.Stamp(h.w.now+h.clockAhead) }
func (h *host) isAnswering() bool     { return h.w.now >= h.hungUntil }

func (h *host) hello(spec *hosts.Host) *hosts.Hello {
	whole, parts := h.lockedDevices()
	return &hosts.Hello{
		LockedGPUs: whole, PartGPUs: parts,
		Version: hosts.ProtocolVersion, BootID: h.bootID(), Uptime: h.uptime(),
		Cores: spec.Slots.Fixed + 1, Slots: spec.Slots.Fixed,
		Machine: h.id, Owner: h.currentOwner(),
		MemBytes: 8 << 30, GPUs: h.gpus, Shared: h.shared, Dir: h.dir, WallClock: h.stamp(),
	}
}

// reachable reports whether the network connects the host to a machine.
func (h *host) reachable(m *machine) bool { return h.cuts[m] == 0 }

// cut disconnects the host from machines for a time.
func (h *host) cut(d time.Duration, from ...*machine) {
	for _, m := range from {
		h.cuts[m]++
	}
	h.w.after(d, func() {
		for _, m := range from {
			h.cuts[m]--
		}
		held := h.waiting
		h.waiting = nil
		at := h.w.now
		for _, do := range held {
			at += h.w.between(0, 20*time.Millisecond)
			h.w.agenda.add(at, do)
		}
	})
}

// reboot ends every process of the host and gives it another boot id. The spool survives. Writes
// that its disks had not synced may be lost.
func (h *host) reboot(off time.Duration) {
	w := h.w
	w.logf("%s goes down", h.name)
	h.cut(off, w.machines...)
	if p := h.helper; p != nil && p.alive {
		p.alive = false
		p.link.reportBroken(w.between(time.Second, 40*time.Second), broken(h, "connection reset"))
	}
	for _, r := range h.heldAttempts {
		r.supervisorLives = false
		r.die()
	}
	h.resume()
	h.boot++
	h.bootedAt = w.now + off
	if !h.shared {
		w.truth.forget(h)
		h.disk.PowerLoss(func(l memdisk.Loss) memdisk.Fate {
			switch w.choices.Draw(3) {
			case 0:
				return memdisk.Fate{}
			case 1:
				return memdisk.Fate{Keep: w.choices.Draw(l.Len), Zeros: w.choices.Draw(2) == 1}
			}
			return memdisk.Fate{Keep: l.Len}
		})
	}
}

// heldAttempt is an attempt that a supervisor has taken.
type heldAttempt struct {
	h               *host
	spooled         spooled
	slot            int
	boot            int
	lease           time.Duration // the lease when the spec was taken; a later lease does not apply
	claimed         bool
	locked          bool // it has locked its devices
	supervisorLives bool
	processLives    bool
	isStopping      bool // it is being ended on request
	started         jobs.Stamp
	outcome         *jobs.Outcome // of the ended process
}

func (h *host) heldAttempt(id jobs.AttemptID) *heldAttempt {
	for _, r := range h.heldAttempts {
		if r.spooled.id == id {
			return r
		}
	}
	return nil
}

// numBusy returns the number of slots of living supervisors that have a job.
func (h *host) numBusy() int {
	n := 0
	for _, r := range h.heldAttempts {
		if r.supervisorLives {
			n += r.spooled.spec.SlotCount()
		}
	}
	return n
}

func (h *host) dropHeld(r *heldAttempt) {
	h.heldAttempts = slices.DeleteFunc(slices.Clone(h.heldAttempts),
		func(other *heldAttempt) bool { return other == r })
}

// sendReport passes a supervisor's report to the helper if there is one. The report may be lost.
func (h *host) sendReport(do func(*helper)) {
	p := h.helper
	if p == nil || !p.alive || h.w.oneInWhileFaults(30) {
		return
	}
	h.w.after(h.w.between(0, 4*time.Millisecond), func() {
		if h.helper == p && p.alive {
			p.whenContinued(func() { do(p) })
		}
	})
}

// sendEvent sends an event over the helper's link.
func (p *helper) sendEvent(ev sched.Event) { p.link.report(ev) }

// silenceTimeout is how long a helper stays without a message from its dispatcher.
const silenceTimeout = 30 * time.Second

// heartbeats sends a helper's heartbeats and does its housekeeping, at the interval of its host.
func (p *helper) heartbeats(first bool) {
	w, h := p.h.w, p.h
	wait := p.heartbeatInterval
	if !p.hasSent {
		wait = min(wait, sched.HeartbeatInterval)
	}
	if first {
		wait = 150 * time.Millisecond
	}
	w.after(wait, func() {
		if !p.alive {
			return
		}
		p.whenContinued(func() {
			switch {
			case p.isSuperseded():
				p.leave("another helper has taken over on this host")
				return
			case p.newerEpoch(p.epoch) > 0:
				p.leave("a newer dispatcher owns this run")
				return
			case w.now-p.receivedAt > silenceTimeout:
				p.leave("nothing received from the dispatcher")
				return
			}
			if !first {
				p.housekeep()
			}
			p.watchOwner()
			if w.now >= h.silentUntil {
				p.heartbeat(first)
				p.hasSent = !first
			}
			p.heartbeats(false)
		})
	})
}

func (p *helper) heartbeat(early bool) {
	h, w := p.h, p.h.w
	ours := 0
	for _, r := range h.heldAttempts {
		if r.processLives {
			ours += r.spooled.spec.SlotCount()
		}
	}
	if w.oneInWhileFaults(10) {
		h.load = 4 * float64(w.choices.Draw(100)) / 100
	}
	if w.faultsAreOver() {
		h.load = 0
	}
	whole, parts := h.lockedDevices()
	p.sendEvent(sched.HostHeartbeat{Host: h.name, Heartbeat: &hosts.Heartbeat{
		Early: early, Uptime: h.uptime(), Running: len(p.running), Buffered: len(p.waiting),
		Load: [3]float64{h.load}, Busy: float64(ours) + h.load, Ours: float64(ours), MemFree: 4 << 30, DiskFree: -1,
		Sharing: h.sharing(), Owner: h.currentOwner(), Suspended: h.suspended(), LockedGPUs: whole, PartGPUs: parts,
	}})
}

// housekeep finds events of which the report was lost.
func (p *helper) housekeep() {
	h := p.h
	if h.uptime() > h.lease {
		p.takeBackAll()
	}
	var lost []jobs.AttemptID
	for _, id := range p.waiting {
		if !slices.ContainsFunc(h.spool, func(s spooled) bool { return s.id == id }) {
			lost = append(lost, id)
		}
	}
	p.recount()
	for _, id := range lost {
		if p.waiting.has(id) {
			p.waiting.del(id)
			p.resolve(id)
		}
	}
	h.placeKeptFiles()
	h.fill()
}

// recount updates the helper's list of running attempts from what supervisors hold.
func (p *helper) recount() {
	h := p.h
	for _, r := range slices.Clone(h.heldAttempts) {
		if r.supervisorLives {
			p.waiting.del(r.spooled.id)
			p.running.add(r.spooled.id)
		} else {
			p.resolve(r.spooled.id)
		}
	}
	for _, id := range slices.Clone(p.running) {
		if h.heldAttempt(id) == nil {
			p.resolve(id)
		}
	}
}

// resolve determines what happened to an attempt that no supervisor holds any more.
func (p *helper) resolve(id jobs.AttemptID) {
	if p.resolving.has(id) {
		return
	}
	p.resolving.add(id)
	p.h.w.after(p.h.w.between(0, 50*time.Millisecond), func() {
		p.resolving.del(id)
		if !p.alive {
			return
		}
		a := p.examine(id)
		switch a.Answer {
		case hosts.HasExited, hosts.NeverStarted, hosts.Dead:
			p.forgetEnded(id)
			p.h.forget(id)
		}
		p.reportProbed(a)
	})
}

// What a helper lets start: slots, leases, and the specs that it takes back.

// setLimit sets how many slots may be busy.
func (p *helper) setLimit(n int) {
	if p.isSuperseded() {
		return
	}
	p.h.limit = n
	p.h.fill()
}

// extend extends the lease of waiting specs. It takes back lapsed specs first.
func (p *helper) extend(to time.Duration) {
	h := p.h
	if p.isSuperseded() {
		return
	}
	if h.uptime() > h.lease {
		p.takeBackAll()
	}
	h.lease = max(h.lease, to)
	h.fill()
}

func (p *helper) takeBackAll() {
	var gone []jobs.AttemptID
	for _, id := range slices.Clone(p.waiting) {
		if p.takeBack(id) {
			gone = append(gone, id)
		}
	}
	p.reportWithdrawn(leaseOverReason, gone...)
}

// takeBack removes a waiting spec. It returns true if the job will never start.
func (p *helper) takeBack(id jobs.AttemptID) bool {
	if !p.waiting.has(id) {
		return false
	}
	for i, s := range p.h.spool {
		if s.id == id {
			p.h.spool = append(p.h.spool[:i:i], p.h.spool[i+1:]...)
			p.waiting.del(id)
			return true
		}
	}
	return false
}
