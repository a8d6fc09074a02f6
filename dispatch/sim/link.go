package sim

import (
	"time"

	"dcs-tui/dispatch/sched"
)

// link is a connection between a dispatcher and a helper. What is sent arrives in
// order, or from some point on not at all. A network that is cut holds back what is
// under way: it may arrive when the cut heals, even if the dispatcher has closed its
// end meanwhile (DESIGN 5: a launch written into a cut link ran after it had healed).
type link struct {
	a        *agent
	h        *host
	p        *helper
	open     bool // the dispatcher's end
	closed   bool // it was, and is no more
	late     bool // what was under way when it was closed arrives all the same
	lost     bool // what is under way does not arrive, nor what follows
	toHostAt time.Duration
	toUsAt   time.Duration
	early    []sched.Event // reports that came before the hello was taken in
}

func (k *link) latency() time.Duration {
	w := k.h.w
	if w.noise(40) {
		return w.between(0, 3*time.Second)
	}
	return w.between(time.Millisecond, 20*time.Millisecond)
}

// toHost sends a message to the helper.
func (k *link) toHost(do func(*helper)) {
	w := k.h.w
	k.toHostAt = max(k.toHostAt, w.now+k.latency())
	w.agenda.add(k.toHostAt, func() { k.arrive(true, func() { k.p.get(do) }) })
}

// arrive delivers something at its time, or when the network heals.
func (k *link) arrive(toHost bool, do func()) {
	switch {
	case k.lost || toHost && !k.p.alive || !toHost && k.a.l.dead:
		return
	case toHost && k.closed && !k.late, !toHost && k.closed:
		return
	case !k.h.reachable(k.a.l.m):
		if k.h.w.tape.Draw(2) == 1 {
			k.lost = true
			return
		}
		k.h.waiting = append(k.h.waiting, func() { k.arrive(toHost, do) })
		return
	}
	do()
}

// report sends an event to the dispatcher, sometimes twice.
func (k *link) report(ev sched.Event) {
	w := k.h.w
	for n := 0; n == 0 || n < 3 && w.noise(12); n++ {
		k.toUsAt = max(k.toUsAt, w.now+k.latency())
		w.agenda.add(k.toUsAt, func() {
			k.arrive(false, func() {
				if !k.open {
					k.early = append(k.early, ev)
					return
				}
				k.a.l.tellFrom(k.h, ev)
			})
		})
	}
}

// flush passes on what came before the dispatcher had taken the hello in.
func (k *link) flush() {
	for _, ev := range k.early {
		k.a.l.tellFrom(k.h, ev)
	}
	k.early = nil
}

// close is the dispatcher's end of it. The helper hears of it if eof is set and
// the network lets it.
func (k *link) close(eof bool) {
	if k.closed {
		return
	}
	w := k.h.w
	k.open, k.closed = false, true
	k.late = !w.calm() && w.tape.Draw(3) == 1
	if eof {
		k.toHostAt = max(k.toHostAt, w.now+k.latency())
		w.agenda.add(k.toHostAt, k.eof)
	}
}

func (k *link) eof() {
	switch {
	case !k.p.alive:
	case !k.h.reachable(k.a.l.m):
		k.h.waiting = append(k.h.waiting, k.eof)
	default:
		k.p.hearsEnd()
	}
}

// broken tells the dispatcher that the helper's end of it is gone.
func (k *link) broken(after time.Duration, why error) {
	w := k.h.w
	k.toUsAt = max(k.toUsAt, w.now+after)
	w.agenda.add(k.toUsAt, func() { k.arrive(false, func() { k.a.ended(k, why) }) })
}
