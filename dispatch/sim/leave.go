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

// farewell is how long a dispatcher waits for its hosts at the end.
const farewell = 25 * time.Second

// leave says goodbye to the hosts, as dispatch/leave.go does. If the run is over (end), each host
// that had an attempt is cleaned before the end is recorded.
func (l *life) leave(end bool) {
	if l.leaving {
		return
	}
	l.leaving = true
	l.w.after(farewell, l.close)
	used := l.used()
	for _, a := range l.agents {
		a.bye, a.end, a.clean = true, end, !end || !used[a.spec.Name]
		switch {
		case a.link != nil:
			a.sayBye()
		case !a.clean:
			a.connect() // or keep the attempt that is under way
		default:
			a.hangUp()
			a.recordLeft()
		}
	}
}

// used returns the names of the hosts on which something of the run may be left.
func (l *life) used() map[string]bool {
	used := map[string]bool{}
	t := l.core.Table()
	if !l.loop.Ended() && t.Ended {
		return used
	}
	for i := range t.Jobs {
		for _, a := range t.Jobs[i].Attempts {
			used[a.Host] = true
		}
	}
	return used
}

var errLeft = errors.New("left")

func (a *agent) sayBye() {
	end := a.end
	a.link.toHost(func(p *helper) {
		if end {
			p.endRun()
		} else {
			p.leave("the dispatcher has taken leave")
		}
	})
}

// recordLeft records that the agent has ended.
func (a *agent) recordLeft() {
	if a.gone {
		return
	}
	a.gone = true
	if a.l.left++; a.l.left == len(a.l.agents) {
		a.l.close()
	}
}

// close records the end of the run if no host has anything of it left.
func (l *life) close() {
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
		unclean := 0
		for name := range l.used() { // including hosts that are not in this inventory
			a := l.agent(name)
			if a == nil && !slices.ContainsFunc(l.w.set(l.core.Table()), func(s *hosts.Host) bool { return s.Name == name }) {
				continue // it was removed for good
			}
			if name != "" && (a == nil || !a.clean) {
				unclean++
			}
		}
		out, err := l.loop.End(l.now(), unclean == 0, *l.finish)
		if out.FencedBy > 0 {
			l.fence(out.FencedBy)
			return
		}
		if out.Durable {
			l.show(&l.showing)
			l.show(&l.shown)
		}
		l.release(out.Commands)
		l.w.logf("%s leaves: %d hosts are not clean, %v", l.m.name, unclean, err)
		if unclean == 0 && err == nil && l.fencedBy == 0 && l.finish.How == sched.AllDone {
			l.w.over = true
			return
		}
		l.w.after(0, func() { l.die(false) })
	})
}

// endRun cleans a host. Nothing of the run is alive on it afterwards.
func (p *helper) endRun() {
	h, w := p.h, p.h.w
	if p.superseded() || h.fence > p.epoch {
		p.leave("another helper must end the run")
		return
	}
	p.takeBackAll()
	for _, r := range append([]*run(nil), h.runs...) {
		if r.sup {
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
	if !p.alive || p.superseded() || h.fence > p.epoch {
		p.leave("another helper must end the run")
		return
	}
	for _, r := range h.runs {
		r.sup = false
		r.die()
	}
	h.runs, h.in = nil, nil
	h.sealed, h.wedged = min(h.sealed, h.w.now), min(h.wedged, h.w.now)
	h.placeKeptFiles()
	p.alive = false
	p.link.reportBroken(h.w.between(0, 50*time.Millisecond), errLeft)
}

// shown is a result as the consumer gets it.
type shown struct {
	seq     int64
	job     jobs.ID
	round   int32
	state   jobs.JobState
	reason  string
	outcome jobs.Outcome
}

func shownOf(j *jobs.Job) shown {
	s := shown{seq: j.Seq, job: j.Spec.ID, round: j.Round, state: j.State, reason: j.Reason}
	for _, a := range j.Attempts {
		if o := a.Outcome; a.Round == j.Round && a.State == jobs.AttemptExited && o != nil && (o.OK() || j.State != jobs.Succeeded) {
			s.outcome = *o
			s.outcome.LastLine = ""
		}
	}
	return s
}

// consumer reads the results. It gets each at least once, and acknowledges it.
type consumer struct {
	got  map[int64]shown
	most int64
}

func (c *consumer) init() { c.got = map[int64]shown{} }

// receive receives a result.
func (c *consumer) receive(l *life, s shown) {
	w := l.w
	w.checkShown(s)
	c.got[s.seq] = s
	c.most = max(c.most, s.seq)
	if w.choices.Draw(4) > 0 {
		return // it is acknowledged with a later one
	}
	w.after(w.between(0, 5*time.Second), func() {
		if l := w.owner(); l != nil {
			l.tell(sched.Acked{Seq: c.most})
		}
	})
}

// redeliver delivers the results that were not acknowledged to an earlier dispatcher.
func (c *consumer) redeliver(l *life, t *jobs.Table) {
	var waiting []*jobs.Job
	for i := range t.Past {
		waiting = append(waiting, &t.Past[i])
	}
	for i := range t.Jobs {
		if j := &t.Jobs[i]; j.State.Terminal() && j.Seq > t.Acked {
			waiting = append(waiting, j)
		}
	}
	slices.SortFunc(waiting, func(a, b *jobs.Job) int { return cmp.Compare(a.Seq, b.Seq) })
	for _, j := range waiting {
		c.receive(l, shownOf(j))
	}
}
