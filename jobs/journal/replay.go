package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"

	"dcs-tui/jobs"
	"dcs-tui/jobs/rundir"
)

// Report says what replaying a journal met.
type Report struct {
	Records int   // folded
	Torn    int64 // bytes of a last line that was never completed: no damage
	Ignored int64 // bytes that fenced-off dispatchers wrote too late

	// Damaged says that facts are missing: a line could not be read or did not
	// fit. The caller must reconcile every job that is not terminal with claims
	// and sentinels, not only open attempts.
	Damaged  bool
	Warnings []string // for people, at most maxWarnings
	More     int      // warnings left out
}

const maxWarnings = 20

func (p *Report) warn(format string, args ...any) {
	if len(p.Warnings) == maxWarnings {
		p.More++
		return
	}
	p.Warnings = append(p.Warnings, fmt.Sprintf(format, args...))
}

// Replay folds the journal of a run without owning it: for status and results.
// It is safe while a dispatcher writes; it then sees a recent state.
func Replay(r *rundir.Run) (*jobs.Table, *Report, error) { return ReplayEvents(r, nil) }

// ReplayEvents is Replay that also shows each record but acknowledgements, with the host
// of its attempt, in order; all of them once more from the first if the journal had to
// be read twice.
func ReplayEvents(r *rundir.Run, event func(*jobs.Record)) (*jobs.Table, *Report, error) {
	for try := 1; ; try++ {
		files, err := listFiles(r)
		if err != nil {
			return nil, nil, err
		}
		t, report, _, err := replay(r, files, func() error { return nil }, event)
		// Over NFS a page that is being written may show before an earlier one.
		if err != nil || !report.Damaged || try == 2 {
			return t, report, err
		}
	}
}

// replay folds these files and returns the marks that fix what was read. It
// calls pulse now and then, and stops with its error; at most one event is as for
// ReplayEvents.
func replay(r *rundir.Run, files []epochFile, pulse func() error, event ...func(*jobs.Record)) (*jobs.Table, *Report, []jobs.FileMark, error) {
	fail := func(err error) (*jobs.Table, *Report, []jobs.FileMark, error) {
		return nil, nil, nil, fmt.Errorf("cannot read the journal of the run %s: %w", r.Name(), err)
	}
	sizes, err := sizesOf(r, files)
	if err != nil {
		return fail(err)
	}
	base, marks, err := fixedBy(r, files, sizes)
	if err != nil {
		return fail(err)
	}
	// Specifications are stored before the record that accepts them, so what is
	// read now covers all records within sizes.
	stored, err := r.ReadSpecs()
	if err != nil {
		return nil, nil, nil, err
	}
	p := &replayer{run: r, pulse: pulse, report: new(Report),
		table: &jobs.Table{Specs: stored.Specs, Jobs: make([]jobs.Job, 0, len(stored.Specs))}}
	if len(event) > 0 {
		p.event = event[0]
	}
	for _, text := range stored.Damage {
		p.report.warn("%s", text)
	}
	fixed := make([]jobs.FileMark, 0, len(files))
	for _, name := range slices.Sorted(maps.Keys(marks)) {
		if !slices.ContainsFunc(files, func(e epochFile) bool { return e.name == name }) {
			p.damage("%s/%s is missing", rundir.JournalDir, name)
			fixed = append(fixed, marks[name]) // later replays are to know of the damage, too
		}
	}
	for i, e := range files {
		m, known := marks[e.name]
		if i < base && !known {
			m = jobs.FileMark{Name: e.name} // nobody who counted had seen it
			known = true
		}
		if i < base {
			p.report.Ignored += max(0, sizes[i]-m.Length)
			err = p.fixedFile(e, m, sizes[i])
		} else {
			m, err = p.openFile(e, sizes[i])
		}
		if err != nil {
			return fail(err)
		}
		fixed = append(fixed, m)
	}
	return p.table, p.report, fixed, nil
}

// fixedBy finds the newest file with a whole first record, which fixes those before
// it: its index, -1 if there is none, and its marks by name.
func fixedBy(r *rundir.Run, files []epochFile, sizes []int64) (base int, marks map[string]jobs.FileMark, err error) {
	marks = map[string]jobs.FileMark{}
	for base = len(files) - 1; base >= 0; base-- {
		first, err := firstRecord(r, files[base], sizes[base])
		if err != nil {
			return base, nil, err
		}
		if first != nil {
			for _, m := range first.Files {
				marks[m.Name] = m
			}
			break
		}
	}
	return base, marks, nil
}

// replayer folds line by line.
type replayer struct {
	run    *rundir.Run
	table  *jobs.Table
	report *Report
	pulse  func() error
	dec    Decoder
	rec    jobs.Record
	event  func(*jobs.Record) // shown what ReplayEvents says; nil: nobody looks
}

func (p *replayer) damage(format string, args ...any) {
	p.report.Damaged = true
	p.table.Damaged = true
	p.report.warn(format, args...)
}

// fixedFile folds an older file up to its mark.
func (p *replayer) fixedFile(e epochFile, m jobs.FileMark, size int64) error {
	if size < m.Length {
		p.damage("%s has lost its end: %d bytes of %d are there", e.label(), size, m.Length)
	}
	whole, rest, sum, err := p.lines(e, m.Length)
	if err != nil {
		return err
	}
	if size >= m.Length && (rest > 0 || whole != m.Length || sum != m.CRC) {
		p.damage("%s is not what it was when epoch %d ended: its checksum differs", e.label(), e.epoch)
	}
	return nil
}

// openFile folds a file that nothing has fixed yet, and fixes it.
func (p *replayer) openFile(e epochFile, size int64) (jobs.FileMark, error) {
	whole, rest, sum, err := p.lines(e, size)
	if err == nil && rest > 0 {
		var torn bool
		if torn, err = isTorn(p.run, e, whole, rest); err == nil && !torn {
			p.damage("%s: its end is damaged", e.label())
			// With the mark behind it later replays know of that, too.
			return jobs.FileMark{Name: e.name, Length: whole + rest, CRC: sum}, nil
		}
	}
	p.report.Torn += rest
	return jobs.FileMark{Name: e.name, Length: whole, CRC: sum}, err
}

func (p *replayer) lines(e epochFile, limit int64) (whole, rest int64, sum uint32, err error) {
	whole, rest, sum, err = eachLine(p.run, e, limit, func(no int, text []byte) error {
		p.line(e, no, text)
		if no%(1<<14) == 0 {
			return p.pulse()
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w (was the run removed meanwhile?)", err)
	}
	return whole, rest, sum, err
}

// line folds the text between two newlines: a line, or, where a newline is
// damaged, several, which costs nothing.
func (p *replayer) line(e epochFile, no int, text []byte) {
	for more := true; more; more = len(text) > 0 {
		first, rest := pieces(text)
		p.one(e, no, first)
		if len(first) < len(text) {
			p.report.warn("%s:%d: the end of a line is damaged, which costs nothing", e.label(), no)
		}
		text = rest
	}
}

// show shows a record that has been folded.
func (p *replayer) show(r *jobs.Record) {
	if r.Host == "" && r.N > 0 && r.Kind != jobs.KindRequest {
		if a := p.table.Attempt(r.Attempt()); a != nil {
			r.Host = a.Host
		}
	}
	p.event(r)
}

// one folds a line.
func (p *replayer) one(e epochFile, no int, text []byte) {
	body, ok := lineBody(text)
	if !ok {
		p.damage("%s:%d: the line is damaged (its checksum does not fit)", e.label(), no)
		return
	}
	if err := p.dec.Decode(body, &p.rec); err != nil {
		p.damage("%s:%d: the line cannot be read: %v", e.label(), no, err)
		return
	}
	r := &p.rec
	isEpoch := r.Kind == jobs.KindEpoch
	if isEpoch && r.Epoch != e.epoch {
		p.damage("%s:%d: a record of epoch %d does not belong here", e.label(), no, r.Epoch)
		return
	}
	if !isEpoch && p.table.Epoch != e.epoch {
		// Its first line was lost; what follows counts.
		if err := jobs.Fold(p.table, &jobs.Record{Kind: jobs.KindEpoch, Epoch: e.epoch}); err != nil {
			p.damage("%s:%d: %v", e.label(), no, err)
		}
	}
	if r.Kind == jobs.KindAccepted {
		p.missingSpecs(e, no, r)
	}
	if r.Kind == jobs.KindDamaged {
		p.damage("%s", r.Reason)
	}
	err := p.fold(r)
	if err != nil && !p.table.Damaged {
		// A file that nobody knew of is gone, or this program is at fault.
		p.damage("%s:%d: records are missing before this one: %v", e.label(), no, err)
		err = p.fold(r)
	}
	if err != nil {
		p.damage("%s:%d: the record does not fit: %v", e.label(), no, err)
		return
	}
	if p.event != nil && r.Kind != jobs.KindAcked {
		p.show(r)
	}
	p.report.Records++
}
