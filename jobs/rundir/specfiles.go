package rundir

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"dcs-tui/jobs"
)

// The specifications of a run are in jobs.jsonl, and those that a dispatcher of a later epoch
// added in a file of its own, jobs-000002.jsonl. So a delayed write of an earlier dispatcher,
// whose link was cut or whose machine slept, changes nothing. Such a file begins with the number
// of specifications before its own. What earlier files hold beyond that is not part of the run.

// specsFile returns the name of the file of an epoch.
func specsFile(epoch int) string {
	if epoch < 2 {
		return SpecsFile
	}
	return fmt.Sprintf("jobs-%06d.jsonl", epoch)
}

// SpecsFiles lists the files with specifications in the order of their epochs.
func (r *Run) SpecsFiles() ([]string, error) {
	names, err := r.Disk.Names(r.Dir)
	if err != nil {
		return nil, fmt.Errorf("cannot list the run directory: %w", err)
	}
	var epochs []int
	for _, name := range names {
		digits, ok := strings.CutPrefix(strings.TrimSuffix(name, ".jsonl"), "jobs-")
		if n, err := strconv.Atoi(digits); ok && err == nil && n > 1 && specsFile(n) == name {
			epochs = append(epochs, n)
		}
	}
	slices.Sort(epochs)
	files := []string{SpecsFile}
	for _, n := range epochs {
		files = append(files, specsFile(n))
	}
	return files, nil
}

// ReadSpecs reads the specifications of the run, and calls set for each block: specs are those
// after the first n, and the ID of the first of all is 1. It ignores a last line that a crash cut
// off. A damaged line is a job that cannot be run, with Options.Damage. damage holds a message for
// each such line: "jobs.jsonl:7: …". An error means that a file cannot be read, or has another
// version.
func (r *Run) ReadSpecs(set func(n int, specs []*jobs.Spec)) (damage []string, err error) {
	r.specs.mu.Lock()
	defer r.specs.mu.Unlock()
	return r.readSpecs(set)
}

func (r *Run) readSpecs(set func(n int, specs []*jobs.Spec)) (damage []string, err error) {
	l, have := &r.specs, 0
	ours := specLog{dirty: specsFile(l.epoch) != SpecsFile}
	t := r.SpecTail()
	t.read = func() {
		if t.file == specsFile(l.epoch) {
			ours.end, ours.unended, ours.dirty = t.end, t.unended, t.end < t.size
		}
	}
	damage, err = t.ReadMore(0, func(n int, specs []*jobs.Spec) {
		have = n + len(specs)
		set(n, specs)
	})
	if err != nil || l.known && l.checkOwner != nil {
		return damage, err // this process owns the run, so late writes of others do not count
	}
	l.known, l.count = true, have
	l.end, l.unended, l.dirty = ours.end, ours.unended, ours.dirty
	return damage, nil
}

// SpecTail reads the specifications of a run, and then those that are added. It writes nothing and
// is not safe for concurrent use.
type SpecTail struct {
	run     *Run
	file    string            // the file that was read last; "": none
	size    int64             // of that file when it was read
	end     int64             // offset after the part that was read
	unended bool              // the newline before end is damaged
	decoder *jobs.SpecDecoder // of that file
	read    func()            // called when a file has been read; may be nil

	// Set before the first ReadMore: specifications may lack their parameters, which is faster.
	WithoutParams bool
}

// SpecTail returns a SpecTail at the beginning of the run.
func (r *Run) SpecTail() *SpecTail { return &SpecTail{run: r} }

// ReadMore reads the specifications that were stored since the last call, and calls set for each
// block: specs are those after the first n. have is the number of specifications so far. n is
// less than that if the file of a later epoch does not count all of them, or if everything is
// read again because of damage. damage is that of ReadSpecs.
func (t *SpecTail) ReadMore(have int, set func(n int, specs []*jobs.Spec)) (damage []string, err error) {
	files, err := t.run.SpecsFiles()
	if err != nil {
		return nil, err
	}
	if t.file != "" && t.decoder.Ended && t.file != files[len(files)-1] {
		t.file = ""
	}
	for i := max(0, slices.Index(files, t.file)); i < len(files) && err == nil; i++ {
		if files[i] != t.file {
			if t.file == "" {
				have = 0
				set(0, nil)
			}
			t.file, t.size, t.end, t.decoder = files[i], 0, 0, jobs.NewSpecDecoder(files[i], have)
			if t.WithoutParams {
				t.decoder.WithoutParams()
			}
		}
		have, err = t.readFile(have, set)
		if errors.Is(err, errChanged) {
			t.file, i, err = "", -1, nil
			continue
		}
		damage, t.decoder.Damage = append(damage, t.decoder.Damage...), nil
		if t.read != nil {
			t.read()
		}
	}
	if err != nil {
		t.file = "" // from the beginning again
		return damage, fmt.Errorf("cannot read the jobs of the run %s: %w", t.run.Name(), err)
	}
	return damage, nil
}

// errChanged reports that everything must be read again: the last file is shorter than before,
// or has changed after damage.
var errChanged = errors.New("changed")

// readFile reads the file from t.end on, and returns the new number of specifications.
func (t *SpecTail) readFile(have int, set func(int, []*jobs.Spec)) (_ int, err error) {
	f, err := t.run.Disk.OpenFile(t.run.Path(t.file), os.O_RDONLY, 0)
	if err != nil {
		return have, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	size, err := f.Size()
	if err != nil || size == t.size {
		return have, err
	}
	if size < t.end || t.decoder.Ended {
		return have, errChanged
	}
	buf := make([]byte, min(size-t.end, jobs.AheadBlock))
	for {
		n, err := f.ReadAt(buf[:min(int64(len(buf)), size-t.end)], t.end)
		if err != nil && !errors.Is(err, io.EOF) {
			return have, err
		}
		rest := buf[:n]
		t.decoder.Ahead(rest[:bytes.LastIndexByte(rest, '\n')+1])
		var specs []*jobs.Spec
		from := have
		for {
			line, more, whole := bytes.Cut(rest, []byte{'\n'})
			if !whole {
				break
			}
			after, add, err := t.decoder.Line(line)
			if err != nil {
				return have, err
			}
			if after < from+len(specs) { // the first line
				from, specs = after, nil
			}
			specs = append(specs, add...)
			rest = more
		}
		t.end += int64(n - len(rest))
		set(from, specs)
		have = from + len(specs)
		switch {
		case t.end+int64(len(rest)) >= size || n == 0:
			after, add, used, err := t.decoder.End(rest)
			if err == nil {
				t.end, t.size, t.unended, have = t.end+int64(used), size, used > 0, after+len(add)
				set(after, add)
			}
			return have, err
		case len(rest) == n: // no line ends in it: it is longer than buf
			buf = make([]byte, 2*len(buf))
		}
	}
}

// SyncSpecs makes the files with specifications durable: their writer may have been killed
// before it did so.
func (r *Run) SyncSpecs() error {
	files, err := r.SpecsFiles()
	for _, name := range files {
		if err == nil {
			err = SyncFile(r.Disk, r.Path(name))
		}
	}
	if err == nil && len(files) > 1 {
		err = r.Disk.SyncDir(r.Dir)
	}
	if err != nil {
		return fmt.Errorf("cannot make the jobs of the run %s durable: %w", r.Name(), err)
	}
	return nil
}
