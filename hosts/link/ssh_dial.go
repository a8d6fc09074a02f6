package link

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"dcs-tui/hosts"
)

// connection is one ssh connection and what must be let go of with it.
type connection struct {
	client *ssh.Client
	conn   net.Conn
	via    *gateway // nil when direct
	pool   *gateways
}

// close cuts the connection. Nothing that was written and is not sent yet will
// arrive: a launch must not run after we have given the host up.
func (c *connection) close() {
	abort(c.conn)
	c.client.Close()
	if c.via != nil {
		c.pool.release(c.via)
	}
}

// abort closes at once, with a reset.
func abort(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		tcp.SetLinger(0)
	}
	conn.Close()
}

// maxRedials bounds how often one connect begins again because a key turned out
// to need a passphrase, or could not sign.
const maxRedials = 16

// connect makes a connection to t behind the gateways jumps. Passphrases are
// asked for between two dials, never while a connection waits for a person.
func (o *SSHOpener) connect(ctx context.Context, host string, t *Target, jumps []*Target) (*connection, error) {
	gw, err := o.gateways.acquire(ctx, host, jumps)
	if err != nil {
		return nil, err
	}
	bad := map[string]string{} // key blob: why it cannot sign
	for range maxRedials {
		a := &attempt{o: o, host: host, t: t, gw: gw, jumps: jumps, bad: bad}
		var c *connection
		if c, err = a.run(ctx); err == nil {
			return c, nil
		}
		var again bool
		if again, err = o.again(ctx, a, err); !again {
			break
		}
	}
	o.gateways.release(gw)
	return nil, err
}

// again reports whether another dial could do better, after it has seen to that, or else
// what this one has failed of.
func (o *SSHOpener) again(ctx context.Context, a *attempt, err error) (bool, error) {
	if ctx.Err() != nil {
		return false, err
	}
	// unlock asks for a passphrase. While a person takes longer than ctx, nothing is
	// wrong with the key: it is not refused, and the question stands.
	unlock := func(k *keyFile) (why, late error) {
		if why = o.ring.open(ctx, k); ctx.Err() != nil {
			late = &hosts.Error{Host: a.host, Class: hosts.Unreachable, Err: fmt.Errorf("the passphrase for %s is needed: %w", k.path, hosts.ErrUnanswered)}
		}
		return why, late
	}
	switch {
	case a.locked != nil:
		why, late := unlock(a.locked)
		if late != nil {
			return false, late
		}
		// However it ends, the key is no longer in question: it signs or is left out.
		if why != nil {
			a.bad[string(a.locked.pub.Marshal())] = why.Error()
		}
		return true, nil
	case a.signFailed != nil:
		return true, nil
	case hosts.ClassOf(err) == hosts.Denied && a.offer != nil:
		for _, k := range a.offer.blind {
			if _, known := a.bad[k.path]; known {
				continue
			}
			why, late := unlock(k)
			if late != nil {
				return false, late
			}
			if why == nil {
				return true, nil
			}
			a.bad[k.path] = why.Error()
		}
	}
	return false, err
}

// attempt is one dial, from the first packet to being logged in.
type attempt struct {
	o     *SSHOpener
	host  string
	t     *Target
	gw    *gateway
	jumps []*Target
	bad   map[string]string // keys that cannot sign: blob, or path when that is not known

	check      *hostKeyCheck
	offer      *offer
	locked     *keyFile // the server would take this key, but it is locked
	signFailed error
	login      loginState
}

// run dials, shakes hands and logs in.
func (a *attempt) run(ctx context.Context) (*connection, error) {
	var err error
	if a.check, err = a.o.newHostKeyCheck(a.host, a.t); err != nil {
		return nil, err
	}
	place := a.t.Address()
	if a.gw != nil {
		place = a.gw.key
	}
	leave, err := a.o.limits.enter(ctx, place)
	if err != nil {
		return nil, a.unreachable(err)
	}
	defer leave()
	conn, err := a.dial(ctx)
	if err != nil {
		return nil, err
	}
	client, err := a.handshake(ctx, conn)
	if err != nil {
		abort(conn)
		return nil, a.explain(ctx, err)
	}
	return &connection{client: client, conn: conn, via: a.gw, pool: a.o.gateways}, nil
}

// dial opens the byte stream to the target.
func (a *attempt) dial(ctx context.Context) (net.Conn, error) {
	limit := timeoutOf(a.t)
	dctx, cancel := context.WithTimeoutCause(ctx, limit, errNoAnswer(limit))
	defer cancel()
	if a.gw != nil {
		conn, err := a.gw.dial(dctx, a.t.Address())
		if err != nil {
			return nil, a.explainJump(dctx, err)
		}
		return conn, nil
	}
	network := a.t.Network
	if network == "" {
		network = "tcp"
	}
	d := net.Dialer{
		Control:         control,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 3},
	}
	conn, err := d.DialContext(dctx, network, a.t.Address())
	if err != nil {
		return nil, a.explainDial(dctx, err)
	}
	return conn, nil
}

// errNoAnswer words a limit that has run out.
func errNoAnswer(limit time.Duration) error {
	return fmt.Errorf("no answer within %v: %w", limit, context.DeadlineExceeded)
}

// loginLimit is how long logging in may take once the server has proved who it
// is: the server looks at home directories, an agent may ask its person.
const loginLimit = 30 * time.Second

// handshake runs the protocol until we are logged in. The library's call has no
// limit of its own; what ends it is closing conn.
func (a *attempt) handshake(ctx context.Context, conn net.Conn) (*ssh.Client, error) {
	limit := timeoutOf(a.t)
	hctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	after := func(d time.Duration) *time.Timer {
		return time.AfterFunc(d, func() { cancel(errNoAnswer(d)) })
	}
	timer := after(limit)
	config, err := a.clientConfig(hctx, func() {
		if timer.Stop() {
			timer = after(max(limit, loginLimit))
		}
	})
	if err != nil {
		timer.Stop()
		return nil, err
	}
	stop := context.AfterFunc(hctx, func() { abort(conn) })
	c, channels, requests, err := ssh.NewClientConn(conn, a.t.Address(), config)
	timer.Stop()
	if !stop() {
		// Time was up, whatever the library says of the closed connection.
		if err == nil {
			c.Close()
		}
		return nil, context.Cause(hctx)
	}
	if err != nil {
		return nil, err
	}
	return ssh.NewClient(c, channels, requests), nil
}

// maxDials is how many connections may be in progress at once at one place: to
// one address, or through one gateway. sshd begins to drop them at 10 that have
// not logged in yet (MaxStartups 10:30:100).
const maxDials = 8

// maxJitter spreads dials that had to wait for their turn.
const maxJitter = 30 * time.Millisecond

// limits counts the dials in progress at each place.
type limits struct {
	mu     sync.Mutex
	places map[string]*place
	jitter func() time.Duration // of a dial that had to wait; tests replace it
}

// place is a semaphore that exists while somebody uses it.
type place struct {
	users int // guarded by limits.mu
	slots chan struct{}
}

func newLimits() *limits {
	return &limits{
		places: map[string]*place{},
		jitter: func() time.Duration { return rand.N(maxJitter) },
	}
}

// enter waits for a turn at the place and returns how to give it back.
func (l *limits) enter(ctx context.Context, name string) (leave func(), err error) {
	l.mu.Lock()
	p := l.places[name]
	if p == nil {
		p = &place{slots: make(chan struct{}, maxDials)}
		l.places[name] = p
	}
	p.users++
	l.mu.Unlock()
	gone := func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if p.users--; p.users == 0 {
			delete(l.places, name)
		}
	}
	leave = func() { <-p.slots; gone() }
	select {
	case p.slots <- struct{}{}:
		return leave, nil
	default:
	}
	select {
	case p.slots <- struct{}{}:
	case <-ctx.Done():
		gone()
		return nil, context.Cause(ctx)
	}
	pause := time.NewTimer(l.jitter())
	defer pause.Stop()
	select {
	case <-pause.C:
		return leave, nil
	case <-ctx.Done():
		leave()
		return nil, context.Cause(ctx)
	}
}
