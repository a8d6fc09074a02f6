package link

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"dcs-tui/hosts"
)

// gateways holds one connection for each chain of gateways in use. The hosts behind it
// share it.
type gateways struct {
	opener  *SSHOpener
	mu      sync.Mutex
	byChain map[string]*gateway
}

// gateway is a connection through which others are dialed.
type gateway struct {
	key   string
	name  string
	users int // guarded by gateways.mu

	cancel context.CancelFunc // cancels dialing it
	ready  chan struct{}      // closed when dialing is over
	conn   *connection        // valid after ready; nil if dialing failed
	err    error              // valid after ready
}

func newGateways(o *SSHOpener) *gateways { return &gateways{opener: o, byChain: map[string]*gateway{}} }

// chainKey identifies a chain of gateways.
func chainKey(jumps []*Target) (key string) {
	for _, j := range jumps {
		key += fmt.Sprintf("%s %s@%s %s;", j.Alias, j.User, j.Address(), j.ProxyCommand)
	}
	return key
}

// acquire returns the gateway at the end of the chain, and dials it if nobody else has;
// nil for an empty chain. Each acquire needs one release.
func (p *gateways) acquire(ctx context.Context, host string, jumps []*Target) (*gateway, error) {
	if len(jumps) == 0 {
		return nil, nil
	}
	last := jumps[len(jumps)-1]
	key := chainKey(jumps)
	p.mu.Lock()
	g := p.byChain[key]
	if g == nil {
		// It serves all who wait for it, so the end of the first one's ctx does not end it.
		dctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
		g = &gateway{key: key, name: last.Alias, cancel: cancel, ready: make(chan struct{})}
		p.byChain[key] = g
		go p.dial(dctx, g, last, jumps[:len(jumps)-1])
	}
	g.users++
	p.mu.Unlock()
	select {
	case <-g.ready:
	case <-ctx.Done():
		p.release(g)
		return nil, &hosts.Error{Host: host, Class: hosts.Unreachable,
			Err: fmt.Errorf("gateway %s: %w", g.name, context.Cause(ctx))}
	}
	if g.err != nil {
		p.release(g)
		return nil, gatewayError(host, g)
	}
	return g, nil
}

// gatewayError returns the error of a gateway as one of a host behind it.
func gatewayError(host string, g *gateway) error {
	var cause *hosts.Error
	if !errors.As(g.err, &cause) {
		return &hosts.Error{Host: host, Class: hosts.Unreachable, Err: fmt.Errorf("gateway %s: %w", g.name, g.err)}
	}
	return &hosts.Error{
		Host:   host,
		Class:  cause.Class,
		Err:    fmt.Errorf("gateway %w", &hosts.Error{Host: g.name, Err: cause.Err}),
		Advice: cause.Advice,
	}
}

func (p *gateways) dial(ctx context.Context, g *gateway, t *Target, before []*Target) {
	g.conn, g.err = p.opener.connect(ctx, t.Alias, t, before)
	if g.err != nil {
		p.forget(g)
		close(g.ready)
		return
	}
	close(g.ready)
	g.conn.client.Wait()
	p.forget(g)
}

// forget removes a gateway, so that the next acquire dials again.
func (p *gateways) forget(g *gateway) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.byChain[g.key] == g {
		delete(p.byChain, g.key)
	}
}

// release ends one use of a gateway. The last one closes it.
func (p *gateways) release(g *gateway) {
	if g == nil {
		return
	}
	p.mu.Lock()
	g.users--
	last := g.users == 0
	if last && p.byChain[g.key] == g {
		delete(p.byChain, g.key)
	}
	p.mu.Unlock()
	if !last {
		return
	}
	g.cancel()
	end := func() {
		if g.conn != nil {
			g.conn.close()
		}
	}
	select {
	case <-g.ready:
		end()
	default:
		go func() { <-g.ready; end() }()
	}
}

// dial opens a stream to address, which the gateway resolves.
func (g *gateway) dial(ctx context.Context, address string) (net.Conn, error) {
	ch, err := g.conn.client.DialContext(ctx, "tcp", address)
	if err != nil {
		if errors.Is(err, context.DeadlineExceeded) {
			g.check()
		}
		return nil, err
	}
	return &jumpConn{Conn: ch, in: newPump(ch), out: newDrain(ch, ch.Close)}, nil
}

// gatewayTimeout bounds the answer of a gateway to a keepalive request.
const gatewayTimeout = 5 * time.Second

// check sends a keepalive request after a dial through the gateway has timed out: either
// the host behind it or the gateway itself may be dead. A dead gateway is closed, so that
// the next attempt makes a new connection.
func (g *gateway) check() {
	go func() {
		timer := time.AfterFunc(gatewayTimeout, func() { abort(g.conn.conn) })
		defer timer.Stop()
		g.conn.client.SendRequest(keepAliveRequest, true, nil)
	}()
}

// jumpConn is a connection through a gateway. The library's own channel cannot be closed at
// once: reads and writes on it block until the gateway has answered, which a hung gateway
// never does. So two goroutines copy the bytes, and Close does not wait for them.
type jumpConn struct {
	net.Conn // the library's
	in       *io.PipeReader
	out      *io.PipeWriter
}

// newPump copies what r returns, and its error at the end, into a pipe, whose reads can be
// canceled by closing it.
func newPump(r io.Reader) *io.PipeReader {
	read, w := io.Pipe()
	go func() { w.CloseWithError(copyAll(w, r)) }()
	return read
}

// newDrain copies what is written to a pipe to w, and calls atEnd when the pipe is closed without
// an error. Writes fail after an error of w.
func newDrain(w io.Writer, atEnd func() error) *io.PipeWriter {
	r, p := io.Pipe()
	go func() {
		err := copyAll(w, r)
		if err == nil {
			err = cmp.Or(atEnd(), io.ErrClosedPipe)
		}
		r.CloseWithError(err)
	}()
	return p
}

// copyAll is io.Copy with a buffer that is small until much is copied at once, because each of many
// links has three of them.
func copyAll(w io.Writer, r io.Reader) error {
	b := make([]byte, 2<<10)
	for {
		n, err := r.Read(b)
		if n > 0 {
			if _, err := w.Write(b[:n]); err != nil {
				return err
			}
		}
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		case n == len(b) && n < 32<<10:
			b = make([]byte, 2*n)
		}
	}
}

func (c *jumpConn) Read(b []byte) (int, error)  { return c.in.Read(b) }
func (c *jumpConn) Write(b []byte) (int, error) { return c.out.Write(b) }

// Close drops what was not sent yet and returns at once. The two goroutines and the channel
// end when the gateway answers or is closed. It may be called more than once.
func (c *jumpConn) Close() error {
	c.in.CloseWithError(net.ErrClosed)
	c.out.CloseWithError(net.ErrClosed)
	go c.Conn.Close()
	return nil
}
