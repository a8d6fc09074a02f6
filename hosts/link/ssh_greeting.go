package link

import (
	"bytes"
	"net"
	"strings"

	"dcs-tui/internal/text"
)

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
