package run

import (
	"errors"
	"slices"
	"time"

	"dcs-tui/jobs"
	"dcs-tui/jobs/attempts"
	"dcs-tui/jobs/journal"
	"dcs-tui/jobs/rundir"
)

// packLeast is the number of attempts in a pack below which a dispatcher makes none.
const packLeast = 250

// packPause returns the shortest time for which the files of an attempt stay outside of packs. Tests
// replace it.
var packPause = func(lease time.Duration) time.Duration { return max(2*time.Minute, lease) }

// packFiles moves the files of attempts into packs until the run is over, if the run has at least
// Options.PackFiles jobs. It may hang with the disk.
func (r *Run) packFiles() {
	if r.opts.PackFiles <= 0 {
		return
	}
	packer := attempts.Packer{Disk: r.dir.Disk, Dir: r.dir.Dir, Run: r.dir.UID(), Least: packLeast}
	offers := attempts.Offers{Least: packLeast}
	_ = attempts.SweepPacks(r.dir.Disk, r.dir.Dir, time.Now()) // an error shows when packs are made
	wait, warned := packPause(0), false
	for {
		select {
		case <-r.over:
			return
		case <-r.d.Finished():
			return
		case <-time.After(wait):
		}
		if last := r.snapshot.Load(); last == nil || last.Problem != "" {
			continue // records may not be durable
		}
		for first := jobs.ID(0); ; first += jobs.ShardSize {
			recorded, err := r.d.Recorded(r.ctx, max(first, 1), first+jobs.ShardSize-1)
			if err != nil {
				return // the run is over
			}
			wait = packPause(recorded.Lease)
			if recorded.NumJobs < r.opts.PackFiles || int(first) > recorded.NumJobs {
				break
			}
			old := offers.Add(jobs.ShardDir(first), recorded.Attempts)
			if len(old) == 0 {
				continue
			}
			if err := r.d.PackOnHosts(r.ctx, old); err != nil {
				return // the run is over
			}
			packer.May = attempts.Among(old)
			if _, err = packer.Pack(jobs.ShardDir(first)); err != nil && !warned {
				warned = true
				r.printWarning("outputs stay in files of their own: " + err.Error())
			}
		}
	}
}

// packNotice is how long the packing at the end of a run lasts before it is reported.
const packNotice = 2 * time.Second

// packRest packs the files that were too new while the run was dispatched. The run has ended, and its
// hosts were left clean, so no launch can be valid any more. A person who requests a stop ends it. It
// does not look into directories in which no attempt has ended since the dispatcher began.
func (r *Run) packRest() {
	if r.opts.PackFiles <= 0 || r.table.NumJobs() < r.opts.PackFiles || !r.table.Ended {
		return
	}
	var reader jobs.RowReader
	began := jobs.StampOf(r.began)
	start, noticed := time.Now(), false
	for id, last := jobs.ID(1), jobs.ID(r.table.NumJobs()); id <= last; {
		shard, recorded, isNew := jobs.ShardDir(id), []jobs.AttemptID(nil), false
		for next := (id/jobs.ShardSize + 1) * jobs.ShardSize; id <= last && id < next; id++ {
			j := reader.Job(r.table, id)
			recorded = j.AppendRecorded(recorded)
			isNew = isNew || slices.ContainsFunc(j.Attempts, func(a *jobs.Attempt) bool {
				return a.Outcome != nil && a.Outcome.Ended >= began
			})
		}
		if !isNew {
			continue
		}
		select {
		case <-r.signals.stopping:
			return
		default:
		}
		if !noticed && time.Since(start) > packNotice {
			noticed = true
			r.signals.withTimeout(WriteTimeout, nil, func() {
				r.printer.Line("all jobs are over; their newest files are packed now (Ctrl-C twice leaves them)")
			})
		}
		p := &attempts.Packer{Disk: r.dir.Disk, Dir: r.dir.Dir, Run: r.dir.UID(), Least: packLeast,
			May: attempts.Among(recorded)}
		var err error
		inTime := r.signals.withTimeout(WriteTimeout, nil, func() { _, err = p.Pack(shard) })
		if !inTime || err != nil { // `runs pack` reports the error
			return
		}
	}
}

// Pack packs the files of a run that has ended, and returns the number of attempts in new packs. It
// returns an error if the run may not be over, or if a file operation fails.
func Pack(run *rundir.Run) (packed int, err error) {
	table, err := Removable(run, false)
	switch {
	case errors.Is(err, ErrJobsLeft):
		return 0, errors.New("jobs are left: resume finishes the run")
	case err != nil:
		return 0, err
	}
	before, err := journal.ReadOwner(run)
	if err != nil {
		return 0, err
	}
	p := &attempts.Packer{Disk: run.Disk, Dir: run.Dir, Run: run.UID(), May: func(id jobs.AttemptID) bool {
		a := table.Attempt(id)
		return a != nil && a.Outcome != nil && !a.State.Open()
	}}
	shards, err := p.Shards()
	if err != nil {
		return 0, err
	}
	err = attempts.SweepPacks(run.Disk, run.Dir, time.Now())
	for _, shard := range shards {
		// A dispatcher that begins meanwhile is not disturbed, but it packs for itself.
		now, oerr := journal.ReadOwner(run)
		if oerr != nil {
			return packed, errors.Join(err, oerr)
		}
		if now != nil && (before == nil || now.Token != before.Token) {
			return packed, errors.Join(err, errors.New("somebody has begun to dispatch the run"))
		}
		n, perr := p.Pack(shard)
		packed += n
		err = errors.Join(err, perr)
	}
	return packed, err
}
