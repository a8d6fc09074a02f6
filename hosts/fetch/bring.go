package fetch

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"sync"
	"sync/atomic"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
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
	// Free says how many bytes may be written; nil: what the file system has, less what
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
func (b *Bringer) Bring(ctx context.Context, p *Plan) ([]HostResult, error) {
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
