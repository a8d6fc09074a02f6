package link

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"time"

	"dcs-tui/hosts"
)

// proxyConn is a connection through a ProxyCommand, whose standard input and output carry the
// bytes. It has no deadlines, which the ssh library does not use.
type proxyConn struct {
	*localStream
	stderr *stderrTail
}

// dialProxyCommand starts the ProxyCommand of t as OpenSSH does, in the user's shell. The command
// gets a session of its own and no terminal, so it cannot ask anything.
func dialProxyCommand(t *Target) (*proxyConn, error) {
	shell := cmp.Or(os.Getenv("SHELL"), "/bin/sh")
	argv := []string{shell, "-c", "exec " + t.ProxyCommand}
	s, err := startLocal(argv, withoutAskpass(os.Environ()), func(*localStream) {})
	if err != nil {
		return nil, err
	}
	c := &proxyConn{localStream: s, stderr: newStderrTail(s.Stderr())}
	go io.Copy(io.Discard, c.stderr) // a full pipe would block the command
	return c, nil
}

func (c *proxyConn) Write(b []byte) (int, error) { return c.stdin.Write(b) }

// hangupTimeout is how long a ProxyCommand may take to end after SIGHUP, with which OpenSSH ends it.
const hangupTimeout = 2 * time.Second

// Close ends the command and returns at once. Data that the command has not read is dropped.
func (c *proxyConn) Close() error {
	c.mu.Lock()
	if !c.reaped {
		syscall.Kill(-c.cmd.Process.Pid, syscall.SIGHUP)
	}
	c.mu.Unlock()
	c.stdin.Close()
	c.stdout.Close()
	go func() {
		closedWithin(c.done, hangupTimeout)
		closedWithin(c.stderr.ended, stderrDelay) // an error may quote it
		c.localStream.Close()
	}()
	return nil
}

// proxyAddr is the address of both ends of a proxyConn.
type proxyAddr struct{}

func (proxyAddr) Network() string { return "proxy" }
func (proxyAddr) String() string  { return "ProxyCommand" }

func (c *proxyConn) LocalAddr() net.Addr              { return proxyAddr{} }
func (c *proxyConn) RemoteAddr() net.Addr             { return proxyAddr{} }
func (c *proxyConn) SetDeadline(time.Time) error      { return errors.ErrUnsupported }
func (c *proxyConn) SetReadDeadline(time.Time) error  { return errors.ErrUnsupported }
func (c *proxyConn) SetWriteDeadline(time.Time) error { return errors.ErrUnsupported }

// Exit codes of a shell (POSIX, 2.8.2).
const (
	notExecutable = 126
	notFound      = 127
)

// explainProxyCommand returns the error, with its class, for a ProxyCommand that ended before the
// server had proved its identity. It returns nil if the command still runs, ended without an error, or
// was ended by Close. Then the server has closed the connection.
func (a *attempt) explainProxyCommand(ctx context.Context) error {
	select {
	case <-a.proxy.done:
	case <-ctx.Done():
		return nil
	case <-time.After(stderrDelay):
		return nil
	}
	exit, failed := errors.AsType[*hosts.ExitError](a.proxy.exitErr)
	if !failed || exit.Signal == "SIGHUP" { // the library has closed the connection
		return nil
	}
	closedWithin(a.proxy.stderr.ended, stderrDelay)
	class := hosts.Unreachable
	if exit.Code == notFound || exit.Code == notExecutable {
		class = hosts.Misconfigured
	}
	return a.fail(class, a.proxyAdvice(), "its ProxyCommand failed: %w%s", exit, a.proxy.quoteStderr())
}

// proxyAdvice returns the advice for a ProxyCommand that does not work.
func (a *attempt) proxyAdvice() string {
	return fmt.Sprintf("`%s` must log in without a question", commandLine(a.target.Command))
}

// quoteStderr returns ": " and the last lines that the command wrote to standard error, or "".
func (c *proxyConn) quoteStderr() string {
	lines := c.stderr.lines()
	if len(lines) == 0 {
		return ""
	}
	return ": " + strings.Join(lines[max(0, len(lines)-2):], "; ")
}
