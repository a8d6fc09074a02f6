package dispatch

import (
	"context"
	"errors"
	"fmt"

	"dcs-tui/dispatch/sched"
	"dcs-tui/jobs"
)

// ErrLeaving is the error of what is asked when the run is over and its dispatcher
// takes leave of the hosts: nothing was done.
var ErrLeaving = errors.New("the dispatcher is just ending")

// closedTo says why nothing can be asked of the core any more; nil: it can.
func (e *engine) closedTo() error {
	switch {
	case e.fencedBy > 0:
		return errEnded
	case e.finish != nil || e.leaving:
		return ErrLeaving
	}
	return nil
}

// Asked is what came of a request.
type Asked struct {
	Did   int       // jobs that it was carried out for
	Left  int       // the others
	Ended []jobs.ID // of a cancel: what a Requeue must name to bring everything back (sched.Undo), ascending
}

// asked is a request whose record has not been seen yet.
type asked struct {
	name   string
	is     Asked
	effect sched.Effect
	done   bool
	answer chan Asked // room for one; closed: nobody carries it out any more
}

// Ask has the core carry out what was asked for and returns when it is. Of very
// many jobs that takes several of the core's steps. The name is given here; text is
// an event for people.
func (d *Dispatcher) Ask(ctx context.Context, text string, do ...sched.Event) (Asked, error) {
	a := &asked{answer: make(chan Asked, 1)}
	var closed error
	if err := d.inside(ctx, func(in *Inside) {
		e := in.e
		if closed = e.closedTo(); closed != nil {
			return
		}
		e.askedSoFar++
		a.name = fmt.Sprintf("screen.%d.%d", d.cfg.Open.Epoch, e.askedSoFar)
		e.asked = append(e.asked, a)
		e.step(sched.Request{Name: a.name, Text: text, Do: do})
	}); err != nil {
		return Asked{}, err
	}
	if closed != nil {
		return Asked{}, closed
	}
	select {
	case is, ok := <-a.answer:
		if !ok {
			return Asked{}, errEnded
		}
		return is, nil
	case <-ctx.Done():
		return Asked{}, ctx.Err()
	case <-d.done:
		return Asked{}, errEnded
	}
}

// hear notes what a record says of requests that somebody waits for.
func (e *engine) hear(r *jobs.Record) {
	for _, a := range e.asked {
		a.effect.See(r)
		if r.Kind == jobs.KindRequest && r.Reason == a.name {
			a.is.Did, a.is.Left, a.done = r.Count, r.N, true
		}
	}
}

// answer tells those whose request has been carried out, at the end of a step.
func (e *engine) answer() {
	kept := e.asked[:0]
	for _, a := range e.asked {
		if a.done {
			a.is.Ended = e.core.Undo(&a.effect)
			a.answer <- a.is
		} else {
			kept = append(kept, a)
		}
	}
	clear(e.asked[len(kept):])
	e.asked = kept
}

// Order gives events to the core that are not about jobs, with a line for people
// that is kept in the journal, and returns when the core has them.
func (d *Dispatcher) Order(ctx context.Context, n Notice, events ...sched.Event) error {
	var closed error
	err := d.inside(ctx, func(in *Inside) {
		e := in.e
		if closed = e.closedTo(); closed != nil {
			return
		}
		if n.Text != "" {
			e.note(n)
		}
		for _, ev := range events {
			e.step(ev)
		}
	})
	if err == nil {
		err = closed
	}
	return err
}
