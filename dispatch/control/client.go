package control

import (
	"bufio"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"dcs-tui/dispatch/view"
)

// How long a call may take, beyond what it was asked to wait. The remedy is closing
// the connection.
const (
	lookWithin  = 15 * time.Second
	matchWithin = 30 * time.Second
	readWithin  = 45 * time.Second // the file may be on a host
	doWithin    = time.Minute
)

// ErrDeaf is the error of a connection that was closed because the dispatcher did not
// answer: it hangs, or was stopped, or the network is gone.
var ErrDeaf = errors.New("the dispatcher does not answer")

var errClosed = errors.New("the connection to the dispatcher was closed")

// Client is the source at the other end of a connection. When that has ended, every
// call returns view.ErrGone, or ErrDeaf.
type Client struct {
	conn  net.Conn
	hello Hello

	slots chan struct{}
	queue chan *request // has room for a call and its taking back a slot
	done  chan struct{} // closed when the connection has ended
	once  sync.Once
	err   error // why; set before done is closed
	all   sync.WaitGroup

	mu    sync.Mutex
	last  uint64
	calls map[uint64]chan<- *reply
}

// Dial connects to the socket of a dispatcher on this machine. run is the uid of the
// run that it must have.
func Dial(ctx context.Context, address, run, program string) (*Client, error) {
	dir := filepath.Dir(address)
	info, err := os.Lstat(dir)
	if err != nil {
		return nil, gone(err)
	}
	uid := os.Geteuid()
	if owner, ok := info.Sys().(*syscall.Stat_t); ok && uid == 0 {
		uid = int(owner.Uid) // root may look at anybody's
	}
	if err := checkDir(dir, uid); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, helloWithin)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "unix", address)
	if err != nil {
		return nil, gone(err)
	}
	if uc, ok := conn.(*net.UnixConn); ok {
		if err := checkPeer(uc, uid); err != nil {
			conn.Close()
			return nil, err
		}
	}
	return NewClient(ctx, conn, run, program)
}

// gone says of an error in connecting that nobody is there.
func gone(err error) error { return fmt.Errorf("%w: %w", view.ErrGone, err) }

// NewClient begins to talk on a connection, which is the client's from now on. What
// ctx bounds is the beginning.
func NewClient(ctx context.Context, conn net.Conn, run, program string) (*Client, error) {
	ctx, cancel := context.WithTimeout(ctx, helloWithin)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { conn.Close() }) // not every connection has deadlines
	r := bufio.NewReader(conn)
	theirs, err := greet(conn, r, run, program)
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		conn.Close()
		if ctx.Err() != nil {
			err = fmt.Errorf("%w within %v", ErrDeaf, helloWithin)
		}
		return nil, err
	}
	c := &Client{conn: conn, hello: *theirs, slots: make(chan struct{}, maxCalls), queue: make(chan *request, 2*maxCalls),
		done: make(chan struct{}), calls: map[uint64]chan<- *reply{}}
	c.all.Go(c.write)
	c.all.Go(func() { c.read(newMessages(r)) })
	return c, nil
}

func greet(conn net.Conn, r *bufio.Reader, run, program string) (*Hello, error) {
	ours := Hello{V: Version, Program: program, Run: run}
	if err := ours.write(conn); err != nil {
		return nil, gone(err)
	}
	theirs, err := readHello(r)
	switch {
	case errors.Is(err, errStranger):
		return nil, err
	case err != nil:
		return nil, gone(err)
	case theirs.V != Version:
		return nil, &VersionError{Ours: ours, Theirs: *theirs}
	case run != "" && theirs.Run != run:
		return nil, gone(errors.New("its socket is that of another run now"))
	case theirs.Refused != "":
		return nil, fmt.Errorf("the dispatcher refuses: %s", theirs.Refused)
	}
	return theirs, nil
}

// Hello is what the dispatcher said of itself.
func (c *Client) Hello() Hello { return c.hello }

// Done is closed when the connection has ended.
func (c *Client) Done() <-chan struct{} { return c.done }

// Close ends the connection and waits for what belongs to it.
func (c *Client) Close() error {
	c.end(errClosed)
	c.all.Wait()
	return nil
}

func (c *Client) end(err error) {
	c.once.Do(func() {
		c.err = err
		close(c.done)
		c.conn.Close()
	})
}

func (c *Client) write() {
	enc := gob.NewEncoder(c.conn)
	for {
		select {
		case req := <-c.queue:
			if err := enc.Encode(req); err != nil {
				c.end(gone(err))
				return
			}
		case <-c.done:
			return
		}
	}
}

func (c *Client) read(in *messages) {
	for {
		r := new(reply)
		if err := in.next(r, maxReply); err != nil {
			c.end(gone(err))
			return
		}
		c.mu.Lock()
		call := c.calls[r.ID]
		delete(c.calls, r.ID)
		c.mu.Unlock()
		if call != nil {
			call <- r // has room
			<-c.slots
		}
	}
}

// call makes a call and waits for its answer, for ctx, for the end of the
// connection, or until within is over, which ends it.
func (c *Client) call(ctx context.Context, req *request, within time.Duration) (*reply, error) {
	select {
	case <-c.done: // before a slot that happens to be free
		return nil, c.err
	default:
	}
	select {
	case c.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-c.done:
		return nil, c.err
	}
	answer := make(chan *reply, 1)
	c.mu.Lock()
	c.last++
	req.ID = c.last
	c.calls[req.ID] = answer
	c.mu.Unlock()
	c.send(req)
	late := time.NewTimer(within)
	defer late.Stop()
	select {
	case r := <-answer:
		return r, r.err()
	case <-ctx.Done():
		// Its slot is free when the server has answered, which it does at once now.
		c.send(&request{ID: req.ID, Op: opTakeBack})
		c.watch(req.ID)
		return nil, ctx.Err()
	case <-late.C:
		c.end(ErrDeaf)
	case <-c.done:
	}
	return nil, c.err
}

// send hands a request to the writer.
func (c *Client) send(req *request) {
	select {
	case c.queue <- req:
	case <-c.done:
	}
}

// watch ends the connection when even the answer to a call that was taken back
// does not come: its slot would never be free again.
func (c *Client) watch(id uint64) {
	time.AfterFunc(lookWithin, func() {
		c.mu.Lock()
		open := c.calls[id] != nil
		c.mu.Unlock()
		if open {
			c.end(ErrDeaf)
		}
	})
}

// Look is view.Source's.
func (c *Client) Look(ctx context.Context, ask view.Ask) (*view.Picture, error) {
	r, err := c.call(ctx, &request{Op: opLook, Ask: ask}, min(ask.Wait, maxWait)+lookWithin)
	if err != nil {
		return nil, err
	}
	if r.Picture == nil {
		return nil, errEmpty
	}
	return r.Picture, nil
}

// Match is view.Source's.
func (c *Client) Match(ctx context.Context, filter string) (view.Ranges, view.Weight, error) {
	r, err := c.call(ctx, &request{Op: opMatch, Filter: filter}, matchWithin)
	if err != nil {
		return nil, view.Weight{}, err
	}
	return r.Which, r.Weight, nil
}

// Weigh is view.Source's.
func (c *Client) Weigh(ctx context.Context, which view.Ranges) (view.Weight, error) {
	if len(which) > maxRanges {
		return view.Weight{}, errTooMany
	}
	r, err := c.call(ctx, &request{Op: opWeigh, Which: which}, matchWithin)
	if err != nil {
		return view.Weight{}, err
	}
	return r.Weight, nil
}

// Read is view.Source's.
func (c *Client) Read(ctx context.Context, read view.Read) (*view.Piece, error) {
	r, err := c.call(ctx, &request{Op: opRead, Read: read}, readWithin)
	if err != nil {
		return nil, err
	}
	if r.Piece == nil {
		return nil, errEmpty
	}
	return r.Piece, nil
}

// Do is view.Source's.
func (c *Client) Do(ctx context.Context, a view.Action) (*view.Answer, error) {
	if len(a.Jobs) > maxRanges {
		return nil, errTooMany
	}
	r, err := c.call(ctx, &request{Op: opDo, Action: a, Zeros: zeros(a.Edit)}, doWithin)
	if err != nil {
		return nil, err
	}
	if r.Answer == nil {
		return nil, errEmpty
	}
	return r.Answer, nil
}

// maxRanges keeps a request below maxRequest: a range is at most 20 bytes.
const maxRanges = maxRequest / 32

var errTooMany = &view.Refused{Why: "those are too many single jobs at once: do it in parts, or by ranges"}

var errEmpty = errors.New("the dispatcher's answer is empty")

var _ view.Source = (*Client)(nil)
