package sim

import (
	"iter"
	"time"
)

// The faults of dispatchers.

// owner returns the dispatcher that owns the run, which may be stopped, or nil if there is none.
func (w *World) owner() *dispatcher {
	if l := w.dispatcher; l != nil && l.loop != nil {
		return l
	}
	return nil
}

// liveDispatchers yields the dispatchers that live and have read the run, including stopped ones and
// those that another one has tried to take the run over from.
func (w *World) liveDispatchers() iter.Seq[*dispatcher] {
	return func(yield func(*dispatcher) bool) {
		for _, l := range w.dispatchers {
			if !l.dead && l.loop != nil && !yield(l) {
				return
			}
		}
	}
}

// runningDispatcher returns the running dispatcher, or nil if there is none.
func (w *World) runningDispatcher() *dispatcher {
	if l := w.owner(); l != nil && l.numPauses == 0 {
		return l
	}
	return nil
}

// onDispatcher makes a fault that needs a running dispatcher.
func onDispatcher(inject func(w *World, l *dispatcher) bool) func(*World) bool {
	return func(w *World) bool {
		l := w.runningDispatcher()
		return l != nil && inject(w, l)
	}
}

// turnPoints bounds how often a dispatcher passes each point of its turns before it dies there.
var turnPoints = [...]int{noPoint: 1, atDisk: 12, atWrite: 3, atRelease: 3, atCommand: 6}

// killDispatcher kills a dispatcher now, or at a point of one of its next turns.
func killDispatcher(w *World, l *dispatcher) bool {
	return l.dieAt(turnPoint(w.choices.Draw(len(turnPoints))), false)
}

func powerLoss(w *World, l *dispatcher) bool {
	return l.dieAt(turnPoint(1+w.choices.Draw(len(turnPoints)-1)), true)
}

func (l *dispatcher) dieAt(at turnPoint, power bool) bool {
	switch {
	case at == noPoint:
		l.die(power)
	case l.trigger.at != noPoint:
		return false
	default:
		l.trigger.killAt(at, 1+l.w.choices.Draw(turnPoints[at]), power)
	}
	return true
}

// stop stops a dispatcher (SIGSTOP) for a time.
func (l *dispatcher) stop(d time.Duration, woken func()) {
	l.numPauses++
	l.w.after(d, func() {
		if l.dead {
			return
		}
		l.numPauses--
		if l.numPauses == 0 {
			l.w.logf("%s is woken", l.mount.Name)
			woken()
			l.wake()
			l.enqueue(func() {}) // its timers are due
		}
	})
}

// stopAndWake stops a dispatcher, or lets its machine sleep.
func stopAndWake(w *World, l *dispatcher) bool {
	d, woken := w.longDuration(), func() {}
	if w.choices.Draw(2) == 1 {
		d *= 2
		woken = func() { l.slept += d }
	}
	l.stop(d, woken)
	return true
}

// takeOver stops a dispatcher. Another one takes the run over when the heartbeat is stale, or
// earlier by force. Then the first one wakes up or is killed.
func takeOver(w *World, l *dispatcher) bool {
	wait := w.within(w.size.takeover)
	if w.choices.Draw(2) == 1 {
		wait = w.within(w.size.forcedTakeover)
	}
	sleeps := wait + w.longDuration()
	if w.choices.Draw(8) == 7 {
		sleeps = wait / 2 // it wakes up before the takeover
	}
	l.stop(sleeps, func() {})
	w.after(wait, func() {
		if l.dead || w.dispatcher != l || w.isStarting {
			return
		}
		w.takeOverFromLive(l)
	})
	return true
}

// takeOverFromLive takes the run over from a live dispatcher.
func (w *World) takeOverFromLive(old *dispatcher) {
	m := w.machines[w.choices.Draw(len(w.machines))]
	wake := 0
	if w.choices.Draw(3) == 2 {
		wake = 1 + w.choices.Draw(20)
	}
	w.takeOverFrom(m, old, wake)
}

func takeByForce(w *World, l *dispatcher) bool {
	if w.isStarting {
		return false
	}
	w.takeOverFromLive(l)
	return true
}

func fullDisk(w *World, l *dispatcher) bool {
	l.m.fullUntil = w.now + w.longDuration()
	return true
}

func hangDisk(w *World, l *dispatcher) bool {
	l.m.hungUntil = w.now + w.within(w.size.hang)
	return true
}

// splitBrain lets another dispatcher take the run over while the run directory does not answer the
// first one. Each dispatcher reaches only some of the hosts.
func splitBrain(w *World, l *dispatcher) bool {
	if w.isStarting {
		return false
	}
	m := w.machines[w.choices.Draw(len(w.machines))]
	if m == l.m {
		return false
	}
	d := w.within(w.size.split)
	l.m.hungUntil = w.now + d
	for _, h := range w.hosts {
		switch w.choices.Draw(4) {
		case 0:
			h.cut(d+w.between(0, 10*time.Second), l.m)
		case 1, 2:
			h.cut(d+w.between(0, 10*time.Second), m)
		}
	}
	w.after(w.within(w.size.secondStart), func() {
		if l.dead || w.dispatcher != l || w.isStarting {
			return
		}
		w.startDispatcher(m)
	})
	return true
}
