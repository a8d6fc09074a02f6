package link

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/crypto/ssh"

	"dcs-tui/hosts"
	"dcs-tui/internal/text"
)

// useSSH returns the advice for anything that only the user's own ssh supports. config is the
// configuration file; "": the usual ones.
func useSSH(config string) string {
	command := "ssh {name}"
	if config != "" {
		command = "ssh -F " + text.ShellWord(config) + " {name}"
	}
	return "let your own ssh reach it: link = " + strconv.Quote(command) + " in the inventory"
}

// useSharedSSH returns the advice if a password or a second factor must be typed. The
// dispatcher has no terminal, so a person opens the connection, and ssh shares it.
func useSharedSSH(config string) string {
	return useSSH(config) + ", over a shared connection (ControlMaster) that you open beforehand, " +
		"because the dispatcher has no terminal"
}

func (a *attempt) unreachable(err error) error {
	return &hosts.Error{Host: a.host, Class: hosts.Unreachable, Err: err}
}

func (a *attempt) fail(c hosts.Class, advice, format string, args ...any) error {
	return &hosts.Error{Host: a.host, Class: c, Err: fmt.Errorf(format, args...), Advice: advice}
}

// explainDial returns the error, with its class, for a TCP connection that failed.
func (a *attempt) explainDial(ctx context.Context, err error) error {
	addr := a.target.Address()
	if ctx.Err() != nil {
		cause := context.Cause(ctx)
		if errors.Is(cause, context.Canceled) {
			return a.unreachable(cause)
		}
		return a.fail(hosts.Unreachable, "is it switched on? does a firewall drop the connection?",
			"%s: %w", addr, cause)
	}
	var dns *net.DNSError
	switch {
	case errors.As(err, &dns) && dns.IsNotFound:
		return a.fail(hosts.Unreachable, "check its address for a typing error",
			"no machine is called %s", a.target.HostName)
	case errors.As(err, &dns):
		return a.fail(hosts.Unreachable, "the name service does not work at the moment", "%w", err)
	case errors.Is(err, syscall.ECONNREFUSED):
		return a.fail(hosts.Unreachable, fmt.Sprintf("does sshd run there, on port %d?", a.target.Port),
			"%s refuses connections: %w", addr, syscall.ECONNREFUSED)
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return a.fail(hosts.Unreachable, "is it switched on? does it need a gateway (jump) or a VPN?", "%w", err)
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return a.fail(hosts.Unreachable, "too many open files here: raise ulimit -n", "%w", err)
	}
	return a.unreachable(err)
}

// explainJump returns the error, with its class, for a connection that a gateway did not
// open.
func (a *attempt) explainJump(ctx context.Context, err error) error {
	addr := a.target.Address()
	var refused *ssh.OpenChannelError
	switch {
	case errors.As(err, &refused) && refused.Reason == ssh.Prohibited:
		return a.fail(hosts.Misconfigured, "AllowTcpForwarding or PermitOpen in the gateway's sshd_config forbids it",
			"the gateway %s does not let us through to %s: %w", a.gateway.name, addr, err)
	case errors.As(err, &refused):
		return a.fail(hosts.Unreachable, "is it switched on? does the gateway know it by this name?",
			"the gateway %s cannot reach %s: %s", a.gateway.name, addr, refused.Message)
	case errors.Is(err, context.Canceled):
		return a.unreachable(err)
	case ctx.Err() != nil:
		return a.fail(hosts.Unreachable, "is it switched on?",
			"%s%s: %w", addr, describeJumps(a.jumps), context.Cause(ctx))
	}
	return a.fail(hosts.Unreachable, "", "the connection to the gateway %s is lost: %w", a.gateway.name, err)
}

// explain returns the error, with its class, for a handshake that failed.
func (a *attempt) explain(ctx context.Context, err error) error {
	if a.hostKey.err != nil {
		return a.hostKey.err
	}
	if _, ok := errors.AsType[*hosts.Error](err); ok {
		return err
	}
	where := a.target.Address() + describeJumps(a.jumps)
	if key := a.touching.Load(); key != nil && (ctx.Err() != nil || errors.Is(err, context.DeadlineExceeded)) {
		return a.fail(hosts.Unreachable, "or use a key that needs no touch",
			"touch the security key %s to log in at %s: %w",
			*key, where, hosts.ErrUnanswered)
	}
	var algorithms *ssh.AlgorithmNegotiationError
	switch {
	case ctx.Err() != nil:
		return a.unreachable(context.Cause(ctx))
	case errors.As(err, &algorithms) && algorithms.What == "host key":
		return a.hostKey.noComparableKeyError(algorithms.RequestedAlgorithms)
	case errors.As(err, &algorithms):
		return a.fail(
			hosts.Misconfigured,
			"its ssh server is too old, or Ciphers, MACs or KexAlgorithms are set too narrowly",
			"no %s in common with %s: it offers %s",
			algorithms.What,
			where,
			strings.Join(algorithms.RequestedAlgorithms, ", "),
		)
	case a.hostKey.passed && a.isLoginRefused(err):
		return a.loginRefusedError()
	case errors.Is(err, context.DeadlineExceeded) && a.hostKey.passed:
		return a.fail(hosts.Unreachable, "its home directories or its user database may hang",
			"logging in at %s: %w", where, err)
	case errors.Is(err, context.DeadlineExceeded) && a.proxy != nil:
		return a.fail(hosts.Unreachable, a.proxyAdvice(), "its ProxyCommand passes nothing on from %s: %w%s",
			where, err, a.proxy.quoteStderr())
	case errors.Is(err, context.DeadlineExceeded):
		return a.fail(hosts.Unreachable, "the machine may hang, or something else than sshd listens there",
			"%s accepts the connection and then sends nothing: %w", where, err)
	case !isCut(err):
		return a.fail(hosts.Unreachable, fmt.Sprintf("is port %d the one of its sshd?", a.target.Port),
			"what answers at %s is no ssh server: %w", where, err)
	case a.hostKey.passed:
		return a.fail(hosts.Unreachable, "look into the server's log",
			"%s closed the connection while we logged in: %w", where, err)
	}
	return a.fail(hosts.Unreachable, "too many connections at once (MaxStartups), or an access rule such as fail2ban",
		"%s closed the connection before it said who it is: %w", where, err)
}

// explainGreeting returns the error, with its class, for a connection that was closed before the
// server's identification string, if it is known why; else nil.
func (a *attempt) explainGreeting(ctx context.Context, greeting *greetingConn) error {
	if a.proxy != nil {
		if err := a.explainProxyCommand(ctx); err != nil {
			return err
		}
	}
	if said := greeting.reason(); said != "" && !greeting.isBusy() {
		return a.fail(hosts.Unreachable,
			"its sshd or a firewall there refuses this machine, perhaps only for some minutes",
			"%s closed the connection and said %q", a.target.Address()+describeJumps(a.jumps), said)
	}
	return nil
}

// isCut reports whether the far side closed or reset the connection.
func isCut(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) ||
		errors.Is(err, syscall.EPIPE) || errors.Is(err, net.ErrClosed)
}

// isLoginRefused reports whether the server refused the login. The library has no types for these
// errors.
func (a *attempt) isLoginRefused(err error) bool {
	message := err.Error()
	return a.lockedKey != nil || a.signErr != nil || strings.Contains(message, "unable to authenticate") ||
		// RFC 4253, 11.1.
		strings.Contains(message, "disconnect, reason 2:") || strings.Contains(message, "disconnect, reason 14:")
}

// loginRefusedError returns the error for a refused login, with the keys that were tried.
func (a *attempt) loginRefusedError() error {
	account := fmt.Sprintf("%s at %s%s", a.target.User, a.target.Address(), describeJumps(a.jumps))
	if len(a.login.partial) > 0 {
		return a.fail(hosts.Denied, "use a key that is enough by itself, or "+useSharedSSH(a.target.Config),
			"%s: the server accepts %s and then wants %s, which needs a person", account,
			strings.Join(a.login.partial, ", "), strings.Join(a.login.allowed, " or "))
	}
	if !a.login.acceptsKeys {
		return a.fail(hosts.Denied, a.login.otherWays("ask for PubkeyAuthentication to be switched on there",
			a.target.Config),
			"the server takes no keys for %s, only %s", account, strings.Join(a.login.allowed, ", "))
	}
	problem, advice := "the server refuses every key for "+account, "ssh-copy-id puts a key there"
	var tried []string
	for _, c := range a.offer.keys {
		if c.problem != "" {
			c.name += ", " + c.problem
			advice = "get a new certificate"
		}
		tried = append(tried, c.name)
	}
	if len(tried) > 0 {
		problem += "; offered: " + strings.Join(tried, "; ")
	} else {
		problem = "there is no key to offer for " + account
		advice = "name one (identity), or start ssh-agent; ssh-keygen makes one"
	}
	problem += text.If(len(a.offer.leftOut) > 0, "; left out: "+strings.Join(a.offer.leftOut, "; "))
	if len(tried) >= 6 {
		advice = "that is more keys than most servers try: name the right one (identity, IdentitiesOnly)"
	}
	return &hosts.Error{
		Host:   a.host,
		Class:  hosts.Denied,
		Err:    errors.New(problem),
		Advice: a.login.otherWays(advice, a.target.Config),
	}
}

// otherWays appends to advice the login methods that the server offers and that only
// the user's own ssh supports.
func (l *loginState) otherWays(advice, config string) string {
	for _, method := range l.allowed {
		switch method {
		case "password", "keyboard-interactive":
			return advice + "; or, to log in by " + method + ", " + useSharedSSH(config)
		case "gssapi-with-mic", "gssapi-keyex":
			return advice + "; or, to log in by Kerberos, " + useSSH(config)
		case "hostbased":
			return advice + "; or, to log in by hostbased, " + useSSH(config)
		}
	}
	return advice
}

// greetingConn keeps the lines that a server sends before its identification string (RFC 4253,
// section 4.2). A server that closes the connection at once gives its reason there.
type greetingConn struct {
	net.Conn
	said  []byte
	ended bool // the identification string has begun, or the text is too long
}

// maxGreeting bounds the bytes that are kept.
const maxGreeting = 1024

func (c *greetingConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if !c.ended {
		c.said = append(c.said, b[:n]...)
		begin := bytes.LastIndexByte(c.said, '\n') + 1
		if bytes.HasPrefix(c.said[begin:], []byte("SSH-")) || bytes.Contains(c.said, []byte("\nSSH-")) {
			c.ended, c.said = true, nil
		} else if len(c.said) > maxGreeting {
			c.ended, c.said = true, c.said[:maxGreeting]
		}
	}
	return n, err
}

// reason returns what the server said instead of its identification string, or "".
func (c *greetingConn) reason() string {
	return text.Clean(strings.Join(strings.Fields(string(c.said)), " "), maxStderrLine)
}

// isBusy reports whether sshd gave MaxStartups as its reason (OpenSSH 9.8 and later), so that a
// second dial may succeed.
func (c *greetingConn) isBusy() bool { return strings.Contains(c.reason(), "Exceeded MaxStartups") }
