package sim

import (
	"errors"
	"io/fs"
	"slices"
	"time"

	"dcs-tui/dispatch/sched"
	"dcs-tui/hosts"
	"dcs-tui/hosts/onfile"
	"dcs-tui/jobs"
	"dcs-tui/jobs/attempts"
)

// How a helper finds out what became of attempts, and ends them.

// withdraw takes buffered attempts back, and answers for those that cannot be.
func (p *helper) withdraw(epoch int, ids []jobs.AttemptID) {
	if by := p.fenced(epoch); by != 0 {
		p.refuse(ids, by)
		return
	}
	var gone, rest []jobs.AttemptID
	for _, id := range ids {
		if p.takeBack(id) {
			gone = append(gone, id)
			continue
		}
		p.waiting.del(id)
		rest = append(rest, id)
	}
	if gone != nil {
		p.tell(sched.AttemptsWithdrawn{Host: p.h.name, Msg: &hosts.Withdrawn{Attempts: gone, Why: "withdrawn"}})
	}
	p.answer(rest)
}

// probe answers what is known of attempts.
func (p *helper) probe(epoch int, ids []jobs.AttemptID) {
	if by := p.fenced(epoch); by != 0 {
		p.refuse(ids, by)
		return
	}
	p.answer(ids)
}

func (p *helper) answer(ids []jobs.AttemptID) {
	if len(ids) == 0 {
		return
	}
	found := make([]hosts.ProbedJob, 0, len(ids))
	for _, id := range ids {
		a, ok := p.knows(id)
		if !ok {
			a = p.examine(id)
		}
		found = append(found, a)
	}
	p.tell(sched.AttemptsProbed{Host: p.h.name, Msg: &hosts.Probed{Jobs: found}})
}

// examine finds out from the files alone: a sentinel, a living supervisor, a claim.
// "Never started" it says only after it has created the status file itself.
func (p *helper) examine(id jobs.AttemptID) hosts.ProbedJob {
	h := p.h
	a := hosts.ProbedJob{Attempt: id}
	if !h.answers() || h.w.noise(25) {
		a.Why = "the file system does not answer"
		return a
	}
	r := h.run(id)
	f, err := h.look(id)
	if f.State == attempts.Finished {
		a.Answer, a.Slot, a.Started, a.Outcome = hosts.HasExited, f.Slot, f.Outcome.Started, &f.Outcome
		return a
	}
	if r != nil && r.sup {
		a.Answer, a.Slot, a.Started = hosts.IsRunning, r.slot, r.started
		return a
	}
	if errors.Is(err, fs.ErrNotExist) {
		f = h.tombstone(id)
	}
	switch {
	case f.State == attempts.NeverStarts:
		a.Answer = hosts.NeverStarted
	case f.State == attempts.Claimed && f.Host != h.name:
		a.Why = "it was claimed by host " + f.Host
	case f.State == attempts.Claimed && f.Claim.Boot != h.bootID():
		a.Answer, a.Why = hosts.Dead, "the host was rebooted while it ran"
		h.forget(id)
	default:
		if r != nil && r.job && h.w.noise(6) {
			a.Why = "processes of it could not be ended"
			return a
		}
		if r != nil {
			r.die()
		}
		a.Answer, a.Why = hosts.Dead, "its supervisor died"
		h.forget(id)
	}
	return a
}

// forget removes what a dead supervisor held.
func (h *host) forget(id jobs.AttemptID) {
	if r := h.run(id); r != nil && !r.sup {
		r.die()
		h.drop(r)
	}
}

// kill ends attempts, each apart from the others.
func (p *helper) kill(from *life, epoch int, ids []jobs.AttemptID) {
	if by := p.fenced(epoch); by != 0 {
		p.refuse(ids, by)
		return
	}
	h := p.h
	var gone []jobs.AttemptID
	for _, id := range ids {
		if p.takeBack(id) {
			gone = append(gone, id)
		}
	}
	if gone != nil {
		p.tell(sched.AttemptsWithdrawn{Host: h.name, Msg: &hosts.Withdrawn{Attempts: gone, Why: "killed"}})
	}
	for _, id := range ids {
		if !slices.Contains(gone, id) {
			p.end(from, id)
		}
	}
}

// end stops one attempt that is not in the spool any more.
func (p *helper) end(from *life, id jobs.AttemptID) {
	h := p.h
	r := h.run(id)
	if r == nil || !r.sup {
		a := p.examine(id)
		if a.Answer == hosts.NeverStarted {
			p.tell(sched.AttemptsWithdrawn{Host: h.name, Msg: &hosts.Withdrawn{Attempts: []jobs.AttemptID{id}, Why: "it had not started"}})
			return
		}
		p.tell(sched.AttemptsProbed{Host: h.name, Msg: &hosts.Probed{Jobs: []hosts.ProbedJob{a}}})
		return
	}
	p.running.add(id)
	h.w.checkKill(from, h, id)
	h.stop(r, h.w.between(0, 5*time.Second))
}

// stop ends a run's process within a grace.
func (h *host) stop(r *run, grace time.Duration) {
	if !r.job || r.stop {
		if r.claimed && !r.job && r.outcome == nil {
			h.w.after(time.Second, func() { // about to start
				if r.alive() && h.run(r.s.id) == r {
					h.stop(r, grace)
				}
			})
		}
		return
	}
	r.stop = true
	h.w.after(grace, func() {
		if r.job {
			h.ended(r, &jobs.Outcome{Signal: "SIGTERM", Stopped: true})
		}
	})
}

// list says everything that this host has anything of.
func (p *helper) list(epoch int, only jobs.Ranges) {
	if by := p.fenced(epoch); by != 0 {
		p.refuse(nil, by)
		return
	}
	h := p.h
	m := &hosts.Listed{Last: true, All: len(only) == 0}
	if !h.answers() {
		m.Why = "the file system does not answer"
	} else {
		var ids idSet
		for _, s := range h.in {
			ids.add(s.id)
		}
		for _, r := range h.runs { // those that are taken
			ids.add(r.s.id)
		}
		err := attempts.Each(h.disk, h.dir, runUID, h.name, only, func(f attempts.Fate) error {
			if f.Host == h.name {
				ids.add(f.Attempt)
			}
			return nil
		})
		if err != nil {
			m.Why = err.Error()
		}
		for _, id := range ids {
			a, ok := p.knows(id)
			switch {
			case !ok && h.w.damaged && h.w.noise(4):
				a = hosts.ProbedJob{Attempt: id, Why: "its files cannot be read"}
			case !ok:
				a = p.examine(id)
			}
			m.Jobs = append(m.Jobs, a)
		}
	}
	p.tell(sched.HostListed{Host: h.name, Msg: m})
}

// look reads the attempts of another host for the dispatcher (X2).
func (p *helper) look(host string, ids []jobs.AttemptID) {
	h := p.h
	m := &hosts.Looked{Host: host, Why: "the file system does not answer"}
	if h.answers() {
		m = onfile.Look(h.disk, h.dir, runUID, host, ids)
	}
	p.tell(sched.HostLooked{Via: h.name, Msg: m})
}
