package socket

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"dcs-tui/jobs"
	"dcs-tui/jobs/live"
)

const (
	helloTimeout = 10 * time.Second // of Dial
	callTimeout  = time.Minute
)

// Client is a connection to a dispatcher. Its methods are safe for concurrent use.
type Client struct {
	lines *lines
	hello Hello
	done  chan struct{} // closed when the connection has ended

	mu      sync.Mutex
	last    int64                   // id of the last call
	calls   map[int64]chan<- *reply // calls without an answer; nil: the connection has ended
	err     error                   // why the connection has ended
	durable func(live.Durable)
	state   func(*live.State)
}

// Dial connects to the socket of a dispatcher on this machine, whose address is in journal.Owner.
// run is the uid of the run that it must dispatch. The error is ErrGone if nobody listens there, or
// if the dispatcher has another run.
func Dial(ctx context.Context, address, run string) (*Client, error) {
	dir := filepath.Dir(address)
	info, err := os.Lstat(dir)
	if err != nil {
		return nil, goneError(err)
	}
	uid := os.Geteuid()
	if owner, ok := info.Sys().(*syscall.Stat_t); ok && uid == 0 {
		uid = int(owner.Uid) // root may observe runs of others
	}
	if err := checkDir(dir, uid); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, helloTimeout)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "unix", address)
	if err != nil {
		return nil, goneError(err)
	}
	if err := checkPeer(conn.(*net.UnixConn), uid); err != nil {
		conn.Close()
		return nil, err
	}
	return newClient(ctx, conn, run)
}

// newClient reads the hello within helloTimeout.
func newClient(ctx context.Context, conn net.Conn, run string) (*Client, error) {
	ctx, cancel := context.WithTimeout(ctx, helloTimeout)
	defer cancel()
	c := &Client{lines: newLines(conn), done: make(chan struct{}), calls: map[int64]chan<- *reply{}}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	err := c.readHello(run)
	if !stop() {
		err = fmt.Errorf("%w: %w", ErrUnresponsive, ctx.Err())
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	go c.read()
	return c, nil
}

func (c *Client) readHello(run string) error {
	h := &c.hello
	err := c.lines.receive(h, maxHello)
	_, network := errors.AsType[net.Error](err)
	switch {
	case network, errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return goneError(err)
	case err != nil || h.V == 0:
		return errors.New("the program that listens at the socket is not dcs-tui")
	case h.V != jobs.FormatSocket.Version:
		return fmt.Errorf("the dispatcher of this run is dcs-tui %s, which speaks version %d of the socket "+
			"protocol, and this program speaks version %d; use %s",
			h.Release, h.V, jobs.FormatSocket.Version, cmp.Or(h.Program, "the program that dispatches the run"))
	case h.Error != "":
		return fmt.Errorf("the dispatcher refuses the connection: %s", h.Error)
	case h.Run != run:
		return goneError(errors.New("the socket belongs to the dispatcher of another run now"))
	}
	return nil
}

// goneError marks the error of a connection that has ended.
func goneError(err error) error { return fmt.Errorf("%w: %w", ErrGone, err) }

// Hello returns the first line of the dispatcher.
func (c *Client) Hello() Hello { return c.hello }

// Done returns a channel that is closed when the connection has ended. Err returns the reason.
func (c *Client) Done() <-chan struct{} { return c.done }

// Err returns why the connection has ended, or nil before that.
func (c *Client) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Close ends the connection. It waits for the functions passed to Follow, which must not call it.
func (c *Client) Close() {
	c.end(goneError(net.ErrClosed))
	<-c.done
}

// end ends the connection. The first error counts.
func (c *Client) end(err error) {
	c.mu.Lock()
	c.err = cmp.Or(c.err, err)
	c.mu.Unlock()
	c.lines.Close()
}

// read passes on answers and pushes until the connection ends.
func (c *Client) read() {
	for {
		r := new(reply)
		err := c.lines.receive(r, maxReply)
		switch {
		case err != nil:
			err = goneError(err)
		case r.Goodbye:
			err = fmt.Errorf("%w: %w", ErrGone, ErrNotTaken)
		}
		if err != nil {
			c.end(err)
			break
		}
		c.mu.Lock()
		answer, durable, state := c.calls[r.ID], c.durable, c.state
		delete(c.calls, r.ID)
		c.mu.Unlock()
		switch {
		case r.Durable != nil && durable != nil:
			durable(*r.Durable)
		case r.Live != nil && state != nil:
			state(r.Live)
		case answer != nil:
			answer <- r // does not block: the channel has capacity
		}
	}
	c.mu.Lock()
	calls := c.calls
	c.calls = nil
	c.mu.Unlock()
	for _, answer := range calls {
		close(answer)
	}
	close(c.done)
}

// call makes a call and waits for its answer.
func (c *Client) call(ctx context.Context, q request) (*reply, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, callTimeout, ErrUnresponsive)
	defer cancel()
	answer := make(chan *reply, 1)
	c.mu.Lock()
	open := c.calls != nil
	if open {
		c.last++
		q.ID = c.last
		c.calls[q.ID] = answer
	}
	c.mu.Unlock()
	if !open {
		return nil, fmt.Errorf("%w: %w", c.Err(), ErrNotTaken)
	}
	if err := c.lines.send(ctx, &q); err != nil { // the server ignores an incomplete line
		select {
		case <-c.done: // the server has closed the connection, perhaps with a goodbye
		case <-ctx.Done():
			c.end(goneError(ErrUnresponsive))
		}
		return nil, fmt.Errorf("%w: %w", cmp.Or(context.Cause(ctx), c.Err()), ErrNotTaken)
	}
	select {
	case r, ok := <-answer:
		if !ok {
			return nil, c.Err()
		}
		return r, r.err()
	case <-ctx.Done():
		soon, cancel := context.WithTimeout(context.WithoutCancel(ctx), byeTimeout)
		defer cancel()
		if c.lines.send(soon, &request{ID: q.ID, Do: "abandon"}) != nil {
			c.end(goneError(ErrUnresponsive))
		}
		return nil, context.Cause(ctx)
	}
}

// Wake makes the dispatcher poll its inbox now. It returns when the request of this name, which is
// in the run directory, is recorded. After an error the dispatcher finds the request at its next
// poll.
func (c *Client) Wake(ctx context.Context, name string) error {
	_, err := c.call(ctx, request{Do: "wake", Name: name})
	return err
}

// Request sends a request and returns when it is recorded in the journal.
func (c *Client) Request(ctx context.Context, name string, body json.RawMessage) error {
	const maxBody = maxRequest - 1024
	switch {
	case !json.Valid(body): // the server would end the connection
		return Refusef("the request is not valid JSON")
	case len(body) > maxBody:
		return Refusef("the request has %d bytes, and a dispatcher accepts %d: send it in parts", len(body), maxBody)
	}
	_, err := c.call(ctx, request{Do: "request", Name: name, Request: body})
	return err
}

// Why returns a sentence that explains why a job waits or what it is doing.
func (c *Client) Why(ctx context.Context, job jobs.ID) (string, error) {
	r, err := c.call(ctx, request{Do: "why", Job: job})
	if err != nil {
		return "", err
	}
	return r.Text, nil
}

// Read returns a part of an output file. The error is fs.ErrNotExist if the file is missing.
func (c *Client) Read(ctx context.Context, q Read) (*Piece, error) {
	r, err := c.call(ctx, request{Do: "read", Read: q})
	switch {
	case err != nil:
		return nil, err
	case r.Piece == nil:
		return nil, goneError(io.ErrUnexpectedEOF)
	}
	return r.Piece, nil
}

// Reply answers live.State.Question. An empty text declines to answer.
func (c *Client) Reply(ctx context.Context, question int64, text string) error {
	_, err := c.call(ctx, request{Do: "reply", Question: question, Text: text})
	return err
}

// Follow calls durable and state with what the dispatcher publishes, beginning with the newest
// values, until the connection ends. The calls are sequential and delay answers while they run.
// Either function may be nil.
func (c *Client) Follow(ctx context.Context, durable func(live.Durable), state func(*live.State)) error {
	c.mu.Lock()
	c.durable, c.state = durable, state
	c.mu.Unlock()
	_, err := c.call(ctx, request{Do: "follow"})
	return err
}
