package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// Reader reads pieces of attempts' files on their hosts. A host is connected to when it
// is first asked, once: when that fails, or the connection breaks, nothing more is read
// of it. Its methods may be called from any goroutine.
type Reader struct {
	connector hosts.Connector
	uid       string // of the run
	ctx       context.Context
	cancel    context.CancelFunc

	mu    sync.Mutex
	known map[string]*hosts.Host
	far   map[string]*far
	all   sync.WaitGroup
}

// NewReader makes a Reader for a run and the hosts of its inventory.
func NewReader(c hosts.Connector, uid string, inventory []*hosts.Host) *Reader {
	r := &Reader{connector: c, uid: uid, known: map[string]*hosts.Host{}, far: map[string]*far{}}
	for _, h := range inventory {
		r.known[h.Name] = h
	}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	return r
}

// Piece names what is read.
type Piece struct {
	Host    string
	Attempt jobs.AttemptID
	File    jobs.File // FileOut, FileErr or FileStatus
	Offset  int64     // in bytes; negative: counted from the end
	Limit   int       // in bytes, at most hosts.MaxChunk
}

// Read returns a piece and the size of the whole file. An error that is a *hosts.Error
// says that the host cannot be asked, and every other Read of it fails, too; one that is
// fs.ErrNotExist that it has no such file.
func (r *Reader) Read(ctx context.Context, p Piece) (data []byte, size int64, err error) {
	f, err := r.host(p.Host)
	if err != nil {
		return nil, 0, err
	}
	c, err := f.read(ctx, hosts.Read{Attempt: p.Attempt, File: p.File, Offset: p.Offset, Limit: p.Limit})
	switch {
	case err != nil:
		return nil, 0, err
	case c.None:
		return nil, 0, fmt.Errorf("%s has no such file: %s: %w", p.Host, c.Why, fs.ErrNotExist)
	case c.Size < 0:
		return nil, 0, fmt.Errorf("%s: %s", p.Host, c.Why)
	case len(c.Bulk) > max(0, p.Limit), p.Offset >= 0 && c.Offset != p.Offset, c.Offset < 0, c.Size < int64(len(c.Bulk)):
		return nil, 0, fmt.Errorf("%s sent an unexpected piece: %d bytes at %d of %d", p.Host, len(c.Bulk), c.Offset, c.Size)
	}
	return c.Bulk, c.Size, nil
}

var errClosed = errors.New("nothing more is read")

// host returns the connection to a host, and begins it.
func (r *Reader) host(name string) (*far, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ctx.Err() != nil {
		return nil, &hosts.Error{Host: name, Class: hosts.Unreachable, Err: errClosed}
	}
	if f := r.far[name]; f != nil {
		return f, nil
	}
	h := r.known[name]
	if h == nil {
		return nil, &hosts.Error{Host: name, Class: hosts.Misconfigured, Err: errors.New("it is not in the inventory"),
			Advice: "name one that has it with --hosts"}
	}
	f := newFar(h)
	r.far[name] = f
	r.all.Go(func() { f.run(r.ctx, r.connector, r.uid) })
	return f, nil
}

// Close takes leave of the hosts; reads that wait fail.
func (r *Reader) Close() {
	r.mu.Lock()
	r.cancel()
	r.mu.Unlock()
	r.all.Wait()
}

const (
	// maxReads bounds the pieces that a host is requested and has not given yet.
	maxReads = 8
	// pieceWithin is how long a host that owes pieces may say nothing.
	pieceWithin = 30 * time.Second
	pingEvery   = 10 * time.Second
	leaveWithin = 2 * time.Second
)

// far is one host that is read.
type far struct {
	host   *hosts.Host
	up     chan struct{} // closed when it is known whether it can be asked
	gone   chan struct{} // closed when it cannot be asked any more, because of err
	places chan struct{} // one is taken for each requested piece

	mu     sync.Mutex
	worker hosts.Worker // nil until up
	owed   map[int64]chan *hosts.Chunk
	newest int64 // ID of a Read
	heard  time.Time
	err    error
}

func newFar(h *hosts.Host) *far {
	return &far{host: h, up: make(chan struct{}), gone: make(chan struct{}), places: make(chan struct{}, maxReads), owed: map[int64]chan *hosts.Chunk{}}
}

// run connects and hands out what the host says, until it has gone or ctx ends.
func (f *far) run(ctx context.Context, c hosts.Connector, uid string) {
	w, err := c.Connect(ctx, f.host, &hosts.Open{Version: hosts.ProtocolVersion, Run: uid, RunName: uid, Host: f.host.Name,
		WorkDir: f.host.WorkDir, Reads: true})
	f.mu.Lock()
	f.worker, f.heard = w, time.Now()
	f.mu.Unlock()
	if err == nil {
		close(f.up)
		defer w.Close()
		err = f.hear(ctx, w)
	}
	var known *hosts.Error
	if !errors.As(err, &known) {
		err = &hosts.Error{Host: f.host.Name, Class: hosts.Unreachable, Err: err}
	}
	f.mu.Lock()
	f.err = err
	f.mu.Unlock()
	close(f.gone)
}

// hear hands out pieces. It returns why it has ended.
func (f *far) hear(ctx context.Context, w hosts.Worker) error {
	ping := time.NewTicker(pingEvery)
	defer ping.Stop()
	reports := w.Reports()
	var late <-chan time.Time
	over := ctx.Done()
	for {
		select {
		case m, ok := <-reports:
			switch {
			case !ok && over == nil:
				return errClosed
			case !ok && w.Err() != nil:
				return w.Err()
			case !ok:
				return errors.New("the helper has left")
			}
			if m, ok := m.(*hosts.Chunk); ok {
				f.give(m)
			}
		case <-ping.C:
			f.say(&hosts.Ping{})
		case <-over:
			over = nil
			f.say(&hosts.Bye{})
			late = time.After(leaveWithin)
		case <-late:
			return errClosed
		}
	}
}

// say sends one message; when it cannot be sent its reports end.
func (f *far) say(m hosts.Message) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.worker.Send(m)
}

func (f *far) give(c *hosts.Chunk) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.heard = time.Now()
	if to := f.owed[c.ID]; to != nil {
		delete(f.owed, c.ID)
		to <- c
	}
}

// read asks for a piece and waits for it.
func (f *far) read(ctx context.Context, m hosts.Read) (*hosts.Chunk, error) {
	select {
	case <-f.up:
	case <-f.gone:
		return nil, f.why()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	select {
	case f.places <- struct{}{}:
	case <-f.gone:
		return nil, f.why()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-f.places }()
	answer := make(chan *hosts.Chunk, 1)
	f.mu.Lock()
	f.newest++
	m.ID = f.newest
	f.owed[m.ID] = answer
	f.worker.Send(&m) // when it cannot be sent the reports end
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		delete(f.owed, m.ID)
		f.mu.Unlock()
	}()
	late := time.NewTimer(pieceWithin)
	defer late.Stop()
	for {
		select {
		case c := <-answer:
			return c, nil
		case <-f.gone:
			return nil, f.why()
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-late.C:
			if rest := f.silent(); rest > 0 {
				late.Reset(rest)
				continue
			}
			f.worker.Close()
			return nil, &hosts.Error{Host: f.host.Name, Class: hosts.Unreachable, Err: fmt.Errorf("no answer for %v while its outputs were being read", pieceWithin)}
		}
	}
}

// silent returns how much longer it may say nothing.
func (f *far) silent() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return pieceWithin - time.Since(f.heard)
}

func (f *far) why() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}
