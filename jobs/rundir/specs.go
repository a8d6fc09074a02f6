package rundir

import (
	"errors"
	"fmt"
	"os"
	"sync"

	"dcs-tui/jobs"
)

// specBlock is the number of bytes that are written at a time.
const specBlock = 1 << 20

// specLog is the state of the file to which the dispatcher of this process appends
// specifications, that of its epoch.
type specLog struct {
	mu         sync.Mutex
	known      bool  // the files were read
	epoch      int   // of this process; 0: it does not own the run yet, or has just created it
	end        int64 // length of the whole lines in the file
	count      int   // specifications in all files
	missing    int   // minimum number of specifications according to the journal
	unended    bool  // the newline before end is damaged
	dirty      bool  // a failed append may have left bytes beyond end
	named      bool  // the name of the file is durable
	checkOwner func() error
}

// SetOwner records that this process owns the run in an epoch. owned returns an error if it does
// not any more; an append calls it before it changes anything. Package journal calls it, with
// 0 and nil before it reads the files.
func (r *Run) SetOwner(epoch int, owned func() error) {
	r.specs.mu.Lock()
	defer r.specs.mu.Unlock()
	l := &r.specs
	l.checkOwner = owned
	l.epoch = epoch
	switch {
	case epoch == 0:
		l.known = false
	case specsFile(epoch) != SpecsFile:
		// Only this process writes to a file of this name.
		l.end, l.unended, l.dirty, l.named = 0, false, true, false
	}
}

// MissingSpecs records that the run has n jobs, although jobs.jsonl may have lost the lines of
// the last ones. New jobs get higher numbers.
func (r *Run) MissingSpecs(n int) {
	r.specs.mu.Lock()
	defer r.specs.mu.Unlock()
	r.specs.missing = n
}

// AppendSpecs appends specifications to the file of the epoch, durably. Their ids must follow
// the existing ones. After an error nothing was added, and the call may be repeated. Only the
// owner of the run may call it.
func (r *Run) AppendSpecs(specs []*jobs.Spec) error {
	r.specs.mu.Lock()
	defer r.specs.mu.Unlock()
	l := &r.specs
	if !l.known {
		if _, err := r.readSpecs(func(int, []*jobs.Spec) {}); err != nil {
			return err
		}
	}
	count := max(l.count, l.missing)
	for i, s := range specs {
		if int(s.ID) != count+1+i {
			return fmt.Errorf("job %d cannot be stored after %d others", s.ID, count+i)
		}
	}
	if len(specs) == 0 {
		return nil
	}
	end, err := r.writeSpecs(specs)
	if err != nil {
		return fmt.Errorf("cannot store the jobs of the run %s: %w", r.Name(), err)
	}
	l.end, l.count, l.unended, l.dirty = end, count+len(specs), false, false
	return nil
}

// StoredEnd returns the file to which this process appends specifications, and the length of what
// it has made durable there.
func (r *Run) StoredEnd() (name string, end int64) {
	r.specs.mu.Lock()
	defer r.specs.mu.Unlock()
	name = specsFile(r.specs.epoch)
	if r.specs.known || name == SpecsFile {
		end = r.specs.end
	}
	return name, end
}

func (r *Run) writeSpecs(specs []*jobs.Spec) (end int64, err error) {
	l := &r.specs
	if l.checkOwner != nil {
		if err := l.checkOwner(); err != nil {
			return 0, err
		}
	}
	name, flag := specsFile(l.epoch), os.O_RDWR
	if name != SpecsFile {
		flag |= os.O_CREATE
	}
	f, err := r.Disk.OpenFile(r.Path(name), flag, 0o600)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	size, err := f.Size()
	if err != nil {
		return 0, err
	}
	if size != l.end {
		if size < l.end || !l.dirty {
			return 0, fmt.Errorf("%s has %d bytes where we left %d: another dispatcher may have taken the run over",
				name, size, l.end)
		}
		// The rest of a failed append must not follow a shorter block.
		if err := f.Truncate(l.end); err != nil {
			return 0, err
		}
	}
	l.dirty = true // until everything has succeeded
	end = l.end
	var b []byte
	switch {
	case end == 0 && name == SpecsFile: // even if specifications were lost
		b = append(b, jobs.SpecsHeader(0)...)
	case end == 0:
		b = append(b, jobs.SpecsHeader(max(l.count, l.missing))...)
	case l.unended:
		b = append(b, '\n')
		end--
	}
	for i, s := range specs {
		b = jobs.AppendSpec(b, s)
		if len(b) >= specBlock || i == len(specs)-1 {
			if _, err := f.WriteAt(b, end); err != nil {
				return 0, err
			}
			end += int64(len(b))
			b = b[:0]
		}
	}
	if err := f.Sync(); err != nil {
		return 0, err
	}
	if name != SpecsFile && !l.named {
		if err := r.Disk.SyncDir(r.Dir); err != nil {
			return 0, err
		}
		l.named = true
	}
	return end, nil
}
