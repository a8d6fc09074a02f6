package fetch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"

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
		return nil, 0, fmt.Errorf("%s answered what it was not asked: %d bytes at %d of %d", p.Host, len(c.Bulk), c.Offset, c.Size)
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
