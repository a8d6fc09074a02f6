package journal

import (
	"errors"
	"fmt"
	"io/fs"

	"dcs-tui/jobs"
	"dcs-tui/jobs/rundir"
)

// Reader gives the records of a run's journal one by one, to those who only look
// (events, whoever waits for an answer). It neither owns the run nor keeps what it
// has read, and may be asked again for what has come since. It is for one goroutine.
type Reader struct {
	run    *rundir.Run
	dec    Decoder
	epoch  int   // of the file that was read last
	offset int64 // how far
	line   int   // lines of it so far
	newest int   // the newest epoch of the last pass
	waited int   // for the line at offset

	// Patience is how many Reads wait for a line of the newest file that is not whole,
	// for whoever comes again and again: over NFS a page that is being written may show
	// before an earlier one. Then, and with 0 at once, the line is damaged.
	Patience int

	// Report is what has been met so far. Ignored are the bytes that dispatchers
	// wrote after the run had been taken over from them.
	Report Report
}

// NewReader reads from the beginning of the run.
func NewReader(r *rundir.Run) *Reader { return &Reader{run: r} }

// Read calls fn for each record that has come since the last Read, in order, with
// the epoch whose dispatcher wrote it. The record is fn's only until it returns.
// After an error of fn, which Read returns, the Reader is of no more use.
func (d *Reader) Read(fn func(epoch int, r *jobs.Record) error) error {
	return d.pass(func(e epochFile, text []byte) error {
		if d.early(e, text) {
			return errEarly
		}
		for more := true; more; more = len(text) > 0 {
			var first []byte
			first, text = pieces(text)
			if err := d.one(e, first, fn); err != nil {
				return err
			}
		}
		return nil
	})
}

// errEarly ends a pass before a line that may become whole.
var errEarly = errors.New("the line may not be whole yet")

// early says that a line is to be waited for.
func (d *Reader) early(e epochFile, text []byte) bool {
	if d.Patience > 0 && e.epoch == d.newest && d.waited < d.Patience {
		first, _ := pieces(text)
		if _, ok := lineBody(first); !ok {
			d.waited++
			return true
		}
	}
	d.waited = 0
	return false
}

// one reads a line.
func (d *Reader) one(e epochFile, text []byte, fn func(epoch int, r *jobs.Record) error) error {
	body, ok := lineBody(text)
	if !ok {
		d.damage("%s:%d: the line is damaged (its checksum does not fit)", e.label(), d.line)
		return nil
	}
	var rec jobs.Record
	if err := d.dec.Decode(body, &rec); err != nil {
		d.damage("%s:%d: the line cannot be read: %v", e.label(), d.line, err)
		return nil
	}
	d.Report.Records++
	return fn(e.epoch, &rec)
}

func (d *Reader) damage(format string, args ...any) {
	d.Report.Damaged = true
	d.Report.warn(format, args...)
}

// Skip goes to the present end of the journal.
func (d *Reader) Skip() error {
	files, err := listFiles(d.run)
	if err != nil || len(files) == 0 {
		return err
	}
	d.epoch, d.offset, d.line = newest(files), 0, 0
	// Lines are not looked at, only their ends: the last may still be growing.
	return d.pass(func(epochFile, []byte) error { return nil })
}

// pass goes through the lines that have come since the last pass.
func (d *Reader) pass(line func(e epochFile, text []byte) error) error {
	files, err := listFiles(d.run)
	if err != nil {
		return err
	}
	fail := func(err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("%w (was the run removed meanwhile?)", err)
		}
		return fmt.Errorf("cannot read the journal of the run %s: %w", d.run.Name(), err)
	}
	sizes, err := sizesOf(d.run, files)
	if err != nil {
		return fail(err)
	}
	base, marks, err := fixedBy(d.run, files, sizes)
	if err != nil {
		return fail(err)
	}
	d.Report.Ignored, d.newest = 0, newest(files)
	for i, e := range files {
		limit := sizes[i]
		if i < base { // without a mark nobody who counted had seen it: length 0
			limit = min(limit, marks[e.name].Length)
			d.Report.Ignored += sizes[i] - limit
		}
		if e.epoch < d.epoch {
			continue
		}
		if e.epoch > d.epoch {
			d.epoch, d.offset, d.line = e.epoch, 0, 0
		}
		var stopped error
		at := d.offset
		whole, _, _, err := eachLineFrom(d.run, e, d.offset, limit, func(_ int, text []byte) error {
			d.line++
			if stopped = line(e, text); stopped == nil {
				at += int64(len(text)) + 1
			}
			return stopped
		})
		if stopped == errEarly {
			d.offset, d.line = at, d.line-1
			return nil
		}
		d.offset = whole
		if stopped != nil {
			return stopped
		}
		if err != nil {
			return fail(err)
		}
	}
	return nil
}
