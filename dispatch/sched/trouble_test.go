package sched

import (
	"time"

	"dcs-tui/jobs"
)

// meddle lets people give commands now and then.
func (w *world) meddle() {
	if w.meddling == 0 {
		return
	}
	w.after(w.between(0, 30*time.Second), func() {
		w.meddling--
		defer w.meddle()
		n := len(w.core.table.Jobs)
		if n == 0 || w.core.finished || w.dead {
			return
		}
		some := []jobs.ID{jobs.ID(1 + w.rng.IntN(n)), jobs.ID(1 + w.rng.IntN(n))}
		h := w.order[w.rng.IntN(len(w.order))].spec.Name
		switch w.rng.IntN(6) {
		case 0, 1:
			w.step(Cancel{Jobs: some, Why: "meddled"})
		case 2:
			w.step(Requeue{some})
		case 3:
			w.step(SetPriority{Jobs: some, Priority: w.rng.IntN(3)})
		case 4:
			w.step(Pause{true})
			w.after(w.between(0, time.Minute), w.continues)
		case 5:
			w.step(DrainHost{Host: h, On: true, Now: w.chance(2)})
			w.after(w.between(0, 2*time.Minute), func() { w.takeBack(DrainHost{Host: h}) })
		}
	})
}

// takeBack takes back a request of a person, with the next dispatcher if there is none
// now: the request outlives a dispatcher.
func (w *world) takeBack(ev Event) {
	if w.dead {
		w.after(time.Second, func() { w.takeBack(ev) })
		return
	}
	w.step(ev)
}

// continues ends a pause. It tries again, because a dispatcher may have died before the
// end of the pause was recorded.
func (w *world) continues() {
	w.takeBack(Pause{false})
	w.after(time.Minute, func() {
		if w.dead || w.core.table.Paused {
			w.continues()
		}
	})
}

// unrest schedules the faults of a world.
func (w *world) unrest() {
	if w.faults == 0 {
		return
	}
	w.after(w.between(0, 40*time.Second), func() {
		w.faults--
		if w.now >= w.stall && w.chance(5) { // the disk hangs, or somebody pressed Ctrl-Z
			w.stall = w.now + w.between(time.Second, 2*time.Minute)
			w.logf("the dispatcher stands still until %v", w.stall)
		}
		w.order[w.rng.IntN(len(w.order))].suffer()
		w.unrest()
	})
}

// suffer lets one fault happen to a host.
func (h *fakeHost) suffer() {
	w := h.w
	if !h.up {
		return
	}
	life := w.life
	away := w.between(time.Second, 5*time.Minute)
	switch w.rng.IntN(6) {
	case 0: // the link breaks and both ends know
		w.logf("%s: link breaks", h.spec.Name)
		if h.linked {
			h.cutLink()
			w.after(time.Millisecond, func() {
				if w.life == life {
					w.step(HostDown{h.spec.Name, errRefused})
				}
			})
		}
		return
	case 1: // silence: the network is gone, the jobs go on
		w.logf("%s: silent for %v", h.spec.Name, away)
		h.up = false
		h.gen++
	case 2: // the helper hangs: linked, no word any more
		w.logf("%s: hangs", h.spec.Name)
		h.gen++
		return
	case 4: // every helper started there says hello and gives no beat
		w.logf("%s: mute for %v", h.spec.Name, away)
		h.mute = w.now + away
		return
	case 5: // our network is gone; the hosts can be reached again one by one
		w.logf("outage for %v", away)
		for _, o := range w.order {
			if o.up {
				o.up = false
				o.gen++
				w.after(away+w.between(0, 30*time.Second), func() { o.up = true })
			}
		}
		return
	case 3: // the machine dies
		w.logf("%s: dies for %v", h.spec.Name, away)
		h.up = false
		h.gen++
		for _, a := range h.attempts {
			if a.state == fakeRunning {
				a.state = fakeDead
			} else if a.state == fakeBuffered {
				a.state = fakeTombstone
			}
		}
		h.spool, h.busy = nil, 0
	}
	w.after(away, func() { h.up = true })
}
