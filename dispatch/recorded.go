package dispatch

import (
	"context"
	"time"

	"dcs-tui/dispatch/sched"
	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// unpacked counts what Recorded has not returned, for each directory of attempts.
type unpacked struct {
	dirs []unpackedDir // by jobs.ID/jobs.ShardSize
	all  int           // number of attempts of all directories
	// Number of attempts in all directories that wait for Recorded and whose files are known to exist, and of
	// those that Recorded has returned and that no pack has been tried for.
	withFiles, beingPacked int
	isFull                 bool // no pack could be written the last time
	isHolding              bool // the core launches nothing because of these numbers
}

type unpackedDir struct {
	attempts  int32 // whose outcomes are recorded
	withFiles int32 // of attempts, those that have ended since Recorded was called
	// Of attempts, those whose claims were needed when Recorded was called, and when it is to be called again
	// for them, on the clock of the engine.
	guarded      int32
	guardedUntil time.Duration
	ended        int32 // number of jobs that have ended; Recorded subtracts those of a whole directory
}

// countUnpacked counts the attempts and jobs of a run that an earlier dispatcher has recorded. Most of their
// files are in packs.
func countUnpacked(t *jobs.Table) (u unpacked) {
	var ids []jobs.AttemptID
	for job := range t.RowsWithOptions() {
		ids = job.AppendRecorded(ids[:0])
		ended := 0
		if job.State.Terminal() {
			ended = 1
		}
		u.add(job.Spec.ID, unpackedDir{attempts: int32(len(ids)), ended: int32(ended)})
	}
	return u
}

// onRecord counts the outcome of an attempt and the end of a job in a record.
func (u *unpacked) onRecord(r *jobs.Record) {
	var more unpackedDir
	if r.Outcome != nil {
		more.attempts, more.withFiles = 1, 1
	}
	if r.Seq > 0 && r.Kind != jobs.KindAcked {
		more.ended = 1
	}
	u.add(r.Job, more)
}

func (u *unpacked) add(job jobs.ID, more unpackedDir) {
	if job <= 0 || more == (unpackedDir{}) {
		return
	}
	shard := int(job) / jobs.ShardSize
	for shard >= len(u.dirs) {
		u.dirs = append(u.dirs, unpackedDir{})
	}
	dir := &u.dirs[shard]
	dir.attempts += more.attempts
	dir.withFiles += more.withFiles
	dir.ended += more.ended
	u.all += int(more.attempts)
	u.withFiles += int(more.withFiles)
}

// take subtracts what Recorded returns of the directory of a job, which is all but the guarded attempts. It
// returns the number of attempts with files, for which Packed must be called. Guarded attempts keep no launch
// waiting: a lease may last for hours.
func (u *unpacked) take(job jobs.ID, guarded int, until time.Duration) (withFiles int) {
	shard := int(job) / jobs.ShardSize
	if shard >= len(u.dirs) {
		return 0
	}
	dir := &u.dirs[shard]
	left := min(int32(guarded), dir.attempts)
	withFiles = int(min(dir.withFiles, dir.attempts-left))
	u.all -= int(dir.attempts - left)
	u.withFiles -= int(dir.withFiles)
	u.beingPacked += withFiles
	dir.withFiles = 0
	dir.attempts, dir.guarded, dir.guardedUntil = left, left, until
	if dir.isWhole(shard) {
		dir.ended -= jobs.ShardSize
	}
	return withFiles
}

// holds reports whether launches wait for packs: if the files of at least limit attempts wait for them, and
// packs can be written.
func (u *unpacked) holds(limit int) bool { return !u.isFull && u.withFiles+u.beingPacked >= limit }

// isWhole reports whether all jobs of a directory have ended. After that, few attempts follow.
func (d *unpackedDir) isWhole(shard int) bool {
	if shard == 0 { // no job has the number 0
		return d.ended >= jobs.ShardSize-1
	}
	return d.ended >= jobs.ShardSize
}

// manyUnpacked is the number of attempts from which on smaller packs are made. Jobs that do not end in
// the order of their numbers leave some in each directory.
const manyUnpacked = 10_000

// due returns the first jobs of the directories that have least attempts or all of theirs, not counting those
// that are guarded. While launches wait for packs and none is being made, one attempt suffices.
func (u *unpacked) due(least int, now time.Duration) (first []jobs.ID) {
	switch {
	case u.isHolding && u.beingPacked == 0:
		least = 1
	case u.all >= manyUnpacked:
		least /= 8
	}
	for shard := range u.dirs {
		dir := &u.dirs[shard]
		n := int(dir.attempts - dir.guarded)
		if n >= max(least, 1) || n > 0 && dir.isWhole(shard) || dir.guarded > 0 && now >= dir.guardedUntil {
			first = append(first, jobs.ID(shard*jobs.ShardSize))
		}
	}
	return first
}

// Packing describes the files of attempts that can be packed while a run is dispatched.
type Packing struct {
	NumJobs int   // number of jobs of the run
	Durable int64 // number of records of this dispatcher that are durable
	// Due holds the first jobs of directories with new attempts: with at least as many as were asked for,
	// or with the last ones of the directory.
	Due []jobs.ID
}

// Packing returns what can be packed. A directory is due with least new attempts, or with fewer if there
// are many in all directories together. It returns an error after the end of ctx or of the dispatcher.
func (d *Dispatcher) Packing(ctx context.Context, least int) (Packing, error) {
	return query(ctx, d, func(e *engine) Packing {
		return Packing{NumJobs: e.core.Table().NumJobs(), Durable: e.loop.NumDurable(),
			Due: e.unpacked.due(least, e.now().Mono)}
	})
}

// Recorded lists attempts of a directory whose outcomes are recorded.
type Recorded struct {
	Spent     []jobs.AttemptID // in order; no launch of them can be carried out any more
	Records   int64            // number of records of this dispatcher, with those of the outcomes
	WithFiles int              // number of attempts for which the caller must call Packed
}

// Recorded returns the attempts of a directory, from its first job on, whose outcomes are recorded. The
// directory is not due any more until there are new ones, or until those that Recorded leaves out because
// launches of them may be valid are guarded no longer. It returns an error after the end of ctx or of the
// dispatcher.
func (d *Dispatcher) Recorded(ctx context.Context, first jobs.ID) (Recorded, error) {
	return query(ctx, d, func(e *engine) Recorded {
		f := Recorded{Records: e.loop.NumRecords()}
		table := e.core.Table()
		var all []jobs.AttemptID
		var rows jobs.RowReader
		for id := max(first, 1); id < first+jobs.ShardSize && int(id) <= table.NumJobs(); id++ {
			if job := rows.Job(table, id); job != nil {
				all = job.AppendRecorded(all)
			}
		}
		var guarded []jobs.AttemptID
		f.Spent, guarded = e.core.SplitClaims(all)
		f.WithFiles = e.unpacked.take(first, len(guarded), e.now().Mono+e.core.LongestLease())
		return f
	})
}

// Packed reports that a pack was tried for attempts of Recorded, withFiles of which it counted. What could not
// be packed keeps no launch waiting. isFull reports that no pack can be written: until one can, no launch waits.
func (d *Dispatcher) Packed(ctx context.Context, withFiles int, isFull bool) error {
	return d.call(ctx, func(e *engine) {
		e.unpacked.beingPacked -= withFiles
		e.unpacked.isFull = isFull
	})
}

// holdForFiles lets launches wait while the files of too many attempts wait for a pack.
func (e *engine) holdForFiles() {
	u := &e.unpacked
	was := u.isHolding
	u.isHolding = e.cfg.MaxUnpacked > 0 && e.packs() && u.holds(e.cfg.MaxUnpacked)
	if u.isHolding == was {
		return
	}
	if u.isHolding {
		Signal(e.d.signals.Holding)
	}
	e.step(sched.Hold{By: sched.HoldFiles, On: u.isHolding})
}

// PackOnHosts lets hosts that keep the files of attempts themselves pack those of ids, which are in one
// directory and in order. No launch of them may be valid any more. PackOnHosts does not wait for the hosts.
// A host that misses the request packs at the end of the run.
func (d *Dispatcher) PackOnHosts(ctx context.Context, ids []jobs.AttemptID) error {
	return d.call(ctx, func(e *engine) {
		of := map[string][]jobs.AttemptID{}
		var rows jobs.RowReader // Table.Attempt would leave all rows unpacked
		for _, id := range ids {
			if job := rows.Job(e.core.Table(), id.Job); job != nil && id.N <= len(job.Attempts) {
				host := job.Attempts[id.N-1].Host
				of[host] = append(of[host], id)
			}
		}
		for host, ids := range of {
			a := e.agents[host]
			if a == nil || len(a.commands) > maxCommands/2 { // more important ones must fit
				continue
			}
			if hello := a.hello.Load(); hello != nil && !hello.Shared {
				a.enqueue(hosts.Pack{Epoch: a.epoch(), Attempts: ids})
			}
		}
	})
}
