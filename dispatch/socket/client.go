package socket

import (
	"bufio"
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

// helloTimeout bounds Dial.
const helloTimeout = 10 * time.Second

// Client is a connection to a dispatcher. Its methods are safe for concurrent use.
type Client struct {
	conn  net.Conn
	hello Hello

	slots   chan struct{} // one for each call that has no answer yet
	writing sync.Mutex
	done    chan struct{} // closed when the connection has ended
	once    sync.Once
	err     error // why it has ended; set before done is closed
	all     sync.WaitGroup

	mu    sync.Mutex
	last  int64 // id
	calls map[int64]chan<- *message

	durable func(live.Durable)
	state   func(*live.State)
}

// Dial connects to the socket of a dispatcher on this machine, which journal.Owner names.
// run is the uid of the run that it must dispatch. The error is ErrGone when nobody, or the
// dispatcher of another run, listens there, and a *VersionError when that is another version.
func Dial(ctx context.Context, address, run string) (*Client, error) {
	dir := filepath.Dir(address)
	info, err := os.Lstat(dir)
	if err != nil {
		return nil, gone(err)
	}
	uid := os.Geteuid()
	if owner, ok := info.Sys().(*syscall.Stat_t); ok && uid == 0 {
		uid = int(owner.Uid) // root may look at the runs of others
	}
	if err := checkDir(dir, uid); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, helloTimeout)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "unix", address)
	if err != nil {
		return nil, gone(err)
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
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	r := bufio.NewReader(conn)
	hello, err := readHello(r, run)
	if !stop() && ctx.Err() != nil {
		err = ctx.Err()
		if errors.Is(err, context.DeadlineExceeded) {
			err = fmt.Errorf("%w within %v", ErrUnresponsive, helloTimeout)
		}
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	c := &Client{conn: conn, hello: *hello, slots: make(chan struct{}, maxCalls), done: make(chan struct{}),
		calls: map[int64]chan<- *message{}}
	c.all.Go(func() { c.read(r) })
	return c, nil
}

func readHello(r *bufio.Reader, run string) (*Hello, error) {
	line, err := readLine(r, maxHello)
	h := new(Hello)
	switch {
	case err != nil && !errors.Is(err, errTooLong):
		return nil, gone(err)
	case err != nil || json.Unmarshal(line, h) != nil || h.V == 0:
		return nil, errors.New("the program that listens at the socket is not dcs-tui")
	case h.V != Version:
		return nil, &VersionError{*h}
	case h.Error != "":
		return nil, fmt.Errorf("the dispatcher refuses the connection: %s", h.Error)
	case h.Run != run:
		return nil, gone(errors.New("the socket belongs to the dispatcher of another run now"))
	}
	return h, nil
}

// gone marks the error of a connection that has ended.
func gone(err error) error { return fmt.Errorf("%w: %w", ErrGone, err) }

// Hello returns what the dispatcher said of itself.
func (c *Client) Hello() Hello { return c.hello }

// Done is closed when the connection has ended. Err says why.
func (c *Client) Done() <-chan struct{} { return c.done }

// Err returns why the connection has ended; nil before Done is closed.
func (c *Client) Err() error {
	select {
	case <-c.done:
		return c.err
	default:
		return nil
	}
}

// Close ends the connection and waits for the functions that were given to Follow, which
// therefore must not call it.
func (c *Client) Close() {
	c.end(gone(net.ErrClosed))
	c.all.Wait()
}

func (c *Client) end(err error) {
	c.once.Do(func() {
		c.err = err
		close(c.done)
		c.conn.Close()
	})
}

// read hands out answers and pushes until the connection ends.
func (c *Client) read(r *bufio.Reader) {
	for {
		line, err := readLine(r, maxReply)
		if err != nil {
			c.end(gone(err))
			return
		}
		m := new(message)
		if err := json.Unmarshal(line, m); err != nil {
			c.end(gone(fmt.Errorf("the dispatcher sent a line that is not understood: %w", err)))
			return
		}
		switch {
		case m.Goodbye:
			c.end(fmt.Errorf("%w: %w", ErrGone, ErrNotTaken))
			return
		case m.Durable != nil || m.Live != nil:
			c.mu.Lock()
			durable, state := c.durable, c.state
			c.mu.Unlock()
			if m.Durable != nil && durable != nil {
				durable(*m.Durable)
			}
			if m.Live != nil && state != nil {
				state(m.Live)
			}
		case m.ID == 0 && m.Error != "":
			c.end(gone(m.err()))
			return
		default:
			c.mu.Lock()
			answer := c.calls[m.ID]
			delete(c.calls, m.ID)
			c.mu.Unlock()
			if answer != nil {
				answer <- m // has room
				<-c.slots
			}
		}
	}
}

// call makes a call and waits for its answer, at most a little longer than the dispatcher
// takes for any.
func (c *Client) call(ctx context.Context, q request) (*message, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, callTimeout+byeTimeout, ErrUnresponsive)
	defer cancel()
	if c.Err() != nil {
		return nil, notTaken(c.err)
	}
	select {
	case c.slots <- struct{}{}:
	case <-c.done:
		return nil, notTaken(c.err)
	case <-ctx.Done():
		return nil, notTaken(context.Cause(ctx))
	}
	answer := make(chan *message, 1)
	c.mu.Lock()
	c.last++
	q.ID = c.last
	c.calls[q.ID] = answer
	c.mu.Unlock()
	if err := c.send(ctx, &q); err != nil {
		return nil, notTaken(err)
	}
	select {
	case m := <-answer:
		return m, m.err()
	case <-ctx.Done():
		// The server answers an abandoned call at once, which frees its slot.
		soon, cancel := context.WithTimeout(context.WithoutCancel(ctx), byeTimeout)
		defer cancel()
		_ = c.send(soon, &request{ID: q.ID, Do: doAbandon})
		return nil, context.Cause(ctx)
	case <-c.done:
	}
	select {
	case m := <-answer: // it came just before the end
		return m, m.err()
	default:
		return nil, c.err
	}
}

// notTaken marks the error of a call that was not sent.
func notTaken(err error) error {
	if errors.Is(err, ErrNotTaken) {
		return err
	}
	return fmt.Errorf("%w: %w", err, ErrNotTaken)
}

// send writes a line. When that fails, the line is not whole, so the server ignores it and
// the connection ends.
func (c *Client) send(ctx context.Context, q *request) error {
	line, err := encode(q)
	if err != nil {
		return err
	}
	c.writing.Lock()
	defer c.writing.Unlock()
	c.conn.SetWriteDeadline(time.Time{})
	expired := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		c.conn.SetWriteDeadline(time.Unix(1, 0))
		close(expired)
	})
	_, err = c.conn.Write(line)
	if !stop() {
		<-expired
	}
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		c.end(gone(ErrUnresponsive))
		return context.Cause(ctx)
	}
	select { // the server has closed the connection; its last lines may say why
	case <-c.done:
	case <-time.After(byeTimeout):
		c.end(gone(err))
	}
	return c.err
}

// Wake has the dispatcher poll its inbox now and returns when the request of this name, which
// is in the run directory, is recorded. After an error the dispatcher finds the request when
// it polls next.
func (c *Client) Wake(ctx context.Context, name string) error {
	_, err := c.call(ctx, request{Do: doWake, Name: name})
	return err
}

// Request sends a request and returns when it is recorded in the journal.
func (c *Client) Request(ctx context.Context, name string, body json.RawMessage) error {
	switch {
	case !json.Valid(body): // the server would end the connection
		return notTaken(Refusef("the request is not valid JSON"))
	case len(body) > maxRequest-1024:
		return notTaken(Refusef("the request has %d bytes, and a dispatcher accepts %d: send it in parts", len(body), maxRequest-1024))
	}
	_, err := c.call(ctx, request{Do: doRequest, Name: name, Request: body})
	return err
}

// Why returns a sentence that says why a job waits or what it is doing.
func (c *Client) Why(ctx context.Context, job jobs.ID) (string, error) {
	m, err := c.call(ctx, request{Do: doWhy, Job: job})
	if err != nil {
		return "", err
	}
	return m.Text, nil
}

// Read returns a piece of an output file. The error is fs.ErrNotExist when the file is
// missing.
func (c *Client) Read(ctx context.Context, r Read) (*Piece, error) {
	m, err := c.call(ctx, request{Do: doRead, Attempt: r.Attempt, File: r.File, Offset: r.Offset, Limit: r.Limit})
	switch {
	case err != nil:
		return nil, err
	case m.Piece == nil:
		return nil, gone(io.ErrUnexpectedEOF)
	}
	return m.Piece, nil
}

// Reply answers live.State.Question. An empty text declines to answer.
func (c *Client) Reply(ctx context.Context, question int64, text string) error {
	_, err := c.call(ctx, request{Do: doReply, Question: question, Text: text})
	return err
}

// Follow has durable and state called with what the dispatcher publishes, beginning with
// what it published last, until the connection ends. They are called one at a time and
// delay answers while they run. Either may be nil.
func (c *Client) Follow(ctx context.Context, durable func(live.Durable), state func(*live.State)) error {
	c.mu.Lock()
	c.durable, c.state = durable, state
	c.mu.Unlock()
	_, err := c.call(ctx, request{Do: doFollow})
	return err
}
