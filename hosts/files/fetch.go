package files

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
	"dcs-tui/jobs/attempts"
	"dcs-tui/jobs/rundir"
)

const (
	maxHosts = 8 // hosts that are read concurrently
	// maxLarge bounds the large files that are read concurrently from one host: complete
	// files are kept if the fetch is interrupted, parts are not.
	maxLarge   = 2
	largeBytes = 1 << 20 // size above which a file is large
	numOutputs = 2       // outputs of an attempt
)

// Fetcher copies outputs from hosts into the run directory.
type Fetcher struct {
	Run  *rundir.Run
	Read func(ctx context.Context, host string, m hosts.Read) (data []byte, size int64, err error) // Reader.Read

	// Packs reports whether the outcome of an attempt is recorded, so that its copied files may go into a
	// pack. This includes files that an earlier fetch has copied and, because it was interrupted, not
	// packed. It is not called concurrently. nil: nothing is packed.
	Packs func(jobs.AttemptID) bool

	space                  Space // of the run directory
	attempts, files, bytes atomic.Int64
	isFull                 atomic.Bool // no more attempts are started

	mu     sync.Mutex
	shards map[string]bool // directories of attempts that exist
	left   map[string]int  // number of attempts to copy, by directory
	packMu sync.Mutex      // held while a directory is packed
	// mayPack is Packs for the attempts that the plan names, and false for all others. The claims of hosts
	// that share the run directory must stay there as long as a launch can be valid.
	mayPack func(jobs.AttemptID) bool
}

// Done returns what has been copied so far: attempts, files, bytes. It is safe for
// concurrent use with Fetch.
func (f *Fetcher) Done() (attempts, files int, bytes int64) {
	return int(f.attempts.Load()), int(f.files.Load()), f.bytes.Load()
}

// HostResult describes what Fetch did for one host.
type HostResult struct {
	Host          string
	NumFetched    int           // number of attempts of which something was copied
	NumUnchanged  int           // number of attempts of which the host has nothing more than the run directory
	NumIncomplete int           // number of attempts that are incomplete because of Err, Failed, or the run directory
	Err           error         // why nothing more could be read from the host; nil: it could
	Failed        []FailedFetch // sorted
	// The attempts with outputs that neither the host nor the run directory has, sorted, and the number
	// of these outputs.
	Missing    []jobs.AttemptID
	NumMissing int
	NumGone    int // number of attempts of which nothing is left
}

// FailedFetch is an attempt that could not be copied although its host answers.
type FailedFetch struct {
	Attempt jobs.AttemptID
	Err     error
}

// Fetch copies the files that the plan names. A failure of one host does not affect the
// others. The error is one of the disk of the run directory, or that of ctx. After an
// interruption a second Fetch copies what is missing.
func (f *Fetcher) Fetch(ctx context.Context, p *FetchPlan) ([]HostResult, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	f.isFull.Store(false)
	f.space.Dir = f.Run.Dir
	f.left = map[string]int{}
	planned := slices.Clone(p.Copied)
	for _, id := range p.Copied {
		f.left[jobs.ShardDir(id.Job)] = 0
	}
	for _, h := range p.Hosts {
		planned = append(planned, h.Attempts...)
		for _, id := range h.Attempts {
			f.left[jobs.ShardDir(id.Job)]++
		}
	}
	slices.SortFunc(planned, jobs.AttemptID.Compare)
	isPlanned := attempts.Among(planned)
	f.mayPack = func(id jobs.AttemptID) bool { return isPlanned(id) && f.Packs(id) }
	for shard, n := range f.left {
		if n == 0 && ctx.Err() == nil {
			f.packShard(shard)
		}
	}
	all := make([]HostResult, len(p.Hosts))
	var tasks sync.WaitGroup
	turns := make(chan struct{}, maxHosts)
	for i := range p.Hosts {
		tasks.Go(func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			all[i] = f.fetchHost(ctx, stop, &p.Hosts[i])
		})
	}
	tasks.Wait()
	err := context.Cause(ctx)
	if err == nil && f.isFull.Load() {
		err = errFull
	}
	if err == nil {
		for shard, n := range f.left { // of hosts that could not be read to the end
			if n > 0 {
				f.packShard(shard)
			}
		}
	}
	return all, cmp.Or(err, f.syncNames())
}

// fetchHost copies the files of one host, several attempts concurrently.
func (f *Fetcher) fetchHost(ctx context.Context, stop context.CancelCauseFunc, p *HostPlan) HostResult {
	r := HostResult{Host: p.Host}
	var mu sync.Mutex
	var tasks sync.WaitGroup
	large := make(chan struct{}, maxLarge)
	next, unreachable := 0, false
	take := func() (jobs.AttemptID, bool) {
		mu.Lock()
		defer mu.Unlock()
		if unreachable || f.isFull.Load() || ctx.Err() != nil || next == len(p.Attempts) {
			return jobs.AttemptID{}, false
		}
		next++
		return p.Attempts[next-1], true
	}
	for range min(hosts.MaxReads, len(p.Attempts)) {
		tasks.Go(func() {
			for id, ok := take(); ok; id, ok = take() {
				puts, missing, err := f.fetchAttempt(ctx, large, p.Host, id)
				var ofHost *hosts.Error
				var disk *diskError
				mu.Lock()
				if missing > 0 {
					r.NumMissing += missing
					r.Missing = append(r.Missing, id)
				}
				switch {
				case err == nil && puts > 0:
					r.NumFetched++
				case err == nil && missing == numOutputs:
					r.NumGone++
				case err == nil:
					r.NumUnchanged++
				case errors.Is(err, errFull):
					f.isFull.Store(true) // it is not an error of this host
				case errors.As(err, &disk):
					stop(err)
				case context.Cause(ctx) != nil:
				case errors.As(err, &ofHost):
					unreachable = true
					r.Err = cmp.Or(r.Err, err)
				default:
					r.Failed = append(r.Failed, FailedFetch{id, err})
				}
				mu.Unlock()
				f.attemptDone(id)
			}
		})
	}
	tasks.Wait()
	r.NumIncomplete = len(p.Attempts) - r.NumFetched - r.NumUnchanged - r.NumGone
	slices.SortFunc(r.Missing, jobs.AttemptID.Compare)
	slices.SortFunc(r.Failed, func(a, b FailedFetch) int { return a.Attempt.Compare(b.Attempt) })
	return r
}

// attemptDone packs the directory of an attempt if nothing more is copied into it, so that few files are
// outside of packs at any time.
func (f *Fetcher) attemptDone(id jobs.AttemptID) {
	shard := jobs.ShardDir(id.Job)
	f.mu.Lock()
	f.left[shard]--
	isLast := f.left[shard] == 0
	f.mu.Unlock()
	if isLast {
		f.packShard(shard)
	}
}

// packLeast is the number of attempts in a pack below which none is made.
const packLeast = 4

// packShard packs the files of a directory of attempts. It ignores errors: the files are here, and `runs
// pack` reports what is in the way.
func (f *Fetcher) packShard(shard string) {
	if f.Packs == nil {
		return
	}
	f.packMu.Lock()
	defer f.packMu.Unlock()
	p := attempts.Packer{Disk: f.Run.Disk, Dir: f.Run.Dir, Run: f.Run.UID(), May: f.mayPack, Least: packLeast}
	_, _ = p.Pack(shard)
}

// fetchAttempt copies the files of one attempt. The status file is written last, and only if it has
// a sentinel, so that it proves that the other files are complete. It is read first. An attempt
// that was given up may still run, and outputs that are read before its sentinel may be incomplete.
// puts is the number of copied files, and missing the number of outputs that are nowhere.
func (f *Fetcher) fetchAttempt(ctx context.Context, large chan struct{}, host string,
	id jobs.AttemptID) (puts, missing int, err error) {
	if err := f.makeShard(id); err != nil {
		return 0, 0, err
	}
	status, statusErr := f.readStatus(ctx, host, id)
	for _, file := range [numOutputs]jobs.File{jobs.FileOut, jobs.FileErr} {
		put, err := f.copyOutput(ctx, large, host, hosts.Read{Attempt: id, File: file})
		switch {
		case errors.Is(err, fs.ErrNotExist):
			if f.sizeHere(jobs.AttemptFile(f.Run.Dir, id, file)) < 0 {
				missing++
			}
		case err != nil:
			return puts, missing, err
		case put:
			puts++
		}
	}
	if statusErr != nil {
		return puts, missing, statusErr
	}
	if status != nil {
		err := f.createFile(jobs.AttemptFile(f.Run.Dir, id, jobs.FileStatus), int64(len(status)),
			func(w io.WriterAt) error {
				_, err := w.WriteAt(status, 0)
				return err
			})
		if err != nil {
			return puts, missing, err
		}
		puts++
	}
	f.attempts.Add(1)
	return puts, missing, nil
}

// diskError is an error of the run directory itself, which ends the whole fetch.
type diskError struct{ err error }

func (e *diskError) Error() string {
	if rundir.IsFull(e.err) {
		return fmt.Sprintf("the disk of the run directory is full: %v", e.err)
	}
	return fmt.Sprintf("the run directory cannot be written: %v", e.err)
}

func (e *diskError) Unwrap() error { return e.err }

// asDiskError wraps an error of the run directory; nil stays nil.
func asDiskError(err error) error {
	if err == nil {
		return nil
	}
	return &diskError{err}
}

// createFile creates a file under another name, calls fill, and renames the file to path, so that
// nobody sees a part of it. syncNames makes the name durable.
func (f *Fetcher) createFile(path string, size int64, fill func(io.WriterAt) error) error {
	disk := f.Run.Disk
	tmp := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+tempMark+rand.Text()[:12])
	file, err := disk.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return asDiskError(err)
	}
	w := &countingWriter{WriterAt: file, fetcher: f}
	err = fill(w)
	if err == nil && size > 0 {
		err = asDiskError(file.Sync())
	}
	if cerr := file.Close(); err == nil { // NFS reports a full disk here
		err = asDiskError(cerr)
	}
	if err == nil {
		err = asDiskError(disk.Rename(tmp, path))
	}
	if err != nil {
		disk.Remove(tmp) // if this fails, SweepFetched removes it
		f.bytes.Add(-w.n)
		return err
	}
	f.files.Add(1)
	return nil
}

// countingWriter counts what is written, and turns errors into diskErrors.
type countingWriter struct {
	io.WriterAt
	fetcher *Fetcher
	n       int64
}

func (w *countingWriter) WriteAt(p []byte, at int64) (int, error) {
	n, err := w.WriterAt.WriteAt(p, at)
	w.n += int64(n)
	w.fetcher.bytes.Add(int64(n))
	return n, asDiskError(err)
}

// makeShard creates the directory of an attempt's files.
func (f *Fetcher) makeShard(id jobs.AttemptID) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	dir := filepath.Dir(jobs.AttemptFile(f.Run.Dir, id, jobs.FileOut))
	if f.shards[dir] {
		return nil
	}
	err := f.Run.Disk.Mkdir(dir, 0o700)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return asDiskError(err)
	}
	jobs.Insert(&f.shards, dir, true)
	return nil
}

// syncNames makes the names of new files durable.
func (f *Fetcher) syncNames() (err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for dir := range f.shards {
		err = errors.Join(err, f.Run.Disk.SyncDir(dir))
	}
	if len(f.shards) > 0 {
		err = errors.Join(err, f.Run.Disk.SyncDir(f.Run.Path(rundir.AttemptsDir)))
	}
	return asDiskError(err)
}

// errFull is the error if only reservedBytes are free. Files that are being written have
// reserved their space before.
var errFull = &diskError{syscall.ENOSPC}

// reserve reserves space for a file of n bytes, which a host may claim to be of any size. It
// returns an error if there is not enough.
func (f *Fetcher) reserve(n int64) error {
	err := f.space.Reserve(n)
	full, ok := errors.AsType[*SpaceError](err)
	switch {
	case ok && full.Full:
		return errFull
	case ok || err == nil:
		return err
	}
	return &diskError{err}
}

// copyOutput copies an output of an attempt, unless the file here has the same size, and reports
// whether it did. large limits the concurrent large files. The error is fs.ErrNotExist if
// the host has no such file.
func (f *Fetcher) copyOutput(ctx context.Context, large chan struct{}, host string,
	m hosts.Read) (put bool, err error) {
	path := jobs.AttemptFile(f.Run.Dir, m.Attempt, m.File)
	have := f.sizeHere(path)
	if have < 0 {
		m.Limit = hosts.MaxChunk
	}
	data, size, err := f.Read(ctx, host, m)
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
	if err := f.reserve(size); err != nil {
		return false, err
	}
	defer func() { f.space.Release(size - m.Offset) }() // what was not written
	err = f.createFile(path, size, func(w io.WriterAt) error {
		for m.Limit = hosts.MaxChunk; ; {
			data = data[:min(int64(len(data)), size-m.Offset)] // the file may have grown
			if _, err := w.WriteAt(data, m.Offset); err != nil {
				return err
			}
			f.space.Release(int64(len(data)))
			m.Offset += int64(len(data))
			if m.Offset >= size {
				return nil
			}
			if data, _, err = f.Read(ctx, host, m); err == nil && len(data) == 0 {
				err = fmt.Errorf("%s: %s.%s has become shorter while it was read", host, m.Attempt, m.File)
			}
			if err != nil {
				return err
			}
		}
	})
	return err == nil, err
}

// sizeHere returns the size of a regular file of the run directory, or -1 if there is none.
func (f *Fetcher) sizeHere(path string) int64 {
	if info, err := f.Run.Disk.Lstat(path); err == nil && info.Mode().IsRegular() {
		return info.Size()
	}
	return -1
}

// readStatus reads the status file of an attempt and checks that it is of this attempt and host.
// It returns nil without a sentinel, as after the attempt was lost.
func (f *Fetcher) readStatus(ctx context.Context, host string, id jobs.AttemptID) ([]byte, error) {
	data, _, err := f.Read(ctx, host, hosts.Read{Attempt: id, File: jobs.FileStatus, Limit: attempts.StatusBytes + 1})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	status := attempts.Decode(data, f.Run.UID(), id)
	switch {
	case status.Damaged || status.State == attempts.Unreadable:
		return nil, fmt.Errorf("%s: %s.%s: %w", host, id, jobs.FileStatus, attempts.ErrStatus)
	case status.Host != host:
		return nil, fmt.Errorf("%s: %s.%s: %w: it belongs to the host %q", host, id, jobs.FileStatus,
			attempts.ErrStatus, status.Host)
	case status.State != attempts.Finished:
		return nil, nil
	}
	return data, nil
}

// A file that is being copied is named .NAME.fetch-RANDOM.
const (
	tempMark = ".fetch-"
	// tempMaxAge is the time since the last write after which nobody writes the file any more. It is far
	// longer than the wait for a piece.
	tempMaxAge = time.Hour
)

// SweepFetched removes what killed fetches have left in the run directory. It ignores errors,
// because Fetch reports those of the disk.
func SweepFetched(run *rundir.Run) {
	dir := run.Path(rundir.AttemptsDir)
	shards, _ := run.Disk.Names(dir)
	for _, shard := range shards {
		names, _ := run.Disk.Names(filepath.Join(dir, shard))
		for _, name := range names {
			path := filepath.Join(dir, shard, name)
			if !strings.HasPrefix(name, ".") || !strings.Contains(name, tempMark) {
				continue
			}
			if info, err := run.Disk.Stat(path); err == nil && time.Since(info.ModTime()) > tempMaxAge {
				run.Disk.Remove(path)
			}
		}
	}
}
