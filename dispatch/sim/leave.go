package sim

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"dcs-tui/dispatch/sched"
	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// leaveTimeout is how long a dispatcher waits for its hosts at the end.
const leaveTimeout = 25 * time.Second

// leave parts from the hosts, as dispatch/leave.go does. If the run is over (end), each host
// that had an attempt is cleaned before the end is recorded.
func (l *dispatcher) leave(end bool) {
	if l.leaving {
		return
	}
	l.leaving = true
	l.w.after(leaveTimeout, l.close)
	used := l.used()
	for _, a := range l.agents {
		a.isLeaving, a.endRun, a.clean = true, end, !end || !used[a.spec.Name]
		switch {
		case a.link != nil:
			a.sayGoodbye()
		case !a.clean:
			a.connect() // or keep the attempt that is under way
		default:
			a.hangUp()
			a.recordLeft()
		}
	}
}

// used returns the names of the hosts on which something of the run may be left.
func (l *dispatcher) used() map[string]bool {
	used := map[string]bool{}
	t := l.core.Table()
	if !l.loop.Ended() && t.Ended {
		return used
	}
	for j := range t.Rows() {
		for _, a := range j.Attempts {
			used[a.Host] = true
		}
	}
	return used
}

var errLeft = errors.New("left")

func (a *agent) sayGoodbye() {
	end := a.endRun
	a.link.toHost(func(p *helper) {
		if end {
			p.cleanHost()
		} else {
			p.leave("the dispatcher has taken leave")
		}
	})
}

// recordLeft records that the agent has ended.
func (a *agent) recordLeft() {
	if a.hasEnded {
		return
	}
	a.hasEnded = true
	a.l.numAgentsEnded++
	if a.l.numAgentsEnded == len(a.l.agents) {
		a.l.close()
	}
}

// close records the end of the run if no host has anything of it left.
func (l *dispatcher) close() {
	if l.dead || l.closing {
		return
	}
	if l.loop.IsWriting() {
		l.w.after(100*time.Millisecond, l.close)
		return
	}
	l.closing = true
	l.enqueue(func() {
		if l.loop.IsWriting() {
			l.closing = false
			l.w.after(0, l.close)
			return
		}
		unclean, dead := 0, 0
		for name := range l.used() { // including hosts that are not in this inventory
			a := l.agent(name)
			if a == nil && !slices.ContainsFunc(l.w.hostSet(l.core.Table()),
				func(s *hosts.Host) bool { return s.Name == name }) {
				continue // it was removed for good
			}
			if name != "" && (a == nil || !a.clean) {
				unclean++
				if h := l.w.machineOf(name); h != nil && h.isDead {
					dead++
				}
			}
		}
		out, err := l.loop.End(l.now(), unclean == 0, *l.finish)
		if out.FencedBy > 0 {
			l.fence(out.FencedBy)
			return
		}
		if out.Durable {
			l.show(&l.writingResults)
			l.show(&l.pendingResults)
		}
		l.release(out.Commands)
		l.w.logf("%s leaves: %d hosts are not clean, %v", l.m.name, unclean, err)
		// The end of a run with dead hosts is not recorded, and every further dispatcher tries again.
		if unclean == dead && err == nil && l.fencedBy == 0 && l.finish.How == sched.AllDone {
			l.w.over = true
			return
		}
		l.w.after(0, func() { l.die(false) })
	})
}

// cleanHost cleans a host. Nothing of the run is alive on it afterwards.
func (p *helper) cleanHost() {
	h, w := p.h, p.h.w
	if p.isSuperseded() || h.fence > p.epoch {
		p.leave("another helper must end the run")
		return
	}
	p.takeBackAll()
	for _, r := range append([]*heldAttempt(nil), h.heldAttempts...) {
		if r.supervisorLives {
			h.stop(r, w.between(0, 5*time.Second))
		} else {
			r.die()
		}
	}
	w.after(6*time.Second, func() { p.dismiss() })
}

// dismiss ends the supervisors and the helper.
func (p *helper) dismiss() {
	h := p.h
	if !p.alive || p.isSuperseded() || h.fence > p.epoch {
		p.leave("another helper must end the run")
		return
	}
	for _, r := range h.heldAttempts {
		r.supervisorLives = false
		r.die()
	}
	h.heldAttempts, h.spool = nil, nil
	h.sentinelsFailUntil, h.hungUntil = min(h.sentinelsFailUntil, h.w.now), min(h.hungUntil, h.w.now)
	h.placeKeptFiles()
	p.pack(func(jobs.AttemptID) bool { return true })
	p.alive = false
	p.link.reportBroken(h.w.between(0, 50*time.Millisecond), errLeft)
}

// shownResult is a result as the consumer gets it.
type shownResult struct {
	seq     int64
	job     jobs.ID
	round   int32
	state   jobs.JobState
	reason  string
	outcome jobs.Outcome
}

func shownResultOf(j *jobs.Job) shownResult {
	s := shownResult{seq: j.Seq, job: j.Spec.ID, round: j.Round, state: j.State, reason: j.Reason}
	if a := j.CountedAttempt(); a != nil && a.Outcome != nil {
		s.outcome = *a.Outcome
		s.outcome.LastLine = ""
	}
	return s
}

// consumer reads the results. It gets each at least once, and acknowledges it.
type consumer struct {
	got    map[int64]shownResult
	maxSeq int64
}

func (c *consumer) init() { c.got = map[int64]shownResult{} }

// receive receives a result.
func (c *consumer) receive(l *dispatcher, s shownResult) {
	w := l.w
	w.checkShown(s)
	c.got[s.seq] = s
	c.maxSeq = max(c.maxSeq, s.seq)
	if w.choices.Draw(4) > 0 {
		return // it is acknowledged with a later one
	}
	w.after(w.between(0, 5*time.Second), func() {
		if l := w.owner(); l != nil {
			l.queueReport(sched.Acked{Seq: c.maxSeq})
		}
	})
}

// redeliver delivers the results that were not acknowledged to an earlier dispatcher.
func (c *consumer) redeliver(l *dispatcher, t *jobs.Table) {
	var waiting []*jobs.Job
	for i := range t.Past {
		waiting = append(waiting, &t.Past[i])
	}
	for j := range t.Rows() {
		if j.State.Terminal() && j.Seq > t.Acked {
			waiting = append(waiting, t.Job(j.Spec.ID))
		}
	}
	slices.SortFunc(waiting, func(a, b *jobs.Job) int { return cmp.Compare(a.Seq, b.Seq) })
	for _, j := range waiting {
		c.receive(l, shownResultOf(j))
	}
}
