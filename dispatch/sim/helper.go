package sim

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"dcs-tui/dispatch/sched"
	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// helper is one `__host` process: it serves one link, as hosts/helper/remote does.
type helper struct {
	h          *host
	link       *link
	epoch      int
	generation int
	refused    int // the higher epoch that kept it from serving; 0: it serves
	hello      *hosts.Hello
	alive      bool
	thaw       time.Duration // until when it is stopped (SIGSTOP)
	heard      time.Duration // the last message
	waiting    idSet         // handed over, not known to have been taken
	running    idSet         // held by supervisors, as far as it knows
	resolving  idSet
}

// idSet is a small ordered set.
type idSet []jobs.AttemptID

func (s idSet) has(id jobs.AttemptID) bool { return slices.Contains(s, id) }

func (s *idSet) add(id jobs.AttemptID) {
	if !s.has(id) {
		*s = append(*s, id)
	}
}

func (s *idSet) del(id jobs.AttemptID) {
	if i := slices.Index(*s, id); i >= 0 {
		*s = slices.Delete(*s, i, i+1)
	}
}

// startHelper is the helper's beginning: the fence, the spool, the hello.
func (h *host) startHelper(a *agent) *helper {
	w := h.w
	p := &helper{h: h, epoch: a.l.epoch, heard: w.now}
	p.link = &link{a: a, h: h, p: p}
	if h.fence > p.epoch {
		p.refused = h.fence
		return p
	}
	h.fence = p.epoch
	h.generation++
	if old := h.helper; old != nil && old.alive {
		w.after(w.between(0, time.Second), func() { old.leave("another helper has taken over on this host") })
	}
	p.generation, p.alive = h.generation, true
	h.helper = p
	if h.generation == 1 || h.spoolBoot != h.boot {
		h.limit = a.spec.Slots.Fixed // later ones begin with what the last was told
	}
	p.hello = h.hello(a.spec)
	w.logf("%s has a helper of epoch %d", h.name, p.epoch)
	p.adopt()
	p.beats(true)
	return p
}

// superseded says that a newer helper serves this spool.
func (p *helper) superseded() bool { return p.h.generation != p.generation }

// adopt takes over what an earlier helper left in the spool.
func (p *helper) adopt() {
	h := p.h
	rebooted := h.spoolBoot != h.boot
	lapsed := rebooted || h.uptime() > h.lease
	h.spoolBoot = h.boot
	if rebooted {
		h.lease = 0
	}
	var gone []jobs.AttemptID
	for _, s := range h.in {
		if lapsed {
			gone = append(gone, s.id)
		} else {
			p.waiting.add(s.id)
		}
	}
	if lapsed {
		h.in = nil
	}
	p.recount()
	if len(gone) > 0 {
		p.tell(sched.AttemptsWithdrawn{Host: h.name, Msg: &hosts.Withdrawn{Attempts: gone, Why: "its lease ran out before a slot was free"}})
	}
	var started []hosts.StartedJob
	for _, r := range h.runs {
		if p.running.has(r.s.id) && r.sup {
			started = append(started, hosts.StartedJob{Attempt: r.s.id, Slot: r.slot, At: r.started})
		}
	}
	if started != nil {
		p.tell(sched.AttemptsStarted{Host: h.name, Msg: &hosts.Started{Jobs: started}})
	}
	h.w.after(0, h.fill)
}

// get takes a message in, unless it is stopped.
func (p *helper) get(do func(*helper)) {
	p.whenThawed(func() {
		p.heard = p.h.w.now
		do(p)
	})
}

func (p *helper) whenThawed(do func()) {
	w := p.h.w
	switch {
	case !p.alive:
	case w.now < p.thaw:
		w.after(p.thaw-w.now, func() { p.whenThawed(do) })
	default:
		do()
	}
}

// hearsEnd is the end of its input: it leaves soon.
func (p *helper) hearsEnd() {
	p.h.w.after(p.h.w.between(0, time.Second), func() { p.whenThawed(func() { p.leave("the channel ended") }) })
}

// leave ends the process. One that a newer dispatcher has shut out says so.
func (p *helper) leave(why string) {
	if !p.alive {
		return
	}
	h := p.h
	h.w.logf("the helper of epoch %d on %s leaves: %s", p.epoch, h.name, why)
	if h.fence > p.epoch {
		p.tell(sched.HostRefused{Host: h.name, Msg: &hosts.Refused{FencedBy: h.fence, Why: "a newer dispatcher owns this run"}})
	}
	p.die(why)
}

func (p *helper) die(why string) {
	if !p.alive {
		return
	}
	p.alive = false
	p.link.broken(p.h.w.between(0, 50*time.Millisecond), broken(p.h, why))
}

func broken(h *host, why string) error {
	return &hosts.Error{Host: h.name, Class: hosts.Broken, Err: errors.New(why)}
}

// fenced returns the epoch that keeps it from acting on an order, 0 if none does.
func (p *helper) fenced(epoch int) int {
	if p.h.fence > epoch {
		return p.h.fence
	}
	return 0
}

func (p *helper) refuse(ids []jobs.AttemptID, by int) {
	p.tell(sched.HostRefused{Host: p.h.name, Msg: &hosts.Refused{Attempts: ids, FencedBy: by,
		Why: fmt.Sprintf("a newer dispatcher (epoch %d) owns this run", by)}})
}

// launch takes a batch over into the spool, or refuses it.
func (p *helper) launch(m *hosts.Launch, placed []sched.Placed) {
	h := p.h
	ids := make([]jobs.AttemptID, len(placed))
	for i := range placed {
		ids[i] = placed[i].Attempt
	}
	refuse := func(why string) {
		p.tell(sched.HostRefused{Host: h.name, Msg: &hosts.Refused{Attempts: ids, Why: why}})
	}
	switch by := p.fenced(m.Epoch); {
	case by != 0:
		p.refuse(ids, by)
		return
	case h.uptime() > m.ExpireUptime:
		ids = ids[:0]
		var known []hosts.ProbedJob
		for _, j := range placed {
			if k, ok := p.knows(j.Attempt); ok {
				known = append(known, k) // it came in time once
			} else {
				ids = append(ids, j.Attempt)
			}
		}
		if len(ids) > 0 {
			refuse("the launch came too late")
		}
		if known != nil {
			p.tell(sched.AttemptsProbed{Host: h.name, Msg: &hosts.Probed{Jobs: known}})
		}
		return
	case p.superseded():
		refuse("another helper has taken over on this host")
		return
	}
	h.w.checkAccepted(h, m.Epoch, ids)
	p.extend(m.ExpireUptime)
	var known []hosts.ProbedJob
	ids = nil
	for _, j := range placed {
		if k, ok := p.knows(j.Attempt); ok {
			known = append(known, k)
			continue
		}
		if h.w.now < h.full {
			ids = append(ids, j.Attempt)
			continue
		}
		if h.took == nil {
			h.took = map[jobs.AttemptID]bool{}
		}
		h.took[j.Attempt] = true
		h.in = append(h.in, spooled{j.Attempt, j.Spec, j.Timeout, j.GPUs})
		p.waiting.add(j.Attempt)
	}
	if known != nil {
		p.tell(sched.AttemptsProbed{Host: h.name, Msg: &hosts.Probed{Jobs: known}})
	}
	if ids != nil {
		refuse("the spool could not take it: no space left on device")
	}
	h.fill()
}

// launchAgain is the second copy of a launch of which nothing was refused.
func (p *helper) launchAgain(m *hosts.Launch, placed []sched.Placed) {
	for _, j := range placed {
		if _, ok := p.knows(j.Attempt); !ok && p.h.w.truth.of(j.Attempt) == nil {
			return
		}
	}
	if p.h.w.now >= p.h.full {
		p.launch(m, placed)
	}
}

// knows says where an attempt stands that is in its hands already.
func (p *helper) knows(id jobs.AttemptID) (hosts.ProbedJob, bool) {
	if p.running.has(id) {
		a := hosts.ProbedJob{Attempt: id, Answer: hosts.IsRunning}
		if r := p.h.run(id); r != nil {
			a.Slot, a.Started = r.slot, r.started
		}
		return a, true
	}
	return hosts.ProbedJob{Attempt: id, Answer: hosts.Buffered}, p.waiting.has(id)
}

// over forgets an attempt that is over.
func (p *helper) over(id jobs.AttemptID) {
	p.waiting.del(id)
	p.running.del(id)
}
