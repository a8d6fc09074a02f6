package sshlink

import (
	"context"
	"fmt"
	"net"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
)

// agentLimit is how long the agent may take to list its keys. A forwarded agent
// whose far end is gone accepts connections and says nothing.
const agentLimit = 5 * time.Second

// agentConn is an open way to an ssh agent.
type agentConn struct {
	conn net.Conn
	stop func() bool
}

// openAgent returns the keys that the agent at socket can sign with. The signers
// work until close is called or ctx is done.
func openAgent(ctx context.Context, socket string) ([]ssh.Signer, *agentConn, error) {
	var d net.Dialer
	dctx, cancel := context.WithTimeout(ctx, agentLimit)
	defer cancel()
	conn, err := d.DialContext(dctx, "unix", socket)
	if err != nil {
		return nil, nil, fmt.Errorf("the ssh agent at %s does not answer: %w", socket, err)
	}
	a := &agentConn{conn: conn, stop: context.AfterFunc(ctx, func() { conn.Close() })}
	conn.SetDeadline(time.Now().Add(agentLimit))
	signers, err := agent.NewClient(conn).Signers()
	if err != nil {
		a.close()
		return nil, nil, fmt.Errorf("the ssh agent at %s does not list its keys: %w", socket, err)
	}
	// Signing may wait for a person (ssh-add -c, a hardware key); ctx bounds it.
	conn.SetDeadline(time.Time{})
	return signers, a, nil
}

func (a *agentConn) close() {
	if a != nil {
		a.stop()
		a.conn.Close()
	}
}
