package sim

import (
	"slices"
	"time"

	"dcs-tui/dispatch/sched"
	"dcs-tui/jobs"
)

// What people ask of hosts (D7) holds over the deaths of dispatchers, until they take it back.

func askDrainHost(w *World) bool {
	h := w.hosts[w.tape.Draw(len(w.hosts))]
	name, now := h.name, w.tape.Draw(2) == 1
	if !w.ask(func(l *life) sched.Event { return sched.DrainHost{Host: name, On: true, Now: now} }) {
		return false
	}
	w.takeBack(w.between(time.Second, 60*time.Second), sched.DrainHost{Host: name}, func(t *jobs.Table) bool { return t.Hosts[name].Use == jobs.HostUsed })
	return true
}

// askSlots gives a host other slots than its rule, for a time.
func askSlots(w *World) bool {
	h := w.hosts[w.tape.Draw(len(w.hosts))]
	name, n := h.name, 1+w.tape.Draw(8)
	if !w.ask(func(l *life) sched.Event { return sched.SetSlots{Host: name, Slots: n} }) {
		return false
	}
	w.takeBack(w.between(time.Second, 90*time.Second), sched.SetSlots{Host: name}, func(t *jobs.Table) bool { return t.Hosts[name].Slots == 0 })
	return true
}

// takeBack tells whoever dispatches then, and again, until nothing of the wish is left,
// neither with the dispatcher nor in the journal. People go on looking: what a dispatcher has
// written of the wish may be found by the next one though it was never durable, and what
// took it back may be lost with damage.
func (w *World) takeBack(after time.Duration, ev sched.Event, gone func(*jobs.Table) bool) {
	w.after(after, func() {
		again := 5 * time.Second
		if l := w.up(); l != nil && l.epoch == w.ledger.epoch && gone(l.core.Table()) && gone(w.ledger.table) {
			again = time.Minute
		} else if l != nil {
			l.tell(ev)
		}
		w.takeBack(again, ev, gone)
	})
}

// enterWish takes the durable record of a wish in, without jobs.Fold.
func (w *World) enterWish(r *jobs.Record) {
	w.ledger.wishes[r.Host] = jobs.HostWish{Use: jobs.HostUse(r.Count), Slots: int32(r.Slot)}
	w.ledger.wished = true
}

// inherits lets a dispatcher know what people asked of hosts before.
func (l *life) inherits() {
	l.drained, l.given = map[string]bool{}, map[string]int{}
	for name, wish := range l.w.ledger.wishes {
		l.drained[name] = wish.Use != jobs.HostUsed
		if wish.Slots > 0 {
			l.given[name] = int(wish.Slots)
		}
	}
	l.asked = l.w.ledger.paused
	l.w.ledger.wished = true
}

// wished keeps what people ask of hosts.
func (l *life) wished(ev sched.Event) {
	known := func(name string) bool { // else the request is refused
		return l.isHost(name) && slices.ContainsFunc(l.core.Hosts(), func(h sched.HostView) bool { return h.Name == name })
	}
	switch ev := ev.(type) {
	case sched.SetSlots:
		if !known(ev.Host) {
			return
		}
		l.given[ev.Host] = ev.Slots
		l.w.given[ev.Host] = max(l.w.given[ev.Host], ev.Slots)
	case sched.DrainHost:
		if !known(ev.Host) {
			return
		}
		l.drained[ev.Host] = ev.On
	}
}

// checkWishes compares what the core makes of its hosts with what the journal says that
// people asked for, when that has changed and when a dispatcher begins.
func (w *World) checkWishes(l *life) {
	g := &w.ledger
	if !g.wished {
		return
	}
	g.wished = false
	for _, v := range l.core.Hosts() {
		if !l.isHost(v.Name) {
			continue
		}
		is := jobs.HostWish{Slots: int32(v.Given)}
		switch {
		case v.Stopped:
			is.Use = jobs.HostStopped
		case v.Draining:
			is.Use = jobs.HostDrained
		}
		if want := g.wishes[v.Name]; is != want {
			w.broken(WishesHold, "%s: %+v, and it was asked for %+v", v.Name, is, want)
		}
	}
}
