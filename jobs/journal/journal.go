package journal

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"dcs-tui/jobs"
	"dcs-tui/jobs/live"
	"dcs-tui/jobs/rundir"
)

// ErrFenced reports that another dispatcher has taken the run over: nothing more
// may be launched, ended or recorded by this one.
var ErrFenced = errors.New("another dispatcher has taken the run over")

// fencedError is ErrFenced with the epoch that fences us off.
type fencedError struct{ by, ours int }

func (e *fencedError) Error() string {
	return fmt.Sprintf("%v (epoch %d, ours was %d)", ErrFenced, e.by, e.ours)
}

func (e *fencedError) Unwrap() error { return ErrFenced }

// FencedBy returns the higher epoch, for those who know no more of this package.
func (e *fencedError) FencedBy() int { return e.by }

// flushAt is how much Append gathers before it writes.
const flushAt = 1 << 20

// Journal is the writing end of a run's journal, owned by one dispatcher for one
// epoch. Append, Sync and Close are for one goroutine; Beat, SetSocket and
// Fenced may be called from another, so that a slow disk does not hold them up.
type Journal struct {
	run   *rundir.Run
	file  epochFile
	beats beats
	token string // Owner.Token
	now   func() time.Time

	synced  atomic.Pointer[extent] // what the last fsync made durable; nil before the first
	settled atomic.Int64           // what Durable returns

	mu      sync.Mutex
	f       rundir.File // nil after a failure: to be opened again
	durable int64       // length of the file that is known to be on disk
	sum     uint32      // CRC-32C of these bytes
	pending []byte      // what follows it
	written int         // how much of pending has been written since the last failure
	closed  bool
}

// Epoch returns the epoch that Take opened.
func (j *Journal) Epoch() int { return j.file.epoch }

// Token returns what tells this Take from every other; the file owner has it.
func (j *Journal) Token() string { return j.token }

// Append adds records, in order. They are durable only once Sync has returned
// nil. An error means that the disk refuses them: they are kept, and the next
// Append or Sync writes them, once. The caller must not repeat them.
func (j *Journal) Append(recs []jobs.Record) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return errors.New("the journal is closed")
	}
	for i := range recs {
		j.pending = appendLine(j.pending, &recs[i])
	}
	if len(j.pending)-j.written < flushAt {
		return nil
	}
	return j.write()
}

// Sync makes every appended record durable. After an error it may be called
// again; until it returns nil nothing that was appended may be acted upon.
//
// It returns ErrFenced when another dispatcher has begun: a newer one counts what was
// durable before its own file stood in the directory, and perhaps nothing after that.
func (j *Journal) Sync() error {
	j.mu.Lock()
	err := j.sync()
	length := j.durable
	j.mu.Unlock()
	if err != nil {
		return err
	}
	if err := j.fencedError(); err != nil {
		return err
	}
	j.settled.Store(length)
	return nil
}

// Durable returns how much of the journal is durable and known to count for good, whoever
// takes the run over: the last Sync that returned nil wrote it. Readers fold no further.
// It may be called from any goroutine.
func (j *Journal) Durable() live.Durable {
	return live.Durable{Epoch: j.file.epoch, Bytes: j.settled.Load()}
}

func (j *Journal) sync() error {
	if len(j.pending) == 0 {
		return nil
	}
	if err := j.write(); err != nil {
		return err
	}
	if err := j.f.Sync(); err != nil {
		return j.failed(err)
	}
	j.durable += int64(len(j.pending))
	j.sum = crc32Update(j.sum, j.pending)
	j.synced.Store(&extent{j.durable, j.sum})
	j.written = 0
	if j.pending = j.pending[:0]; cap(j.pending) > 4*flushAt {
		j.pending = nil
	}
	return nil
}

// write brings pending into the file, at the offset where it belongs. After a
// failure all that is not known to be durable is written again to the same
// place: half a line is overwritten, and no line stands there twice. (A kernel
// may forget what it failed to write back, so what was "written" before a
// failed sync is not trusted either.)
func (j *Journal) write() error {
	if j.f == nil {
		if err := j.reopen(); err != nil {
			return fmt.Errorf("cannot write the journal of the run %s: %w", j.run.Name(), err)
		}
	}
	n, err := j.f.WriteAt(j.pending[j.written:], j.durable+int64(j.written))
	if err == nil && j.written+n < len(j.pending) {
		err = io.ErrShortWrite
	}
	if err != nil {
		return j.failed(err)
	}
	j.written += n
	return nil
}

// failed gives the file up until the next call: a stale handle does not heal,
// and closing tells the errors of earlier writes.
func (j *Journal) failed(err error) error {
	j.written = 0
	return fmt.Errorf("cannot write the journal of the run %s: %w (%d bytes are waiting)",
		j.run.Name(), errors.Join(err, j.closeFile()), len(j.pending))
}

func (j *Journal) closeFile() error {
	if j.f == nil {
		return nil
	}
	err := j.f.Close()
	j.f = nil
	return err
}

func (j *Journal) reopen() error {
	f, err := j.run.Disk.OpenFile(j.file.path(j.run), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	size, err := f.Size()
	if err == nil && size < j.durable {
		err = fmt.Errorf("%s has lost its end: %d bytes of %d are there", j.file.label(), size, j.durable)
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	j.f = f
	return nil
}

// Pending returns how many bytes wait to become durable.
func (j *Journal) Pending() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.pending)
}

// Fenced returns the number of a higher epoch, 0 while there is none. It lists
// one directory.
func (j *Journal) Fenced() (epoch int, err error) {
	files, err := listFiles(j.run)
	if err != nil {
		return 0, err
	}
	switch n := newest(files); {
	case n > j.file.epoch:
		return n, nil
	case n < j.file.epoch:
		return 0, fmt.Errorf("%s is gone: was the run %s removed?", j.file.label(), j.run.Name())
	}
	return 0, nil
}

func (j *Journal) fencedError() error {
	n, err := j.Fenced()
	if err == nil && n > 0 {
		err = &fencedError{by: n, ours: j.file.epoch}
	}
	return err
}

// Beat writes a heartbeat into the file owner; call it every BeatEvery. It
// returns ErrFenced when another dispatcher has the run; other errors may pass.
func (j *Journal) Beat() error { return j.change(func(*Owner) {}) }

// SetSocket puts the path of the dispatcher's socket into the file owner.
func (j *Journal) SetSocket(path string) error {
	return j.change(func(o *Owner) { o.Socket = path })
}

// SetProblem puts into the file owner what keeps this dispatcher from launching, for
// those who look at the run while its journal cannot say so; "": nothing does.
func (j *Journal) SetProblem(text string) error {
	return j.change(func(o *Owner) { o.Problem = jobs.Clean(text, maxProblem) })
}

// beat writes the owner file with what is durable now.
func (j *Journal) beat(change func(*Owner)) error {
	return j.beats.beat(func(o *Owner) {
		if e := j.synced.Load(); e != nil {
			o.File, o.Bytes, o.Sum = j.file.epoch, e.length, e.sum
		}
		change(o)
	})
}

// leave marks the owner file as left and closes it.
func (j *Journal) leave() error {
	err := j.beat(func(o *Owner) { o.Left = true })
	j.beats.mu.Lock()
	defer j.beats.mu.Unlock()
	return errors.Join(err, j.beats.close())
}

func (j *Journal) change(change func(*Owner)) error {
	if err := j.fencedError(); err != nil {
		return err
	}
	err := j.beat(change)
	if err != nil { // perhaps because somebody has taken the run meanwhile
		if fenced := j.fencedError(); errors.Is(fenced, ErrFenced) {
			return fenced
		}
	}
	return err
}

// SkipTo records that hosts know a later epoch of the run than the run directory does,
// because the directory is a copy or was restored. The next Take begins after that
// epoch. SkipTo returns false if the directory has such an epoch itself.
func (j *Journal) SkipTo(epoch int) (skipped bool, err error) {
	if by, err := j.Fenced(); err != nil || by > 0 || epoch-j.file.epoch > maxSkip {
		return false, err
	}
	return true, j.change(func(o *Owner) { o.Known = epoch })
}

// maxSkip is the maximum number of epochs that a host can make a run skip.
const maxSkip = 1 << 20

// Close makes what is pending durable and says in the file owner that nobody
// dispatches the run now. After an error records may be missing; a Journal that
// was fenced off leaves the owner file alone.
func (j *Journal) Close() error {
	j.mu.Lock()
	if j.closed {
		j.mu.Unlock()
		return nil
	}
	j.closed = true
	err := j.sync()
	if cerr := j.closeFile(); cerr != nil {
		err = errors.Join(err, fmt.Errorf("cannot close the journal of the run %s: %w", j.run.Name(), cerr))
	}
	j.mu.Unlock()
	if fenced := j.fencedError(); fenced != nil {
		j.beats.mu.Lock()
		defer j.beats.mu.Unlock()
		return errors.Join(err, fenced, j.beats.close())
	}
	return errors.Join(err, j.leave())
}
