package journal

import (
	"errors"
	"fmt"

	"dcs-tui/jobs"
)

// foldLines folds the lines up to the target.
func (f *Follower) foldLines(st *followedFile, t target) (rest int64, err error) {
	var block func([]byte)
	if !f.skipping {
		block = func(b []byte) { f.ahead.Decode(b, f.decode) }
	}
	return eachLine(f.run, st.epochFile, &st.position, t.limit, block, func(no int, text []byte) error {
		if f.skipping {
			return nil
		}
		if d := f.ahead.Take(); d != nil && d.ok {
			err = f.foldRecord(st.epochFile, no, &d.rec)
		} else {
			err = f.foldText(st.epochFile, no, text)
		}
		if err != nil {
			return err
		}
		if f.pulse != nil && no%(1<<14) == 0 {
			return f.pulse()
		}
		return nil
	})
}

// decoded is a line that was decoded before it is folded.
type decoded struct {
	rec jobs.Record
	ok  bool // the line is whole and holds a record
}

// decode decodes a line on one of the cores.
func (f *Follower) decode(core int, line []byte, d *decoded) {
	if body, ok := lineBody(line); ok {
		d.ok = f.cores[core].Read(body, &d.rec) == nil
	}
}

// foldText folds the text between two newlines. That is one line or, where newlines are damaged,
// several.
func (f *Follower) foldText(e epochFile, no int, text []byte) error {
	for part := 0; part == 0 || len(text) > 0; part++ {
		first, rest := text, []byte(nil)
		body, ok := lineBody(text)
		if !ok {
			first, rest = splitJoinedLines(text)
			body, ok = lineBody(first)
		}
		if !ok {
			f.damage("%s:%d: the line is damaged (its checksum does not fit)", e.label(), no)
		} else if err := f.foldLine(e, no, body); err != nil {
			return err
		}
		if len(first) < len(text) {
			f.report.warn("%s:%d: the end of a line is damaged, but no information is lost", e.label(), no)
		}
		text = rest
	}
	return nil
}

// foldLine folds a line whose checksum is right.
func (f *Follower) foldLine(e epochFile, no int, body []byte) error {
	r := &f.rec
	err := f.lineReader.Read(body, r)
	if field, ok := errors.AsType[*jobs.UnknownFieldError](err); ok {
		return &NewerRecordError{
			Location: fmt.Sprintf("%s:%d", e.label(), no),
			What:     fmt.Sprintf("with the field %.40q", field.Name),
			Ref:      f.run.Ref(),
		}
	}
	if err != nil {
		f.damage("%s:%d: the line cannot be read: %v", e.label(), no, err)
		return nil
	}
	return f.foldRecord(e, no, r)
}

// foldRecord folds the record of a line.
func (f *Follower) foldRecord(e epochFile, no int, r *jobs.Record) error {
	if !r.Kind.IsKnown() {
		return &NewerRecordError{
			Location: fmt.Sprintf("%s:%d", e.label(), no),
			What:     fmt.Sprintf("of kind %.40q", r.Kind),
			Ref:      f.run.Ref(),
		}
	}
	if f.tail {
		f.report.Records++
		if f.see != nil {
			f.see(e.epoch, r)
		}
		return nil
	}
	if r.Kind == jobs.KindAccepted && int(r.Job)-1+r.Count > f.table.NumSpecs() && f.pulse == nil {
		if err := f.readMoreSpecs(); err != nil {
			return err
		}
	}
	defer f.lockGuard()()
	isEpoch := r.Kind == jobs.KindEpoch
	if isEpoch && r.Epoch != e.epoch {
		f.damage("%s:%d: a record of epoch %d does not belong here", e.label(), no, r.Epoch)
		return nil
	}
	if !isEpoch && f.table.Epoch != e.epoch {
		// The first line of the file was lost. The lines after it count.
		if err := jobs.Fold(f.table, &jobs.Record{Kind: jobs.KindEpoch, Epoch: e.epoch}); err != nil {
			f.damage("%s:%d: %v", e.label(), no, err)
		}
	}
	if r.Kind == jobs.KindAccepted {
		f.addMissingSpecs(e, no, r)
	}
	if r.Kind == jobs.KindDamaged {
		f.damage("%s", r.Reason)
	}
	err := f.fold(r)
	if err != nil && !f.table.Damaged {
		// A file that nobody knew of is gone, or this program is at fault.
		f.damage("%s:%d: records are missing before this one: %v", e.label(), no, err)
		err = f.fold(r)
	}
	if err != nil {
		f.damage("%s:%d: the record does not fit: %v", e.label(), no, err)
		return nil
	}
	f.report.Records++
	if f.see != nil {
		if r.Host == "" && r.N > 0 && r.Kind != jobs.KindRequest {
			if a := f.table.Attempt(r.Attempt()); a != nil {
				r.Host = a.Host
			}
		}
		f.see(e.epoch, r)
	}
	f.table.PackIdle()
	return nil
}
