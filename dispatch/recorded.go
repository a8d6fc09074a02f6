package dispatch

import (
	"context"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// unpacked counts what Recorded has not returned, for each directory of attempts.
type unpacked struct {
	dirs []unpackedDir // by jobs.ID/jobs.ShardSize
	all  int           // number of attempts of all directories
}

type unpackedDir struct {
	attempts int32 // whose outcomes are recorded
	ended    int32 // number of jobs that have ended; Recorded subtracts those of a whole directory
}

// countUnpacked counts the attempts and jobs of a run that an earlier dispatcher has recorded.
func countUnpacked(t *jobs.Table) (u unpacked) {
	var ids []jobs.AttemptID
	for job := range t.RowsWithOptions() {
		ids = job.AppendRecorded(ids[:0])
		ended := 0
		if job.State.Terminal() {
			ended = 1
		}
		u.add(job.Spec.ID, len(ids), ended)
	}
	return u
}

// onRecord counts the outcome of an attempt and the end of a job in a record.
func (u *unpacked) onRecord(r *jobs.Record) {
	numAttempts, numEnded := 0, 0
	if r.Outcome != nil {
		numAttempts = 1
	}
	if r.Seq > 0 && r.Kind != jobs.KindAcked {
		numEnded = 1
	}
	u.add(r.Job, numAttempts, numEnded)
}

func (u *unpacked) add(job jobs.ID, numAttempts, numEnded int) {
	if job <= 0 || numAttempts+numEnded == 0 {
		return
	}
	shard := int(job) / jobs.ShardSize
	for shard >= len(u.dirs) {
		u.dirs = append(u.dirs, unpackedDir{})
	}
	u.dirs[shard].attempts += int32(numAttempts)
	u.dirs[shard].ended += int32(numEnded)
	u.all += numAttempts
}

// take subtracts what Recorded returns of the directory of a job.
func (u *unpacked) take(job jobs.ID) {
	shard := int(job) / jobs.ShardSize
	if shard >= len(u.dirs) {
		return
	}
	dir := &u.dirs[shard]
	u.all -= int(dir.attempts)
	dir.attempts = 0
	if dir.isWhole(shard) {
		dir.ended -= jobs.ShardSize
	}
}

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

// due returns the first jobs of the directories that have least attempts or all of theirs.
func (u *unpacked) due(least int) (first []jobs.ID) {
	if u.all >= manyUnpacked {
		least /= 8
	}
	for shard := range u.dirs {
		if dir := &u.dirs[shard]; int(dir.attempts) >= max(least, 1) || dir.attempts > 0 && dir.isWhole(shard) {
			first = append(first, jobs.ID(shard*jobs.ShardSize))
		}
	}
	return first
}

// Packing describes the files of attempts that can be packed while a run is dispatched.
type Packing struct {
	NumJobs int // number of jobs of the run
	// Lease is for how long after its record a launch of this run can be carried out by a host.
	Lease   time.Duration
	Durable int64 // number of records of this dispatcher that are durable
	// Due holds the first jobs of directories with new attempts: with at least as many as were asked for,
	// or with the last ones of the directory.
	Due []jobs.ID
}

// Packing returns what can be packed. A directory is due with least new attempts, or with fewer if there
// are many in all directories together. It returns an error after the end of ctx or of the dispatcher.
func (d *Dispatcher) Packing(ctx context.Context, least int) (Packing, error) {
	return query(ctx, d, func(e *engine) Packing {
		return Packing{NumJobs: e.core.Table().NumJobs(), Lease: e.core.LongestLease(), Durable: e.loop.NumDurable(),
			Due: e.unpacked.due(least)}
	})
}

// Recorded lists attempts of a directory whose outcomes are recorded.
type Recorded struct {
	Spent   []jobs.AttemptID // in order; no launch of them can be carried out any more
	Guarded []jobs.AttemptID // in order; their launches may be valid for Packing.Lease
	Records int64            // number of records of this dispatcher, with those of the outcomes
}

// Recorded returns the attempts of a directory, from its first job on, whose outcomes are recorded. The
// directory is not due any more until there are new ones. It returns an error after the end of ctx or of
// the dispatcher.
func (d *Dispatcher) Recorded(ctx context.Context, first jobs.ID) (Recorded, error) {
	return query(ctx, d, func(e *engine) Recorded {
		e.unpacked.take(first)
		f := Recorded{Records: e.loop.NumRecords()}
		table := e.core.Table()
		var all []jobs.AttemptID
		var rows jobs.RowReader
		for id := max(first, 1); id < first+jobs.ShardSize && int(id) <= table.NumJobs(); id++ {
			if job := rows.Job(table, id); job != nil {
				all = job.AppendRecorded(all)
			}
		}
		f.Spent, f.Guarded = e.core.SplitClaims(all)
		return f
	})
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
