package commit

import (
	"errors"
	"fmt"
	"time"

	"dcs-tui/dispatch/sched"
	"dcs-tui/jobs"
)

// Journal makes records durable. jobs/journal implements it.
type Journal interface {
	// Append adds records, which are durable when the next Sync returns nil. After an error the
	// records stay pending and the next Sync tries again. An error with a method FencedBy() int
	// means that another dispatcher owns the run.
	Append([]jobs.Record) error
	Sync() error
}

const (
	// RetryInterval is how often a failed write of the journal is retried.
	RetryInterval = time.Second
	// HungAfter is how long a write of the journal may take before it counts as hung.
	HungAfter = 5 * time.Second
	// GatherTime is how long records wait, counted from the previous batch, for others that share
	// their fsync. The first records after a pause do not wait, and nothing waits while a slot is
	// idle. The time is short compared with the work that hosts have buffered.
	GatherTime = 20 * time.Millisecond
)

// maxReusedRecords is the capacity, in records, up to which a buffer is reused. A larger one is
// freed.
const maxReusedRecords = 4096

// maxPending is the number of records from which on requests for many jobs wait for the journal. It may
// be slower than the core, and a record takes more memory than a job.
const maxPending = 20_000

// Loop is the state of the commit loop between turns. It is not safe for concurrent use.
type Loop struct {
	// OnRecord, if set, is called with each record of a Step of the core, after that Step. The
	// record has been folded, and is not durable yet.
	OnRecord func(*jobs.Record)
	// Notify, if set, is called with messages for users about the journal.
	Notify func(text string)

	core    *sched.Core
	journal Journal

	// The batch that is being written, and the commands that wait for it.
	isWriting       bool
	flushedAt       time.Duration // Time.Mono when the newest batch was returned by Flush
	batch           []jobs.Record
	waitingCommands []sched.Command

	// Records and commands since then.
	pending      []jobs.Record
	heldCommands []sched.Command
	isUrgent     bool // pending and heldCommands do not wait for GatherTime

	numRecords int64 // number of records so far, without that of the end
	numWriting int64 // numRecords when the newest batch was returned by Flush
	numDurable int64 // number of records that are durable

	released  []sched.Command // commands of the last turn; its memory is reused
	endRecord *jobs.Record    // the record of the run's end, which End writes
	failure   error           // why the journal cannot be written; nil if it can
	retryAt   time.Duration   // Time.Mono when to retry
	isHung    bool            // the journal has not answered for HungAfter
	obstacle  error           // another reason to launch nothing
	isFenced  bool
}

// New returns a commit loop that owns core. The journal is used by Commit; a caller that uses Flush
// may pass nil.
func New(core *sched.Core, j Journal) *Loop {
	return &Loop{core: core, journal: j}
}

// Step passes events that arrived together to the core, and keeps its records and commands.
func (r *Loop) Step(now sched.Time, evs ...sched.Event) {
	if r.isFenced { // decisions of a fenced dispatcher do not count
		return
	}
	r.step(now, evs...)
}

func (r *Loop) step(now sched.Time, evs ...sched.Event) {
	r.core.DelayRequests(r.isBehind())
	records, commands := r.core.Step(now, evs...)
	for i := range records {
		rec := &records[i]
		if r.OnRecord != nil {
			r.OnRecord(rec)
		}
		if rec.Kind == jobs.KindEnded { // written by End, after all hosts were cleaned up
			ended := *rec
			r.endRecord = &ended
			continue
		}
		r.pending = append(r.pending, *rec)
		r.numRecords++
	}
	r.heldCommands = append(r.heldCommands, commands...)
	for _, o := range commands {
		switch o := o.(type) {
		case sched.Launch:
			r.isUrgent = r.isUrgent || o.Urgent
		case sched.Finish:
			r.isUrgent = true
		}
	}
	// The reader of a job's result may have another job for the slot.
	r.isUrgent = r.isUrgent || len(records) > 0 && r.core.HasUsableSlot()
}

// isBehind reports whether requests wait until the journal is written. They do not wait while it cannot be
// written, because they may end jobs.
func (r *Loop) isBehind() bool { return r.isWriting && !r.isBlocked() && len(r.pending) >= maxPending }

// RecordEvent adds an event for users to the journal.
func (r *Loop) RecordEvent(rec jobs.Record) {
	if !r.isFenced {
		r.pending = append(r.pending, rec)
		r.numRecords++
	}
}

// NumRecords returns the number of records so far. They are durable when NumDurable is not below it.
func (r *Loop) NumRecords() int64 { return r.numRecords }

// NumDurable returns the number of records that are known to be durable.
func (r *Loop) NumDurable() int64 { return r.numDurable }

// Out holds what a turn releases.
type Out struct {
	Commands []sched.Command // to carry out now, in this order; valid until the next turn
	// The records of all Steps up to the last Flush are durable, so their results may be shown.
	Durable bool
	// FencedBy is the epoch of another dispatcher that the journal has found, or 0. The last
	// records may not count, and nothing more is released.
	FencedBy int
}

// Flush returns the records to make durable next. The caller writes them with one Append and one
// Sync and passes the result to Flushed. Flush returns false if there is nothing to do, if a batch
// is under way, or if the records wait for others. An empty batch means that only Sync is to be
// retried.
func (r *Loop) Flush(now sched.Time) ([]jobs.Record, bool) {
	if r.isGathering() && now.Mono < r.flushedAt+GatherTime {
		return nil, false
	}
	return r.flush(now)
}

// isGathering reports whether the pending records may wait for others.
func (r *Loop) isGathering() bool {
	return !r.isWriting && !r.isUrgent && r.failure == nil && r.flushedAt > 0 && len(r.pending) > 0
}

func (r *Loop) flush(now sched.Time) ([]jobs.Record, bool) {
	if r.isFenced || r.isWriting || r.failure != nil && now.Mono < r.retryAt ||
		r.failure == nil && len(r.pending) == 0 {
		return nil, false
	}
	r.isWriting, r.flushedAt, r.numWriting = true, now.Mono, r.numRecords
	r.batch, r.pending = r.pending, r.batch[:0]
	r.waitingCommands = append(r.waitingCommands, r.heldCommands...)
	clear(r.heldCommands)
	r.heldCommands, r.isUrgent = r.heldCommands[:0], false
	return r.batch, true
}

// Flushed takes the result of writing the batch and returns what is released.
func (r *Loop) Flushed(now sched.Time, err error) Out {
	if r.isFenced {
		return Out{}
	}
	r.isWriting = false
	if fenced, ok := errors.AsType[interface {
		error
		FencedBy() int
	}](err); ok {
		r.Fence()
		return Out{FencedBy: fenced.FencedBy()}
	}
	was := r.isBlocked()
	before, hung := r.failure, r.isHung
	r.failure, r.isHung = err, false
	switch {
	case err != nil:
		r.retryAt = now.Mono + RetryInterval
		if before == nil && r.obstacle == nil { // otherwise a reason was already reported
			r.report(now, fmt.Sprintf("nothing is launched until the journal can be written again: %v", err))
		}
	case r.obstacle != nil:
	case before != nil:
		r.report(now, "the journal can be written again; the run continues")
	case hung:
		r.report(now, fmt.Sprintf("the run directory answers again, after %.0f s; the run continues",
			(now.Mono-r.flushedAt).Seconds()))
	}
	r.reportBlocked(now, was)
	if err != nil {
		return r.releaseHarmless()
	}
	r.numDurable = r.numWriting
	if cap(r.batch) > maxReusedRecords {
		r.batch = nil
	}
	clear(r.released) // do not keep a large batch in memory
	r.released, r.waitingCommands = r.waitingCommands, r.released[:0]
	return Out{Commands: r.released, Durable: true}
}

// Idle returns what can be released without a written batch. That is everything if no record is
// pending, and only commands that start nothing while the journal cannot be written.
func (r *Loop) Idle(now sched.Time) Out {
	if r.isFenced {
		return Out{}
	}
	if r.isWriting && !r.isHung && now.Mono-r.flushedAt >= HungAfter {
		was := r.isBlocked()
		r.isHung = true
		if r.obstacle == nil { // otherwise a reason was already reported
			r.report(now, fmt.Sprintf("nothing is launched until the run directory answers again: "+
				"its journal has been writing for %.0f s", HungAfter.Seconds()))
		}
		r.reportBlocked(now, was)
	}
	switch {
	case r.failure != nil || r.isHung:
		return r.releaseHarmless()
	case r.isWriting || len(r.pending) > 0:
		return Out{}
	}
	clear(r.released)
	r.released, r.heldCommands, r.isUrgent = r.heldCommands, r.released[:0], false
	return Out{Commands: r.released, Durable: true}
}

// Commit writes all pending records, usually with one fsync, and returns the released commands.
// While the journal cannot be written, launches and the end of the run are held back and the
// records wait. Other commands, such as sched.Probe and sched.Kill, are released.
func (r *Loop) Commit(now sched.Time) Out {
	var all Out
	for {
		batch, ok := r.flush(now)
		if !ok {
			break
		}
		err := Write(r.journal, batch)
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
	all.Durable = !r.isFenced && r.failure == nil
	return all
}

// Write makes a batch durable.
func Write(j Journal, batch []jobs.Record) error {
	if len(batch) > 0 {
		if err := j.Append(batch); err != nil {
			return err
		}
	}
	return j.Sync()
}

// Next returns when Flush, Idle, or a Tick is due even if nothing happens.
func (r *Loop) Next() (at time.Duration, ok bool) {
	if r.isFenced {
		return 0, false
	}
	r.core.DelayRequests(r.isBehind())
	at, ok = r.core.Next()
	soon := func(t time.Duration) {
		if !ok || t < at {
			at, ok = t, true
		}
	}
	switch {
	case r.isWriting && !r.isHung:
		soon(r.flushedAt + HungAfter)
	case !r.isWriting && r.failure != nil:
		soon(r.retryAt)
	case r.isGathering():
		soon(r.flushedAt + GatherTime)
	}
	return at, ok
}

// IsWriting reports whether a batch is being written.
func (r *Loop) IsWriting() bool { return r.isWriting }

// Fence ends the loop because another dispatcher owns the run. Nothing more is written, and no
// command is released.
func (r *Loop) Fence() {
	r.isFenced, r.isWriting = true, false
	r.pending, r.waitingCommands, r.heldCommands, r.endRecord = nil, nil, nil, nil
}

// Ended reports whether the core has decided that the run is over and no new work has arrived
// since. The record waits for End.
func (r *Loop) Ended() bool { return r.endRecord != nil && r.core.Table().Ended }

// End writes the journal a last time. If the hosts were left clean and the run is over, it adds the
// record of that. The last record holds how the dispatcher ended. No batch may be under way.
func (r *Loop) End(now sched.Time, clean bool, f sched.Finish) (Out, error) {
	if r.Ended() && clean {
		r.endRecord.At = now.Wall
		r.pending = append(r.pending, *r.endRecord)
		r.endRecord = nil
	}
	if !r.isFenced && f.How != sched.Fenced {
		closed := jobs.Record{At: now.Wall, Reason: f.Why}
		closed.SetClosed(f.How.String())
		r.pending = append(r.pending, closed)
	}
	r.retryAt = 0
	out := r.Commit(now)
	return out, r.failure
}
