package sshlink

import (
	"context"
	"errors"
	"fmt"
	"net"

	"golang.org/x/crypto/ssh"

	"dcs-tui/hosts"
)

// DialSocket connects to a unix socket on h (direct-streamlocal@openssh.com, as
// `ssh -L` does). The connection to the host serves nothing else and ends with it.
func (o *Opener) DialSocket(ctx context.Context, h *hosts.Host, path string) (net.Conn, error) {
	opened, err := o.Open(ctx, h)
	if err != nil {
		return nil, err
	}
	l := opened.(*link)
	type result struct {
		conn net.Conn
		err  error
	}
	dialled := make(chan result, 1)
	go func() {
		conn, err := l.c.client.Dial("unix", path)
		dialled <- result{conn, err}
	}()
	select {
	case r := <-dialled:
		if r.err != nil {
			l.Close()
			return nil, socketError(h.Name, path, r.err)
		}
		return &socketConn{newJumpConn(r.conn, path), l}, nil
	case <-ctx.Done():
		l.Close() // what ends the dialling
		return nil, &hosts.Error{Host: h.Name, Class: hosts.Unreachable, Err: fmt.Errorf("connecting to %s there: %w", path, context.Cause(ctx))}
	}
}

func socketError(host, path string, err error) error {
	e := &hosts.Error{Host: host, Class: hosts.Unreachable, Err: fmt.Errorf("connecting to %s there: %w", path, err)}
	var refused *ssh.OpenChannelError
	if errors.As(err, &refused) {
		e.Class = hosts.Denied
		// OpenSSH does not say which of the two it is.
		e.Err = fmt.Errorf("its sshd does not connect to %s there: %s", path, refused.Message)
		e.Advice = "nobody listens there any more, or its sshd_config (AllowStreamLocalForwarding, DisableForwarding) or the options of the key forbid it"
	}
	return e
}

// socketConn is the only stream on a link.
type socketConn struct {
	*jumpConn
	l *link
}

// Close closes the stream and the connection to the host.
func (c *socketConn) Close() error {
	c.jumpConn.Close()
	return c.l.Close()
}
