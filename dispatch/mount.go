package dispatch

import (
	"dcs-tui/dispatch/sched"
)

// mount looks at the shared directory through this machine's own mount. A
// mount can hang for as long as its server is gone, so each question is asked from a
// goroutine of its own, and none while one hangs: the core asks again.
type mount struct {
	d    *Dispatcher
	busy chan struct{} // room for one
}

func newMount(d *Dispatcher) mount { return mount{d, make(chan struct{}, 1)} }

func (m mount) look(o sched.Look) {
	if m.d.cfg.Look == nil {
		return
	}
	select {
	case m.busy <- struct{}{}:
	default:
		return
	}
	go func() {
		defer func() { <-m.busy }()
		seen := m.d.cfg.Look(o.Host, o.Attempts)
		if seen != nil {
			m.d.returns.notYet(seen)
		}
		m.d.send(input{ev: sched.HostLooked{Msg: seen}})
	}()
}
