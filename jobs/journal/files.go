package journal

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"dcs-tui/jobs"
	"dcs-tui/jobs/rundir"
)

// epochFile is one file of the journal.
type epochFile struct {
	epoch int
	name  string // within the journal directory
}

func fileOf(epoch int) epochFile { return epochFile{epoch, fmt.Sprintf("%06d.jsonl", epoch)} }

func (e epochFile) path(r *rundir.Run) string { return r.Path(rundir.JournalDir, e.name) }

// label returns the name of the file in messages.
func (e epochFile) label() string { return filepath.Join(rundir.JournalDir, e.name) }

// listFiles lists the files of the journal, oldest first.
func listFiles(r *rundir.Run) ([]epochFile, error) {
	names, err := r.Disk.Names(r.Path(rundir.JournalDir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("the run directory %s, or its journal, is gone: was it removed? (%w)", r.Dir, err)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot list the journal of the run %s: %w", r.Name(), err)
	}
	var files []epochFile
	for _, name := range names {
		digits, ok := strings.CutSuffix(name, ".jsonl")
		n, err := strconv.Atoi(digits)
		if ok && err == nil && n > 0 && fileOf(n).name == name {
			files = append(files, epochFile{n, name})
		}
	}
	slices.SortFunc(files, func(a, b epochFile) int { return a.epoch - b.epoch })
	return files, nil
}

// Files returns the paths within the run directory of the files of the journal, the oldest first, and of
// those with their marks.
func Files(r *rundir.Run) (records, marks []string, err error) {
	files, err := listFiles(r)
	for _, e := range files {
		records = append(records, e.label())
		marks = append(marks, filepath.Join(rundir.JournalDir, e.marksName()))
	}
	return records, marks, err
}

func newestEpoch(files []epochFile) int {
	if len(files) == 0 {
		return 0
	}
	return files[len(files)-1].epoch
}

// position is how far a file has been read.
type position struct {
	length int64  // of the lines so far
	lines  int    // number of lines
	sum    uint32 // CRC-32C of these bytes
}

// eachLine calls line for each whole line between at, which is the beginning of a line, and limit.
// line gets the number of the line and its text, without the newline unless that is damaged (see
// pieces). After each call that returns nil, eachLine moves at behind that line. rest is the number
// of bytes after the last newline. A last line whose newline is damaged is whole: a line that was
// cut off ends earlier.
//
// If block is not nil, eachLine calls it with several lines before it calls line for each of them.
// The block does not change until line was called for the last of them, or returned an error.
func eachLine(r *rundir.Run, e epochFile, at *position, limit int64, block func([]byte),
	line func(no int, text []byte) error) (rest int64, err error) {
	if at.length >= limit {
		return 0, nil
	}
	f, err := r.Disk.OpenFile(e.path(r), os.O_RDONLY, 0)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	size := int64(1 << 20)
	if block != nil {
		size = jobs.AheadBlock
	}
	buf := make([]byte, 0, max(512, min(limit-at.length, size)))
	for {
		if len(buf) == cap(buf) {
			buf = slices.Grow(buf, cap(buf))
		}
		room := min(int64(cap(buf)-len(buf)), limit-at.length-int64(len(buf)))
		n, err := f.ReadAt(buf[len(buf):len(buf)+int(room)], at.length+int64(len(buf)))
		if err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
		buf = buf[:len(buf)+n]
		if block != nil {
			block(buf[:bytes.LastIndexByte(buf, '\n')+1])
		}
		used := 0
		for err = nil; err == nil; {
			k := bytes.IndexByte(buf[used:], '\n')
			if k < 0 {
				break
			}
			if err = line(at.lines+1, buf[used:used+k]); err == nil {
				used += k + 1
				at.lines++
			}
		}
		at.add(buf[:used])
		if err != nil {
			return 0, err
		}
		buf = buf[:copy(buf, buf[used:])]
		if n < int(room) || room == 0 {
			if end := len(buf) - 1; end > prefix {
				if _, ok := lineBody(buf[:end]); ok {
					if err := line(at.lines+1, buf); err != nil {
						return 0, err
					}
					at.lines++
					at.add(buf)
					return 0, nil
				}
			}
			return int64(len(buf)), nil
		}
	}
}

func (p *position) add(b []byte) {
	p.length += int64(len(b))
	p.sum = crc32Update(p.sum, b)
}

// errEnough stops eachLine.
var errEnough = errors.New("enough")

// firstRecord reads the KindEpoch record of a file of the journal: its first line or, if that is
// not whole, the copy in the file of marks. It returns nil if neither is whole.
func firstRecord(r *rundir.Run, e epochFile, size int64) (first *jobs.Record, err error) {
	_, err = eachLine(r, e, new(position), size, nil, func(_ int, text []byte) error {
		text, _ = splitJoinedLines(text)
		first = epochRecord(e, text)
		return errEnough
	})
	switch {
	case err != nil && !errors.Is(err, errEnough):
		return nil, err
	case first != nil:
		return first, nil
	}
	return readMarks(r, e)
}

func sizeOf(r *rundir.Run, e epochFile) (size int64, err error) {
	f, err := r.Disk.OpenFile(e.path(r), os.O_RDONLY, 0)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return f.Size()
}
