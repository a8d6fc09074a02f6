package journal

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"dcs-tui/internal/text"
	"dcs-tui/jobs"
	"dcs-tui/jobs/live"
	"dcs-tui/jobs/rundir"
)

// ErrFenced reports that another dispatcher has taken over the run. This dispatcher must not
// launch, end, or record anything any more.
var ErrFenced = errors.New("another dispatcher has taken the run over")

// fencedError is ErrFenced with the epoch that fences us off.
type fencedError struct{ by, ours int }

func (e *fencedError) Error() string {
	return fmt.Sprintf("%v (epoch %d, ours was %d)", ErrFenced, e.by, e.ours)
}

func (e *fencedError) Unwrap() error { return ErrFenced }

// Fenced returns the error of a dispatcher of epoch ours that is fenced off by a higher epoch.
func Fenced(by, ours int) error { return &fencedError{by, ours} }

// FencedBy returns the higher epoch. It lets callers get the epoch without importing this package.
func (e *fencedError) FencedBy() int { return e.by }

// flushThreshold is the number of bytes that Append gathers before it writes.
const flushThreshold = 1 << 20

// Journal is the writing end of a run's journal, owned by one dispatcher for one epoch. One
// goroutine calls Append, Sync, and Close. Another may call Heartbeat, SetSocket, and Fenced, so
// that a slow disk does not delay them.
type Journal struct {
	run    *rundir.Run
	file   epochFile
	writer ownerWriter
	token  string // Owner.Token
	now    func() time.Time

	// Confirm, if set, is called by Sync after the records are durable here. Until it returns nil,
	// they do not count as durable. Close does not call it. It is set before the first Append.
	Confirm func() error

	synced  atomic.Pointer[extent] // what the last Sync made durable; nil before the first
	reached atomic.Int64           // value that Written returns
	settled atomic.Int64           // value that Durable returns

	mu      sync.Mutex
	f       rundir.File // nil after a failure: must be opened again
	durable int64       // length of the file that is known to be on disk
	sum     uint32      // CRC-32C of these bytes
	pending []byte      // bytes that follow the durable ones
	written int         // how much of pending has been written since the last failure
	closed  bool
}

// Epoch returns the epoch that Take opened.
func (j *Journal) Epoch() int { return j.file.epoch }

// Token returns the token that distinguishes this Take from all others. The owner file contains it.
func (j *Journal) Token() string { return j.token }

// Append adds records, in order. They are durable only when Sync has returned nil. An error means
// that the disk refuses them. They are kept, and the next Append or Sync writes them, so the caller
// must not append them again.
func (j *Journal) Append(recs []jobs.Record) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return errors.New("the journal is closed")
	}
	for i := range recs {
		j.pending = appendLine(j.pending, &recs[i])
	}
	if len(j.pending)-j.written < flushThreshold {
		return nil
	}
	return j.write()
}

// Sync makes all appended records durable. After an error it may be called again. Until it returns
// nil, no appended record may be acted upon.
//
// It returns ErrFenced if another dispatcher has begun. The newer one counts only what was durable
// before its own file was created.
func (j *Journal) Sync() error {
	j.mu.Lock()
	err := j.sync()
	now := extent{j.durable, j.sum}
	j.mu.Unlock()
	if err != nil {
		return err
	}
	if j.Confirm != nil {
		if err := j.Confirm(); err != nil {
			return err
		}
	}
	if err := j.fencedError(); err != nil {
		return err
	}
	j.settled.Store(now.length)
	if now.length > 0 {
		j.synced.Store(&now)
	}
	return nil
}

// Written returns how much of the journal of our epoch is durable in the run directory. It is safe
// for concurrent use.
func (j *Journal) Written() int64 { return j.reached.Load() }

// Durable returns how much of the journal is durable and will count even if another dispatcher
// takes over the run. It is the position of the last Sync that returned nil. Readers fold no
// further. It is safe for concurrent use.
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
		return j.closeAfterFailure(err)
	}
	j.durable += int64(len(j.pending))
	j.sum = crc32Update(j.sum, j.pending)
	j.reached.Store(j.durable)
	j.written = 0
	j.pending = j.pending[:0]
	if cap(j.pending) > 4*flushThreshold {
		j.pending = nil
	}
	return nil
}

// write writes pending to the file at its offset. After a failure, everything that is not known to
// be durable is written again at the same offset, so a partial line is overwritten and no line is
// written twice. The kernel may discard data that it failed to write back, so data that was written
// before a failed sync is written again, too.
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
		return j.closeAfterFailure(err)
	}
	j.written += n
	return nil
}

// closeAfterFailure closes the file until the next call opens it again: a stale handle does not
// recover, and closing reports errors of earlier writes.
func (j *Journal) closeAfterFailure(err error) error {
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

// Fenced returns the number of a higher epoch, or 0 if there is none. It lists one directory.
func (j *Journal) Fenced() (epoch int, err error) {
	files, err := listFiles(j.run)
	if err != nil {
		return 0, err
	}
	switch n := newestEpoch(files); {
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

// Heartbeat writes a heartbeat to the owner file. Call it every HeartbeatInterval. It returns
// ErrFenced if another dispatcher has taken over the run. Other errors may be temporary.
func (j *Journal) Heartbeat() error { return j.change(func(*Owner) {}) }

// SetSocket records the path of the dispatcher's socket in the owner file.
func (j *Journal) SetSocket(path string) error {
	return j.change(func(o *Owner) { o.Socket = path })
}

// SetProblem records in the owner file what keeps this dispatcher from launching, or "" for
// nothing. Observers read it there while the journal cannot be written.
func (j *Journal) SetProblem(msg string) error {
	return j.change(func(o *Owner) { o.Problem = text.Clean(msg, maxProblem) })
}

// heartbeat writes the owner file with the currently durable position.
func (j *Journal) heartbeat(change func(*Owner)) error {
	return j.writer.heartbeat(func(o *Owner) {
		if e := j.synced.Load(); e != nil {
			o.File, o.Bytes, o.Sum = j.file.epoch, e.length, e.sum
		}
		change(o)
	})
}

// markLeft marks the owner file as left and closes it.
func (j *Journal) markLeft() error {
	err := j.heartbeat(func(o *Owner) { o.Left = true })
	j.writer.mu.Lock()
	defer j.writer.mu.Unlock()
	return errors.Join(err, j.writer.close())
}

func (j *Journal) change(change func(*Owner)) error {
	if err := j.fencedError(); err != nil {
		return err
	}
	err := j.heartbeat(change)
	if err != nil { // perhaps because another dispatcher has taken over the run
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

// Close makes pending records durable and records in the owner file that nobody dispatches the run
// any more. After an error, records may be missing. A Journal that was fenced off does not change
// the owner file.
func (j *Journal) Close() error {
	j.mu.Lock()
	if j.closed {
		j.mu.Unlock()
		return nil
	}
	j.closed = true
	err := j.sync()
	if err == nil && j.durable > 0 {
		j.synced.Store(&extent{j.durable, j.sum})
	}
	if cerr := j.closeFile(); cerr != nil {
		err = errors.Join(err, fmt.Errorf("cannot close the journal of the run %s: %w", j.run.Name(), cerr))
	}
	j.mu.Unlock()
	if fenced := j.fencedError(); fenced != nil {
		j.writer.mu.Lock()
		defer j.writer.mu.Unlock()
		return errors.Join(err, fenced, j.writer.close())
	}
	return errors.Join(err, j.markLeft())
}
