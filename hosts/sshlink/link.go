package sshlink

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"dcs-tui/hosts"
)

// keepAliveRequest is OpenSSH's own; every server answers it, if only with no.
const keepAliveRequest = "keepalive@openssh.com"

// link is one ssh connection to a host.
type link struct {
	host  string
	c     *connection
	limit time.Duration // for the server to start a command

	closed    chan struct{}
	closeOnce sync.Once
	why       error // it was closed; set before closed is

	mu    sync.Mutex
	alive *aliveRequest // under way, nil if none is
}

// aliveRequest is one sign of life being waited for.
type aliveRequest struct {
	done chan struct{}
	err  error // after done
}

func newLink(host string, c *connection, limit time.Duration) *link {
	return &link{host: host, c: c, limit: limit, closed: make(chan struct{})}
}

func (l *link) unreachable(err error) error {
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
func (l *link) Start(ctx context.Context, command string) (hosts.Stream, error) {
	if err := ctx.Err(); err != nil {
		return nil, &hosts.Error{Host: l.host, Class: hosts.Unreachable, Err: err}
	}
	type result struct {
		s   *stream
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
func (l *link) start(command string) (*stream, error) {
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
	s := newStream(l, ch, requests)
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

// KeepAlive asks sshd for a sign of life. The library cannot take a question
// back, so callers that come while one is open wait for its answer.
func (l *link) KeepAlive(ctx context.Context) error {
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
		return l.unreachable(fmt.Errorf("sshd gives no sign of life: %w", context.Cause(ctx)))
	}
}

// Close cuts the connection at once. The commands at the far end find their
// standard input closed; sshd does not end them.
func (l *link) Close() error {
	l.close(errors.New("the link is closed"))
	return nil
}

func (l *link) close(why error) {
	l.closeOnce.Do(func() {
		l.why = why
		close(l.closed)
		l.c.close()
	})
}
