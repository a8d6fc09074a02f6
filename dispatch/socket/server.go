package socket

import (
	"context"
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

	"dcs-tui/jobs"
	"dcs-tui/jobs/live"
)

// Limits of a server.
const (
	maxConns = 64
	maxCalls = 32 // concurrent calls per connection
	// callInterval is the minimum time between calls of a connection, so that a client in a loop
	// does not keep the engine busy.
	callInterval      = 5 * time.Millisecond
	writeTimeout      = 20 * time.Second // for sending one line
	byeTimeout        = time.Second      // for all clients to receive the goodbye at Close
	maxReportedPanics = 20               // number of panics that are reported
)

// Options configures a server.
type Options struct {
	// Directory that holds the directory of sockets; "": /tmp, or else XDG_RUNTIME_DIR.
	Base    string
	Run     string // uid of the run
	Epoch   int
	Token   string // of the owner file
	Release string // of the program, for people
	Handler Handler
	// ReportPanic reports a panic of the handler, for the log. May be nil.
	ReportPanic func(text string)
}

// Server serves a socket.
type Server struct {
	opts     Options
	listener *net.UnixListener
	hello    Hello

	ctx           context.Context // ends with Close
	cancel        context.CancelFunc
	writing       context.Context // ends a little later than ctx
	cancelWriting context.CancelFunc
	connections   sync.WaitGroup
	numConnected  atomic.Int64
	numFollowing  atomic.Int64
	numPanics     atomic.Int64

	mu        sync.Mutex
	durable   live.Durable  // newest durable position
	state     *live.State   // newest state; never changed
	published chan struct{} // closed at the next Publish
}

// Listen creates a socket and serves it until Close.
func Listen(opt Options) (*Server, error) {
	l, err := listen(opt.Base)
	if err != nil {
		return nil, fmt.Errorf("create the dispatcher's socket: %w", err)
	}
	s := newServer(opt)
	s.listener = l
	s.connections.Go(s.accept)
	return s, nil
}

func newServer(opt Options) *Server {
	s := &Server{opts: opt, published: make(chan struct{}),
		hello: Hello{V: jobs.FormatSocket.Version, Run: opt.Run, Epoch: opt.Epoch, Token: opt.Token, PID: os.Getpid(),
			Release: opt.Release}}
	s.hello.Program, _ = os.Executable() // only shown to people
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.writing, s.cancelWriting = context.WithCancel(context.Background())
	return s
}

// Address returns the path of the socket.
func (s *Server) Address() string { return s.listener.Addr().String() }

// NumFollowing returns the number of clients that follow the run.
func (s *Server) NumFollowing() int { return int(s.numFollowing.Load()) }

// NumConnected returns the number of connections.
func (s *Server) NumConnected() int { return int(s.numConnected.Load()) }

// Publish sends the durable position and the state to the clients that follow. nil means unchanged.
// It does not block. The state must not be changed afterwards. A slow client skips older states.
func (s *Server) Publish(durable *live.Durable, state *live.State) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if durable != nil {
		s.durable = *durable
	}
	if state != nil {
		s.state = state
	}
	close(s.published)
	s.published = make(chan struct{})
}

// Close removes the socket and ends all connections with a goodbye. It cancels the contexts of
// running calls and waits for them.
func (s *Server) Close() {
	s.cancel()
	if s.listener != nil {
		s.listener.Close()
	}
	late := time.AfterFunc(byeTimeout, s.cancelWriting)
	s.connections.Wait()
	late.Stop()
	s.cancelWriting()
}

func (s *Server) accept() {
	for {
		nc, err := s.listener.AcceptUnix()
		switch {
		case err == nil:
			s.serve(nc, checkPeer(nc, os.Geteuid()))
		case errors.Is(err, net.ErrClosed):
			return
		default:
			time.Sleep(50 * time.Millisecond) // for example, no file descriptors are left
		}
	}
}

// serve serves a connection in goroutines of its own, or refuses it.
func (s *Server) serve(nc net.Conn, refused error) {
	if refused == nil && s.numConnected.Load() >= maxConns {
		refused = fmt.Errorf("%d screens and commands are already connected to the dispatcher; close one", maxConns)
	}
	c := &conn{lines: newLines(nc), s: s, hello: s.hello}
	if refused != nil {
		c.hello.Error = refused.Error()
		c.send(&c.hello) // it fits into the buffer of the socket
		c.Close()
		return
	}
	s.numConnected.Add(1)
	s.connections.Go(func() {
		defer s.numConnected.Add(-1)
		defer c.Close()
		c.serve()
	})
}

// conn is a connection. One goroutine reads calls, each running call has a goroutine, and another
// one pushes if the client follows.
type conn struct {
	*lines
	s              *Server
	hello          Hello
	ctx            context.Context // ends with the connection, or at Server.Close
	calling        sync.WaitGroup
	startFollowing sync.Once

	calls    sync.Map     // CancelFuncs of calls, by id
	numCalls atomic.Int64 // number of running calls
}

func (c *conn) serve() {
	ctx, cancel := context.WithCancel(c.s.ctx)
	c.ctx = ctx
	defer context.AfterFunc(ctx, func() { c.SetReadDeadline(time.Unix(1, 0)) })()
	c.send(&c.hello)
	err := c.read()
	cancel()
	c.calling.Wait()
	_, network := errors.AsType[net.Error](err)
	switch {
	case c.s.ctx.Err() != nil:
		c.send(&reply{Goodbye: true})
	case !network && !errors.Is(err, io.EOF): // it does not follow the protocol
		c.send(errorReply(&RefusedError{err.Error()}))
	}
}

// read starts calls until the connection ends.
func (c *conn) read() error {
	for ; ; time.Sleep(callInterval) {
		var q request
		if err := c.receive(&q, maxRequest); err != nil {
			return err
		}
		if q.Do == "abandon" {
			if cancel, ok := c.calls.Load(q.ID); ok {
				cancel.(context.CancelFunc)()
			}
			continue
		}
		ctx, cancel := context.WithCancel(c.ctx)
		if c.numCalls.Add(1) > maxCalls {
			cancel()
			c.answer(&q, nil, fmt.Errorf("%w: too many calls of this connection are in flight", ErrNotTaken))
			continue
		}
		c.calls.Store(q.ID, cancel)
		c.calling.Go(func() {
			answer := new(reply)
			err := c.call(ctx, &q, answer)
			cancel()
			c.calls.Delete(q.ID)
			c.answer(&q, answer, err)
		})
	}
}

// answer sends the answer of a call.
func (c *conn) answer(q *request, answer *reply, err error) {
	if errors.Is(err, context.Canceled) && c.s.ctx.Err() != nil {
		err = ErrGone
	}
	if err != nil {
		answer = errorReply(err)
	}
	answer.ID = q.ID
	c.send(answer)
	c.numCalls.Add(-1)
}

// call carries out a call. A panic ends only that call.
func (c *conn) call(ctx context.Context, q *request, answer *reply) (err error) {
	defer func() {
		if p := recover(); p != nil {
			if c.s.opts.ReportPanic != nil && c.s.numPanics.Add(1) <= maxReportedPanics {
				c.s.opts.ReportPanic(fmt.Sprintf("a call of a screen or command failed: %v\n%s", p, debug.Stack()))
			}
			what, _, _ := strings.Cut(fmt.Sprint(p), "\n")
			err = fmt.Errorf("internal error in the dispatcher: %s; the run continues; see dispatcher.log", what)
		}
	}()
	h := c.s.opts.Handler
	switch q.Do {
	case "wake":
		return h.Wake(ctx, q.Name)
	case "request":
		return h.Request(ctx, q.Name, q.Request)
	case "why":
		answer.Text, err = h.Why(ctx, q.Job)
	case "read":
		if q.Limit <= 0 || q.Limit > MaxPiece {
			q.Limit = MaxPiece
		}
		answer.Piece, err = h.Read(ctx, q.Read)
	case "reply":
		return h.Reply(q.Question, q.Text)
	case "follow":
		c.startFollowing.Do(func() { c.calling.Go(c.push) })
	default:
		return Refusef("the dispatcher does not know the call %q; it is dcs-tui %s: %s", q.Do,
			c.hello.Release, c.hello.Program)
	}
	return err
}

// push sends the newest durable position and state until the connection ends.
func (c *conn) push() {
	c.s.numFollowing.Add(1)
	defer c.s.numFollowing.Add(-1)
	var durable live.Durable
	var state *live.State
	for ended := false; ; {
		c.s.mu.Lock()
		newest, next, published := c.s.durable, c.s.state, c.s.published
		c.s.mu.Unlock()
		if newest != durable {
			durable = newest
			c.send(&reply{Durable: &durable})
		}
		if next != state {
			state = next
			c.send(&reply{Live: state})
		}
		if ended {
			return
		}
		select {
		case <-published:
		case <-c.ctx.Done():
			ended = true // after the newest values were sent
		}
	}
}

// send sends a line. A client that does not read it in time is disconnected.
func (c *conn) send(v any) {
	ctx, cancel := context.WithTimeout(c.s.writing, writeTimeout-byeTimeout)
	defer cancel()
	if c.lines.send(ctx, v) != nil {
		c.Close()
	}
}
