package ring

import (
	"fmt"
	"time"

	"dcs-tui/dispatch/sched"
	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// Journal is where facts become durable; jobs/journal implements it.
type Journal interface {
	// Append takes records; they are durable when the next Sync returns nil.
	// After an error the records stay pending and the next Sync tries again.
	Append([]jobs.Record) error
	Sync() error
}

// RetryEvery is how often a journal that failed is tried again.
const RetryEvery = time.Second

// Ring is the state between the turns. It is not safe for concurrent use.
type Ring struct {
	// See, if set, is shown each record right after it was folded, before anything
	// else happens to its job; the record is not durable yet.
	See func(*jobs.Record)
	// Tell, if set, is given a line for people about the journal.
	Tell func(text string)

	core    *sched.Core
	journal Journal
	pending []jobs.Record // of this turn, not yet given to the journal
	held    []sched.Order // that wait until their records are durable
	out     []sched.Order // of the last Commit, used again
	ended   *jobs.Record  // that the run is over; End writes it
	paused  bool          // by a person
	failure error         // why the journal cannot be written, nil if it can
	retryAt time.Duration // Time.Mono: when to try it again
	fenced  bool
}

// New makes a ring around a core and a journal that belong to it alone.
func New(core *sched.Core, j Journal) *Ring { return &Ring{core: core, journal: j} }

// Step gives the core one event and keeps what it decided for Commit.
func (r *Ring) Step(now sched.Time, ev sched.Event) {
	if r.fenced { // nothing that this dispatcher decides counts any more
		return
	}
	if p, ok := ev.(sched.Pause); ok {
		r.paused = p.On
		ev = sched.Pause{On: p.On || r.failure != nil}
	}
	r.step(now, ev)
}

func (r *Ring) step(now sched.Time, ev sched.Event) {
	records, orders := r.core.Step(now, ev)
	for i := range records {
		rec := &records[i]
		if r.See != nil {
			r.See(rec)
		}
		if rec.Kind == jobs.KindEnded { // written when the hosts have been left clean
			r.ended = rec
			continue
		}
		r.pending = append(r.pending, *rec)
	}
	r.held = append(r.held, orders...)
}

// Note adds an event for people to the journal.
func (r *Ring) Note(rec jobs.Record) {
	if !r.fenced {
		r.pending = append(r.pending, rec)
	}
}

// Out is what a turn lets go.
type Out struct {
	Orders  []sched.Order // to carry out now, in this order; valid until the next Commit
	Durable bool          // the records of all Steps so far are: their results may be shown
}

// Commit ends a turn: what was recorded becomes durable, with one fsync, and then
// the orders may go. While the journal cannot be written nothing is launched and no
// end is given out; everything else goes on (asking, withdrawing, ending), and the
// records wait.
func (r *Ring) Commit(now sched.Time) Out {
	if r.fenced {
		return Out{}
	}
	if r.failure != nil && now.Mono < r.retryAt {
		return r.release(false)
	}
	for first := true; first || len(r.pending) > 0; first = false {
		var err error
		if len(r.pending) > 0 {
			err = r.journal.Append(r.pending)
			r.pending = r.pending[:0]
		} else if r.failure == nil {
			break
		}
		if err == nil {
			err = r.journal.Sync()
		}
		r.noticeJournal(now, err) // may decide more, whose records come first
		if err != nil {
			break
		}
	}
	return r.release(r.failure == nil)
}

// noticeJournal notes that the journal stopped or went on working. While it does
// not, the core launches nothing, and what it had decided to launch goes back to
// the queue: it was never sent.
func (r *Ring) noticeJournal(now sched.Time, err error) {
	was := r.failure
	r.failure = err
	switch {
	case err != nil && was == nil:
		r.tell(fmt.Sprintf("nothing is launched until the journal can be written again: %v", err))
		r.step(now, sched.Pause{On: true})
		r.takeBack(now)
	case err == nil && was != nil:
		r.tell("the journal can be written again; launching goes on")
		r.step(now, sched.Pause{On: r.paused})
	}
	if err != nil {
		r.retryAt = now.Mono + RetryEvery
	}
}

func (r *Ring) tell(text string) {
	if r.Tell != nil {
		r.Tell(text)
	}
}

// takeBack withdraws launches whose records are not durable and which so have
// not left this place.
func (r *Ring) takeBack(now sched.Time) {
	held := r.held
	r.held = nil
	for _, o := range held {
		launch, ok := o.(sched.Launch)
		if !ok {
			r.held = append(r.held, o)
			continue
		}
		ids := make([]jobs.AttemptID, len(launch.Jobs))
		for i, p := range launch.Jobs {
			ids[i] = p.Attempt
		}
		r.step(now, sched.AttemptsWithdrawn{Host: launch.Host, Msg: &hosts.Withdrawn{
			Attempts: ids, Why: "the journal could not be written before it was sent"}})
	}
}

// release lets go what may go: a launch and the end of the run only when the
// journal has their records.
func (r *Ring) release(durable bool) Out {
	out, kept := r.out[:0], r.held[:0]
	for _, o := range r.held {
		switch o.(type) {
		case sched.Launch, sched.Finish:
			if !durable {
				kept = append(kept, o)
				continue
			}
		}
		out = append(out, o)
	}
	clear(r.held[len(kept):])
	r.held, r.out = kept, out
	return Out{Orders: out, Durable: durable}
}

// Next says when Commit or a Tick is wanted even if nothing happens.
func (r *Ring) Next() (at time.Duration, ok bool) {
	if r.fenced {
		return 0, false
	}
	at, ok = r.core.Next()
	if r.failure != nil && (!ok || r.retryAt < at) {
		return r.retryAt, true
	}
	return at, ok
}

// Problem is why the journal cannot be written, nil if it can.
func (r *Ring) Problem() error { return r.failure }

// Fence ends it: another dispatcher owns the run. Nothing more is written, and no
// order goes out.
func (r *Ring) Fence() {
	r.fenced = true
	r.pending, r.held, r.ended = nil, nil, nil
}

// Ended says that the core has decided that the run is over, and that no new work
// has come since; the record waits for End.
func (r *Ring) Ended() bool { return r.ended != nil && r.core.Table().Ended }

// End gives the journal its last chance and, when the hosts were left clean, the
// record that the run is over.
func (r *Ring) End(now sched.Time, clean bool) (Out, error) {
	if r.Ended() && clean {
		r.ended.At = now.Wall
		r.pending = append(r.pending, *r.ended)
		r.ended = nil
	}
	r.retryAt = 0
	out := r.Commit(now)
	return out, r.failure
}
