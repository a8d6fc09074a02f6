package sshlink

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/hosts/sshconf"
)

// gateways holds one connection for each chain of gateways in use; the hosts
// behind it share it.
type gateways struct {
	o   *Opener
	mu  sync.Mutex
	all map[string]*gateway
}

// gateway is a connection that others are dialled through.
type gateway struct {
	key   string
	name  string
	users int // guarded by gateways.mu

	cancel context.CancelFunc // gives up dialling it
	ready  chan struct{}      // closed when the dialling is over
	conn   *connection        // after ready; nil if it failed
	err    error              // after ready

	asking atomic.Bool // a sign of life is being waited for
}

func newGateways(o *Opener) *gateways { return &gateways{o: o, all: map[string]*gateway{}} }

// chainKey tells one chain of gateways from another.
func chainKey(jumps []*sshconf.Target) (key string) {
	for _, j := range jumps {
		key += fmt.Sprintf("%s %s@%s;", j.Alias, j.User, j.Address())
	}
	return key
}

// acquire returns the gateway at the end of the chain, dialling it if nobody
// else has; nil for an empty chain. Each needs one release.
func (p *gateways) acquire(ctx context.Context, host string, jumps []*sshconf.Target) (*gateway, error) {
	if len(jumps) == 0 {
		return nil, nil
	}
	last := jumps[len(jumps)-1]
	key := chainKey(jumps)
	p.mu.Lock()
	g := p.all[key]
	if g == nil {
		// Bound to all who wait for it, not to the first one's ctx.
		dctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
		g = &gateway{key: key, name: last.Alias, cancel: cancel, ready: make(chan struct{})}
		p.all[key] = g
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
		return nil, throughGateway(host, g)
	}
	return g, nil
}

// throughGateway says of a host what is wrong with its gateway.
func throughGateway(host string, g *gateway) error {
	var cause *hosts.Error
	if !errors.As(g.err, &cause) {
		return &hosts.Error{Host: host, Class: hosts.Unreachable, Err: fmt.Errorf("gateway %s: %w", g.name, g.err)}
	}
	return &hosts.Error{Host: host, Class: cause.Class, Err: fmt.Errorf("gateway %w", &hosts.Error{Host: g.name, Err: cause.Err}), Advice: cause.Advice}
}

func (p *gateways) dial(ctx context.Context, g *gateway, t *sshconf.Target, before []*sshconf.Target) {
	g.conn, g.err = p.o.connect(ctx, t.Alias, t, before)
	if g.err != nil {
		p.forget(g)
		close(g.ready)
		return
	}
	close(g.ready)
	g.conn.client.Wait()
	p.forget(g)
}

// forget makes the next acquire dial anew.
func (p *gateways) forget(g *gateway) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.all[g.key] == g {
		delete(p.all, g.key)
	}
}

// release lets go of a gateway; the last one closes it.
func (p *gateways) release(g *gateway) {
	if g == nil {
		return
	}
	p.mu.Lock()
	g.users--
	last := g.users == 0
	if last && p.all[g.key] == g {
		delete(p.all, g.key)
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

// dial opens a stream to address as the gateway sees it.
func (g *gateway) dial(ctx context.Context, address string) (net.Conn, error) {
	ch, err := g.conn.client.DialContext(ctx, "tcp", address)
	if err != nil {
		if errors.Is(err, context.DeadlineExceeded) {
			g.suspect()
		}
		return nil, err
	}
	return newJumpConn(ch, address), nil
}

// gatewayLimit is how long a gateway may take for a sign of life.
const gatewayLimit = 5 * time.Second

// suspect asks the gateway for a sign of life after a dial through it came to
// nothing: the host behind it may be dead, or the gateway itself. A dead one is
// closed, so that the next attempt makes a new connection.
func (g *gateway) suspect() {
	if !g.asking.CompareAndSwap(false, true) {
		return
	}
	go func() {
		defer g.asking.Store(false)
		timer := time.AfterFunc(gatewayLimit, func() { abort(g.conn.conn) })
		defer timer.Stop()
		g.conn.client.SendRequest(keepAliveRequest, true, nil)
	}()
}
