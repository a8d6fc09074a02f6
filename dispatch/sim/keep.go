package sim

import (
	"time"

	"dcs-tui/dispatch/sched"
	"dcs-tui/hosts/onfile"
	"dcs-tui/jobs/journal"
)

// plan sees to it that there is a turn when the ring wants one.
func (l *life) plan() {
	at, ok := l.ring.Next()
	if !ok || l.fencedBy > 0 {
		return
	}
	w := l.w
	due := w.now + max(0, at-l.now().Mono)
	if l.wakeAt > w.now && l.wakeAt <= due {
		return
	}
	l.wakeAt = due
	w.agenda.add(due, func() {
		if l.dead || l.wakeAt != due {
			return
		}
		l.wakeAt = 0
		if at, ok := l.ring.Next(); ok && at > l.now().Mono {
			l.plan() // later than was planned
			return
		}
		l.tell(sched.Tick{})
	})
}

// keepHouse shows that it is alive and looks whether it still owns the run, apart
// from its turns: the run directory may hang.
func (l *life) keepHouse() {
	if l.dead {
		return
	}
	w := l.w
	w.after(3*time.Second, l.keepHouse)
	if l.paused > 0 {
		return
	}
	l.tell(sched.Tick{})
	if l.keeping || l.dead {
		return
	}
	l.keeping = true
	began := w.now
	beat := w.now-l.beatAt >= journal.BeatEvery
	if beat {
		l.beatAt = w.now
	}
	l.later(max(0, l.m.hangs-w.now), func() {
		var by int
		var err error
		if l.mortal(func() {
			if by, err = l.journal.Fenced(); beat && err == nil && by == 0 {
				_ = l.journal.Beat() // its sign of life may be late
			}
		}) {
			return
		}
		l.hear(func() {
			l.keeping = false
			if by > 0 {
				l.fence(by)
				return
			}
			if err == nil {
				l.ownedAt = began
			}
			if l.fencedBy == 0 && (err == nil || l.ring.Problem(l.now()) == nil) {
				l.ring.Obstruct(l.now(), err)
			}
		})
	})
}

// fence stops everything: another dispatcher owns the run.
func (l *life) fence(by int) {
	if l.fencedBy > 0 {
		return
	}
	l.w.logf("%s of epoch %d finds epoch %d: it stops", l.m.name, l.epoch, by)
	l.w.checkFence(l, by)
	l.fencedBy = by
	l.ring.Fence()
	l.shown, l.showing = nil, nil
	l.w.after(0, func() { l.die(false) }) // it says so and exits
}

// look asks the shared directory through the machine's own mount (X2).
func (l *life) look(o sched.Look) {
	w := l.w
	w.after(w.between(time.Millisecond, 50*time.Millisecond), func() {
		l.tellFrom(nil, sched.HostLooked{Msg: onfile.Look(l.share, "/share", runUID, o.Host, o.Attempts)})
	})
}
