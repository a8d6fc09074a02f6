package sshlink

import (
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// jumpConn is a connection through a gateway. The library's own channel cannot
// be closed at once: reads and writes on it stay blocked until the gateway has
// answered, which a hung gateway never does. So two goroutines move the bytes,
// and closing cuts them off.
type jumpConn struct {
	ch      io.ReadWriteCloser
	addr    net.Addr
	in, out *pipe
	once    sync.Once
}

func newJumpConn(ch io.ReadWriteCloser, addr string) *jumpConn {
	c := &jumpConn{ch: ch, addr: jumpAddr(addr), in: newPipe(), out: newPipe()}
	go func() {
		_, err := io.Copy(c.in, c.ch)
		if err == nil {
			err = io.EOF
		}
		c.in.end(err, false)
	}()
	go func() {
		_, err := io.Copy(c.ch, c.out)
		if err == nil {
			err = net.ErrClosed
		}
		c.out.end(err, true)
	}()
	return c
}

func (c *jumpConn) Read(b []byte) (int, error)  { return c.in.Read(b) }
func (c *jumpConn) Write(b []byte) (int, error) { return c.out.Write(b) }

// Close drops what has not been sent yet and returns at once. The two
// goroutines and the channel end when the gateway answers or is closed.
func (c *jumpConn) Close() error {
	c.once.Do(func() {
		c.in.end(net.ErrClosed, true)
		c.out.end(net.ErrClosed, true)
		go c.ch.Close()
	})
	return nil
}

func (c *jumpConn) LocalAddr() net.Addr              { return jumpAddr("through a gateway") }
func (c *jumpConn) RemoteAddr() net.Addr             { return c.addr }
func (c *jumpConn) SetDeadline(time.Time) error      { return os.ErrNoDeadline }
func (c *jumpConn) SetReadDeadline(time.Time) error  { return os.ErrNoDeadline }
func (c *jumpConn) SetWriteDeadline(time.Time) error { return os.ErrNoDeadline }

// jumpAddr is an address as the gateway was asked for it.
type jumpAddr string

func (jumpAddr) Network() string  { return "tcp" }
func (a jumpAddr) String() string { return string(a) }
