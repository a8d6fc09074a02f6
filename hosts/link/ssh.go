package link

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"dcs-tui/hosts"
)

// SSHOptions configure an SSHOpener.
type SSHOptions struct {
	// Config is the user's ssh configuration; required.
	Config *SSHConfig
	// AcceptNew remembers the key of a host that no known_hosts file knows. A key
	// that differs from a known one stops the connection all the same.
	AcceptNew bool
	// Prompt asks a person for a secret and returns it; it is overwritten after
	// use. It is called by one goroutine at a time, once a key. nil: nobody can be asked.
	Prompt func(what string) (secret []byte, err error)
	// Warn is told, once each, what a person should know of a host although it
	// can be used. It may be called by several goroutines. nil: not told.
	Warn func(host, text string)
}

// connectTimeout is how long reaching a host may take when its configuration
// does not say.
const connectTimeout = 15 * time.Second

// SSHOpener opens links over ssh. It holds what hosts have in common: keys and
// their passphrases, known host keys, connections to gateways, and how many
// dials are in progress where.
type SSHOpener struct {
	opts     SSHOptions
	ring     *keyring
	known    knownFiles
	limits   *limits
	gateways *gateways
	writing  sync.Mutex // of a known_hosts file

	mu     sync.Mutex
	warned map[[2]string]bool
}

// NewSSH returns an SSHOpener. It does nothing until it is asked to open.
func NewSSH(opts SSHOptions) *SSHOpener {
	o := &SSHOpener{opts: opts, ring: newKeyring(opts.Prompt), limits: newLimits(), warned: map[[2]string]bool{}}
	o.gateways = newGateways(o)
	return o
}

func (o *SSHOpener) warn(host, text string) {
	o.mu.Lock()
	known := o.warned[[2]string{host, text}]
	o.warned[[2]string{host, text}] = true
	o.mu.Unlock()
	if !known && o.opts.Warn != nil {
		o.opts.Warn(host, text)
	}
}

// Open connects to h, trying its addresses in turn while they cannot be
// reached. Names are resolved again each time.
func (o *SSHOpener) Open(ctx context.Context, h *hosts.Host) (hosts.Link, error) {
	if o.opts.Config == nil {
		return nil, &hosts.Error{Host: h.Name, Class: hosts.Misconfigured, Err: errors.New("no ssh configuration was read")}
	}
	var failed []error
	for _, address := range h.Addresses {
		t, warnings, err := o.opts.Config.Resolve(h, address)
		for _, w := range warnings {
			o.warn(h.Name, strings.TrimPrefix(w, h.Name+": "))
		}
		if err != nil {
			if inner := errors.Unwrap(err); inner != nil && err.Error() == h.Name+": "+inner.Error() {
				err = inner // the class names the host already
			}
			return nil, &hosts.Error{Host: h.Name, Class: hosts.Misconfigured, Err: err}
		}
		l, err := o.dialTarget(ctx, h.Name, t)
		if err == nil {
			return l, nil
		}
		failed = append(failed, err)
		if hosts.ClassOf(err) != hosts.Unreachable || ctx.Err() != nil {
			break
		}
	}
	switch len(failed) {
	case 0:
		return nil, &hosts.Error{Host: h.Name, Class: hosts.Misconfigured,
			Err: errors.New("it has no address"), Advice: "give it one in the inventory"}
	case 1:
		return nil, failed[0]
	}
	return nil, allFailed(h.Name, failed)
}

// allFailed makes one error of those of several addresses; the last one's class
// counts, for it is the one that ended the search.
func allFailed(host string, failed []error) error {
	last := failed[len(failed)-1]
	e := &hosts.Error{Host: host, Class: hosts.ClassOf(last)}
	var text []string
	for _, err := range failed {
		var one *hosts.Error
		if errors.As(err, &one) {
			text = append(text, one.Err.Error())
			e.Advice = one.Advice
		}
	}
	e.Err = &severalErrors{strings.Join(text, "; "), failed}
	return e
}

// severalErrors words a list on one line and keeps the causes.
type severalErrors struct {
	text string
	list []error
}

func (e *severalErrors) Error() string   { return e.text }
func (e *severalErrors) Unwrap() []error { return e.list }

// dialTarget opens a link to one target, for the host of that inventory name.
func (o *SSHOpener) dialTarget(ctx context.Context, host string, t *Target) (hosts.Link, error) {
	c, err := o.connect(ctx, host, t, t.Jumps)
	if err != nil {
		return nil, err
	}
	return newSSHLink(host, c, timeoutOf(t)), nil
}

func timeoutOf(t *Target) time.Duration {
	if t.ConnectTimeout > 0 {
		return t.ConnectTimeout
	}
	return connectTimeout
}

// via words the way to a target, "" when it is direct.
func via(jumps []*Target) string {
	if len(jumps) == 0 {
		return ""
	}
	return fmt.Sprintf(" through %s", jumps[len(jumps)-1].Alias)
}

// keepAliveRequest is OpenSSH's own; every server answers it, if only with no.
const keepAliveRequest = "keepalive@openssh.com"

// sshLink is one ssh connection to a host.
type sshLink struct {
	host  string
	c     *connection
	limit time.Duration // for the server to start a command

	closed    chan struct{}
	closeOnce sync.Once
	why       error // it was closed; set before closed is

	mu    sync.Mutex
	alive *aliveRequest // under way, nil if none is
}

// aliveRequest is one heartbeat being waited for.
type aliveRequest struct {
	done chan struct{}
	err  error // after done
}

func newSSHLink(host string, c *connection, limit time.Duration) *sshLink {
	return &sshLink{host: host, c: c, limit: limit, closed: make(chan struct{})}
}

func (l *sshLink) unreachable(err error) error {
	select {
	case <-l.closed:
		err = l.why
	default:
	}
	return &hosts.Error{Host: l.host, Class: hosts.Unreachable, Err: err}
}

// Start runs command in a channel of its own. When ctx is done before the server
// has answered, the half-open channel is left to end by itself; when the
// server has not answered within the link's own limit, the link is closed.
func (l *sshLink) Start(ctx context.Context, command string) (hosts.Stream, error) {
	if err := ctx.Err(); err != nil {
		return nil, &hosts.Error{Host: l.host, Class: hosts.Unreachable, Err: err}
	}
	type result struct {
		s   *sshStream
		err error
	}
	started := make(chan result)
	go func() {
		s, err := l.start(command)
		select {
		case started <- result{s, err}:
		case <-ctx.Done():
			if err == nil {
				s.Close()
			}
		}
	}()
	late := time.AfterFunc(l.limit, func() {
		l.close(fmt.Errorf("sshd did not start a command, so the link was closed: %w", errNoAnswer(l.limit)))
	})
	defer late.Stop()
	select {
	case r := <-started:
		if r.err != nil {
			return nil, r.err
		}
		return r.s, nil
	case <-ctx.Done():
		return nil, &hosts.Error{Host: l.host, Class: hosts.Unreachable,
			Err: fmt.Errorf("starting a command: %w", context.Cause(ctx))}
	}
}

// start opens the channel and asks for the command; it may block until the link is closed.
func (l *sshLink) start(command string) (*sshStream, error) {
	ch, requests, err := l.c.client.OpenChannel("session", nil)
	if err != nil {
		var refused *ssh.OpenChannelError
		if errors.As(err, &refused) {
			return nil, &hosts.Error{Host: l.host, Class: hosts.Unreachable,
				Err:    fmt.Errorf("the server opens no further session: %w", err),
				Advice: "MaxSessions in its sshd_config limits the sessions of a connection"}
		}
		return nil, l.unreachable(fmt.Errorf("opening a session: %w", err))
	}
	s := newSSHStream(l, ch, requests)
	ok, err := ch.SendRequest("exec", true, ssh.Marshal(struct{ Command string }{command}))
	if err != nil {
		s.Close()
		return nil, l.unreachable(fmt.Errorf("starting a command: %w", err))
	}
	if !ok {
		s.Close()
		return nil, &hosts.Error{Host: l.host, Class: hosts.Denied,
			Err: errors.New("the server does not let this key run commands"), Advice: "look at authorized_keys and sshd_config there"}
	}
	return s, nil
}

// KeepAlive asks sshd for a heartbeat. The library cannot take a question
// back, so callers that come while one is open wait for its answer.
func (l *sshLink) KeepAlive(ctx context.Context) error {
	l.mu.Lock()
	r := l.alive
	if r == nil {
		r = &aliveRequest{done: make(chan struct{})}
		l.alive = r
		go func() {
			_, _, err := l.c.client.SendRequest(keepAliveRequest, true, nil)
			l.mu.Lock()
			l.alive = nil
			l.mu.Unlock()
			r.err = err
			close(r.done)
		}()
	}
	l.mu.Unlock()
	select {
	case <-r.done:
		if r.err != nil {
			return l.unreachable(fmt.Errorf("the connection is lost: %w", r.err))
		}
		return nil
	case <-ctx.Done():
		return l.unreachable(fmt.Errorf("sshd does not respond: %w", context.Cause(ctx)))
	}
}

// Close cuts the connection at once. The commands at the far end find their
// standard input closed; sshd does not end them.
func (l *sshLink) Close() error {
	l.close(errors.New("the link is closed"))
	return nil
}

func (l *sshLink) close(why error) {
	l.closeOnce.Do(func() {
		l.why = why
		close(l.closed)
		l.c.close()
	})
}

// closeLimit bounds how long closing a stream waits for the far end.
const closeLimit = time.Second

// sshStream is one command in a channel. Both outputs share one window of 2 MB:
// who does not read standard error may stop standard output too. The pipes
// stand between because reads of the library's channel cannot be canceled:
// sshd confirms a close only when the command has ended.
type sshStream struct {
	l         *sshLink
	ch        ssh.Channel
	in        stdin
	out, errs *pipe

	ended   chan struct{} // closed when it is known how the command ended, or that nobody will
	status  error         // after ended
	endOnce sync.Once

	closing   chan struct{}
	closeOnce sync.Once
}

func newSSHStream(l *sshLink, ch ssh.Channel, requests <-chan *ssh.Request) *sshStream {
	s := &sshStream{
		l: l, ch: ch, in: stdin{ch: ch}, out: newPipe(), errs: newPipe(),
		ended: make(chan struct{}), closing: make(chan struct{}),
	}
	go s.follow(requests)
	go pump(s.out, ch, 32<<10) // the largest packet
	go pump(s.errs, ch.Stderr(), 4<<10)
	return s
}

// pump moves what arrives on r into p, until either end is closed.
func pump(p *pipe, r io.Reader, size int) {
	_, err := io.CopyBuffer(p, r, make([]byte, size))
	if err == nil {
		err = io.EOF
	}
	p.end(err, false)
}

// follow handles what the server says of the command until the channel ends.
func (s *sshStream) follow(requests <-chan *ssh.Request) {
	for r := range requests {
		switch r.Type {
		case "exit-status":
			if len(r.Payload) >= 4 {
				s.end(exitStatus(binary.BigEndian.Uint32(r.Payload)))
			}
		case "exit-signal":
			var sig struct {
				Name    string
				Core    bool
				Message string
				Lang    string
			}
			if ssh.Unmarshal(r.Payload, &sig) == nil {
				s.end(&hosts.ExitError{Code: -1, Signal: "SIG" + sig.Name})
			}
		}
		if r.WantReply {
			r.Reply(false, nil)
		}
	}
	s.end(s.l.unreachable(errors.New("the connection ended before it was known how the command did")))
}

// exitStatus is RFC 4254, 6.10.
func exitStatus(code uint32) error {
	if code == 0 {
		return nil
	}
	return &hosts.ExitError{Code: int(code)}
}

func (s *sshStream) end(err error) {
	s.endOnce.Do(func() {
		s.status = err
		close(s.ended)
	})
}

func (s *sshStream) Read(b []byte) (int, error) { return s.out.Read(b) }
func (s *sshStream) Stdin() io.WriteCloser      { return &s.in }
func (s *sshStream) Stderr() io.Reader          { return s.errs }

// Wait returns when the command has ended, at the latest shortly after Close.
func (s *sshStream) Wait() error {
	select {
	case <-s.ended:
		return s.status
	case <-s.closing:
	}
	limit := time.NewTimer(closeLimit)
	defer limit.Stop()
	select {
	case <-s.ended:
		return s.status
	case <-limit.C:
		return s.l.unreachable(errors.New("the command was ended from here; sshd has not said how it ended"))
	}
}

// Close closes the channel, so that the command finds its input ended, and asks
// sshd to kill its process group. sshd does not do that for root, nor for a
// forced command: one that does not look at its input then lives on. A write
// that is blocked returns when the command has ended or the link is closed.
func (s *sshStream) Close() error {
	s.closeOnce.Do(func() {
		close(s.closing)
		s.out.end(net.ErrClosed, true)
		s.errs.end(net.ErrClosed, true)
		closed := make(chan struct{})
		go func() { // the transport may be stuck; closing the link frees it
			defer close(closed)
			s.ch.SendRequest("signal", false, ssh.Marshal(struct{ Name string }{"KILL"}))
			s.ch.Close()
		}()
		limit := time.NewTimer(closeLimit)
		defer limit.Stop()
		select {
		case <-closed:
		case <-limit.C:
		}
	})
	return nil
}

// stdin is the sending half of a channel. The library's own may not be closed
// while it is being written to.
type stdin struct {
	mu     sync.Mutex
	ch     ssh.Channel
	closed bool
}

func (w *stdin) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return 0, io.ErrClosedPipe
	}
	return w.ch.Write(b)
}

// Close tells the command that its input has ended.
func (w *stdin) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil
	}
	w.closed = true
	if err := w.ch.CloseWrite(); err != nil && err != io.EOF {
		return err
	}
	return nil
}
