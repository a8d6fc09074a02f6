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

// More adds to have, the result of the last call, the specifications that were stored
// since then, and cuts off those that a later epoch's file does not count. It reads
// everything again if what was added is damaged. damage is as in jobs.StoredSpecs.
func (t *SpecTail) More(have []*jobs.Spec) (specs []*jobs.Spec, damage []string, err error) {
	files, err := t.run.specsFiles()
	if err != nil {
		return have, nil, err
	}
	specs = have
	for _, name := range files[max(0, slices.Index(files, t.file)):] {
		if name != t.file {
			t.file, t.size, t.end = name, 0, 0
		}
		if specs, err = t.read(specs); errors.Is(err, errSpecTail) {
			return t.again(files, have)
		}
		if err != nil {
			t.file = "" // from the beginning again
			return have, nil, fmt.Errorf("cannot read the jobs of the run %s: %w", t.run.Name(), err)
		}
	}
	return specs, nil, nil
}

// errSpecTail reports that a file of specifications is not what a dispatcher appends.
var errSpecTail = errors.New("damaged")

// read adds the whole lines of the file that follow t.end.
func (t *SpecTail) read(specs []*jobs.Spec) (_ []*jobs.Spec, err error) {
	f, err := t.run.Disk.OpenFile(t.run.Path(t.file), os.O_RDONLY, 0)
	if err != nil {
		return specs, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	size, err := f.Size()
	if err != nil || size == t.size {
		return specs, err
	}
	if size < t.end {
		return specs, errSpecTail
	}
	buf := make([]byte, min(size-t.end, specBlock))
	for t.end < size {
		n, err := f.ReadAt(buf[:min(int64(len(buf)), size-t.end)], t.end)
		if err != nil && !errors.Is(err, io.EOF) {
			return specs, err
		}
		rest := buf[:n]
		for {
			line, after, whole := bytes.Cut(rest, []byte{'\n'})
			if !whole {
				break
			}
			if specs, whole = t.line(line, specs); !whole {
				return specs, errSpecTail
			}
			t.end += int64(len(line)) + 1
			rest = after
		}
		if len(rest) == n { // no line ends in it: it was cut off, or is longer than buf
			if n < len(buf) || t.end+int64(n) >= size {
				break
			}
			buf = make([]byte, 2*len(buf))
		}
	}
	t.size = size
	return specs, nil
}

// line adds the specification of a line, or applies the first line of a file.
func (t *SpecTail) line(line []byte, specs []*jobs.Spec) ([]*jobs.Spec, bool) {
	if t.end == 0 {
		n, ok := jobs.SpecsAfter(line)
		if !ok || n > len(specs) {
			return specs, false
		}
		return specs[:n:n], true
	}
	s, ok := t.dec.ReadLine(line)
	if !ok || int(s.ID) != len(specs)+1 {
		return specs, false
	}
	return append(specs, s), true
}

// again reads everything.
func (t *SpecTail) again(files []string, have []*jobs.Spec) (specs []*jobs.Spec, damage []string, err error) {
	t.file = ""
	all, err := t.run.ReadSpecs()
	if err != nil {
		return have, nil, err
	}
	t.file, t.size, t.end = files[len(files)-1], all.Size, all.Good
	return all.Specs, all.Damage, nil
}
