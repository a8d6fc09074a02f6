package files

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
	"dcs-tui/jobs/attempts"
	"dcs-tui/jobs/journal"
	"dcs-tui/jobs/results"
	"dcs-tui/jobs/rundir"
)

const (
	maxHosts = 8 // read at a time
	// Of large files few of a host are under way, so that some are soon whole: those stay
	// when it is interrupted.
	maxLarge   = 2
	largeBytes = 1 << 20 // more than that is large
)

// Bringer brings files into the run directory.
type Bringer struct {
	Run  *rundir.Run
	Read func(context.Context, Piece) (data []byte, size int64, err error) // Reader.Read
	// Free returns how many bytes may be written; nil: what the file system has, less what
	// is left for others.
	Free func() (int64, error)

	attempts, files, bytes atomic.Int64
	asking                 sync.Mutex   // for room
	owed                   atomic.Int64 // bytes of files under way that are not written yet
	full                   atomic.Bool  // no more attempts are begun
	shards                 shards
}

// Done returns what has been brought so far: attempts, files, bytes. It may be called
// while Bring is under way.
func (b *Bringer) Done() (attempts, files int, bytes int64) {
	return int(b.attempts.Load()), int(b.files.Load()), b.bytes.Load()
}

// HostResult is what came of one host.
type HostResult struct {
	Host    string
	Brought int   // attempts of which something is here now that was not
	Same    int   // attempts without a sentinel there, of which nothing more is there than here
	Left    int   // attempts that lack something, because of Err
	None    int   // files that the host does not have any more
	Err     error // what kept the first of them away
}

// Bring brings what the plan names, as many hosts at a time as may be; nothing of it
// keeps one host from being read but the disk here, or the end of ctx, which is the error.
// Interrupted and begun again it goes on with what is not here.
func (b *Bringer) Bring(ctx context.Context, p *FetchPlan) ([]HostResult, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	b.full.Store(false)
	all := make([]HostResult, len(p.Hosts))
	var tasks sync.WaitGroup
	turns := make(chan struct{}, maxHosts)
	for i := range p.Hosts {
		tasks.Go(func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			all[i] = b.host(ctx, stop, &p.Hosts[i])
		})
	}
	tasks.Wait()
	err := context.Cause(ctx)
	if err == nil && b.full.Load() {
		err = errFull
	}
	if serr := b.syncNames(); err == nil {
		err = serr
	}
	return all, err
}

// host brings what one host has, several attempts at a time.
func (b *Bringer) host(ctx context.Context, stop context.CancelCauseFunc, p *HostPlan) HostResult {
	r := HostResult{Host: p.Host}
	var mu sync.Mutex
	var tasks sync.WaitGroup
	large := make(chan struct{}, maxLarge)
	next, down := 0, false
	take := func() (jobs.AttemptID, bool) {
		mu.Lock()
		defer mu.Unlock()
		if down || b.full.Load() || ctx.Err() != nil || next == len(p.Attempts) {
			return jobs.AttemptID{}, false
		}
		next++
		return p.Attempts[next-1], true
	}
	for range min(maxReads, len(p.Attempts)) {
		tasks.Go(func() {
			for id, ok := take(); ok; id, ok = take() {
				puts, none, err := b.attempt(ctx, large, p.Host, id)
				var away *hosts.Error
				var disk *diskError
				mu.Lock()
				r.None += none
				switch {
				case err == nil && puts > 0:
					r.Brought++
				case err == nil:
					r.Same++
				case errors.Is(err, errFull):
					b.full.Store(true)
					err = nil // of the disk, not of this host
				case errors.As(err, &disk):
					stop(err)
				case errors.As(err, &away):
					down = true
				}
				if err != nil && r.Err == nil && context.Cause(ctx) == nil {
					r.Err = err
				}
				mu.Unlock()
			}
		})
	}
	tasks.Wait()
	r.Left = len(p.Attempts) - r.Brought - r.Same
	return r
}

// attempt brings the files of one attempt, the status file last, and only if it has a
// sentinel: where it is, the others are. It is read first: an attempt that was given up may
// live, and what was read before its sentinel came to be need not be all. puts counts files that were brought, none
// those that the host does not have.
func (b *Bringer) attempt(ctx context.Context, large chan struct{}, host string, id jobs.AttemptID) (puts, none int, err error) {
	if err := b.shard(id); err != nil {
		return 0, 0, err
	}
	p := Piece{Host: host, Attempt: id}
	status, odd := b.status(ctx, p)
	for _, p.File = range []jobs.File{jobs.FileOut, jobs.FileErr} {
		put, err := b.output(ctx, large, p)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			none++
		case err != nil:
			return puts, none, err
		case put:
			puts++
		}
	}
	if odd != nil {
		return puts, none, odd
	}
	if status != nil {
		err := b.put(jobs.AttemptFile(b.Run.Dir, id, jobs.FileStatus), int64(len(status)), func(w io.WriterAt) error {
			_, err := w.WriteAt(status, 0)
			return err
		})
		if err != nil {
			return puts, none, err
		}
		puts++
	}
	b.attempts.Add(1)
	return puts, none, nil
}

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

// leftFree is what is left of a disk for others: a dispatcher's journal is on it, too.
const leftFree = 64 << 20

// errFull reports that only what is left for others is free. Files under way have their room.
var errFull = &diskError{syscall.ENOSPC}

// room takes room for a file of n bytes, beside those that are being written, or says
// that there is none: a host may say any size.
func (b *Bringer) room(n int64) error {
	free := b.Free
	if free == nil {
		free = b.free
	}
	b.asking.Lock()
	defer b.asking.Unlock()
	has, err := free()
	switch {
	case err != nil:
		return &diskError{err}
	case has <= 0:
		return errFull
	case n > 0 && has-b.owed.Load() < n:
		return fmt.Errorf("there is no space here for a file of %s", results.HumanBytes(n))
	}
	b.owed.Add(n)
	return nil
}

func (b *Bringer) free() (int64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(b.Run.Dir, &st); err != nil {
		return 0, err
	}
	return int64(st.Bavail)*st.Bsize - leftFree, nil
}

// output brings what an attempt has printed, unless it is here with the size that it has
// there, and reports whether it was put here. A large one takes a place of large. The error is
// fs.ErrNotExist when the host has no such file.
func (b *Bringer) output(ctx context.Context, large chan struct{}, p Piece) (put bool, err error) {
	path := jobs.AttemptFile(b.Run.Dir, p.Attempt, p.File)
	have := int64(-1)
	if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() {
		have = info.Size()
	} else {
		p.Limit = hosts.MaxChunk
	}
	data, size, err := b.Read(ctx, p)
	if err != nil || have == size {
		return false, err
	}
	if size > largeBytes {
		select {
		case large <- struct{}{}:
			defer func() { <-large }()
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
	if err := b.room(size); err != nil {
		return false, err
	}
	defer func() { b.owed.Add(p.Offset - size) }() // what was not written
	err = b.put(path, size, func(w io.WriterAt) error {
		for p.Limit = hosts.MaxChunk; ; {
			data = data[:min(int64(len(data)), size-p.Offset)] // it should not have grown
			if _, err := w.WriteAt(data, p.Offset); err != nil {
				return err
			}
			b.owed.Add(-int64(len(data)))
			if p.Offset += int64(len(data)); p.Offset >= size {
				return nil
			}
			if data, _, err = b.Read(ctx, p); err == nil && len(data) == 0 {
				err = fmt.Errorf("%s: %s.%s has become shorter while it was read", p.Host, p.Attempt, p.File)
			}
			if err != nil {
				return err
			}
		}
	})
	return err == nil, err
}

// status reads the status file of an attempt that has ended, of this attempt and host:
// another one tells nobody that the attempt is here. An attempt that was lost may have no
// sentinel: nil.
func (b *Bringer) status(ctx context.Context, p Piece) ([]byte, error) {
	p.File, p.Limit = jobs.FileStatus, attempts.StatusBytes+1
	data, _, err := b.Read(ctx, p)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	f := attempts.Decode(data, b.Run.UID(), p.Attempt)
	switch {
	case f.Damaged || f.State == attempts.Unreadable:
		return nil, fmt.Errorf("%s: %s.%s: %w", p.Host, p.Attempt, p.File, attempts.ErrStatus)
	case f.Host != p.Host:
		return nil, fmt.Errorf("%s: %s.%s: %w: it is of the host %q", p.Host, p.Attempt, p.File, attempts.ErrStatus, f.Host)
	case f.State != attempts.Finished:
		return nil, nil
	}
	return data, nil
}

// The name of a part: .NAME.fetch-CHANCE.PROCESS, of the process that writes it.
const (
	tempMark = ".fetch-"
	tempOld  = time.Hour // of another machine's: nobody has written to it for so long
)

var thisProcess = sync.OnceValue(journal.ProcessName)

// SweepFetched removes the parts that fetches which were killed have left in the run directory.
// What cannot be read or removed stays: Bring says what is wrong with the disk.
func SweepFetched(run *rundir.Run) {
	dir := run.Path(rundir.AttemptsDir)
	shards, _ := run.Disk.Names(dir)
	for _, shard := range shards {
		names, _ := run.Disk.Names(filepath.Join(dir, shard))
		for _, name := range names {
			if strings.HasPrefix(name, ".") && strings.Contains(name, tempMark) {
				sweepPart(run.Disk, filepath.Join(dir, shard, name))
			}
		}
	}
}

func sweepPart(disk rundir.Disk, path string) {
	_, name, _ := strings.Cut(filepath.Base(path), tempMark)
	_, process, _ := strings.Cut(name, ".")
	life := journal.ProcessLife(process)
	if life == journal.Unsure {
		if info, err := disk.Stat(path); err == nil && time.Since(info.ModTime()) > tempOld {
			life = journal.Dead
		}
	}
	if life == journal.Dead {
		disk.Remove(path)
	}
}
