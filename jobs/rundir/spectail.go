package rundir

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"dcs-tui/jobs"
)

// SpecTail reads the specifications of a run and then those that are added. It writes
// nothing and is for one goroutine.
type SpecTail struct {
	run  *Run
	file string // that was read last; "": none
	size int64  // of that file when it was read
	end  int64  // length of what is whole in it
	dec  jobs.SpecReader
}

// SpecTail returns a SpecTail at the beginning of the run.
func (r *Run) SpecTail() *SpecTail { return &SpecTail{run: r} }

// More reads the specifications that were stored since the last call. It calls set for each
// piece: specs are those after the first n. n is less than have, how many set has been given,
// where a later epoch's file does not count them all or everything is read again because
// what was added is damaged. damage is as in jobs.StoredSpecs.
func (t *SpecTail) More(have int, set func(n int, specs []*jobs.Spec)) (damage []string, err error) {
	files, err := t.run.specsFiles()
	if err != nil {
		return nil, err
	}
	for _, name := range files[max(0, slices.Index(files, t.file)):] {
		if name != t.file {
			t.file, t.size, t.end = name, 0, 0
		}
		if have, err = t.read(have, set); errors.Is(err, errSpecTail) {
			return t.again(files, set)
		}
		if err != nil {
			t.file = "" // from the beginning again
			return nil, fmt.Errorf("cannot read the jobs of the run %s: %w", t.run.Name(), err)
		}
	}
	return nil, nil
}

// errSpecTail reports that a file of specifications is not what a dispatcher appends.
var errSpecTail = errors.New("damaged")

// read reads the whole lines of the file that follow t.end, and returns how many
// specifications there are then.
func (t *SpecTail) read(have int, set func(int, []*jobs.Spec)) (_ int, err error) {
	f, err := t.run.Disk.OpenFile(t.run.Path(t.file), os.O_RDONLY, 0)
	if err != nil {
		return have, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	size, err := f.Size()
	if err != nil || size == t.size {
		return have, err
	}
	if size < t.end {
		return have, errSpecTail
	}
	buf := make([]byte, min(size-t.end, specBlock))
	for t.end < size {
		n, err := f.ReadAt(buf[:min(int64(len(buf)), size-t.end)], t.end)
		if err != nil && !errors.Is(err, io.EOF) {
			return have, err
		}
		rest, specs := buf[:n], []*jobs.Spec(nil)
		for {
			line, after, whole := bytes.Cut(rest, []byte{'\n'})
			if !whole {
				break
			}
			if t.end == 0 {
				kept, ok := jobs.SpecsAfter(line)
				if !ok || kept > have {
					return have, errSpecTail
				}
				have = kept
				set(have, nil)
			} else {
				s, ok := t.dec.ReadLine(line)
				if !ok || int(s.ID) != have+len(specs)+1 {
					return have, errSpecTail
				}
				specs = append(specs, s)
			}
			t.end += int64(len(line)) + 1
			rest = after
		}
		set(have, specs)
		have += len(specs)
		if len(rest) == n { // no line ends in it: it was cut off, or is longer than buf
			if n < len(buf) || t.end+int64(n) >= size {
				break
			}
			buf = make([]byte, 2*len(buf))
		}
	}
	t.size = size
	return have, nil
}

// again reads everything.
func (t *SpecTail) again(files []string, set func(int, []*jobs.Spec)) (damage []string, err error) {
	t.file = ""
	all, err := t.run.ReadSpecs()
	if err != nil {
		return nil, err
	}
	set(0, all.Specs)
	t.file, t.size, t.end = files[len(files)-1], all.Size, all.Good
	return all.Damage, nil
}
