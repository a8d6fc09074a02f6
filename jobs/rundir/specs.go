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

// specLog is where the next block of specifications goes: the file of our epoch.
type specLog struct {
	mu      sync.Mutex
	known   bool  // what is there has been read
	epoch   int   // ours; 0: the run is not ours yet, or only just made
	end     int64 // length of what is whole in our file
	count   int   // specifications in all files
	missing int   // how many there should be at least
	unended bool  // the newline before end is damaged
	dirty   bool  // a failed append of ours may have left bytes beyond end
	named   bool  // our file has a durable name
	guard   func() error
}

// Guard records that the run is ours in this epoch, and what tells whether it still is:
// an error stops an append before it has changed anything. Package journal calls it,
// with 0 and nil before it reads what is there.
func (r *Run) Guard(epoch int, owned func() error) {
	r.specs.mu.Lock()
	defer r.specs.mu.Unlock()
	l := &r.specs
	l.guard = owned
	if epoch == 0 {
		l.epoch, l.known = 0, false
	} else if l.epoch = epoch; specsFile(epoch) != SpecsFile {
		// Nobody writes to a file of this name but us.
		l.end, l.unended, l.dirty, l.named = 0, false, true, false
	}
}

// MissingSpecs records that the run has n jobs, though jobs.jsonl may have lost the
// lines of the last ones: what is added gets higher numbers.
func (r *Run) MissingSpecs(n int) {
	r.specs.mu.Lock()
	defer r.specs.mu.Unlock()
	r.specs.missing = n
}

// AppendSpecs adds specifications to our epoch's file and makes them durable. Their
// ids must follow those that are there. After an error there is as much as before,
// and the same call may be tried again. Only the run's owner may call it.
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
			return 0, fmt.Errorf("%s has %d bytes where we left %d: another dispatcher may have taken the run over", name, size, l.end)
		}
		// What a failed or cut-off append left must not follow a shorter block.
		if err := f.Truncate(l.end); err != nil {
			return 0, err
		}
	}
	l.dirty = true // until everything has succeeded
	end = l.end
	var b []byte
	switch {
	case end == 0:
		b = append(b, jobs.SpecsHeader(before(name, max(l.count, l.missing)))...)
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

// before is how many specifications stand before a file that begins: none before
// the first, however many have been lost.
func before(name string, count int) int {
	if name == SpecsFile {
		return 0
	}
	return count
}
