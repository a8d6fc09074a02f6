package journal

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"dcs-tui/jobs"
	"dcs-tui/jobs/rundir"
)

// TakeOptions are the options of Take.
type TakeOptions struct {
	Force  bool         // do not wait until the current owner is proved dead
	Notify func(string) // called with one line before Take waits; may be nil
	// Silent is an owner that has sent no heartbeat for StaleAfter, as the caller has observed.
	// Take does not wait for it again unless there is a newer heartbeat. nil: there is none.
	Silent *Owner
	// Standby reports that no person takes the run over, so what is counted goes on.
	Standby bool
	// Packed makes Take return a table of jobs.NewWorking.
	Packed bool
	// Mirror reports that the directory is a complete mirror of the one that its owner file names.
	Mirror bool

	// The fields below are for simulations and tests. With Force, Now, Token, and Who, a Take does
	// not wait, reads no clock, process, or random number, and is deterministic.
	Now   func() time.Time // the clock of Take and of the Journal; nil: time.Now
	Token string           // unique for each Take; "": random
	Who   *Owner           // Host, User, and process of the new owner; nil: this process
}

// now returns the clock.
func (o *TakeOptions) now() func() time.Time {
	if o.Now != nil {
		return o.Now
	}
	return time.Now
}

// owner returns the first content of the file owner.
func (o *TakeOptions) owner(epoch int) (*Owner, error) {
	who, token := o.Who, o.Token
	if who == nil {
		me, err := ownerOfThisProcess()
		if err != nil {
			return nil, err
		}
		who = me
	}
	if token == "" {
		token = rand.Text()
	}
	return &Owner{
		V:       jobs.FormatOwner.Version,
		Host:    who.Host,
		User:    who.User,
		Program: who.Program,
		process: who.process,
		Epoch:   epoch,
		Since:   o.now()().Truncate(time.Second),
		Token:   token,
	}, nil
}

// Take makes the caller the dispatcher of the run. It returns *OwnedError if another one is
// alive, opens the next epoch, and folds the records of earlier ones. The newest epoch always
// wins: whoever is second gets an error here or ErrFenced later. Waiting for a silent owner takes
// up to StaleAfter.
func Take(ctx context.Context, r *rundir.Run, opt TakeOptions) (*Journal, *jobs.Table, *Report, error) {
	j, t, report, err := take(ctx, r, opt)
	if _, owned := errors.AsType[*OwnedError](err); err != nil && !owned {
		err = fmt.Errorf("cannot take over the run %s: %w", r.Name(), err)
	}
	return j, t, report, err
}

func take(ctx context.Context, r *rundir.Run, opt TakeOptions) (_ *Journal, _ *jobs.Table, _ *Report, err error) {
	// The epoch is chosen before the owner is checked: if anybody takes the run in between,
	// creating the file fails.
	had, err := lastOwner(r)
	if err != nil {
		return nil, nil, nil, err
	}
	if opt.Mirror {
		had.Inode, had.Device = 0, 0
	}
	files, err := listFiles(r)
	if err != nil {
		return nil, nil, nil, err
	}
	if err := checkMayTake(ctx, r, newestEpoch(files), opt); err != nil {
		return nil, nil, nil, err
	}
	program, _ := os.Executable()                    // on an error it has no name
	if err := r.UpgradeFormat(program); err != nil { // before anything of our version is written
		return nil, nil, nil, err
	}
	// If the newest files of the journal were lost, only the owner file shows which epochs are
	// used up. Hosts refuse a dispatcher with a lower epoch.
	j := &Journal{
		run:    r,
		file:   fileOf(max(newestEpoch(files), had.Epoch, had.Known) + 1),
		writer: ownerWriter{run: r},
		now:    opt.now(),
	}
	owner, err := opt.owner(j.file.epoch)
	if err != nil {
		return nil, nil, nil, err
	}
	owner.File, owner.Bytes, owner.Sum = had.File, had.Bytes, had.Sum
	if err = owner.identify(r); err != nil {
		return nil, nil, nil, err
	}
	j.writer.owner, j.token = *owner, owner.Token
	if owner.isElsewhere(&had) { // must be found again if another Take comes before it is recorded
		j.writer.owner.Inode, j.writer.owner.Device = had.Inode, had.Device
	}
	tmp, err := j.writer.prepare()
	if err != nil {
		return nil, nil, nil, err
	}
	opened := false
	defer func() {
		if err == nil {
			return
		}
		if opened { // a faster Take has removed the prepared file
			if fenced := j.fencedError(); errors.Is(fenced, ErrFenced) {
				err = fenced
			}
		}
		err = errors.Join(err, j.abandon(tmp, opened))
	}()
	// O_EXCL makes an epoch single-owner. Its file is never removed again.
	j.f, err = r.Disk.OpenFile(j.file.path(r), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil, nil, nil, &OwnedError{r.Name(), r.Ref(), taker(ctx, r, j.file.epoch, opt.Force)}
	}
	if err != nil {
		return nil, nil, nil, err
	}
	opened = true
	if err = r.Disk.SyncDir(r.Path(rundir.JournalDir)); err != nil {
		return nil, nil, nil, err
	}
	if err = j.writer.install(tmp); err != nil {
		return nil, nil, nil, err
	}
	removePrepared(r, j.file.epoch)
	r.SetOwner(0, nil)

	// From here on an older dispatcher can see that it is fenced off. What it writes after
	// this is not part of the run.
	f := Follow(r)
	if opt.Packed {
		f.keep(jobs.NewWorking)
	}
	f.pulse = j.heartbeats(ctx)
	if _, err = f.poll(files, Limit{End: true}); err != nil {
		return nil, nil, nil, err
	}
	t, report := f.table, f.report
	missing, err := checkOwner(r, files, &had, owner)
	if err != nil {
		return nil, nil, nil, err
	}
	if err = makeDurable(r, files, t.Epoch); err != nil {
		return nil, nil, nil, err
	}
	at := jobs.StampOf(j.now())
	begin := []jobs.Record{
		{Kind: jobs.KindEpoch, At: at, Epoch: j.file.epoch, Owner: owner.String(), Files: f.fixedMarks()},
	}
	if opt.Standby {
		begin[0].Count = 1
	}
	for _, why := range missing {
		report.warn("%s", why)
		report.Damaged = true
		begin = append(begin, jobs.Record{Kind: jobs.KindDamaged, At: at, Reason: why})
	}
	for i := range begin {
		if err = jobs.Fold(t, &begin[i]); err != nil {
			return nil, nil, nil, err
		}
	}
	if err = j.writeMarks(&begin[0]); err != nil {
		return nil, nil, nil, err
	}
	if err = j.Append(begin); err != nil {
		return nil, nil, nil, err
	}
	if err = j.Sync(); err != nil {
		return nil, nil, nil, err
	}
	j.writer.owner.Inode, j.writer.owner.Device = owner.Inode, owner.Device
	r.SetOwner(j.file.epoch, j.fencedError)
	return j, t, report, nil
}

// lastOwner returns the content of the owner file, or the zero Owner if there is none
// that can be used.
func lastOwner(r *rundir.Run) (Owner, error) {
	now, err := readOwnerFile(r)
	if err != nil || now.owner == nil {
		return Owner{}, err
	}
	return *now.owner, nil
}

// makeDurable syncs the files that were just read and that no earlier Take has fixed, those from
// epoch on. Their writers may have been killed before they did so. Otherwise records on which
// this dispatcher builds could be lost in a power failure.
func makeDurable(r *rundir.Run, files []epochFile, epoch int) error {
	for _, e := range files {
		if e.epoch < epoch {
			continue
		}
		if err := rundir.SyncFile(r.Disk, e.path(r)); err != nil {
			return err
		}
	}
	return r.SyncSpecs()
}

// heartbeats returns a function for the Follower to call regularly: it writes heartbeats while a
// large journal is read, and returns an error if ctx is done.
func (j *Journal) heartbeats(ctx context.Context) func() error {
	last := j.now()
	return func() error {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		now := j.now()
		if now.Sub(last) < HeartbeatInterval {
			return nil
		}
		last = now
		return j.Heartbeat()
	}
}

// abandon cleans up after a Take that failed. An epoch that was opened stays used up: its owner
// file, installed or only prepared, is marked as left, so that nobody waits for it.
func (j *Journal) abandon(tmp string, opened bool) error {
	err := j.closeFile()
	if opened {
		return errors.Join(err, j.markLeft())
	}
	if rmErr := j.run.Disk.Remove(tmp); !errors.Is(rmErr, fs.ErrNotExist) {
		err = errors.Join(err, rmErr)
	}
	return errors.Join(err, j.writer.close())
}

// removePrepared removes the prepared owner files of older epochs. It finds the epoch in the name,
// because a file that is being written is not whole. Errors do not matter.
func removePrepared(r *rundir.Run, epoch int) {
	names, err := r.Disk.Names(r.Dir)
	if err != nil {
		return
	}
	for _, name := range names {
		rest, ok := strings.CutPrefix(name, preparedPrefix)
		digits, _, _ := strings.Cut(rest, ".")
		if of, err := strconv.Atoi(digits); ok && err == nil && of < epoch {
			_ = r.Disk.Remove(r.Path(name))
		}
	}
}
