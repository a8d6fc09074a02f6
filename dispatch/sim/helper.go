package sim

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"dcs-tui/dispatch/sched"
	"dcs-tui/hosts"
	"dcs-tui/jobs"
	"dcs-tui/jobs/attempts"
	"dcs-tui/jobs/rundir"
)

// helper is one `__host` process. Like hosts/helper/remote, it serves one link.
type helper struct {
	h                 *host
	link              *link
	epoch             int
	generation        int
	newerDispatcher   int // the higher epoch that shut it out; 0: it serves
	hello             *hosts.Hello
	heartbeatInterval time.Duration
	hasSent           bool // a heartbeat that was not early
	alive             bool
	stoppedUntil      time.Duration // it is stopped (SIGSTOP) until then
	receivedAt        time.Duration // when the last message arrived
	waiting           idSet         // sent to the host, not known to be taken by a supervisor
	running           idSet         // held by supervisors, as far as it knows
	resolving         idSet
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

// startHelper starts a helper: it checks the fence, opens the spool, and sends the hello.
func (h *host) startHelper(a *agent) *helper {
	w := h.w
	p := &helper{h: h, epoch: a.l.epoch, receivedAt: w.now}
	p.link = &link{a: a, h: h, p: p}
	if h.fence > p.epoch {
		p.newerDispatcher = h.fence
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
		// Later helpers start with the limit that the previous one was given.
		h.limit = a.spec.Slots.Fixed
	}
	p.hello, p.heartbeatInterval = h.hello(a.spec), a.spec.HeartbeatOrDefault()
	f, err := h.disk.OpenFile(attempts.MachineFile(h.dir, h.name), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err == nil {
		_, _ = f.WriteAt([]byte(h.id), 0)
		f.Close()
	}
	w.logf("%s has a helper of epoch %d", h.name, p.epoch)
	p.adopt()
	p.heartbeats(true)
	return p
}

// isSuperseded reports whether a newer helper serves the spool.
func (p *helper) isSuperseded() bool { return p.h.generation != p.generation }

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
	for _, s := range h.spool {
		if lapsed {
			gone = append(gone, s.id)
		} else {
			p.waiting.add(s.id)
		}
	}
	if lapsed {
		h.spool = nil
	}
	p.recount()
	p.reportWithdrawn(leaseOverReason, gone...)
	h.w.after(0, h.fill)
}

// deliver delivers a message to the helper. A stopped helper handles it after it continues.
func (p *helper) deliver(do func(*helper)) {
	p.whenContinued(func() {
		p.receivedAt = p.h.w.now
		do(p)
	})
}

func (p *helper) whenContinued(do func()) {
	w := p.h.w
	switch {
	case !p.alive:
	case w.now < p.stoppedUntil:
		w.after(p.stoppedUntil-w.now, func() { p.whenContinued(do) })
	default:
		do()
	}
}

// inputEnded handles the end of the helper's input: the helper exits soon.
func (p *helper) inputEnded() {
	p.h.w.after(p.h.w.between(0, time.Second), func() { p.whenContinued(func() { p.leave("the channel ended") }) })
}

// leave ends the process. A helper that a newer dispatcher has shut out reports that first.
func (p *helper) leave(why string) {
	if !p.alive {
		return
	}
	h := p.h
	h.w.logf("the helper of epoch %d on %s leaves: %s", p.epoch, h.name, why)
	if h.fence > p.epoch {
		p.sendEvent(sched.HostRefused{Host: h.name,
			Msg: &hosts.Refused{FencedBy: h.fence, Why: "a newer dispatcher owns this run"}})
	}
	p.die(why)
}

func (p *helper) die(why string) {
	if !p.alive {
		return
	}
	p.alive = false
	p.link.reportBroken(p.h.w.between(0, 50*time.Millisecond), broken(p.h, why))
}

func broken(h *host, why string) error {
	return &hosts.Error{Host: h.name, Class: hosts.Broken, Err: errors.New(why)}
}

// newerEpoch returns the epoch that forbids the helper to carry out a command, or 0 if none does.
func (p *helper) newerEpoch(epoch int) int {
	if p.h.fence > epoch {
		return p.h.fence
	}
	return 0
}

func (p *helper) refuse(ids []jobs.AttemptID, by int) {
	p.sendEvent(sched.HostRefused{Host: p.h.name, Msg: &hosts.Refused{Attempts: ids, FencedBy: by,
		Why: fmt.Sprintf("a newer dispatcher (epoch %d) owns this run", by)}})
}

// leaseOverReason is why a waiting job is withdrawn when its lease ends.
const leaseOverReason = "its lease ran out before a slot was free"

// reportWithdrawn reports attempts that will not start.
func (p *helper) reportWithdrawn(why string, ids ...jobs.AttemptID) {
	if len(ids) > 0 {
		p.sendEvent(sched.AttemptsWithdrawn{Host: p.h.name, Msg: &hosts.Withdrawn{Attempts: ids, Why: why}})
	}
}

// reportProbed reports the states of attempts.
func (p *helper) reportProbed(found ...hosts.ProbedJob) {
	if len(found) > 0 {
		p.sendEvent(sched.AttemptsProbed{Host: p.h.name, Msg: &hosts.Probed{Jobs: found}})
	}
}

// launch puts a batch of jobs into the spool, or refuses it.
func (p *helper) launch(m *hosts.Launch, placed []sched.LaunchItem) {
	h := p.h
	ids := make([]jobs.AttemptID, len(placed))
	for i := range placed {
		ids[i] = placed[i].Attempt
	}
	refuse := func(why string) {
		p.sendEvent(sched.HostRefused{Host: h.name, Msg: &hosts.Refused{Attempts: ids, Why: why}})
	}
	switch by := p.newerEpoch(m.Epoch); {
	case by != 0:
		p.refuse(ids, by)
		return
	case h.uptime() > m.ExpireUptime:
		ids = ids[:0]
		var known []hosts.ProbedJob
		for _, j := range placed {
			if k, ok := p.heldState(j.Attempt); ok {
				known = append(known, k) // it arrived in time before
			} else {
				ids = append(ids, j.Attempt)
			}
		}
		if len(ids) > 0 {
			refuse("the launch came too late")
		}
		p.reportProbed(known...)
		return
	case p.isSuperseded():
		refuse("another helper has taken over on this host")
		return
	}
	h.w.checkEpoch(h, m.Epoch, ids...)
	p.extend(m.ExpireUptime)
	var known []hosts.ProbedJob
	ids = nil
	for _, j := range placed {
		if k, ok := p.heldState(j.Attempt); ok {
			known = append(known, k)
			continue
		}
		if h.w.now < h.fullUntil {
			ids = append(ids, j.Attempt)
			continue
		}
		if h.everSpooled == nil {
			h.everSpooled = map[jobs.AttemptID]bool{}
		}
		h.everSpooled[j.Attempt] = true
		h.spool = append(h.spool, spooled{j.Attempt, j.Spec, j.Timeout, j.GPUs})
		p.waiting.add(j.Attempt)
	}
	p.reportProbed(known...)
	if ids != nil {
		refuse("the spool could not take it: no space left on device")
	}
	h.fill()
}

// launchAgain delivers the second copy of a launch to the helper that serves the host by now. Of attempts
// that were withdrawn or refused no copy comes, because nothing guards against it, and a copy that would be
// refused is lost, because that refusal would say that an attempt has never started. So is one that would
// wait for a slot: later pings extend its lease, so it may outlast the claim.
func (h *host) launchAgain(kept keptLaunch) {
	p := h.helper
	if p == nil {
		return
	}
	p.deliver(func(p *helper) {
		placed := slices.DeleteFunc(kept.placed, func(j sched.LaunchItem) bool {
			_, held := p.heldState(j.Attempt)
			return !held && h.w.truth.factOf(j.Attempt) == nil
		})
		free := h.limit - h.numBusy()
		for _, j := range placed {
			free -= j.Spec.SlotCount()
		}
		if len(placed) > 0 && free >= 0 && h.boot == kept.boot && h.w.now >= h.fullUntil &&
			h.uptime() <= kept.m.ExpireUptime && p.newerEpoch(kept.m.Epoch) == 0 && !p.isSuperseded() {
			p.launch(kept.m, placed)
		}
	})
}

// heldState returns the state of an attempt that the helper holds already.
func (p *helper) heldState(id jobs.AttemptID) (hosts.ProbedJob, bool) {
	if p.running.has(id) {
		a := hosts.ProbedJob{Attempt: id, Answer: hosts.IsRunning}
		if r := p.h.heldAttempt(id); r != nil {
			r.answer(&a)
		}
		return a, true
	}
	return hosts.ProbedJob{Attempt: id, Answer: hosts.Buffered}, p.waiting.has(id)
}

// answer sets the answer for an attempt that a living supervisor holds. Until it has claimed the
// attempt, it may refuse it.
func (r *heldAttempt) answer(a *hosts.ProbedJob) {
	a.Answer = hosts.Buffered
	if r.claimed {
		a.Answer, a.Slot, a.Started = hosts.IsRunning, r.slot, r.started
	}
}

// pack packs attempts if the host keeps their files itself.
func (p *helper) pack(may func(jobs.AttemptID) bool) {
	h := p.h
	if h.shared || !h.isAnswering() {
		return
	}
	h.w.pack(&attempts.Packer{Disk: h.disk, Dir: h.dir, Host: h.name, May: func(id jobs.AttemptID) bool {
		_, held := p.heldState(id)
		return may(id) && !held
	}})
}

// forgetEnded forgets an attempt that has ended.
func (p *helper) forgetEnded(id jobs.AttemptID) {
	p.waiting.del(id)
	p.running.del(id)
}

// The functions with which a helper finds out what happened to attempts, and ends them.

// withdraw takes back buffered attempts. For those that have left the spool it reports their state.
func (p *helper) withdraw(ids []jobs.AttemptID) {
	var gone, rest []jobs.AttemptID
	for _, id := range ids {
		if p.takeBack(id) {
			gone = append(gone, id)
			continue
		}
		p.waiting.del(id)
		rest = append(rest, id)
	}
	p.reportWithdrawn("withdrawn", gone...)
	p.answer(rest)
}

// answer reports what the helper knows of attempts.
func (p *helper) answer(ids []jobs.AttemptID) {
	var found []hosts.ProbedJob
	for _, id := range ids {
		a, ok := p.heldState(id)
		if !ok {
			a = p.examine(id)
		}
		found = append(found, a)
	}
	p.reportProbed(found...)
}

// examine determines the state of an attempt from a sentinel, a living supervisor, or a claim. It
// reports "never started" only after it has created the status file itself.
func (p *helper) examine(id jobs.AttemptID) hosts.ProbedJob {
	h := p.h
	a := hosts.ProbedJob{Attempt: id}
	if !h.isAnswering() || h.w.oneInWhileFaults(25) {
		a.Why = "the file system does not answer"
		return a
	}
	r := h.heldAttempt(id)
	f, err := h.readFate(id)
	if f.State == attempts.Finished {
		a.Answer, a.Slot, a.Started, a.Outcome = hosts.HasExited, f.Slot, f.Outcome.Started, &f.Outcome
		return a
	}
	if r != nil && r.supervisorLives {
		r.answer(&a)
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
		if r != nil && r.processLives && h.w.oneInWhileFaults(6) {
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
	if r := h.heldAttempt(id); r != nil && !r.supervisorLives {
		r.die()
		h.dropHeld(r)
	}
}

// kill ends attempts, each independently of the others.
func (p *helper) kill(epoch int, ids []jobs.AttemptID) {
	var gone []jobs.AttemptID
	for _, id := range ids {
		if p.takeBack(id) {
			gone = append(gone, id)
		}
	}
	p.reportWithdrawn("killed", gone...)
	for _, id := range ids {
		if !slices.Contains(gone, id) {
			p.end(epoch, id)
		}
	}
}

// end stops one attempt that is no longer in the spool.
func (p *helper) end(epoch int, id jobs.AttemptID) {
	h := p.h
	r := h.heldAttempt(id)
	if r == nil || !r.supervisorLives {
		a := p.examine(id)
		if a.Answer == hosts.NeverStarted {
			p.reportWithdrawn("it had not started", id)
			return
		}
		p.reportProbed(a)
		return
	}
	p.running.add(id)
	h.w.checkEpoch(h, epoch, id)
	h.stop(r, h.w.between(0, 5*time.Second))
}

// stop ends a run's process within a grace period.
func (h *host) stop(r *heldAttempt, grace time.Duration) {
	if !r.processLives || r.isStopping {
		if r.claimed && !r.processLives && r.outcome == nil {
			h.w.after(time.Second, func() { // its process is about to start
				if r.isAlive() && h.heldAttempt(r.spooled.id) == r {
					h.stop(r, grace)
				}
			})
		}
		return
	}
	r.isStopping = true
	h.w.after(grace, func() {
		if r.processLives {
			h.endProcess(r, &jobs.Outcome{Signal: "SIGTERM", Stopped: true})
		}
	})
}

// list reports every attempt of which the host has files or processes.
func (p *helper) list(only jobs.Ranges) {
	h := p.h
	m := &hosts.Listed{Last: true, All: len(only) == 0}
	if !h.isAnswering() {
		m.Why = "the file system does not answer"
	} else {
		var ids idSet
		for _, s := range h.spool {
			ids.add(s.id)
		}
		for _, r := range h.heldAttempts { // those that a supervisor has taken
			ids.add(r.spooled.id)
		}
		err := attempts.EachFate(rundir.WithPacks(h.disk), h.dir, runUID, h.name, only, func(f attempts.Fate) error {
			if f.Host == h.name {
				ids.add(f.Attempt)
			}
			return nil
		})
		if err != nil {
			m.Why = err.Error()
		}
		for _, id := range ids {
			a, ok := p.heldState(id)
			switch {
			case !ok && h.w.damaged && h.w.oneInWhileFaults(4):
				a = hosts.ProbedJob{Attempt: id, Why: "its files cannot be read"}
			case !ok:
				a = p.examine(id)
			}
			m.Jobs = append(m.Jobs, a)
		}
	}
	p.sendEvent(sched.HostListed{Host: h.name, Msg: m})
}

// inspectOther reads the attempts of another host for the dispatcher.
func (p *helper) inspectOther(host string, ids []jobs.AttemptID) {
	h := p.h
	m := &hosts.Inspected{Host: host, Why: "the file system does not answer"}
	if h.isAnswering() {
		m = hosts.InspectDisk(h.disk, h.dir, runUID, host, ids)
	}
	p.sendEvent(sched.HostInspected{Via: h.name, Msg: m})
}
