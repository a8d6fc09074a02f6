package link

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/crypto/ssh"

	"dcs-tui/hosts"
	"dcs-tui/internal/account"
	"dcs-tui/internal/platform"
)

// connection is one ssh connection with what must be released together with it.
type connection struct {
	client   *ssh.Client
	conn     net.Conn
	gateway  *gateway // nil: direct
	gateways *gateways
}

// close cuts the connection. Data that was written but not sent yet will not arrive: a launch must
// not run after the host was given up.
func (c *connection) close() {
	abort(c.conn)
	c.client.Close()
	if c.gateway != nil {
		c.gateways.release(c.gateway)
	}
}

// abort closes conn at once, with a reset.
func abort(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		tcp.SetLinger(0)
	}
	conn.Close()
}

// maxRedials bounds the dials of one connect: each follows a key that needed a passphrase
// or could not sign.
const maxRedials = 16

// connect connects to t through the gateways jumps. It asks for passphrases between two
// dials, so that no server waits for a person.
func (o *SSHOpener) connect(ctx context.Context, host string, t *Target, jumps []*Target) (*connection, error) {
	gw, err := o.gateways.acquire(ctx, host, jumps)
	if err != nil {
		return nil, err
	}
	bad := map[string]string{}
	for range maxRedials {
		a := &attempt{opener: o, host: host, target: t, gateway: gw, jumps: jumps, unusableKeys: bad}
		var c *connection
		if c, err = a.run(ctx); err == nil {
			return c, nil
		}
		var retry bool
		if retry, err = a.prepareRetry(ctx, err); !retry {
			break
		}
	}
	o.gateways.release(gw)
	return nil, err
}

// prepareRetry reports whether another dial may succeed after a has failed with err, and
// asks for the passphrases that it needs. Otherwise it returns the error to report.
func (a *attempt) prepareRetry(ctx context.Context, err error) (bool, error) {
	if ctx.Err() != nil {
		return false, err
	}
	switch {
	case a.lockedKey != nil:
		why, late := a.unlock(ctx, a.lockedKey)
		if late != nil {
			return false, late
		}
		if why != nil { // the next dial does not offer the key
			a.unusableKeys[string(a.lockedKey.pub.Marshal())] = why.Error()
		}
		return true, nil
	case a.signErr != nil:
		return true, nil
	case hosts.ClassOf(err) == hosts.Denied && a.offer != nil:
		for _, k := range a.offer.unnamed {
			if _, known := a.unusableKeys[k.path]; known {
				continue
			}
			why, late := a.unlock(ctx, k)
			if late != nil {
				return false, late
			}
			if why == nil {
				return true, nil
			}
			a.unusableKeys[k.path] = why.Error()
		}
	}
	return false, err
}

// unlock asks for a passphrase. why is set if the key cannot be used, late if ctx ended
// first: then the key is not refused, and the question stays open.
func (a *attempt) unlock(ctx context.Context, k *keyFile) (why, late error) {
	why = a.opener.keyring.open(ctx, k)
	if ctx.Err() != nil {
		late = a.unreachable(fmt.Errorf("enter the passphrase for %s: %w", k.path, hosts.ErrUnanswered))
	}
	return why, late
}

// attempt is one dial, up to the login.
type attempt struct {
	opener       *SSHOpener
	host         string
	target       *Target
	gateway      *gateway
	jumps        []*Target
	unusableKeys map[string]string // why keys cannot sign, by blob, or by path if the blob is not known

	hostKey   *hostKeyCheck
	offer     *offer
	lockedKey *keyFile // the server would accept this key, but it is locked
	signErr   error
	login     loginState
	touching  atomic.Pointer[string] // name of a security key that is signing
	proxy     *proxyConn             // the ProxyCommand of the last dial; nil: it has none
}

// run dials and logs in.
func (a *attempt) run(ctx context.Context) (*connection, error) {
	var err error
	if a.hostKey, err = a.opener.newHostKeyCheck(a.host, a.target); err != nil {
		return nil, err
	}
	through := cmp.Or(a.target.proxyPattern, a.target.Address())
	if a.gateway != nil {
		through = a.gateway.key
	}
	release, err := a.opener.limits.acquire(ctx, through)
	if err != nil {
		return nil, a.unreachable(err)
	}
	defer release()
	for cuts := 0; ; cuts++ {
		conn, err := a.dial(ctx)
		if err != nil {
			return nil, err
		}
		greeting := &greetingConn{Conn: conn}
		client, err := a.handshake(ctx, greeting)
		if err == nil {
			return &connection{client: client, conn: conn, gateway: a.gateway, gateways: a.opener.gateways}, nil
		}
		if isCut(err) && !a.hostKey.passed && a.hostKey.err == nil && ctx.Err() == nil {
			if why := a.explainGreeting(ctx, greeting); why != nil {
				abort(conn)
				return nil, why
			}
		}
		abort(conn)
		if a.hostKey.passed || a.hostKey.err != nil || !isCut(err) || cuts == maxCuts ||
			!sleepContext(ctx, minCutPause+rand.N(minCutPause)) {
			return nil, a.explain(ctx, err)
		}
	}
}

// A dial is repeated maxCuts times if the server closes the connection before it has said who it
// is. A busy sshd drops new connections at random (MaxStartups), and counts connections that have
// just logged in as new, so maxDials does not exclude it.
const (
	maxCuts     = 3
	minCutPause = 300 * time.Millisecond
)

// sleepContext waits. It returns false if ctx ends first.
func sleepContext(ctx context.Context, d time.Duration) bool {
	return !closedWithin(ctx.Done(), d)
}

// dial opens the byte stream to the target.
func (a *attempt) dial(ctx context.Context) (net.Conn, error) {
	timeout := a.target.timeout()
	dctx, cancel := context.WithTimeoutCause(ctx, timeout, errNoAnswer(timeout))
	defer cancel()
	if a.gateway != nil {
		conn, err := a.gateway.dial(dctx, a.target.Address())
		if err != nil {
			return nil, a.explainJump(dctx, err)
		}
		return conn, nil
	}
	if a.target.ProxyCommand != "" {
		var err error
		if a.proxy, err = dialProxyCommand(a.target); err != nil {
			return nil, a.fail(hosts.Unreachable, "", "starting its ProxyCommand: %w", err)
		}
		return a.proxy, nil
	}
	d := net.Dialer{
		Control:         setUserTimeout,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 3},
	}
	network := cmp.Or(a.target.Network, "tcp")
	conn, err := d.DialContext(dctx, network, a.target.Address())
	if _, unknown := errors.AsType[*net.DNSError](err); unknown && dctx.Err() == nil {
		conn, err = dialSystemName(dctx, &d, network, a.target, err)
	}
	if err != nil {
		return nil, a.explainDial(dctx, err)
	}
	return conn, nil
}

// dialSystemName dials a name that the resolver of a static Go program does not know, at the
// addresses that the name service of the system gives. unknown is the error of the resolver, which is
// returned if that service does not know the name either.
func dialSystemName(
	ctx context.Context, d *net.Dialer, network string, t *Target, unknown error,
) (conn net.Conn, err error) {
	addresses, err := account.Addresses(ctx, network, t.HostName)
	if err != nil {
		return nil, unknown
	}
	for _, address := range addresses {
		conn, err = d.DialContext(ctx, network, net.JoinHostPort(address, strconv.Itoa(t.Port)))
		if err == nil {
			return conn, nil
		}
	}
	return nil, err
}

// userTimeout is how long sent bytes may stay unacknowledged before the kernel closes the
// connection. What was written into a cut link must not run when the link is restored.
const userTimeout = 30 * time.Second

// setUserTimeout sets the option that the net package lacks.
func setUserTimeout(_, _ string, c syscall.RawConn) error {
	var set error
	err := c.Control(func(fd uintptr) { set = platform.SetUserTimeout(int(fd), userTimeout) })
	return cmp.Or(err, set)
}

// errNoAnswer returns the error for a timeout.
func errNoAnswer(timeout time.Duration) error {
	return fmt.Errorf("no answer within %v: %w", timeout, context.DeadlineExceeded)
}

// loginTimeout bounds logging in once the server has proved its identity: the server reads
// home directories, and an agent may ask a person.
const loginTimeout = 30 * time.Second

// handshake runs the protocol up to the login. The library's call has no timeout, so
// closing conn ends it.
func (a *attempt) handshake(ctx context.Context, conn net.Conn) (*ssh.Client, error) {
	timeout := a.target.timeout()
	hctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	after := func(d time.Duration) *time.Timer {
		return time.AfterFunc(d, func() { cancel(errNoAnswer(d)) })
	}
	timer := after(timeout)
	config, err := a.clientConfig(hctx, func() {
		if timer.Stop() {
			timer = after(max(timeout, loginTimeout))
		}
	})
	if err != nil {
		timer.Stop()
		return nil, err
	}
	stop := context.AfterFunc(hctx, func() { conn.Close() })
	c, channels, requests, err := ssh.NewClientConn(conn, a.target.Address(), config)
	timer.Stop()
	if !stop() {
		// The time was over, whatever error the library returns for the closed connection.
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

// maxDials bounds the concurrent dials to one address, or through one gateway. sshd begins
// to drop connections at 10 that have not logged in yet (MaxStartups 10:30:100).
const maxDials = 8

// maxJitter spreads dials that had to wait for their turn.
const maxJitter = 30 * time.Millisecond

// dialLimits bounds the dials in progress to each address and through each gateway.
type dialLimits struct{ turns sync.Map } // by name: a chan struct{} that holds an element per dial

// acquire waits for a turn. The caller calls release at the end of the dial.
func (l *dialLimits) acquire(ctx context.Context, name string) (release func(), err error) {
	value, _ := l.turns.LoadOrStore(name, make(chan struct{}, maxDials))
	turns := value.(chan struct{})
	release = func() { <-turns }
	select {
	case turns <- struct{}{}:
		return release, nil
	default:
	}
	select {
	case turns <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if !sleepContext(ctx, rand.N(maxJitter)) {
		release()
		return nil, context.Cause(ctx)
	}
	return release, nil
}
