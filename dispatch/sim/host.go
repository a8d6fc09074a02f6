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
	shared bool           // its attempts are in the shared directory
	disk   *memdisk.Mount // where its attempts are
	dir    string

	boot     int
	bootedAt time.Duration
	wall     time.Duration    // how far its wall clock is ahead
	cuts     map[*machine]int // number of network cuts between it and a dispatcher's machine
	waiting  []func()         // deliveries that the cuts hold back
	load     float64          // cores used by others

	// When each fault of the host ends.
	deaf        time.Duration // sshd refuses connections
	silentUntil time.Duration // its helpers send no heartbeats
	wedged      time.Duration // its file systems do not answer
	hole        time.Duration // jobs fail at once
	sealed      time.Duration // sentinels cannot be written to the attempts directory
	full        time.Duration // the spool is full

	// The spool, and the page of memory that helper and supervisors share.
	fence      int // the highest epoch that has opened the spool
	spoolBoot  int
	lease      time.Duration
	limit      int
	generation int

	// Other users of the host (sharing.go).
	wants   hosts.Share // what the run wants
	other   *neighbor
	last    bool          // one slot may be used although others hold all
	starved time.Duration // since when the run may use no slot
	retries bool

	in        []spooled
	took      map[jobs.AttemptID]bool // every attempt that ever was in the spool
	runs      []*run                  // held by supervisors, dead ones included
	done      []done                  // status files that could not be written yet
	helper    *helper
	heartbeat time.Duration // when its heartbeat file was last written
	jobs      suspension
}

// spooled is a job that waits in the spool.
type spooled struct {
	id      jobs.AttemptID
	spec    *jobs.Spec
	timeout time.Duration
	gpus    []int
}

// done is the status file of an ended attempt that waits in the spool.
type done struct {
	id     jobs.AttemptID
	status []byte
}

func (h *host) uptime() time.Duration { return h.w.now - h.bootedAt }
func (h *host) bootID() string        { return fmt.Sprintf("boot%d.%d", h.idx, h.boot) }
func (h *host) stamp() jobs.Stamp     { return wallStart + jobs.Stamp(h.w.now+h.wall) }
func (h *host) isAnswering() bool     { return h.w.now >= h.wedged }

func (h *host) hello(spec *hosts.Host) *hosts.Hello {
	whole, half := h.lockedDevices()
	return &hosts.Hello{
		LockedGPUs: whole, HalfGPUs: half,
		Version: hosts.ProtocolVersion, BootID: h.bootID(), Uptime: h.uptime(), Cores: spec.Slots.Fixed + 1, Slots: spec.Slots.Fixed,
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
	for _, r := range h.runs {
		r.sup = false
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

// run is an attempt that a supervisor has taken.
type run struct {
	h       *host
	s       spooled
	slot    int
	boot    int
	lease   time.Duration // the lease when the spec was taken; a later lease does not apply
	claimed bool
	locked  bool // it has locked its devices
	sup     bool // its supervisor lives
	job     bool // its process lives
	stop    bool // it is being ended on request
	started jobs.Stamp
	outcome *jobs.Outcome // of the ended process
}

func (h *host) run(id jobs.AttemptID) *run {
	for _, r := range h.runs {
		if r.s.id == id {
			return r
		}
	}
	return nil
}

// busy returns the number of slots of living supervisors that have a job.
func (h *host) busy() int {
	n := 0
	for _, r := range h.runs {
		if r.sup {
			n += r.s.spec.SlotCount()
		}
	}
	return n
}

func (h *host) drop(r *run) {
	h.runs = slices.DeleteFunc(slices.Clone(h.runs), func(other *run) bool { return other == r })
}

// sendReport passes a supervisor's report to the helper if there is one. The report may be lost.
func (h *host) sendReport(do func(*helper)) {
	p := h.helper
	if p == nil || !p.alive || h.w.smallFault(30) {
		return
	}
	h.w.after(h.w.between(0, 4*time.Millisecond), func() {
		if h.helper == p && p.alive {
			p.whenThawed(func() { do(p) })
		}
	})
}

// tell sends an event over the helper's link.
func (p *helper) tell(ev sched.Event) { p.link.report(ev) }

// silence is how long a helper stays without a message from its dispatcher.
const silence = 30 * time.Second

// heartbeats sends a helper's heartbeats and does its housekeeping, every 3 s.
func (p *helper) heartbeats(first bool) {
	w, h := p.h.w, p.h
	wait := sched.HeartbeatInterval
	if first {
		wait = 150 * time.Millisecond
	}
	w.after(wait, func() {
		if !p.alive {
			return
		}
		p.whenThawed(func() {
			switch {
			case p.superseded():
				p.leave("another helper has taken over on this host")
				return
			case h.fence > p.epoch:
				p.leave("a newer dispatcher owns this run")
				return
			case w.now-p.receivedAt > silence:
				p.leave("nothing received from the dispatcher")
				return
			}
			if !first {
				p.housekeep()
			}
			p.watchOwner()
			if w.now >= h.silentUntil {
				p.heartbeat(first)
			}
			p.heartbeats(false)
		})
	})
}

func (p *helper) heartbeat(early bool) {
	h, w := p.h, p.h.w
	ours := 0
	for _, r := range h.runs {
		if r.job {
			ours += r.s.spec.SlotCount()
		}
	}
	if w.smallFault(10) {
		h.load = 4 * float64(w.choices.Draw(100)) / 100
	}
	if w.faultsAreOver() {
		h.load = 0
	}
	whole, half := h.lockedDevices()
	p.tell(sched.HostHeartbeat{Host: h.name, Heartbeat: &hosts.Heartbeat{Sharing: h.sharing(), Early: early, Load: [3]float64{h.load}, Busy: float64(ours) + h.load, Ours: float64(ours),
		Owner: h.currentOwner(), Suspended: h.suspended(), MemFree: 4 << 30, DiskFree: -1, Running: len(p.running), Buffered: len(p.waiting), Uptime: h.uptime(), LockedGPUs: whole, HalfGPUs: half}})
}

// housekeep finds events of which the report was lost.
func (p *helper) housekeep() {
	h := p.h
	if h.uptime() > h.lease {
		p.takeBackAll()
	}
	var lost []jobs.AttemptID
	for _, id := range p.waiting {
		if !slices.ContainsFunc(h.in, func(s spooled) bool { return s.id == id }) {
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
	for _, r := range slices.Clone(h.runs) {
		if r.sup {
			p.waiting.del(r.s.id)
			p.running.add(r.s.id)
		} else {
			p.resolve(r.s.id)
		}
	}
	for _, id := range slices.Clone(p.running) {
		if h.run(id) == nil {
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
		if a.Answer != hosts.IsRunning && a.Answer != hosts.Unknown {
			p.forgetEnded(id)
			p.h.forget(id)
		}
		p.tellProbed(a)
	})
}

// What a helper lets start: slots, leases, and the specs that it takes back.

// setLimit sets how many slots may be busy.
func (p *helper) setLimit(n int) {
	if p.superseded() {
		return
	}
	p.h.limit = n
	p.h.fill()
}

// extend extends the lease of waiting specs. It takes back lapsed specs first.
func (p *helper) extend(to time.Duration) {
	h := p.h
	if p.superseded() {
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
	p.tellWithdrawn(leaseOver, gone...)
}

// takeBack removes a waiting spec. It returns true if the job will never start.
func (p *helper) takeBack(id jobs.AttemptID) bool {
	if !p.waiting.has(id) {
		return false
	}
	for i, s := range p.h.in {
		if s.id == id {
			p.h.in = append(p.h.in[:i:i], p.h.in[i+1:]...)
			p.waiting.del(id)
			return true
		}
	}
	return false
}
