package run

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"time"

	"dcs-tui/dispatch/sched"
	"dcs-tui/hosts"
	"dcs-tui/internal/text"
	"dcs-tui/jobs"
	"dcs-tui/jobs/attempts"
	"dcs-tui/jobs/journal"
	"dcs-tui/jobs/rundir"
)

// Owned is a run that this process may write to. Start takes ownership of it. Until then the caller
// must Release it.
type Owned struct {
	Run      *rundir.Run
	Table    *jobs.Table // the folded journal
	Warnings []string    // from replaying the journal

	journal *journal.Journal
	stored  []*jobs.Spec // stored, but not part of the run yet
}

// Take takes over a run. If another dispatcher owns it, the error is a *journal.OwnedError.
func Take(ctx context.Context, dir *rundir.Run, opt journal.TakeOptions) (*Owned, error) {
	if err := checkNotMirror(dir); err != nil {
		return nil, err
	}
	return take(ctx, dir, opt)
}

func take(ctx context.Context, dir *rundir.Run, opt journal.TakeOptions) (*Owned, error) {
	opt.Packed = true
	if err := dir.CheckLinks(); err != nil {
		return nil, err
	}
	j, table, report, err := journal.Take(ctx, dir, opt)
	if err != nil {
		return nil, err
	}
	o := &Owned{Run: dir, Table: table, journal: j, Warnings: report.Warnings}
	if report.More > 0 {
		o.Warnings = append(o.Warnings, "and "+text.Plural(report.More, "further warning")+" about the journal")
	}
	if j.Epoch() == 1 { // a later dispatcher accepts the stored jobs at its start
		for id := jobs.ID(table.NumJobs() + 1); int(id) <= table.NumSpecs(); id++ {
			o.stored = append(o.stored, table.Spec(id))
		}
		table.SetSpecs(table.NumJobs(), nil)
	}
	return o, nil
}

// Release gives up the run without dispatching it.
func (o *Owned) Release() error { return o.journal.Close() }

// AllSpecs returns the jobs of the run in the order of their numbers. Each is valid until the next
// one.
func (o *Owned) AllSpecs() iter.Seq[*jobs.Spec] { return o.after(o.Table.AllSpecs()) }

// specsWithOptions is like AllSpecs, and faster. A job may have only its ID and its Options.
func (o *Owned) specsWithOptions() iter.Seq[*jobs.Spec] { return o.after(o.Table.SpecsWithOptions()) }

// after adds the stored jobs to those of the table.
func (o *Owned) after(ofTable iter.Seq[*jobs.Spec]) iter.Seq[*jobs.Spec] {
	return func(yield func(*jobs.Spec) bool) {
		for s := range ofTable {
			if !yield(s) {
				return
			}
		}
		for _, s := range o.stored {
			if !yield(s) {
				return
			}
		}
	}
}

// numSpecs returns the number of jobs of the run.
func (o *Owned) numSpecs() int { return o.Table.NumSpecs() + len(o.stored) }

// NumStored returns the number of jobs that are stored but not part of the run yet.
func (o *Owned) NumStored() int { return o.Table.NumSpecs() - o.Table.NumJobs() + len(o.stored) }

// Store makes the jobs of a new run durable before the first of them starts. A run that is killed
// while it submits them thus loses none. Store numbers the jobs.
func (o *Owned) Store(specs []*jobs.Spec) error {
	for i, spec := range specs {
		spec.ID = jobs.ID(i + 1)
	}
	if err := o.Run.AppendSpecs(specs); err != nil {
		return text.Errorf("%w; nothing was started", err).WithAdvice("remove %s and start again",
			text.ShellWord(text.Path(o.Run.Dir)))
	}
	o.stored = specs
	return nil
}

// CheckComplete returns an error if not all jobs of the run are stored, because its creation was
// interrupted before any job was started. Only the jobs file has the missing ones.
func (o *Owned) CheckComplete() error {
	want, ok := o.Run.Settings.Options[rundir.OptionJobs].(int64)
	have := o.numSpecs()
	if !ok || have >= int(want) {
		return nil
	}
	dir := text.ShellWord(text.Path(o.Run.Dir))
	if o.Run.HasAttempts() || o.wasStarted() {
		return text.Errorf("%s of the run %s has lost jobs: it has %d of %d, and some were started", rundir.SpecsFile,
			o.Run.Name(), have, want).
			WithAdvice("keep %s; restore %s from a backup, or run again what is missing", dir, rundir.SpecsFile)
	}
	return text.Errorf("the run %s was cut off while its jobs were being stored (%d of %d); none of them was started",
		o.Run.Name(), have, want).
		WithAdvice("run %s again, and remove %s", text.ShellWord(o.Run.Settings.JobsFile), dir)
}

// wasStarted reports whether an attempt of the run is recorded.
func (o *Owned) wasStarted() bool {
	for j := range o.Table.RowsWithOptions() {
		if len(j.Attempts) > 0 {
			return true
		}
	}
	return false
}

// NumFromSource returns the number of jobs that come from the run's own source, without those of
// requests. If the run has no source that can be read again, it returns the number of all jobs.
func (o *Owned) NumFromSource() int {
	if o.Run.Settings.Options[rundir.OptionSource] == nil {
		return o.numSpecs()
	}
	n := 0
	for s := range o.specsWithOptions() {
		if s == nil || s.Options == nil || s.Request == "" {
			n++
		}
	}
	return n
}

// storeSpecs returns a function that stores the jobs that jobs.jsonl does not hold yet.
func (o *Owned) storeSpecs() func([]*jobs.Spec) error {
	stored := o.numSpecs()
	return func(specs []*jobs.Spec) error {
		for len(specs) > 0 && int(specs[0].ID) <= stored {
			specs = specs[1:]
		}
		if err := o.Run.AppendSpecs(specs); err != nil {
			return err
		}
		stored += len(specs)
		return nil
	}
}

// inspect reads the attempts of a host that cannot be queried from the run directory, as this
// machine sees it.
func (o *Owned) inspect(host string, ids []jobs.AttemptID) *hosts.Inspected {
	return hosts.InspectDisk(o.Run.Disk, o.Run.Dir, o.Run.UID(), host, ids)
}

// foundAttempts reads the claims and sentinels of unfinished jobs in the run directory. It returns
// the attempts that have no record. There are some only if records are missing. After damage to the
// journal it returns all attempts whose end has no record, and the error for a pack that may have others: their
// jobs could run again. It warns of other errors.
func (o *Owned) foundAttempts(warn func(string)) (all []sched.Found, err error) {
	if o.Table.Epoch < 2 {
		return nil, nil
	}
	alive := time.Now()
	err = attempts.EachFate(o.Run.Disk, o.Run.Dir, o.Run.UID(), "", sched.UnfinishedJobs(o.Table),
		func(f attempts.Fate) error {
			// There may be a million attempts. Send heartbeats meanwhile, so that other dispatchers do
			// not consider this one dead.
			if time.Since(alive) >= journal.HeartbeatInterval {
				alive = time.Now()
				if err := o.journal.Heartbeat(); errors.Is(err, journal.ErrFenced) {
					return err
				}
			}
			a := o.Table.Attempt(f.Attempt)
			known := a != nil && a.Host == f.Host
			if o.Table.Damaged {
				known = a != nil && !a.State.Open() && a.State != jobs.AttemptLost
			}
			if known {
				return nil
			}
			if p, ok := hosts.ProbedOnDisk(f); ok {
				all = append(all, sched.Found{Host: f.Host, ProbedJob: p})
			}
			return nil
		})
	switch {
	case o.Table.Damaged && rundir.LacksPack(err):
		return nil, fmt.Errorf("the journal is damaged, and jobs without records may be in a pack: %w; make it whole "+
			"and readable, or move it away if they may run again", err)
	case err != nil:
		warn("not all of the run's claims and sentinels could be read: " + err.Error())
	}
	return all, nil
}

// Create creates the directory of a new run: dir, or rundir.Base/name if dir is "". If a run in use
// has that directory, the error names its dispatcher.
func Create(dir, name string, settings rundir.Settings) (r *rundir.Run, err error) {
	if dir != "" {
		r, err = rundir.CreateAt(dir, name, settings)
	} else {
		r, err = rundir.Create(rundir.Base, name, settings)
		dir = filepath.Join(rundir.Base, name)
	}
	if err == nil {
		return r, nil
	}
	if old, openErr := rundir.Open(dir); openErr == nil {
		if owner, ownerErr := journal.ReadOwner(old); ownerErr == nil && owner != nil && !owner.Left &&
			owner.Liveness() != journal.Dead {
			return nil, text.Errorf("the run %s in %s is in use by %s; choose another --name or --run-dir, "+
				"or look at it with dcs-tui status %s",
				old.Name(), dir, owner, text.ShellWord(old.Ref()))
		}
	}
	return nil, text.Errorf("%w", err)
}
