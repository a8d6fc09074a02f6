package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"sync"
	"syscall"

	"dcs-tui/jobs"
	"dcs-tui/jobs/live"
	"dcs-tui/jobs/rundir"
)

// Limit is how far a Poll may read the newest file of the journal. A file of an earlier epoch is
// read up to the length that a later epoch fixed. What is durable was on the file server before it
// was published, so a line within the limit that is not whole is damaged.
type Limit struct {
	live.Durable // what is known to be durable
	// End reports that nobody dispatches the run: files are read to their ends, and a partial last
	// line will not be completed.
	End bool
}

// LimitOf returns the Limit for a reader that does not dispatch the run. owner is what ReadOwner
// returned, liveness is its Liveness, and state is the content of live.json. owner and state may be
// nil. Both record what is durable: live.json every second, and the owner file, which can be
// written even if the disk is full, at each heartbeat. The caller sets End itself when an owner on
// another machine has sent no heartbeat for StaleAfter.
func LimitOf(owner *Owner, liveness Liveness, state *live.State) Limit {
	if liveness == Dead {
		return Limit{End: true}
	}
	durable := live.Durable{Epoch: owner.File, Bytes: owner.Bytes}
	if state != nil && state.Epoch == owner.Epoch && state.Token == owner.Token &&
		(state.Durable.Epoch > durable.Epoch || state.Durable.Epoch == durable.Epoch &&
			state.Durable.Bytes > durable.Bytes) {
		durable = state.Durable
	}
	return Limit{Durable: durable}
}

// Follower replays the journal of a run and then follows it. It writes nothing. It is not safe for
// concurrent use.
//
// It folds only what cannot be taken back: older files up to the length that a later epoch fixed,
// and the newest file up to a Limit. If a later epoch fixes less than what has been folded, or if a
// file has changed, it starts again.
type Follower struct {
	run        *rundir.Run
	table      *jobs.Table
	report     *Report
	rec        jobs.Record
	ahead      jobs.ParallelDecoder[decoded]
	lineReader jobs.RecordReader               // for single lines, while the others decode ahead
	cores      []jobs.RecordReader             // one for each core of ahead
	see        func(epoch int, r *jobs.Record) // may be nil
	pulse      func() error                    // called regularly by a Take; may be nil

	specs   *rundir.SpecTail
	files   []*followedFile          // files of the last Poll; nil: before the first
	base    int                      // the newest epoch with a whole first record; 0: none
	marks   map[string]jobs.FileMark // marks in that record, by file name
	missing []jobs.FileMark          // marks of files that are gone

	guard    sync.Locker // see SetGuard; may be nil
	newTable func() *jobs.Table
	noParams bool // see WithoutParams
	tail     bool // do not fold records
	skipping bool // do not decode records either

	building bool // a restart has happened in this Poll
}

// followedFile is a file of the journal and the position up to which it was folded.
type followedFile struct {
	epochFile
	position                // behind the folded lines
	limit    int64          // up to which the file was read
	final    bool           // a partial last line will not be completed any more
	torn     int64          // bytes of a last line that was never completed
	damaged  int64          // bytes of a last line that was damaged
	mark     *jobs.FileMark // the mark that fixed the file and was checked; nil: none
}

// target is the position up to which a Poll folds a file.
type target struct {
	limit int64
	final bool           // as in followedFile
	mark  *jobs.FileMark // the mark that fixed the file; nil: none
}

// Follow returns a Follower at the beginning of the run's journal.
func Follow(r *rundir.Run) *Follower {
	f := &Follower{run: r, report: new(Report), cores: make([]jobs.RecordReader, jobs.Cores)}
	return f.keep(func() *jobs.Table { return new(jobs.Table) })
}

// Tail returns a Follower that keeps no table. Its first Poll skips to the end of the journal
// without calling see, which is much faster than folding.
func Tail(r *rundir.Run) *Follower {
	f := Follow(r)
	f.tail, f.skipping = true, true
	return f
}

// Packed makes the Follower keep a packed table: a million finished jobs then take 130 MB
// instead of 420. Call it before the first Poll.
func (f *Follower) Packed() *Follower {
	return f.keep(jobs.NewPacked)
}

// WithoutParams makes the Follower faster. Jobs of its table may then lack their parameters. Call it
// before the first Poll.
func (f *Follower) WithoutParams() { f.noParams = true }

// keep makes the Follower fold into a table that newTable returns.
func (f *Follower) keep(newTable func() *jobs.Table) *Follower {
	f.newTable, f.table = newTable, newTable()
	return f
}

// SetGuard makes the Follower hold l while it changes the Table that the last Poll left and
// while it calls see. l is not held while the Follower reads the disk, nor while it builds
// a table again. Call it before the first Poll.
func (f *Follower) SetGuard(l sync.Locker) *Follower {
	f.guard = l
	return f
}

// IsBuilding reports whether the current Poll builds a table that Table did not return before. It
// is for calls from see.
func (f *Follower) IsBuilding() bool { return f.building }

// lockGuard locks the guard if the table may be in use, and returns what unlocks it.
func (f *Follower) lockGuard() (unlock func()) {
	if f.guard == nil || f.building {
		return func() {}
	}
	f.guard.Lock()
	return f.guard.Unlock
}

// Table returns the state of the run after the last Poll. The next Poll changes it, and
// a restart replaces it.
func (f *Follower) Table() *jobs.Table { return f.table }

// Report returns what has been found since the last restart. The next Poll changes it.
func (f *Follower) Report() *Report { return f.report }

// Replay folds the durable part of a run's journal into a packed table. The caller need not own the
// run.
func Replay(r *rundir.Run) (*jobs.Table, *Report, error) {
	owner, _ := ReadOwner(r) // without it, and without live.json, less is known to be durable
	state, _ := live.Read(r)
	f := Follow(r).Packed()
	if _, err := f.Poll(LimitOf(owner, owner.Liveness(), state), nil); err != nil {
		return nil, nil, err
	}
	return f.table, f.report, nil
}

// Poll folds the records that were added since the last Poll. After folding each record it calls
// see, unless see is nil, with the epoch of the dispatcher that wrote it and with the host of its
// attempt. The record is valid until see returns. restarted reports whether the table was built
// again, as at the first Poll; see was then called for all records from the first one on. restarted
// is valid even with an error. After an error the next Poll continues.
func (f *Follower) Poll(limit Limit, see func(epoch int, r *jobs.Record)) (restarted bool, err error) {
	f.see = see
	for try := 1; ; try++ {
		var again bool
		files, err := listFiles(f.run)
		if err == nil {
			again, err = f.poll(files, limit)
			restarted = restarted || again
		}
		if try == 2 || !errors.Is(err, syscall.ESTALE) {
			return restarted, err
		}
	}
}

// poll is Poll for a listing of the files.
func (f *Follower) poll(files []epochFile, limit Limit) (restarted bool, err error) {
	fail := func(err error) (bool, error) {
		var unknown *NewerRecordError
		switch {
		case errors.As(err, &unknown):
			return restarted, err
		case errors.Is(err, fs.ErrNotExist):
			err = fmt.Errorf("%w (was the run removed meanwhile?)", err)
		}
		return restarted, fmt.Errorf("cannot read the journal of the run %s: %w", f.run.Name(), err)
	}
	targets, err := f.plan(files, limit)
	if err != nil {
		return fail(err)
	}
	missing := missingFiles(files, f.marks)
	restarted = !f.onlyAdds(files, targets) || !slices.Equal(missing, f.missing)
	if restarted {
		f.restart(missing)
	}
	f.building = restarted
	for _, e := range files[len(f.files):] {
		f.files = append(f.files, &followedFile{epochFile: e})
	}
	if !f.tail && (restarted || limit.End) {
		// Specifications are stored before the record that accepts them, so what is read now covers
		// all records within the targets. If nobody dispatches the run, specifications that no
		// record accepts are needed, too.
		if err := f.readMoreSpecs(); err != nil {
			return restarted, err
		}
	}
	f.report.Torn = 0
	for i, st := range f.files {
		if t := targets[i]; t.mark != nil {
			err = f.foldFixedFile(st, t)
		} else {
			err = f.foldOpenFile(st, t)
		}
		if err != nil {
			return fail(err)
		}
		f.report.Torn += st.torn
	}
	f.skipping = false
	return restarted, nil
}

// plan returns the targets of the files. It reads the newest file first: the older files that it
// fixes have reached their full lengths by then, even if other processes are writing.
func (f *Follower) plan(files []epochFile, limit Limit) ([]target, error) {
	targets := make([]target, len(files))
	base, begun := 0, false // begun: a later file is not empty
	for i := len(files) - 1; i >= 0; i-- {
		e, t := files[i], &targets[i]
		if base > 0 {
			m := f.marks[e.name] // without a mark, the owner had not seen the file
			m.Name = e.name
			*t = target{m.Length, true, &m}
			continue
		}
		size, err := sizeOf(f.run, e)
		if err != nil {
			return nil, err
		}
		if base, err = f.readBase(e, size); err != nil {
			return nil, err
		}
		t.final = limit.End || begun
		switch {
		case limit.End || e.epoch < limit.Epoch:
			t.limit = size
		case e.epoch == limit.Epoch:
			t.limit = min(size, limit.Bytes)
		}
		if i < len(f.files) { // a lower limit is outdated, but a shorter file has lost data
			t.limit = max(t.limit, min(size, f.files[i].length))
		}
		begun = begun || size > 0
	}
	f.base = base
	if base == 0 {
		f.marks = nil
	}
	return targets, nil
}

// readBase returns the epoch of a file and keeps its marks if its first record is whole.
// Otherwise it returns 0.
func (f *Follower) readBase(e epochFile, size int64) (int, error) {
	if e.epoch == f.base {
		return e.epoch, nil
	}
	first, err := firstRecord(f.run, e, size)
	if err != nil || first == nil {
		return 0, err
	}
	f.marks = map[string]jobs.FileMark{}
	for _, m := range first.Files {
		f.marks[m.Name] = m
	}
	return e.epoch, nil
}

// missingFiles returns the marks of files that are not in the directory.
func missingFiles(files []epochFile, marks map[string]jobs.FileMark) (missing []jobs.FileMark) {
	for _, name := range slices.Sorted(maps.Keys(marks)) {
		if !slices.ContainsFunc(files, func(e epochFile) bool { return e.name == name }) {
			missing = append(missing, marks[name])
		}
	}
	return missing
}

// onlyAdds reports whether the targets only add to what was folded.
func (f *Follower) onlyAdds(files []epochFile, targets []target) bool {
	if f.files == nil || len(files) < len(f.files) {
		return false
	}
	later := false // a later file has been folded
	for i := len(f.files) - 1; i >= 0; i-- {
		st, t := f.files[i], targets[i]
		switch {
		case st.epochFile != files[i], t.limit < st.length:
			return false
		case st.mark != nil:
			if t.mark == nil || *t.mark != *st.mark {
				return false
			}
		case later && t.limit > st.length && (t.mark != nil || t.limit != st.limit):
			return false
		}
		later = later || st.length > 0
	}
	return true
}

// restart discards what was folded.
func (f *Follower) restart(missing []jobs.FileMark) {
	f.table, f.report, f.specs = f.newTable(), new(Report), f.run.SpecTail()
	f.specs.WithoutParams = f.noParams
	f.files = []*followedFile{}
	f.missing = missing
	for _, m := range missing {
		f.damage("%s/%s is missing", rundir.JournalDir, m.Name)
	}
}

// readMoreSpecs reads the specifications that were added.
func (f *Follower) readMoreSpecs() error {
	set := func(n int, specs []*jobs.Spec) {
		defer f.lockGuard()()
		f.table.SetSpecs(n, specs)
	}
	damage, err := []string(nil), error(nil)
	if f.pulse != nil { // a Take: needed before more can be appended
		damage, err = f.run.ReadSpecs(set)
	} else {
		damage, err = f.specs.ReadMore(f.table.NumSpecs(), set)
	}
	for _, text := range damage {
		f.report.warn("%s", text)
	}
	return err
}

// AcceptStored adds the specifications that no record accepts yet to the table; see
// [jobs.Table.AcceptStored]. Call it after a Poll.
func (f *Follower) AcceptStored() error {
	if err := f.readMoreSpecs(); err != nil {
		return err
	}
	defer f.lockGuard()()
	f.table.AcceptStored()
	return nil
}

// fixedMarks returns the marks that fix what was folded.
func (f *Follower) fixedMarks() []jobs.FileMark {
	marks := slices.Clone(f.missing) // later epochs must find this damage, too
	for _, st := range f.files {
		if st.mark != nil {
			marks = append(marks, *st.mark)
		} else {
			marks = append(marks, jobs.FileMark{Name: st.name, Length: st.length + st.damaged, CRC: st.sum})
		}
	}
	return marks
}

// foldFixedFile folds an older file up to its mark.
func (f *Follower) foldFixedFile(st *followedFile, t target) error {
	if st.mark != nil {
		return nil
	}
	size, err := sizeOf(f.run, st.epochFile)
	if err != nil {
		return err
	}
	rest, err := f.foldLines(st, t)
	if err != nil {
		return err
	}
	m := *t.mark
	f.report.Ignored += max(0, size-m.Length)
	if size < m.Length {
		f.damage("%s has lost its end: %d bytes of %d are there", st.label(), size, m.Length)
	} else if rest > 0 || st.length != m.Length || st.sum != m.CRC {
		f.damage("%s is not what it was when epoch %d ended: its checksum differs", st.label(), st.epoch)
	}
	st.mark, st.torn = &m, 0
	return nil
}

// foldOpenFile folds a file that is not fixed yet.
func (f *Follower) foldOpenFile(st *followedFile, t target) error {
	if st.limit == t.limit && st.final == t.final {
		return nil
	}
	rest, err := f.foldLines(st, t)
	if err != nil {
		return err
	}
	st.limit, st.final, st.torn, st.damaged = t.limit, t.final, 0, 0
	if !t.final || rest == 0 {
		return nil
	}
	torn, err := isTorn(f.run, st.epochFile, st.length, rest)
	if err != nil {
		return err
	}
	if torn {
		st.torn = rest
		return nil
	}
	// The mark includes it, so that later epochs find the damage, too.
	st.damaged = rest
	f.damage("%s: its end is damaged", st.label())
	return nil
}
