package control

import (
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"dcs-tui/jobs"
	"dcs-tui/jobs/runview"
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
// call returns runview.ErrGone, or ErrDeaf.
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
				c.stopped(gone(err))
				return
			}
		case <-c.done:
			return
		}
	}
}

// stopped ends a connection that takes no more requests, when what the dispatcher
// still had to say was read.
func (c *Client) stopped(err error) {
	t := time.NewTimer(byeWithin)
	defer t.Stop()
	select {
	case <-c.done:
	case <-t.C:
		c.end(err)
	}
}

func (c *Client) read(in *messages) {
	for {
		r := new(reply)
		if err := in.next(r, maxReply); err != nil {
			c.end(lost(err))
			return
		}
		if r.isGoodbye() {
			c.end(errLeft)
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

// lost says of an error in reading whether the dispatcher has gone or is not understood.
func lost(err error) error {
	if errors.Is(err, errTooLong) || strings.HasPrefix(err.Error(), "gob: ") { // they have no type
		return fmt.Errorf("what the dispatcher answers is not understood (is it another version of dcs-tui?): %w", err)
	}
	return gone(err)
}

// call makes a call and waits for its answer, for ctx, for the end of the
// connection, or until within is over, which ends it.
func (c *Client) call(ctx context.Context, req *request, within time.Duration) (*reply, error) {
	select {
	case <-c.done: // before a slot that happens to be free
		return nil, notSent(c.err)
	default:
	}
	select {
	case c.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-c.done:
		return nil, notSent(c.err)
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
	select {
	case r := <-answer: // came just before the end
		return r, r.err()
	default:
		return nil, c.err
	}
}

// notSent says of a call that was never sent that nothing can have been done.
func notSent(err error) error {
	if errors.Is(err, runview.ErrGone) && !errors.Is(err, ErrLeaving) {
		err = fmt.Errorf("%w: %w", ErrLeaving, err)
	}
	return err
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

// Look is runview.Source's.
func (c *Client) Look(ctx context.Context, ask runview.Ask) (*runview.Picture, error) {
	r, err := c.call(ctx, &request{Op: opLook, Ask: ask}, min(ask.Wait, maxWait)+lookWithin)
	if err != nil {
		return nil, err
	}
	if r.Picture == nil {
		return nil, errEmpty
	}
	return r.Picture, nil
}

// Match is runview.Source's.
func (c *Client) Match(ctx context.Context, filter string) (jobs.Ranges, runview.Weight, error) {
	r, err := c.call(ctx, &request{Op: opMatch, Filter: filter}, matchWithin)
	if err != nil {
		return nil, runview.Weight{}, err
	}
	return r.Which, r.Weight, nil
}

// Weigh is runview.Source's.
func (c *Client) Weigh(ctx context.Context, which jobs.Ranges) (runview.Weight, error) {
	if len(which) > maxRanges {
		return runview.Weight{}, errTooMany
	}
	r, err := c.call(ctx, &request{Op: opWeigh, Which: which}, matchWithin)
	if err != nil {
		return runview.Weight{}, err
	}
	return r.Weight, nil
}

// Read is runview.Source's.
func (c *Client) Read(ctx context.Context, read runview.Read) (*runview.Piece, error) {
	r, err := c.call(ctx, &request{Op: opRead, Read: read}, readWithin)
	if err != nil {
		return nil, err
	}
	if r.Piece == nil {
		return nil, errEmpty
	}
	return r.Piece, nil
}

// Do is runview.Source's.
func (c *Client) Do(ctx context.Context, a runview.Action) (*runview.Answer, error) {
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

var errTooMany = &runview.Refused{Why: "those are too many single jobs at once: do it in parts, or by ranges"}

var errEmpty = errors.New("the dispatcher's answer is empty")

var _ runview.Source = (*Client)(nil)
