package sim

import (
	"slices"
	"time"

	"dcs-tui/dispatch/sched"
	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// silence is how long a helper stays without a word from its dispatcher.
const silence = 30 * time.Second

// beats are a helper's signs of life, and its housekeeping, every 3 s.
func (p *helper) beats(first bool) {
	w, h := p.h.w, p.h
	wait := sched.BeatEvery
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
			case w.now-p.heard > silence:
				p.leave("nothing heard from the dispatcher")
				return
			}
			if !first {
				p.housekeep()
			}
			p.watchOwner()
			if w.now >= h.mute {
				p.beat(first)
			}
			p.beats(false)
		})
	})
}

func (p *helper) beat(early bool) {
	h, w := p.h, p.h.w
	ours := 0
	for _, r := range h.runs {
		if r.job {
			ours += r.s.spec.SlotCount()
		}
	}
	if w.noise(10) {
		h.load = 4 * float64(w.tape.Draw(100)) / 100
	}
	if w.calm() {
		h.load = 0
	}
	whole, half := h.locks()
	p.tell(sched.HostBeat{Host: h.name, Beat: &hosts.Beat{Sharing: h.sharing(), Early: early, Load: [3]float64{h.load}, Busy: float64(ours) + h.load, Ours: float64(ours),
		Owner: h.wish(), Suspended: h.suspended(), MemFree: 4 << 30, DiskFree: -1, Running: len(p.running), Buffered: len(p.waiting), Uptime: h.uptime(), LockedGPUs: whole, HalfGPUs: half}})
}

// housekeep finds what no report said.
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
	h.settle()
	h.fill()
}

// recount brings what it believes to run into line with what supervisors hold.
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

// resolve finds out what became of an attempt that no supervisor holds any more.
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
			p.over(id)
			p.h.forget(id)
		}
		p.tell(sched.AttemptsProbed{Host: p.h.name, Msg: &hosts.Probed{Jobs: []hosts.ProbedJob{a}}})
	})
}
