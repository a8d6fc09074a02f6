package dispatch

import (
	"time"

	"dcs-tui/dispatch/sched"
)

// leave begins the end: the hosts are told, the loop goes on until they have
// gone, so that what could not be ended is still written down.
func (e *engine) leave() {
	if e.leaving {
		return
	}
	if e.finish == nil {
		e.step(sched.Stop{Why: "closed"})
		e.commit()
	}
	e.leaving = true
	e.deadline = time.Now().Add(farewell + 2*time.Duration(e.cfg.Open.GraceSeconds*float64(time.Second)))
	// Children that jobs left behind end with the run, unless jobs still run.
	clean := e.finish != nil && (e.finish.How == sched.AllDone || e.finish.How == sched.Drained)
	for _, a := range e.agents {
		if !a.give(goodbye{end: clean}) {
			a.cut()
		}
	}
}

// over says whether the loop may end: everybody has gone, or it took too long.
func (e *engine) over() bool {
	return e.leaving && (e.gone == len(e.agents) || !time.Now().Before(e.deadline))
}

// close ends what is left of the agents and says how the run ended.
func (e *engine) close() {
	for _, a := range e.agents {
		a.cut()
	}
	for e.gone < len(e.agents) { // cut agents end by themselves; their last words are dropped
		if in := <-e.d.inputs; in.call != nil {
			in.call(e)
		}
	}
	e.commit()
	if e.finish != nil {
		e.d.finish = *e.finish
	} else {
		e.d.finish = sched.Finish{How: sched.Stopped}
	}
	e.d.finishErr = e.journal
}
