package sim

import (
	"slices"
	"time"

	"dcs-tui/dispatch/sched"
	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// The devices of the simulated hosts. A job holds its devices until it has ended, even if
// its supervisor is dead, and other users hold some from time to time.

// given is what a dispatcher has given to an attempt.
type given struct {
	gpus  []int
	share int // halves of each
}

func shareOf(s *jobs.Spec) int {
	if s.GPUs == jobs.HalfGPU {
		return 1
	}
	return 2
}

// checkGPUs looks at the devices that a dispatcher gives to an attempt: each half belongs
// to one attempt of which it has not heard that it is over.
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
			w.broken(DevicesHold, "%s gets device %d of %s, of which %d halves are given", id, n, entry.machine, held)
		}
	}
}

// holds reports whether a run has locked a device.
func (r *run) holds(device int) bool {
	return r.locked && r.boot == r.h.boot && (r.sup || r.job) && slices.Contains(r.s.gpus, device)
}

// held returns how many halves of a device are locked, by other runs than but and by
// other users.
func (h *host) held(device int, but *run) (halves int) {
	for _, r := range h.runs {
		if r != but && r.holds(device) {
			halves += shareOf(r.s.spec)
		}
	}
	if halves == 0 && !h.w.calm() {
		halves = []int{0, 0, 1, 0, 2}[(int(h.w.now/(40*time.Second))+h.idx)%5]
	}
	return halves
}

// lockGPUs locks the devices of a run, or returns those that others hold.
func (h *host) lockGPUs(r *run) (taken []int) {
	for _, n := range r.s.gpus {
		if h.held(n, r)+shareOf(r.s.spec) > 2 {
			taken = append(taken, n)
		}
	}
	r.locked = len(taken) == 0
	return taken
}

// refusedGPUs refuses an attempt whose devices others hold.
func (h *host) refusedGPUs(id jobs.AttemptID, taken []int) {
	h.fifo(func(p *helper) {
		p.over(id)
		p.tell(sched.HostRefused{Host: h.name, Msg: &hosts.Refused{Attempts: []jobs.AttemptID{id}, Why: "its GPU is in use", GPUs: taken}})
	})
}

// locks returns the devices that are in use, and those of which half is free.
func (h *host) locks() (whole, half []int) {
	for n := range h.gpus {
		switch h.held(n, nil) {
		case 0:
		case 1:
			half = append(half, n)
		default:
			whole = append(whole, n)
		}
	}
	return whole, half
}

// checkHeld looks at a job that starts: it holds its devices, and nobody else does.
func (w *World) checkHeld(r *run) {
	for _, n := range r.s.gpus {
		halves := 0
		for _, other := range r.h.runs {
			if other.job && other.boot == r.h.boot && slices.Contains(other.s.gpus, n) {
				halves += shareOf(other.s.spec)
			}
		}
		if halves > 2 {
			w.broken(DevicesHold, "%s starts on device %d of %s, of which %d halves are in use", r.s.id, n, r.h.name, halves)
		}
	}
}
