package link

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
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
	// AcceptNew remembers the key of a host that no known_hosts file knows. A key that
	// differs from a known one still stops the connection.
	AcceptNew bool
	// Prompt asks a person for a secret, which is overwritten after use. It is called by
	// one goroutine at a time, once per key. nil: nobody can be asked.
	Prompt func(what string) (secret []byte, err error)
	// Warn receives the warnings about a host each time that it is dialed. It may be called by
	// several goroutines. nil: warnings are dropped.
	Warn func(host, text string)
}

// defaultConnectTimeout bounds reaching a host whose configuration has no ConnectTimeout.
const defaultConnectTimeout = 15 * time.Second

// SSHOpener opens links over ssh. It holds what hosts share: keys and their passphrases,
// known host keys, connections to gateways, and the number of dials in progress.
type SSHOpener struct {
	opts       SSHOptions
	keyring    *keyring
	knownFiles knownFiles
	limits     dialLimits
	gateways   *gateways
	writeMu    sync.Mutex // held while a known_hosts file is written
}

// NewSSH returns an SSHOpener.
func NewSSH(opts SSHOptions) *SSHOpener {
	o := &SSHOpener{opts: opts, keyring: newKeyring(opts.Prompt)}
	o.gateways = newGateways(o)
	return o
}

func (o *SSHOpener) warn(host, text string) {
	if o.opts.Warn != nil {
		o.opts.Warn(host, text)
	}
}

// Prepare asks for the configuration of h, whose answer Open then finds. When many hosts are dialed at
// once, as after a lost network, the processes that answer take longer than a connection may.
func (o *SSHOpener) Prepare(ctx context.Context, h *hosts.Host) {
	if len(h.Addresses) > 0 {
		o.opts.Config.Resolve(ctx, h, h.Addresses[0])
	}
}

// Open connects to h. It tries the addresses in turn until one can be reached. Names are
// resolved again each time.
func (o *SSHOpener) Open(ctx context.Context, h *hosts.Host) (hosts.Link, error) {
	var failed []error
	for _, address := range h.Addresses {
		t, warnings, err := o.opts.Config.Resolve(ctx, h, address)
		for _, w := range warnings {
			o.warn(h.Name, w)
		}
		if IsTransient(err) {
			return nil, &hosts.Error{Host: h.Name, Class: hosts.Unreachable, Err: err}
		}
		if err != nil {
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

// allFailed combines the errors of several addresses. The class and the advice are those of
// the last one, which ended the search.
func allFailed(host string, failed []error) error {
	e := &hosts.Error{Host: host}
	var causes []any
	for _, err := range failed {
		if one, ok := errors.AsType[*hosts.Error](err); ok {
			e.Class, e.Advice = one.Class, one.Advice
			causes = append(causes, one.Err)
		}
	}
	e.Err = fmt.Errorf(strings.Join(slices.Repeat([]string{"%w"}, len(causes)), "; "), causes...)
	return e
}

// dialTarget opens a link to one target, for the host of that inventory name.
func (o *SSHOpener) dialTarget(ctx context.Context, host string, t *Target) (hosts.Link, error) {
	c, err := o.connect(ctx, host, t, t.Jumps)
	if err != nil {
		return nil, err
	}
	return &sshLink{host: host, env: t.Env, conn: c, timeout: t.timeout(), closed: make(chan struct{})}, nil
}

// timeout returns ConnectTimeout or the default.
func (t *Target) timeout() time.Duration { return cmp.Or(t.ConnectTimeout, defaultConnectTimeout) }

// describeJumps describes the way to a target in messages, or "" if it is direct.
func describeJumps(jumps []*Target) string {
	if len(jumps) == 0 {
		return ""
	}
	return fmt.Sprintf(" through %s", jumps[len(jumps)-1].Alias)
}

// keepAliveRequest is OpenSSH's own. Every server answers it, if only with a refusal.
const keepAliveRequest = "keepalive@openssh.com"

// sshLink is one ssh connection to a host.
type sshLink struct {
	host    string
	env     []string // for each command, as NAME=value
	conn    *connection
	timeout time.Duration // for the server to start a command

	closed    chan struct{}
	closeOnce sync.Once
	closeErr  error // why it was closed; valid after closed
}

func (l *sshLink) unreachable(err error) error {
	select {
	case <-l.closed:
		err = l.closeErr
	default:
	}
	return &hosts.Error{Host: l.host, Class: hosts.Unreachable, Err: err}
}

// Start runs command in a channel of its own. If ctx is done before the server has
// answered, the half-open channel ends by itself later. If the server has not answered
// within the link's own timeout, the link is closed.
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
	late := time.AfterFunc(l.timeout, func() {
		l.close(fmt.Errorf("sshd did not start a command, so the link was closed: %w", errNoAnswer(l.timeout)))
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

// start opens the channel and requests the command. It may block until the link is closed.
func (l *sshLink) start(command string) (*sshStream, error) {
	ch, requests, err := l.conn.client.OpenChannel("session", nil)
	if err != nil {
		if _, ok := errors.AsType[*ssh.OpenChannelError](err); ok {
			return nil, &hosts.Error{Host: l.host, Class: hosts.Unreachable,
				Err:    fmt.Errorf("the server opens no further session: %w", err),
				Advice: "MaxSessions in its sshd_config limits the sessions of a connection"}
		}
		return nil, l.unreachable(fmt.Errorf("opening a session: %w", err))
	}
	s := newSSHStream(l, ch, requests)
	for _, variable := range l.env { // RFC 4254, section 6.4; the server ignores what it does not accept
		name, value, _ := strings.Cut(variable, "=")
		ch.SendRequest("env", false, ssh.Marshal(struct{ Name, Value string }{name, value}))
	}
	ok, err := ch.SendRequest("exec", true, ssh.Marshal(struct{ Command string }{command}))
	if err != nil {
		s.Close()
		return nil, l.unreachable(fmt.Errorf("starting a command: %w", err))
	}
	if !ok {
		s.Close()
		return nil, &hosts.Error{
			Host:   l.host,
			Class:  hosts.Denied,
			Err:    errors.New("the server does not let this key run commands"),
			Advice: "look at authorized_keys and sshd_config there",
		}
	}
	return s, nil
}

// KeepAlive asks sshd for a heartbeat. The library cannot cancel a request, so one that is not
// answered ends with the link.
func (l *sshLink) KeepAlive(ctx context.Context) error {
	answered := make(chan error, 1)
	go func() {
		_, _, err := l.conn.client.SendRequest(keepAliveRequest, true, nil)
		answered <- err
	}()
	select {
	case err := <-answered:
		if err != nil {
			return l.unreachable(fmt.Errorf("the connection is lost: %w", err))
		}
		return nil
	case <-ctx.Done():
		return l.unreachable(fmt.Errorf("sshd does not respond: %w", context.Cause(ctx)))
	}
}

// Close cuts the connection at once. The commands at the far end find their standard input
// closed. sshd does not end them.
func (l *sshLink) Close() error {
	l.close(errors.New("the link is closed"))
	return nil
}

func (l *sshLink) close(why error) {
	l.closeOnce.Do(func() {
		l.closeErr = why
		close(l.closed)
		l.conn.close()
	})
}

// closeTimeout bounds how long closing a stream waits for the far end.
const closeTimeout = time.Second

// sshStream is one command in a channel. Both outputs share one window of 2 MB, so standard
// error that nobody reads may stop standard output, too. All three go through pipes because
// reads and writes of the library's channel cannot be canceled: sshd confirms a close only when
// the command has ended.
type sshStream struct {
	link           *sshLink
	channel        ssh.Channel
	stdin          *io.PipeWriter
	stdout, stderr *io.PipeReader

	// Closed when it is known how the command ended, or that this will never be known.
	ended   chan struct{}
	status  error // valid after ended
	endOnce sync.Once

	closing   chan struct{}
	closeOnce sync.Once
}

func newSSHStream(l *sshLink, ch ssh.Channel, requests <-chan *ssh.Request) *sshStream {
	s := &sshStream{
		link: l, channel: ch, stdin: newDrain(ch, ch.CloseWrite), stdout: newPump(ch), stderr: newPump(ch.Stderr()),
		ended: make(chan struct{}), closing: make(chan struct{}),
	}
	go s.handleRequests(requests)
	return s
}

// handleRequests handles what the server reports about the command until the channel ends. When
// the link or the stream is closed, it drops what was not read, so that no copying goroutine is
// left.
func (s *sshStream) handleRequests(requests <-chan *ssh.Request) {
	for r := range requests {
		switch r.Type {
		case "exit-status":
			var code struct{ Status uint32 } // RFC 4254, 6.10
			switch err := ssh.Unmarshal(r.Payload, &code); {
			case err == nil && code.Status == 0:
				s.end(nil)
			case err == nil:
				s.end(&hosts.ExitError{Code: int(code.Status)})
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
	s.end(s.link.unreachable(errors.New("the connection ended while the command ran, so its exit code is unknown")))
	select {
	case <-s.link.closed:
		s.discard()
	case <-s.closing:
	}
}

// discard discards what was not read. Later reads and writes fail.
func (s *sshStream) discard() {
	s.stdin.CloseWithError(net.ErrClosed)
	s.stdout.CloseWithError(net.ErrClosed)
	s.stderr.CloseWithError(net.ErrClosed)
}

func (s *sshStream) end(err error) {
	s.endOnce.Do(func() {
		s.status = err
		close(s.ended)
	})
}

func (s *sshStream) Read(b []byte) (int, error) { return s.stdout.Read(b) }
func (s *sshStream) Stdin() io.WriteCloser      { return s.stdin }
func (s *sshStream) Stderr() io.Reader          { return s.stderr }

// Wait returns when the command has ended, at the latest closeTimeout after Close.
func (s *sshStream) Wait() error {
	select {
	case <-s.ended:
		return s.status
	case <-s.closing:
	}
	if closedWithin(s.ended, closeTimeout) {
		return s.status
	}
	return s.link.unreachable(errors.New("the command was ended from here; sshd has not said how it ended"))
}

// Close closes the channel, so that the command's input ends, and asks sshd to kill its
// process group. sshd does not do that for root or for a forced command, so a command that
// ignores the end of its input lives on.
func (s *sshStream) Close() error {
	s.closeOnce.Do(func() {
		close(s.closing)
		s.discard()
		closed := make(chan struct{})
		go func() { // it may block until the link is closed
			defer close(closed)
			s.channel.SendRequest("signal", false, ssh.Marshal(struct{ Name string }{"KILL"}))
			s.channel.Close()
		}()
		closedWithin(closed, closeTimeout)
	})
	return nil
}
