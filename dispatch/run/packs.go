package run

import (
	"cmp"
	"errors"
	"slices"
	"sync"
	"time"

	"dcs-tui/jobs"
	"dcs-tui/jobs/attempts"
	"dcs-tui/jobs/journal"
	"dcs-tui/jobs/rundir"
)

// packLeast is the number of attempts in a pack below which a dispatcher makes none, unless they are the
// last ones of their directory.
const packLeast = 250

// packInterval is how often a dispatcher looks for attempts to pack.
const packInterval = 2 * time.Second

// packRetryInterval is how often a dispatcher tries to write a pack on a full disk. Each try takes what is
// free for a moment, so that others can write nothing. Tests replace it.
var packRetryInterval = time.Minute

// MaxUnpacked is the number of attempts from which on launches wait until files were packed. It is the default
// of --pack-files: runs with fewer jobs have as many files.
const MaxUnpacked = 20_000

// packFiles moves the files of attempts into packs until the run is over, if the run has at least
// Options.PackFiles jobs. It may hang with the disk.
func (r *Run) packFiles() {
	if r.opts.PackFiles <= 0 {
		return
	}
	p := packing{r: r, began: time.Now()}
	for i := range p.packers {
		packer := &p.packers[i]
		*packer = attempts.Packer{Disk: r.dir.Disk, Dir: r.dir.Dir, Run: r.dir.UID(), Least: 1}
		defer packer.Close() // `runs pack` removes what is left later
	}
	_ = attempts.SweepPacks(r.dir.Disk, r.dir.Dir, time.Now()) // an error shows when packs are made
	wait := time.Duration(0)
	for {
		select {
		case <-r.over:
			return
		case <-r.d.Finished():
			return
		case <-r.d.Signals().Holding:
		case <-time.After(wait):
		}
		again, err := p.turn()
		if err != nil {
			return // the run is over
		}
		wait = cmp.Or(r.opts.PackInterval, packInterval)
		if again {
			wait = 0
		}
	}
}

// maxPackers is the number of packs that a dispatcher writes at once. With one, packing would fall behind
// on a machine that its jobs keep busy, and with a file server that takes its time for each file.
const maxPackers = 4

// packing is the state of packFiles. Its goroutine owns it.
type packing struct {
	r       *Run
	packers [maxPackers]attempts.Packer
	offers  attempts.Offers
	began   time.Time // origin of the times of offers
	warned  bool
}

// turn offers the attempts of all directories that are due, and packs those that have waited longest. It
// reports whether others may be packed at once. It returns an error if the run is over.
func (p *packing) turn() (again bool, err error) {
	r := p.r
	now, err := r.d.Packing(r.ctx, packLeast)
	if err != nil || now.NumJobs < r.opts.PackFiles {
		return false, err
	}
	_ = p.packers[0].Reserve() // a pack shows the error
	for _, first := range now.Due {
		recorded, err := r.d.Recorded(r.ctx, first)
		if err != nil {
			return false, err
		}
		p.offers.Add(attempts.Offer{Attempts: recorded.Spent, Records: recorded.Records, WithFiles: recorded.WithFiles})
	}
	var offers []attempts.Offer
	var errs [maxPackers]error
	var packed [maxPackers]int
	var wg sync.WaitGroup
	for i := range p.packers {
		f, ok := p.offers.Next(time.Since(p.began), now.Durable)
		if !ok {
			break
		}
		offers = append(offers, f)
		wg.Go(func() {
			packer := &p.packers[i]
			packer.May = attempts.Among(f.Attempts)
			packed[i], errs[i] = packer.Pack(jobs.ShardDir(f.Attempts[0].Job))
			_ = packer.Reserve() // the next pack shows the error
		})
	}
	wg.Wait()
	retryAt, isFull := time.Since(p.began), false
	if packed == [maxPackers]int{} { // otherwise files were freed
		retryAt += packRetryInterval
		isFull = slices.ContainsFunc(errs[:], rundir.IsFull)
	}
	for i, f := range offers {
		err := errs[i]
		if err != nil && !p.warned {
			p.warned = true
			r.printWarning("outputs stay in files of their own: " + err.Error())
		}
		if err := r.d.Packed(r.ctx, f.WithFiles, isFull); err != nil {
			return false, err
		}
		if rundir.IsFull(err) {
			f.WithFiles = 0
			p.offers.PutBack(f, retryAt)
		} else if err := r.d.PackOnHosts(r.ctx, f.Attempts); err != nil {
			return false, err
		}
	}
	return len(offers) > 0, nil
}

// packNotice is how long the packing at the end of a run lasts before it is reported.
const packNotice = 2 * time.Second

// PackRest packs the files that were too new while the run was dispatched. Call it after Close, and after
// everything for which somebody waits. It does nothing if the run has not ended. If it has, its hosts were
// left clean, so no launch can be valid any more. A person who requests a stop ends it. It does not look
// into directories in which no attempt has ended since the dispatcher began.
func (r *Run) PackRest() {
	if !r.leavesFiles {
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
				r.printer.Line("the newest files of the run are packed now (Ctrl-C twice leaves them)")
			})
		}
		p := &attempts.Packer{Disk: r.dir.Disk, Dir: r.dir.Dir, Run: r.dir.UID(), May: attempts.Among(recorded)}
		var err error
		inTime := r.signals.withTimeout(WriteTimeout, nil, func() { _, err = p.Pack(shard) })
		if !inTime || err != nil { // `runs pack` reports the error
			return
		}
	}
}

// HasOutcome returns a function that reports whether the outcome of an attempt is recorded.
func HasOutcome(table *jobs.Table) func(jobs.AttemptID) bool {
	return func(id jobs.AttemptID) bool {
		a := table.Attempt(id)
		return a != nil && a.Outcome != nil && !a.State.Open()
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
	p := &attempts.Packer{Disk: run.Disk, Dir: run.Dir, Run: run.UID(), May: HasOutcome(table)}
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
