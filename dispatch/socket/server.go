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
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"dcs-tui/jobs/live"
)

// Limits of a server.
const (
	maxConns     = 64
	idleTimeout  = time.Minute      // of a client that neither follows nor has a call in flight
	lineTimeout  = 30 * time.Second // from the first byte of a line to its last
	writeTimeout = 20 * time.Second // of one line
	callTimeout  = time.Minute
	byeTimeout   = time.Second // for all clients to take the goodbye at Close
	maxFaults    = 20          // panics that are reported
	// A connection may make maxBurst calls at once and then one each callInterval, so that
	// a client in a loop does not keep the engine busy.
	callInterval = 5 * time.Millisecond
	maxBurst     = 200
)

// Options say what a server serves.
type Options struct {
	Base    string // directory that holds the directory of sockets; "": /tmp, or else XDG_RUNTIME_DIR
	Run     string // uid of the run
	Epoch   int
	Token   string // of the owner file
	Release string // of the program, for people
	Handler Handler
	// Fault reports a panic of the handler, for the log. May be nil.
	Fault func(text string)
}

// Server serves a socket.
type Server struct {
	opt   Options
	l     *net.UnixListener
	hello Hello

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	all    sync.WaitGroup
	faults atomic.Int64

	mu      sync.Mutex
	conns   map[*conn]bool // true: it follows
	durable live.Durable   // published last
	state   *live.State    // published last; never changed
	line    []byte         // state as a push; nil: not encoded yet
}

// Listen creates a socket and serves it until Close.
func Listen(opt Options) (*Server, error) {
	where := []string{opt.Base}
	if opt.Base == "" {
		where = bases()
	}
	l, err := listen(where...)
	if err != nil {
		return nil, fmt.Errorf("create the dispatcher's socket: %w", err)
	}
	s := newServer(opt)
	s.l = l
	s.all.Go(s.accept)
	return s, nil
}

func newServer(opt Options) *Server {
	s := &Server{opt: opt, conns: map[*conn]bool{},
		hello: Hello{V: Version, Run: opt.Run, Epoch: opt.Epoch, Token: opt.Token, PID: os.Getpid(), Release: opt.Release}}
	s.hello.Program, _ = os.Executable() // for people; not needed
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// Address returns the path of the socket.
func (s *Server) Address() string { return s.l.Addr().String() }

// Following returns the number of clients that follow the run.
func (s *Server) Following() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, follows := range s.conns {
		if follows {
			n++
		}
	}
	return n
}

// Connected returns the number of connections.
func (s *Server) Connected() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}

// Publish sends the durable position and the state to the clients that follow; nil: it has
// not changed. It does not block. The state must not be changed afterwards. A client that
// is slow skips older ones.
func (s *Server) Publish(durable *live.Durable, state *live.State) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if durable != nil {
		s.durable = *durable
	}
	if state != nil {
		s.state, s.line = state, nil
	}
	for c, follows := range s.conns {
		if follows {
			c.wake()
		}
	}
}

// Close removes the socket and ends all connections with a goodbye. It waits for the calls
// in flight, whose contexts it ends.
func (s *Server) Close() {
	s.cancel() // connections stop reading
	if s.l != nil {
		s.l.Close()
	}
	late := time.AfterFunc(byeTimeout, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		for c := range s.conns {
			c.c.Close()
		}
	})
	defer late.Stop()
	s.all.Wait()
}

func (s *Server) accept() {
	for delay := time.Duration(0); ; {
		nc, err := s.l.AcceptUnix()
		switch {
		case err == nil:
			delay = 0
			if err := checkPeer(nc, os.Geteuid()); err != nil {
				s.refuse(nc, err.Error())
				continue
			}
			s.serve(nc)
			continue
		case errors.Is(err, net.ErrClosed):
			return
		}
		delay = min(max(2*delay, 5*time.Millisecond), time.Second) // no file descriptors are left for now
		select {
		case <-time.After(delay):
		case <-s.ctx.Done():
			return
		}
	}
}

// refuse says why a connection is not served, and closes it.
func (s *Server) refuse(nc net.Conn, why string) {
	h := s.hello
	h.Error = why
	if line, err := encode(h); err == nil {
		nc.SetWriteDeadline(time.Now().Add(byeTimeout)) // it fits into the buffer of the socket
		nc.Write(line)
	}
	nc.Close()
}

// serve serves a connection in goroutines of its own.
func (s *Server) serve(nc net.Conn) {
	c := &conn{s: s, c: nc, r: bufio.NewReader(nc), slots: make(chan struct{}, maxCalls),
		answers: make(chan []byte, maxCalls), woken: make(chan struct{}, 1), calls: map[int64]context.CancelFunc{}}
	s.mu.Lock()
	full := len(s.conns) >= maxConns
	if !full {
		s.conns[c] = false
	}
	s.mu.Unlock()
	if full {
		s.refuse(nc, fmt.Sprintf("%d screens and commands are connected to the dispatcher already; close one", maxConns))
		return
	}
	s.all.Go(func() {
		defer func() {
			nc.Close()
			s.mu.Lock()
			delete(s.conns, c)
			s.mu.Unlock()
		}()
		c.serve()
	})
}

// conn is a connection. One goroutine reads calls, one writes, and each call in flight has
// one.
type conn struct {
	s *Server
	c net.Conn
	r *bufio.Reader

	ctx    context.Context
	cancel context.CancelFunc

	slots   chan struct{} // one is held from the arrival of a call until its answer is written
	answers chan []byte   // has room for one per slot, so that no call waits for the client
	woken   chan struct{} // there is something to push
	last    *message      // line after all answers; nil: none. Set before answers is closed

	mu    sync.Mutex
	calls map[int64]context.CancelFunc // in flight
}

func (c *conn) wake() {
	select {
	case c.woken <- struct{}{}:
	default:
	}
}

func (c *conn) serve() {
	c.ctx, c.cancel = context.WithCancel(c.s.ctx)
	stop := context.AfterFunc(c.ctx, func() { c.c.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	var calls, writer sync.WaitGroup
	writer.Go(c.write)
	err := c.read(&calls)
	ended := c.s.ctx.Err() != nil
	c.cancel()
	calls.Wait()
	var network net.Error
	switch {
	case ended || c.s.ctx.Err() != nil:
		c.last = &message{Goodbye: true}
	case !errors.Is(err, io.EOF) && !errors.As(err, &network): // it does not follow the protocol
		c.last = new(message)
		c.last.fail(&RefusedError{err.Error()})
	}
	close(c.answers)
	writer.Wait()
}

// read starts calls until the connection ends.
func (c *conn) read(calls *sync.WaitGroup) error {
	var paced time.Time // when the calls so far would be over if each took callInterval
	for {
		var q request
		line, err := c.next()
		if err == nil {
			err = json.Unmarshal(line, &q)
		}
		if err != nil {
			return err
		}
		if q.Do == doAbandon {
			c.end(q.ID)
			continue
		}
		now := time.Now()
		if paced.Before(now) {
			paced = now
		}
		paced = paced.Add(callInterval)
		select {
		case <-time.After(paced.Sub(now) - maxBurst*callInterval):
		case <-c.ctx.Done():
			return c.ctx.Err()
		}
		select {
		case c.slots <- struct{}{}:
		case <-c.ctx.Done():
			return c.ctx.Err()
		}
		ctx, cancel := context.WithTimeout(c.ctx, callTimeout)
		c.mu.Lock()
		_, duplicate := c.calls[q.ID]
		c.calls[q.ID] = cancel
		c.mu.Unlock()
		if duplicate {
			cancel()
			return fmt.Errorf("a call with the id %d is in flight already", q.ID)
		}
		calls.Go(func() {
			defer cancel()
			answer := message{ID: q.ID}
			if err := c.call(ctx, &q, &answer); err != nil {
				answer.fail(c.explain(err))
			}
			b, _ := encode(&answer)
			c.end(q.ID)
			c.answers <- b
		})
	}
}

// next reads a line. It is valid until the next read.
func (c *conn) next() ([]byte, error) {
	for {
		c.deadline(idleTimeout)
		_, err := c.r.Peek(1)
		if err == nil {
			break
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) || c.ctx.Err() != nil || !c.busy() {
			return nil, err
		}
	}
	c.deadline(lineTimeout)
	return readLine(c.r, maxRequest)
}

// deadline bounds reading, and ends it when the connection is to end.
func (c *conn) deadline(d time.Duration) {
	c.c.SetReadDeadline(time.Now().Add(d))
	if c.ctx.Err() != nil {
		c.c.SetReadDeadline(time.Unix(1, 0)) // the context may have ended before the line above
	}
}

// busy reports whether the client follows or has a call in flight.
func (c *conn) busy() bool {
	c.s.mu.Lock()
	follows := c.s.conns[c]
	c.s.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	return follows || len(c.calls) > 0
}

// end ends a call, if it is in flight.
func (c *conn) end(id int64) {
	c.mu.Lock()
	cancel := c.calls[id]
	delete(c.calls, id)
	c.mu.Unlock()
	if cancel != nil {
		cancel()
	}
}

// call carries out a call. A panic costs that call only.
func (c *conn) call(ctx context.Context, q *request, answer *message) (err error) {
	defer func() {
		if p := recover(); p != nil {
			if c.s.opt.Fault != nil && c.s.faults.Add(1) <= maxFaults {
				c.s.opt.Fault(fmt.Sprintf("a call of a screen or command failed: %v\n%s", p, debug.Stack()))
			}
			what, _, _ := strings.Cut(fmt.Sprint(p), "\n")
			err = fmt.Errorf("a defect in the dispatcher: %s; the run goes on, and dispatcher.log says more", what)
		}
	}()
	h := c.s.opt.Handler
	switch q.Do {
	case doWake:
		return h.Wake(ctx, q.Name)
	case doRequest:
		return h.Request(ctx, q.Name, q.Request)
	case doWhy:
		answer.Text, err = h.Why(ctx, q.Job)
	case doRead:
		limit := q.Limit
		if limit <= 0 || limit > MaxPiece {
			limit = MaxPiece
		}
		answer.Piece, err = h.Read(ctx, Read{q.Attempt, q.File, q.Offset, limit})
	case doReply:
		return h.Reply(q.Question, q.Text)
	case doFollow:
		c.s.mu.Lock()
		c.s.conns[c] = true
		c.s.mu.Unlock()
		c.wake()
	default:
		return Refusef("the dispatcher does not know the call %q; it is dcs-tui %s: %s", q.Do, c.s.hello.Release, c.s.hello.Program)
	}
	return err
}

// explain replaces the errors of contexts that the server has ended.
func (c *conn) explain(err error) error {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("the dispatcher did not finish the call within %v", callTimeout)
	case errors.Is(err, context.Canceled) && c.s.ctx.Err() != nil:
		return ErrGone
	}
	return err
}

// write sends the hello, answers, pushes, and at Server.Close the goodbye. A client that
// does not take a line in time is disconnected.
func (c *conn) write() {
	failed := !c.send(encode(c.s.hello))
	var durable live.Durable
	var state *live.State
	push := func() {
		c.s.mu.Lock()
		newest, next := c.s.durable, c.s.state
		var line []byte
		if next != nil && next != state {
			if c.s.line == nil {
				c.s.line, _ = encode(&message{Live: next})
			}
			line = c.s.line
		}
		c.s.mu.Unlock()
		if newest != durable && !failed {
			durable = newest
			failed = !c.send(encode(&message{Durable: &durable}))
		}
		if len(line) > 1 && len(line) <= maxReply && !failed {
			state = next
			failed = !c.send(line, nil)
		}
	}
	for {
		select {
		case b, ok := <-c.answers:
			if !ok {
				select { // what was published last
				case <-c.woken:
					push()
				default:
				}
				if !failed && c.last != nil {
					c.send(encode(c.last))
				}
				return
			}
			if !failed {
				failed = !c.send(b, nil)
			}
			<-c.slots
		case <-c.woken:
			push()
		}
	}
}

// send writes a line. When that fails the connection ends, and what is left to be written
// is dropped, so that nothing waits for this client.
func (c *conn) send(line []byte, err error) bool {
	if err == nil {
		c.c.SetWriteDeadline(time.Now().Add(writeTimeout))
		_, err = c.c.Write(line)
	}
	if err != nil {
		c.cancel()
		c.c.Close()
	}
	return err == nil
}
