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

// Reader reads pieces of attempts' files on their hosts. It connects to a host once, with the
// first Read. If that fails, or the connection breaks, nothing more is read from the host.
// It is safe for concurrent use.
type Reader struct {
	connector hosts.Connector
	uid       string // of the run
	ctx       context.Context
	cancel    context.CancelFunc

	mu        sync.Mutex
	inventory map[string]*hosts.Host
	hosts     map[string]*readHost
	all       sync.WaitGroup
}

// NewReader returns a Reader for a run and the hosts of its inventory.
func NewReader(c hosts.Connector, uid string, inventory []*hosts.Host) *Reader {
	r := &Reader{connector: c, uid: uid, inventory: map[string]*hosts.Host{}, hosts: map[string]*readHost{}}
	for _, h := range inventory {
		r.inventory[h.Name] = h
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

// Read returns a piece and the size of the whole file. After a *hosts.Error every other Read
// of that host fails, too. The error is fs.ErrNotExist if the host has no such file.
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
	case len(c.Bulk) > max(0, p.Limit), p.Offset >= 0 && c.Offset != p.Offset, c.Offset < 0,
		c.Size < int64(len(c.Bulk)):
		return nil, 0, fmt.Errorf("%s sent an unexpected piece: %d bytes at %d of %d", p.Host, len(c.Bulk),
			c.Offset, c.Size)
	}
	return c.Bulk, c.Size, nil
}

var errClosed = errors.New("nothing more is read")

// host returns the connection to a host. The first call starts it.
func (r *Reader) host(name string) (*readHost, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ctx.Err() != nil {
		return nil, &hosts.Error{Host: name, Class: hosts.Unreachable, Err: errClosed}
	}
	if f := r.hosts[name]; f != nil {
		return f, nil
	}
	h := r.inventory[name]
	if h == nil {
		return nil, &hosts.Error{Host: name, Class: hosts.Misconfigured, Err: errors.New("it is not in the inventory"),
			Advice: "name one that has it with --hosts"}
	}
	f := &readHost{host: h, ended: make(chan struct{}),
		slots: make(chan struct{}, maxReads), pending: map[int64]chan *hosts.Chunk{}}
	r.hosts[name] = f
	r.all.Go(func() { f.run(r.ctx, r.connector, r.uid) })
	return f, nil
}

// Close closes the connections. Blocked reads fail.
func (r *Reader) Close() {
	r.mu.Lock()
	r.cancel()
	r.mu.Unlock()
	r.all.Wait()
}

const (
	maxReads     = 8                // pieces that are requested from a host at a time
	pieceTimeout = 30 * time.Second // without any piece, while some are requested
	pingInterval = 10 * time.Second
	byeTimeout   = 2 * time.Second
)

// readHost is one host from which a Reader reads.
type readHost struct {
	host  *hosts.Host
	ended chan struct{} // closed when err is set
	err   error         // valid after ended
	slots chan struct{} // once connected, holds one element for each piece that may be requested

	mu      sync.Mutex
	worker  hosts.Worker                // valid once connected
	pending map[int64]chan *hosts.Chunk // by the ID of the Read
	lastID  int64
	lastAt  time.Time // when the last piece came
}

// run connects and delivers pieces until the host is gone or ctx ends.
func (f *readHost) run(ctx context.Context, c hosts.Connector, uid string) {
	w, err := c.Connect(ctx, f.host, &hosts.Open{Version: hosts.ProtocolVersion, Run: uid, RunName: uid,
		Host:    f.host.Name,
		WorkDir: f.host.WorkDir, Reads: true})
	f.mu.Lock()
	f.worker, f.lastAt = w, time.Now()
	f.mu.Unlock()
	if err == nil {
		for range maxReads {
			f.slots <- struct{}{}
		}
		defer w.Close()
		err = f.receive(ctx, w)
	}
	if _, ok := errors.AsType[*hosts.Error](err); !ok {
		err = &hosts.Error{Host: f.host.Name, Class: hosts.Unreachable, Err: err}
	}
	f.err = err
	close(f.ended)
}

// receive delivers pieces. It returns the reason for its end.
func (f *readHost) receive(ctx context.Context, w hosts.Worker) error {
	ping := time.NewTicker(pingInterval)
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
				f.deliver(m)
			}
		case <-ping.C:
			f.send(&hosts.Ping{})
		case <-over:
			over = nil
			f.send(&hosts.Bye{})
			late = time.After(byeTimeout)
		case <-late:
			return errClosed
		}
	}
}

// send sends one message. If it cannot be sent, the reports end.
func (f *readHost) send(m hosts.Message) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.worker.Send(m)
}

func (f *readHost) deliver(c *hosts.Chunk) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lastAt = time.Now()
	if to := f.pending[c.ID]; to != nil {
		delete(f.pending, c.ID)
		to <- c
	}
}

// read requests a piece and waits for it.
func (f *readHost) read(ctx context.Context, m hosts.Read) (*hosts.Chunk, error) {
	select {
	case <-f.slots:
	case <-f.ended:
		return nil, f.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { f.slots <- struct{}{} }()
	answer := make(chan *hosts.Chunk, 1)
	f.mu.Lock()
	f.lastID++
	m.ID = f.lastID
	f.pending[m.ID] = answer
	f.worker.Send(&m) // if it cannot be sent, the reports end
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		delete(f.pending, m.ID)
		f.mu.Unlock()
	}()
	late := time.NewTimer(pieceTimeout)
	defer late.Stop()
	for {
		select {
		case c := <-answer:
			return c, nil
		case <-f.ended:
			return nil, f.err
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-late.C:
			if rest := f.timeLeft(); rest > 0 {
				late.Reset(rest)
				continue
			}
			f.worker.Close()
			return nil, &hosts.Error{Host: f.host.Name, Class: hosts.Unreachable,
				Err: fmt.Errorf("no answer for %v while its outputs were being read", pieceTimeout)}
		}
	}
}

// timeLeft returns the time until the host has sent no piece for pieceTimeout.
func (f *readHost) timeLeft() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return pieceTimeout - time.Since(f.lastAt)
}
