package sshlink

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"dcs-tui/hosts"
)

// closeLimit bounds how long closing a stream waits for the far end.
const closeLimit = time.Second

// stream is one command in a channel. Both outputs share one window of 2 MB:
// who does not read standard error may stop standard output too. The pipes
// stand between because reads of the library's channel cannot be called off:
// sshd confirms a close only when the command has ended.
type stream struct {
	l         *link
	ch        ssh.Channel
	in        stdin
	out, errs *pipe

	ended   chan struct{} // closed when it is known how the command ended, or that nobody will
	status  error         // after ended
	endOnce sync.Once

	closing   chan struct{}
	closeOnce sync.Once
}

func newStream(l *link, ch ssh.Channel, requests <-chan *ssh.Request) *stream {
	s := &stream{
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

// follow takes in what the server says of the command until the channel ends.
func (s *stream) follow(requests <-chan *ssh.Request) {
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

func (s *stream) end(err error) {
	s.endOnce.Do(func() {
		s.status = err
		close(s.ended)
	})
}

func (s *stream) Read(b []byte) (int, error) { return s.out.Read(b) }
func (s *stream) Stdin() io.WriteCloser      { return &s.in }
func (s *stream) Stderr() io.Reader          { return s.errs }

// Wait returns when the command has ended, at the latest shortly after Close.
func (s *stream) Wait() error {
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
func (s *stream) Close() error {
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
