package sim

import (
	"reflect"
	"strings"
	"time"

	"dcs-tui/dispatch/ring"
	"dcs-tui/dispatch/sched"
	"dcs-tui/hosts"
	"dcs-tui/jobs"
	"dcs-tui/jobs/journal"
)

// What is checked while a dispatcher works.

// checkTake compares what a dispatcher begins with to the ledger.
func (w *World) checkTake(l *life, t *jobs.Table, report *journal.Report) {
	g := &w.ledger
	l.sights = map[string]*hosts.Host{}
	l.heard, l.listed, l.words = map[*host]time.Duration{}, map[*host]time.Duration{}, map[settles]bool{}
	if w.unread {
		w.unread = false
		g.renew(w, t)
		return
	}
	if report.Damaged && !w.damaged {
		w.broken(ReplayIsState, "the journal of epoch %d is taken for damaged: %v", l.epoch, report.Warnings)
	}
	s := g.table
	if t.Seq != s.Seq || t.Acked != s.Acked || t.Epoch != s.Epoch || t.Ended != s.Ended || t.Paused != s.Paused || t.Counts != s.Counts ||
		!same(t.Cancels, s.Cancels) || !same(t.Requests, s.Requests) || !same(t.Hosts, s.Hosts) ||
		!same(t.Machines, s.Machines) || !same(t.At, s.At) || !same(t.Inventory, s.Inventory) || !same(t.Instances, s.Instances) {
		w.broken(ReplayIsState, "epoch %d: %+v, and the journal says %+v", l.epoch, brief(t), brief(s))
	}
	if len(t.Jobs) != len(s.Jobs) {
		w.broken(ReplayIsState, "epoch %d has %d jobs, and the journal %d", l.epoch, len(t.Jobs), len(s.Jobs))
	}
	for i := range t.Jobs {
		if why := differ(&t.Jobs[i], &s.Jobs[i]); why != "" {
			w.broken(ReplayIsState, "epoch %d: job %d: %s", l.epoch, i+1, why)
		}
	}
	g.touched = g.touched[:0]
}

func same[K comparable, V any](a, b map[K]V) bool {
	return len(a) == len(b) && (len(a) == 0 || reflect.DeepEqual(a, b))
}

type summary struct {
	Seq, Acked int64
	Epoch      int
	Ended      bool
	Counts     [jobs.Skipped + 1]int
}

func brief(t *jobs.Table) summary { return summary{t.Seq, t.Acked, t.Epoch, t.Ended, t.Counts} }

// differ says how two accounts of a job differ, "" if they do not.
func differ(a, b *jobs.Job) string {
	switch {
	case a.State != b.State || a.Seq != b.Seq || a.Round != b.Round || a.Failures != b.Failures || a.Retry != b.Retry ||
		a.Reason != b.Reason || a.Priority != b.Priority || a.Urgent != b.Urgent || !a.Spec.Same(b.Spec):
		return "its rows differ: " + text(*a) + " and " + text(*b)
	case len(a.Attempts) != len(b.Attempts):
		return "their numbers of attempts differ"
	}
	for i, x := range a.Attempts {
		y := b.Attempts[i]
		p, q := *x, *y
		p.Outcome, q.Outcome = nil, nil
		if p != q || (x.Outcome == nil) != (y.Outcome == nil) || x.Outcome != nil && *x.Outcome != *y.Outcome {
			return "attempt " + x.ID.String() + ": " + text(*x) + " and " + text(*y)
		}
	}
	return ""
}

// checkTurn looks at a dispatcher at the end of a turn, before its orders go.
func (w *World) checkTurn(l *life, out *ring.Out) {
	if n := l.core.Defects; n != 0 {
		w.broken(CoreHasNoDefects, "%d of them", n)
	}
	if at, ok := l.ring.Next(); ok && at < l.now().Mono && at != 0 {
		w.broken(TimeGoesOn, "at %v a tick is wanted at %v", l.now().Mono, at)
	}
	g := &w.ledger
	if !out.Durable || l.epoch != g.epoch || l.fencedBy > 0 {
		return
	}
	t, s := l.core.Table(), g.table
	w.checkStopped(l, t)
	w.checkWishes(l)
	if t.Seq != s.Seq || t.Acked != s.Acked || t.Counts != s.Counts || len(t.Jobs) != len(s.Jobs) || !same(t.Cancels, s.Cancels) || !same(t.Hosts, s.Hosts) {
		w.broken(JournalIsState, "live %+v, journal %+v", brief(t), brief(s))
	}
	for _, id := range g.touched {
		if why := differ(t.Job(id), s.Job(id)); why != "" {
			w.broken(JournalIsState, "job %d: %s", id, why)
		}
	}
	g.touched = g.touched[:0]
}

// checkRecord looks at a decision when it is made.
func (w *World) checkRecord(l *life, r *jobs.Record) {
	switch r.Kind {
	case jobs.KindLaunching:
		if w.entered(r) {
			return
		}
		w.checkHardness(l.core.Table(), r)
		if l.asked {
			w.broken(PauseHolds, "%s is launched", r.Attempt())
		}
		w.checkPlace(l, r)
		w.checkLimits(l, r)
		if l.drained[r.Host] {
			w.broken(DrainedHolds, "%s is launched on %s", r.Attempt(), r.Host)
		}
		if l.owned[r.Host] {
			w.broken(OwnersHold, "%s is launched on %s", r.Attempt(), r.Host)
		}
	case jobs.KindLost:
		w.checkLost(l, r)
	case jobs.KindRunning, jobs.KindExited, jobs.KindSuperseded, jobs.KindCancelled:
		w.checkSettled(l, r)
	}
}

// checkLost holds that an attempt is given up only when it is dead, or when its host
// has been silent for as long as its rule says, or when it is a copy whose job is over.
func (w *World) checkLost(l *life, r *jobs.Record) {
	if strings.HasPrefix(r.Reason, "its job has a result") && w.cfg.Copies > 1 && r.Next.Terminal() && r.Seq == 0 {
		return
	}
	if f := w.truth.of(r.Attempt()); !strings.Contains(r.Reason, "its host "+r.Host+" is lost") {
		if f != nil && f.alive {
			w.broken(NotLostEarly, "%s is recorded as lost (%s), and it runs", r.Attempt(), r.Reason)
		}
		w.checkSettled(l, r)
		return // it is taken for dead: that it never starts again is seen elsewhere
	}
	h := l.launchedOn(r.Attempt())
	if w.damaged && h == nil {
		h = w.machineOf(r.Host)
	}
	if h == nil {
		return // after damage nobody knows where it was
	}
	silent, rule := l.now().Mono-l.heard[h], w.patience[r.Host]
	if silent < rule {
		w.broken(NotLostEarly, "%s is given up (%s) after %v without a beat of %s", r.Attempt(), r.Reason, silent, r.Host)
	}
}

// heardBy keeps what a dispatcher has heard and was asked.
func (w *World) heardBy(l *life, ev sched.Event) {
	switch ev := ev.(type) {
	case sched.Pause:
		l.asked = ev.On
	case sched.Cancel:
		w.people.cancels(l, ev)
	case sched.Request:
		if l.core.Table().Requests[ev.Name] || ev.Epoch != 0 && ev.Epoch != l.epoch {
			return // it is not carried out
		}
		for _, do := range ev.Do {
			w.heardBy(l, do)
		}
	case sched.HostUp:
		l.owned[ev.Host] = ev.Hello.Owner.Who != ""
	case sched.HostBeat:
		l.owned[ev.Host] = ev.Beat.Owner.Who != ""
	case sched.SetHosts:
		l.takeSet(ev.Hosts)
	case sched.SetTokens:
		l.tokens = ev.Tokens
	case sched.SetSlots, sched.DrainHost:
		l.wished(ev)
	}
}

// checkLimit looks at how many slots a host may have busy, as a dispatcher tells it. What
// waits for the journal may be a little older than what was asked last.
func (w *World) checkLimit(l *life, o sched.SetLimit) {
	most := w.most(o.Host)
	if len(l.given) == 0 {
		most = w.ruled[o.Host]
	}
	if o.Slots < 0 || o.Slots > most {
		w.broken(SlotsHold, "%s may have %d slots busy and has %d", o.Host, o.Slots, most)
	}
}

// checkLaunch looks at a launch that leaves a dispatcher.
func (w *World) checkLaunch(l *life, o *sched.Launch) {
	for _, p := range o.Jobs {
		if _, ok := l.handed[p.Attempt]; ok {
			w.broken(LaunchedOnce, "%s leaves again", p.Attempt)
		}
		if l.handed == nil {
			l.handed = map[jobs.AttemptID]given{}
		}
		l.handed[p.Attempt] = given{p.GPUs, shareOf(p.Spec)}
		if len(p.GPUs) != p.Spec.GPUs.Devices() {
			w.broken(SlotsHold, "%s gets GPUs %v and wants %s", p.Attempt, p.GPUs, p.Spec.GPUs)
		}
		w.checkGPUs(l, p.Attempt)
		if l.epoch != w.ledger.epoch {
			continue // another has taken over: whether it starts is what counts
		}
		if e := w.ledger.entry(p.Attempt); e == nil || e.host != o.Host {
			w.broken(RecordBeforeOrder, "%s leaves for %s", p.Attempt, o.Host)
		}
	}
}

// checkAccepted looks at a launch that a host takes.
func (w *World) checkAccepted(h *host, epoch int, ids []jobs.AttemptID) {
	if epoch < h.fence {
		w.broken(FencedChanges, "%s takes %v from epoch %d and knows epoch %d", h.name, ids, epoch, h.fence)
	}
}

// checkKill looks at a kill that a host carries out.
func (w *World) checkKill(from *life, h *host, id jobs.AttemptID) {
	if from.epoch < h.fence {
		w.broken(FencedChanges, "%s ends %s for epoch %d and knows epoch %d", h.name, id, from.epoch, h.fence)
	}
}

// checkFence looks at a dispatcher that stops because there is a newer one.
func (w *World) checkFence(l *life, by int) {
	if by <= l.epoch || by > len(w.ledger.files) {
		w.broken(FenceIsTrue, "epoch %d stops because of epoch %d, and the newest is %d", l.epoch, by, len(w.ledger.files))
	}
}

// checkShown looks at a result that a consumer gets.
func (w *World) checkShown(s shown) {
	g := &w.ledger
	if s.seq < 1 || g.seqs[s.seq] != s.job {
		w.broken(ResultsDurable, "result %d of job %d is shown", s.seq, s.job)
	}
	old, ok := w.consumer.got[s.seq]
	if w.damaged && !g.byExit[s.seq] {
		old.outcome = s.outcome // it is no attempt's: which one is told of beside it hangs on records that are lost
	}
	if w.damaged {
		old.round = s.round // records of rounds, or what tells one from the next, may be lost
	}
	if ok && old != s {
		w.broken(ResultsSame, "result %d was %+v and is %+v", s.seq, old, s)
	}
}
