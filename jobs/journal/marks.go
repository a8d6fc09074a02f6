package journal

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"dcs-tui/jobs"
	"dcs-tui/jobs/rundir"
)

// The marks of an epoch, which keep out what older dispatchers write too late, stand
// twice: in the first line of its file, and as the same line in a file beside it,
// 000002.marks. That is written before the first line, so that there is none without;
// and it may count without one, because from when the epoch's file stands in the
// directory no older dispatcher acts upon what it writes (see Journal.Sync). A run
// directory of an older program has no such files, and is read as it always was.

func (e epochFile) marks() string { return fmt.Sprintf("%06d.marks", e.epoch) }

// keepMarks writes the marks of our epoch down beside its file, durably. Failing is an error,
// as failing to write the first line is: it would be of the same disk in the same instant,
// and the dispatcher would begin with promises 1 and 2 hanging on every bit of one line.
func (j *Journal) keepMarks(first *jobs.Record) error {
	if len(first.Files) == 0 {
		return nil
	}
	disk, path := j.run.Disk, j.run.Path(rundir.JournalDir, j.file.marks())
	// The epoch is ours alone, so the name is; one that is there is of an epoch whose file was lost.
	f, err := disk.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	if _, err = f.WriteAt(appendLine(nil, first), 0); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return disk.SyncDir(filepath.Dir(path))
}

// keptMarks reads the record that keepMarks wrote; nil when there is none, or not a whole one.
func keptMarks(r *rundir.Run, e epochFile) (*jobs.Record, error) {
	names, err := r.Disk.Names(r.Path(rundir.JournalDir)) // nothing is opened that no listing has shown
	if err != nil || !slices.Contains(names, e.marks()) {
		return nil, err
	}
	b, err := rundir.ReadFile(r.Disk, r.Path(rundir.JournalDir, e.marks()))
	if err != nil {
		return nil, err
	}
	line, _, _ := bytes.Cut(b, []byte{'\n'})
	return epochRecord(e, line), nil
}

// epochRecord reads the record with which an epoch begins, nil if the line is not that.
func epochRecord(e epochFile, line []byte) *jobs.Record {
	var d Decoder
	rec := new(jobs.Record)
	body, ok := lineBody(line)
	if !ok || d.Decode(body, rec) != nil || rec.Kind != jobs.KindEpoch || rec.Epoch != e.epoch {
		return nil
	}
	return rec
}
