package dispatch

import (
	"context"
	"errors"
	"fmt"
	"slices"

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
	return d.ask(ctx, text, func(*engine) []sched.Event { return do })
}

// waitingAtOnce is how many jobs CancelWaiting looks at in one visit to the engine.
const waitingAtOnce = 20_000

// CancelWaiting is Ask for a Cancel of those of the jobs that have not been handed to
// any host at the moment when it is carried out; the others are left alone.
func (d *Dispatcher) CancelWaiting(ctx context.Context, text, why string, ids []jobs.ID) (all Asked, err error) {
	for part := range slices.Chunk(ids, waitingAtOnce) {
		left := 0
		is, err := d.ask(ctx, text, func(e *engine) []sched.Event {
			var wait []jobs.ID
			for _, id := range part {
				switch e.core.Standing(id) {
				case sched.IsReady, sched.Retrying, sched.Waits, sched.Overtaken:
					wait = append(wait, id)
				}
			}
			left = len(part) - len(wait)
			return []sched.Event{sched.Cancel{Jobs: wait, Why: why}}
		})
		if err != nil {
			return all, err
		}
		all.Did, all.Left = all.Did+is.Did, all.Left+is.Left+left
		all.Ended = append(all.Ended, is.Ended...)
		text = "" // was said for all of them
	}
	slices.Sort(all.Ended) // what was skipped with one part may come after the next
	all.Ended = slices.Compact(all.Ended)
	return all, nil
}

// ask has the core carry out what do says, in the engine's goroutine.
func (d *Dispatcher) ask(ctx context.Context, text string, do func(*engine) []sched.Event) (Asked, error) {
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
		e.step(sched.Request{Name: a.name, Text: text, Do: do(e)})
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

// hear notes what a record says of requests that somebody waits for. The core carries
// out one after the other: what comes before the end of another is not of this one.
// What is skipped because of it may come behind its own end.
func (e *engine) hear(r *jobs.Record) {
	for _, a := range e.asked {
		switch {
		case r.Kind == jobs.KindRequest && r.Request == a.name:
			a.is.Did, a.is.Left, a.done = r.Count, r.N, true
		case r.Kind == jobs.KindRequest && !a.done:
			a.effect = sched.Effect{}
		case !a.done || r.Next == jobs.Skipped:
			a.effect.See(r)
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
