package commit

import (
	"errors"
	"fmt"
	"time"

	"dcs-tui/dispatch/sched"
	"dcs-tui/jobs"
)

// Journal is where facts become durable; jobs/journal implements it.
type Journal interface {
	// Append takes records; they are durable when the next Sync returns nil.
	// After an error the records stay pending and the next Sync tries again. An
	// error with a method FencedBy() int says that another dispatcher owns the run.
	Append([]jobs.Record) error
	Sync() error
}

const (
	// RetryEvery is how often a journal that failed is tried again.
	RetryEvery = time.Second
	// HungAfter is how long a journal may take before nothing more waits for it.
	HungAfter = 5 * time.Second
	// GatherTime is how long records wait for more that share their fsync, from the batch
	// before on: the first records after a pause do not wait, and nothing does while a slot
	// stands idle. It is short beside the work that hosts are given ahead of need.
	GatherTime = 20 * time.Millisecond
)

// maxKept is how many records there is always room for. What a larger batch took is freed.
const maxKept = 4096

// Loop is the state between the turns. It is not safe for concurrent use.
type Loop struct {
	// See, if set, is shown each record right after it was folded, before anything
	// else happens to its job; the record is not durable yet.
	See func(*jobs.Record)
	// Tell, if set, is given a line for people about the journal.
	Tell func(text string)

	core    *sched.Core
	journal Journal

	// The batch that the journal has now, and what waits for it.
	flying  bool
	since   time.Duration // Time.Mono when the newest batch was given out
	batch   []jobs.Record
	waiting []sched.Command

	// What has come since.
	pending []jobs.Record
	held    []sched.Command
	urgent  bool // they are not to wait for GatherTime

	out      []sched.Command // of the last turn, used again
	ended    *jobs.Record    // that the run is over; End writes it
	failure  error           // why the journal cannot be written, nil if it can
	retryAt  time.Duration   // Time.Mono: when to try it again
	hung     bool            // the journal has not answered for HungAfter
	obstacle error           // another reason to launch nothing
	fenced   bool
}

// New makes a commit loop around a core that belongs to it alone. The journal is for
// Commit; who uses Flush may give nil.
func New(core *sched.Core, j Journal) *Loop {
	r := &Loop{core: core, journal: j}
	core.See = func(rec *jobs.Record) {
		if r.See != nil {
			r.See(rec)
		}
	}
	return r
}

// Step gives the core events that have come together and keeps what it decided.
func (r *Loop) Step(now sched.Time, evs ...sched.Event) {
	if r.fenced { // nothing that this dispatcher decides counts any more
		return
	}
	r.step(now, evs...)
}

func (r *Loop) step(now sched.Time, evs ...sched.Event) {
	records, commands := r.core.Step(now, evs...)
	for i := range records {
		rec := &records[i]
		if rec.Kind == jobs.KindEnded { // written when the hosts have been left clean
			ended := *rec
			r.ended = &ended
			continue
		}
		r.pending = append(r.pending, *rec)
	}
	r.held = append(r.held, commands...)
	for _, o := range commands {
		switch o := o.(type) {
		case sched.Launch:
			r.urgent = r.urgent || o.Urgent
		case sched.Finish:
			r.urgent = true
		}
	}
	// Whoever gets the result of a job may have another one for the slot.
	r.urgent = r.urgent || len(records) > 0 && r.core.Idle()
}

// Note adds an event for people to the journal.
func (r *Loop) Note(rec jobs.Record) {
	if !r.fenced {
		r.pending = append(r.pending, rec)
	}
}

// Out is what a turn lets go.
type Out struct {
	Commands []sched.Command // to carry out now, in this order; valid until the next turn
	Durable  bool            // the records of all Steps up to the last Flush are: their results may be shown
	// FencedBy is the epoch of another dispatcher that the journal has found: what was
	// written may not count, nothing goes out any more. 0: there is none.
	FencedBy int
}

// Flush gives out the records to make durable next, with one Append and one Sync,
// wherever that is done; false when there is nothing to do, when a batch is under way, or
// when the records wait for others to join them. The answer goes to Flushed. No records
// means that only Sync is to be tried.
func (r *Loop) Flush(now sched.Time) ([]jobs.Record, bool) {
	if r.gathers() && now.Mono < r.since+GatherTime {
		return nil, false
	}
	return r.flush(now)
}

// gathers reports whether the records that wait may wait for others.
func (r *Loop) gathers() bool {
	return !r.flying && !r.urgent && r.failure == nil && r.since > 0 && len(r.pending) > 0
}

func (r *Loop) flush(now sched.Time) ([]jobs.Record, bool) {
	if r.fenced || r.flying || r.failure != nil && now.Mono < r.retryAt || r.failure == nil && len(r.pending) == 0 {
		return nil, false
	}
	r.flying, r.since = true, now.Mono
	r.batch, r.pending = r.pending, r.batch[:0]
	if cap(r.pending) > maxKept {
		r.pending = nil
	}
	r.waiting = append(r.waiting, r.held...)
	clear(r.held)
	r.held, r.urgent = r.held[:0], false
	return r.batch, true
}

// Flushed takes the result of writing the batch and returns what may go now.
func (r *Loop) Flushed(now sched.Time, err error) Out {
	if r.fenced {
		return Out{}
	}
	r.flying = false
	var fenced interface{ FencedBy() int }
	if errors.As(err, &fenced) {
		r.Fence()
		return Out{FencedBy: fenced.FencedBy()}
	}
	was := r.blocked()
	before, hung := r.failure, r.hung
	r.failure, r.hung = err, false
	switch {
	case err != nil:
		r.retryAt = now.Mono + RetryEvery
		if before == nil && r.obstacle == nil { // else it was said
			r.tell(now, fmt.Sprintf("nothing is launched until the journal can be written again: %v", err))
		}
	case r.obstacle != nil:
	case before != nil:
		r.tell(now, "the journal can be written again; the run continues")
	case hung:
		r.tell(now, fmt.Sprintf("the run directory answers again, after %.0f s; the run continues", (now.Mono-r.since).Seconds()))
	}
	r.block(now, was)
	if err != nil {
		return r.harmless()
	}
	clear(r.out) // a large batch is not kept in memory
	r.out, r.waiting = r.waiting, r.out[:0]
	return Out{Commands: r.out, Durable: true}
}

// Idle returns what may go though no batch came back: everything when no record
// waits; only what starts nothing while the journal cannot be written.
func (r *Loop) Idle(now sched.Time) Out {
	if r.fenced {
		return Out{}
	}
	if r.flying && !r.hung && now.Mono-r.since >= HungAfter {
		was := r.blocked()
		r.hung = true
		if r.obstacle == nil { // else it was said
			r.tell(now, fmt.Sprintf("nothing is launched until the run directory answers again: its journal has been writing for %.0f s", HungAfter.Seconds()))
		}
		r.block(now, was)
	}
	switch {
	case r.failure != nil || r.hung:
		return r.harmless()
	case r.flying || len(r.pending) > 0:
		return Out{}
	}
	clear(r.out)
	r.out, r.held, r.urgent = r.held, r.out[:0], false
	return Out{Commands: r.out, Durable: true}
}

// Commit ends a turn in one go: everything recorded becomes durable, with one fsync
// as a rule, and then the commands may go. While the journal cannot be written nothing is
// launched and no end is given out; everything else continues (asking, withdrawing,
// ending), and the records wait.
func (r *Loop) Commit(now sched.Time) Out {
	var all Out
	for {
		batch, ok := r.flush(now)
		if !ok {
			break
		}
		var err error
		if len(batch) > 0 {
			err = r.journal.Append(batch)
		}
		if err == nil {
			err = r.journal.Sync()
		}
		o := r.Flushed(now, err)
		if o.FencedBy > 0 {
			return o
		}
		all.Commands = append(all.Commands, o.Commands...)
		if err != nil {
			break
		}
	}
	all.Commands = append(all.Commands, r.Idle(now).Commands...)
	all.Durable = !r.fenced && r.failure == nil
	return all
}

// Next returns when Flush, Idle or a Tick is wanted even if nothing happens.
func (r *Loop) Next() (at time.Duration, ok bool) {
	if r.fenced {
		return 0, false
	}
	at, ok = r.core.Next()
	soon := func(t time.Duration) {
		if !ok || t < at {
			at, ok = t, true
		}
	}
	switch {
	case r.flying && !r.hung:
		soon(r.since + HungAfter)
	case !r.flying && r.failure != nil:
		soon(r.retryAt)
	case r.gathers():
		soon(r.since + GatherTime)
	}
	return at, ok
}

// Flying reports whether a batch is with the journal.
func (r *Loop) Flying() bool { return r.flying }

// Fence ends it: another dispatcher owns the run. Nothing more is written, and no
// order goes out.
func (r *Loop) Fence() {
	r.fenced, r.flying = true, false
	r.pending, r.waiting, r.held, r.ended = nil, nil, nil, nil
}

// Ended reports whether the core has decided that the run is over, and that no new work
// has come since; the record waits for End.
func (r *Loop) Ended() bool { return r.ended != nil && r.core.Table().Ended }

// End gives the journal its last chance to be written. When the hosts were left clean
// and the run is over, it adds the record that says so. The last record is how the
// dispatcher ended. No batch may be under way.
func (r *Loop) End(now sched.Time, clean bool, f sched.Finish) (Out, error) {
	if r.Ended() && clean {
		r.ended.At = now.Wall
		r.pending = append(r.pending, *r.ended)
		r.ended = nil
	}
	if !r.fenced && f.How != sched.Fenced {
		r.pending = append(r.pending, jobs.Record{Kind: jobs.KindClosed, At: now.Wall, How: f.How.String(), Reason: f.Why})
	}
	r.retryAt = 0
	out := r.Commit(now)
	return out, r.failure
}
