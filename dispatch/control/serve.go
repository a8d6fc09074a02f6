package control

import (
	"bufio"
	"context"
	"encoding/gob"
	"errors"
	"net"
	"os"
	"sync"
	"time"

	"dcs-tui/jobs/runview"
)

// serve serves one connection to its end.
func (s *Server) serve(conn *net.UnixConn) {
	if err := checkPeer(conn, os.Geteuid()); err != nil {
		refuse(conn, s.hello, err.Error())
		return
	}
	conn.SetDeadline(time.Now().Add(helloWithin))
	r := bufio.NewReader(conn)
	theirs, err := readHello(r)
	if err != nil {
		return
	}
	ours := s.hello
	ours.Proof = prove(s.opt.Secret, theirs.Nonce)
	switch {
	case theirs.V != Version:
		ours.Refused = "another version of dcs-tui"
	case theirs.Run != "" && theirs.Run != s.opt.Run:
		ours.Refused = "this is the dispatcher of another run"
	}
	if ours.write(conn) != nil || ours.Refused != "" {
		return
	}
	conn.SetDeadline(time.Time{})
	if s.ctx.Err() != nil { // Close's deadline was set before ours was taken off
		conn.SetReadDeadline(time.Now())
	}
	c := &caller{s: s, conn: conn, slots: make(chan struct{}, maxCalls), replies: make(chan *reply, maxCalls),
		calls: map[uint64]context.CancelFunc{}}
	c.ctx, c.cancel = context.WithCancel(s.ctx)
	s.count(1)
	defer s.count(-1)
	c.serve(newMessages(r))
}

// caller is one connection that has said hello.
type caller struct {
	s      *Server
	conn   net.Conn
	ctx    context.Context
	cancel context.CancelFunc

	slots   chan struct{} // one is held from a request's arrival until its answer was written
	replies chan *reply   // has room for one a slot: nobody waits for it

	mu    sync.Mutex
	calls map[uint64]context.CancelFunc // under way
}

// serve takes requests until the connection ends. A client that sends more than
// maxCalls is not read from until one of them has its answer.
func (c *caller) serve(in *messages) {
	var all, writer sync.WaitGroup
	writer.Go(c.write)
	defer func() {
		c.cancel()
		all.Wait() // they end with ctx
		if c.s.ctx.Err() != nil {
			c.slots <- struct{}{}
			c.replies <- goodbye()
		}
		close(c.replies)
		writer.Wait()
	}()
	var source runview.Source
	var broken error
	defer func() {
		if source != nil {
			c.s.source.release()
		}
	}()
	var pace pace
	for {
		req := new(request)
		if in.next(req, maxRequest) != nil {
			return
		}
		if req.Op == opTakeBack {
			c.end(req.ID)
			continue
		}
		if !pace.wait(c.ctx) {
			return
		}
		select {
		case c.slots <- struct{}{}:
		case <-c.ctx.Done():
			return
		}
		if source == nil && broken == nil && req.Op != opTakeIn { // who only rings looks at nothing
			source, broken = c.s.attach()
		}
		ctx, cancel := context.WithCancel(c.ctx)
		c.mu.Lock()
		c.calls[req.ID] = cancel
		c.mu.Unlock()
		source, broken := source, broken
		all.Go(func() {
			out := &reply{ID: req.ID}
			if source == nil && req.Op != opTakeIn {
				out.fail(broken)
			} else if err := c.s.answer(ctx, source, req, out); err != nil {
				if c.s.ctx.Err() != nil && errors.Is(err, context.Canceled) {
					err = runview.ErrGone // it is we who have ended the call
				}
				*out = reply{ID: req.ID}
				out.fail(err)
			}
			c.end(req.ID)
			c.replies <- out
		})
	}
}

// end ends a call that is under way, if it still is.
func (c *caller) end(id uint64) {
	c.mu.Lock()
	cancel := c.calls[id]
	delete(c.calls, id)
	c.mu.Unlock()
	if cancel != nil {
		cancel()
	}
}

// write writes answers. One that is not taken in time ends the connection; the rest
// is thrown away, so that nobody waits for this client.
func (c *caller) write() {
	enc := gob.NewEncoder(c.conn)
	var failed error
	for r := range c.replies {
		if failed == nil {
			c.conn.SetWriteDeadline(time.Now().Add(writeWithin))
			if failed = enc.Encode(r); failed != nil {
				c.cancel()
				c.conn.Close()
			}
		}
		<-c.slots
	}
}

// answer makes one call.
func (s *Server) answer(ctx context.Context, source runview.Source, req *request, out *reply) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = s.fault(p)
		}
	}()
	req.bound()
	switch req.Op {
	case opLook:
		out.Picture, err = source.Look(ctx, req.Ask)
	case opMatch:
		out.Which, out.Weight, err = source.Match(ctx, req.Filter)
	case opWeigh:
		out.Weight, err = source.Weigh(ctx, req.Which)
	case opRead:
		out.Piece, err = source.Read(ctx, req.Read)
	case opDo:
		restore(req.Action.Edit, req.Zeros)
		out.Answer, err = source.Do(ctx, req.Action)
	case opTakeIn:
		err = s.takeIn(ctx, req.Name)
	default:
		err = &runview.Refused{Why: "the dispatcher does not know this question"}
	}
	return err
}
