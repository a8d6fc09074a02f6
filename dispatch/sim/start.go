package sim

import (
	"time"

	"dcs-tui/dispatch/sched"
	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// What supervisors do: they take specs from the spool, claim, start, wait, seal.

// fill starts what limit and lease allow. After a reboot there are no supervisors until a
// helper has come.
func (h *host) fill() {
	if h.spoolBoot != h.boot {
		return
	}
	for len(h.in) > 0 && h.fits(h.in[0].spec.SlotCount()) && h.busy()+h.in[0].spec.SlotCount() <= h.limit {
		s := h.in[0]
		h.in = h.in[1:]
		if h.uptime() > h.lease {
			h.lapsed(s.id)
			continue
		}
		r := &run{h: h, s: s, slot: 1 + len(h.runs), boot: h.boot, lease: h.lease, sup: true}
		h.runs = append(h.runs, r)
		h.w.checkShared(h, true)
		h.prepare(r)
	}
}

func (h *host) lapsed(id jobs.AttemptID) {
	h.fifo(func(p *helper) {
		p.over(id)
		p.tell(sched.AttemptsWithdrawn{Host: h.name, Msg: &hosts.Withdrawn{Attempts: []jobs.AttemptID{id}, Why: "its lease ran out before a slot was free"}})
	})
}

// alive says whether a run is still what its supervisor thinks it is.
func (r *run) alive() bool { return r.sup && r.boot == r.h.boot }

// prepare makes the claim. A file system that hangs holds it up.
func (h *host) prepare(r *run) {
	w := h.w
	if !r.alive() {
		return
	}
	if !h.answers() {
		w.after(h.wedged-w.now+w.between(0, time.Second), func() { h.prepare(r) })
		return
	}
	if w.now < h.sealed {
		h.drop(r)
		h.refused(r.s.id, "making the claim: no space left on device")
		return
	}
	if taken := h.lockGPUs(r); len(taken) > 0 {
		h.bury(r.s.id)
		h.drop(r)
		h.refusedGPUs(r.s.id, taken)
		return
	}
	if err := h.claim(r.s.id, false); err != nil {
		h.drop(r)
		w.logf("%s does not claim %s: %v", h.name, r.s.id, err)
		h.fifo(func(p *helper) {
			p.waiting.del(r.s.id)
			p.answer([]jobs.AttemptID{r.s.id})
		})
		return
	}
	r.claimed = true
	if w.noise(15) { // it may hang between the claim and the start
		w.after(w.between(0, 20*time.Second), func() { h.begin(r) })
		return
	}
	h.begin(r)
}

func (h *host) refused(id jobs.AttemptID, why string) {
	h.fifo(func(p *helper) {
		p.over(id)
		p.tell(sched.HostRefused{Host: h.name, Msg: &hosts.Refused{Attempts: []jobs.AttemptID{id}, Why: why}})
	})
}

// begin starts the process, unless the lease has run out in the last instant.
func (h *host) begin(r *run) {
	w := h.w
	if !r.alive() {
		return
	}
	if h.uptime() > r.lease {
		h.bury(r.s.id)
		h.drop(r)
		h.lapsed(r.s.id)
		h.fill()
		return
	}
	r.job, r.started = true, h.stamp()
	w.truth.starts(w, r)
	h.touch()
	h.fifo(func(p *helper) {
		p.waiting.del(r.s.id)
		p.running.add(r.s.id)
		p.tell(sched.AttemptsStarted{Host: h.name, Msg: &hosts.Started{Jobs: []hosts.StartedJob{{Attempt: r.s.id, Slot: r.slot, At: r.started}}}})
	})
	d, o := h.fate(r)
	h.ranFor(d, func() {
		if r.job && r.boot == h.boot && !r.stop {
			h.ended(r, o)
		}
	})
}

// fate draws how long a job runs and how it ends.
func (h *host) fate(r *run) (time.Duration, *jobs.Outcome) {
	w := h.w
	d := w.between(0, 3*time.Second)
	switch w.tape.Draw(8) {
	case 1, 2:
		d = w.between(0, 30*time.Second)
	case 3:
		d = w.between(0, 4*time.Minute)
	}
	o := &jobs.Outcome{}
	switch {
	case w.now < h.hole:
		d, o.Exit = w.between(0, 50*time.Millisecond), 127
	case w.tape.OneIn(7):
		o.Exit = 1 + w.tape.Draw(2)
	case w.tape.OneIn(25):
		o.Signal = "SIGSEGV"
	}
	if t := r.s.timeout; t > 0 && d > t {
		d = t
		*o = jobs.Outcome{TimedOut: true, Signal: "SIGTERM"}
	}
	return d, o
}

// ended is the end of a job's process.
func (h *host) ended(r *run, o *jobs.Outcome) {
	o.Started, o.Ended = r.started, max(r.started, h.stamp())
	r.outcome = o
	r.die()
	if r.sup {
		h.w.truth.sawEnd(r)
		h.seal(r)
	}
}

// die is the end of the process, whoever sees it.
func (r *run) die() {
	if r.job {
		r.job = false
		r.h.w.truth.dies(r)
	}
}

// seal writes the sentinel, lets go of the spec and reports.
func (h *host) seal(r *run) {
	w := h.w
	if !r.alive() {
		return
	}
	if !h.answers() {
		w.after(h.wedged-w.now+w.between(0, time.Second), func() { h.seal(r) })
		return
	}
	switch {
	case w.now >= h.sealed:
		h.writeSentinel(r)
	case w.now >= h.full:
		h.done = append(h.done, done{r.s.id, h.token(r.s.id, false).EncodeFinished(r.slot, *r.outcome)})
		w.after(h.sealed-w.now, h.settle)
	default: // both disks refuse: the helper may still pass the outcome on
		h.reportExit(r)
		w.after(w.between(time.Second, 5*time.Second), func() { h.seal(r) })
		return
	}
	h.drop(r)
	h.reportExit(r)
	h.fill()
}

func (h *host) reportExit(r *run) {
	h.fifo(func(p *helper) {
		p.over(r.s.id)
		p.tell(sched.AttemptsEnded{Host: h.name, Msg: &hosts.Exits{Jobs: []hosts.ExitedJob{{Attempt: r.s.id, Slot: r.slot, Outcome: *r.outcome}}}})
	})
}
