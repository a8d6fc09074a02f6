package rundir

import (
	"errors"
	"fmt"
	"os"
	"sync"

	"dcs-tui/jobs"
)

// specBlock is how much is written at a time.
const specBlock = 1 << 20

// specLog is where the next block of jobs.jsonl goes.
type specLog struct {
	mu      sync.Mutex
	known   bool  // the file has been read
	end     int64 // length of what is whole
	count   int   // specifications in it
	missing int   // how many it should hold at least
	unended bool  // the newline before end is damaged
	dirty   bool  // a failed append of ours may have left bytes beyond end
	guard   func() error
}

// Guard sets what says whether the run is still ours: an error stops an append before
// it has changed anything, and with nil what others have left beyond our own
// specifications may be cut off. Package journal sets it; a dispatcher that was taken
// over, and wakes up, must not touch the jobs of the next one.
func (r *Run) Guard(owned func() error) {
	r.specs.mu.Lock()
	defer r.specs.mu.Unlock()
	r.specs.guard = owned
}

// ReadSpecs reads jobs.jsonl. A last line that a crash cut off is left out, and a
// damaged line is one job that cannot be run. An error means that the file cannot
// be read, or is another version's.
func (r *Run) ReadSpecs() (jobs.StoredSpecs, error) {
	r.specs.mu.Lock()
	defer r.specs.mu.Unlock()
	return r.readSpecs()
}

func (r *Run) readSpecs() (jobs.StoredSpecs, error) {
	data, err := ReadFile(r.Disk, r.Path(SpecsFile))
	if err != nil {
		return jobs.StoredSpecs{}, fmt.Errorf("cannot read the jobs of the run %s: %w", r.Name(), err)
	}
	l := &r.specs
	if len(data) == 0 {
		l.known, l.end, l.count, l.unended = true, 0, 0, false
		return jobs.StoredSpecs{}, nil
	}
	stored, err := jobs.DecodeSpecs(data)
	if err != nil {
		return stored, fmt.Errorf("the jobs of the run %s cannot be read: %w", r.Name(), err)
	}
	l.known, l.end, l.count, l.unended = true, stored.Good, len(stored.Specs), stored.Unended
	l.dirty = stored.Good < int64(len(data))
	return stored, nil
}

// SyncSpecs makes durable what jobs.jsonl holds, whoever wrote it: its writer may have
// been killed before it did so.
func (r *Run) SyncSpecs() error {
	f, err := r.Disk.OpenFile(r.Path(SpecsFile), os.O_RDWR, 0)
	if err == nil {
		err = errors.Join(f.Sync(), f.Close())
	}
	if err != nil {
		return fmt.Errorf("cannot make the jobs of the run %s durable: %w", r.Name(), err)
	}
	return nil
}

// MissingSpecs says that the run has n jobs, though jobs.jsonl may have lost the
// lines of the last ones: what is added gets higher numbers.
func (r *Run) MissingSpecs(n int) {
	r.specs.mu.Lock()
	defer r.specs.mu.Unlock()
	r.specs.missing = n
}

// AppendSpecs adds specifications to jobs.jsonl and makes them durable. Their
// ids must follow those in the file. After an error the file holds as much as
// before, and the same call may be tried again. Only the run's owner may call it.
func (r *Run) AppendSpecs(specs []*jobs.Spec) error {
	r.specs.mu.Lock()
	defer r.specs.mu.Unlock()
	l := &r.specs
	if !l.known {
		if _, err := r.readSpecs(); err != nil {
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

func (r *Run) writeSpecs(specs []*jobs.Spec) (end int64, err error) {
	l := &r.specs
	if l.guard != nil {
		if err := l.guard(); err != nil {
			return 0, err
		}
	}
	f, err := r.Disk.OpenFile(r.Path(SpecsFile), os.O_RDWR, 0)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	size, err := f.Size()
	if err != nil {
		return 0, err
	}
	if size != l.end {
		if size < l.end || !l.dirty && l.guard == nil {
			return 0, fmt.Errorf("%s has %d bytes where we left %d: another dispatcher may have taken the run over", SpecsFile, size, l.end)
		}
		// What a failed or cut-off append left must not follow a shorter block, nor what
		// an earlier dispatcher wrote when it had been taken over.
		if err := f.Truncate(l.end); err != nil {
			return 0, err
		}
	}
	l.dirty = true // until everything has succeeded
	end = l.end
	var b []byte
	switch {
	case end == 0:
		b = append(b, jobs.SpecsHeader...)
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
	return end, nil
}
