package sim

import (
	"time"

	"dcs-tui/dispatch/sched"
	"dcs-tui/hosts"
)

// Owners come back to their hosts, and jobs are suspended meanwhile, as hosts/helper/remote
// (suspend.go) does it.

const (
	suspendFor   = 10 * time.Second // the lease that the suspender renews
	tickEvery    = 10 * time.Second // how often a supervisor looks whether it has run out
	suspendBound = 30 * time.Second // how long trees may stay suspended that should go on
)

// suspension is the state of all jobs of a host.
type suspension struct {
	owner time.Duration // until when the owner wants it
	on    bool          // the trees are stopped
	since time.Duration
	total time.Duration // of what is over
	alive int           // counts the suspenders; 0: none lives
	made  int
	heard time.Duration // by the suspender, of the helper
	lease time.Duration
	late  time.Duration // since when the jobs should go on; 0: they need not
}

func (h *host) wish() (o hosts.Owner) {
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

// watchOwner is the helper's look at the owner.
func (p *helper) watchOwner() {
	h, s := p.h, &p.h.jobs
	switch wanted := h.wish().Suspend && len(p.running) > 0; {
	case wanted && s.alive == 0:
		s.made++
		s.alive, s.heard = s.made, h.w.now
		if !s.on {
			s.on, s.since = true, h.w.now
			h.w.logf("jobs of %s are suspended", h.name)
			h.tick(s.since)
		}
		h.suspender(s.alive)
	case wanted:
		s.heard = h.w.now
	default:
		h.resume()
	}
}

// suspender is a round of the suspender.
func (h *host) suspender(n int) {
	s := &h.jobs
	if s.alive != n {
		return
	}
	if p := h.helper; p == nil || !p.alive || h.w.now-s.heard > suspendFor {
		h.resume()
		return
	}
	s.lease = h.w.now + suspendFor
	h.w.after(sched.BeatEvery, func() { h.suspender(n) })
}

// tick is what supervisors do for a suspended job.
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

// ranFor calls do when d has passed without the time that jobs are suspended.
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

// checkOwners looks for jobs that nobody continues.
func (w *World) checkOwners() {
	for _, h := range w.hosts {
		s, p := &h.jobs, h.helper
		if !s.on || h.wish().Suspend && p != nil && p.alive && w.now >= p.thaw {
			s.late = 0
			continue
		}
		if s.late == 0 {
			s.late = max(1, w.now)
		}
		for _, r := range h.runs {
			if r.job && w.now-s.late > suspendBound {
				w.broken(NothingSuspended, "%s on %s is suspended since %v, and should run since %v", r.s.id, h.name, s.since, s.late)
			}
		}
	}
}

func ownerComes(w *World) bool {
	w.anyHost().jobs.owner = w.now + w.long()
	return true
}

func killSuspender(w *World) bool {
	s := &w.anyHost().jobs
	killed := s.alive > 0
	s.alive = 0
	return killed
}
