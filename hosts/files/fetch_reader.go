package files

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"dcs-tui/hosts"
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

// Read returns a piece of a file and the size of the whole file. After a *hosts.Error every other
// Read of that host fails, too. The error is fs.ErrNotExist if the host has no such file.
func (r *Reader) Read(ctx context.Context, host string, m hosts.Read) (data []byte, size int64, err error) {
	h, err := r.host(host)
	if err != nil {
		return nil, 0, err
	}
	select {
	case <-h.connected:
	case <-ctx.Done():
		return nil, 0, ctx.Err()
	}
	if h.reads == nil {
		return nil, 0, h.err
	}
	return h.reads.Read(ctx, m)
}

var errClosed = errors.New("nothing more is read")

// host returns the connection to a host. The first call starts it.
func (r *Reader) host(name string) (*readHost, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ctx.Err() != nil {
		return nil, &hosts.Error{Host: name, Class: hosts.Unreachable, Err: errClosed}
	}
	if h := r.hosts[name]; h != nil {
		return h, nil
	}
	h := &readHost{host: r.inventory[name], connected: make(chan struct{})}
	if h.host == nil {
		return nil, &hosts.Error{Host: name, Class: hosts.Misconfigured, Err: errors.New("it is not in the inventory"),
			Advice: "name one that has it with --hosts"}
	}
	r.hosts[name] = h
	r.all.Go(func() { h.run(r.ctx, r.connector, r.uid) })
	return h, nil
}

// Close closes the connections. Blocked reads fail.
func (r *Reader) Close() {
	r.mu.Lock()
	r.cancel()
	r.mu.Unlock()
	r.all.Wait()
}

const (
	pieceTimeout = 30 * time.Second // without any piece, while some are requested
	pingInterval = 10 * time.Second
	byeTimeout   = 2 * time.Second
)

// readHost is one host from which a Reader reads.
type readHost struct {
	host      *hosts.Host
	connected chan struct{}       // closed when reads or err is set
	reads     *hosts.PendingReads // nil: the connection failed
	err       error
}

// run connects and passes pieces on until the host is gone or ctx ends.
func (h *readHost) run(ctx context.Context, c hosts.Connector, uid string) {
	w, err := c.Connect(ctx, h.host, &hosts.Open{Version: hosts.ProtocolVersion, Run: uid, RunName: uid,
		Host: h.host.Name, WorkDir: h.host.WorkDir, Reads: true})
	if err != nil {
		h.err = h.asHostError(err)
		close(h.connected)
		return
	}
	defer w.Close()
	h.reads = hosts.NewPendingReads(h.host.Name, w)
	close(h.connected)
	h.reads.End(h.asHostError(h.receive(ctx, w)))
}

// asHostError returns err as a *hosts.Error.
func (h *readHost) asHostError(err error) error {
	if _, ok := errors.AsType[*hosts.Error](err); ok {
		return err
	}
	return &hosts.Error{Host: h.host.Name, Class: hosts.Unreachable, Err: err}
}

// receive passes pieces on. It returns the reason for its end.
func (h *readHost) receive(ctx context.Context, w hosts.Worker) error {
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
				h.reads.Answer(m)
			}
		case <-ping.C:
			if h.reads.Silence() >= pieceTimeout {
				return fmt.Errorf("no answer for %v while its outputs were being read", pieceTimeout)
			}
			w.Send(&hosts.Ping{}) // if it cannot be sent, the reports end
		case <-over:
			over = nil
			w.Send(&hosts.Bye{})
			late = time.After(byeTimeout)
		case <-late:
			return errClosed
		}
	}
}
