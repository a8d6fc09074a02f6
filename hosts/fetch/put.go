package fetch

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"dcs-tui/jobs"
	"dcs-tui/jobs/rundir"
)

// diskError is trouble with the run directory itself: nothing can be brought any more.
type diskError struct{ err error }

func (e *diskError) Error() string {
	if errors.Is(e.err, syscall.ENOSPC) || errors.Is(e.err, syscall.EDQUOT) {
		return fmt.Sprintf("the disk of the run directory is full: %v", e.err)
	}
	return fmt.Sprintf("the run directory cannot be written: %v", e.err)
}

func (e *diskError) Unwrap() error { return e.err }

// asDisk makes what failed here a diskError.
func asDisk(err error) error {
	if err == nil {
		return nil
	}
	return &diskError{err}
}

// put makes a file of a size under another name, has it filled, and puts it in its
// place: nobody sees a part of it. Bring makes the name durable.
func (b *Bringer) put(path string, size int64, fill func(io.WriterAt) error) error {
	disk := b.Run.Disk
	tmp := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+tempMark+rand.Text()[:12]+"."+thisProcess())
	f, err := disk.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return asDisk(err)
	}
	w := &counted{WriterAt: f, b: b}
	err = fill(w)
	if err == nil && size > 0 {
		err = asDisk(f.Sync())
	}
	if cerr := f.Close(); err == nil { // where NFS says that it was full
		err = asDisk(cerr)
	}
	if err == nil {
		err = asDisk(disk.Rename(tmp, path))
	}
	if err != nil {
		disk.Remove(tmp) // else Sweep does
		b.bytes.Add(-w.n)
		return err
	}
	b.files.Add(1)
	return nil
}

// counted counts what is written, and makes what fails there a diskError.
type counted struct {
	io.WriterAt
	b *Bringer
	n int64
}

func (w *counted) WriteAt(p []byte, at int64) (int, error) {
	n, err := w.WriterAt.WriteAt(p, at)
	w.n += int64(n)
	w.b.bytes.Add(int64(n))
	return n, asDisk(err)
}

// shards are the directories of attempts that are known to be there.
type shards struct {
	mu   sync.Mutex
	made map[string]bool
}

// shard makes the directory of an attempt's files.
func (b *Bringer) shard(id jobs.AttemptID) error {
	b.shards.mu.Lock()
	defer b.shards.mu.Unlock()
	dir := filepath.Dir(jobs.AttemptFile(b.Run.Dir, id, jobs.FileOut))
	if b.shards.made[dir] {
		return nil
	}
	err := b.Run.Disk.Mkdir(dir, 0o700)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return asDisk(err)
	}
	if b.shards.made == nil {
		b.shards.made = map[string]bool{}
	}
	b.shards.made[dir] = true
	return nil
}

// syncNames makes the names durable that were made.
func (b *Bringer) syncNames() (err error) {
	b.shards.mu.Lock()
	defer b.shards.mu.Unlock()
	for dir := range b.shards.made {
		err = errors.Join(err, b.Run.Disk.SyncDir(dir))
	}
	if len(b.shards.made) > 0 {
		err = errors.Join(err, b.Run.Disk.SyncDir(b.Run.Path(rundir.AttemptsDir)))
	}
	return asDisk(err)
}
