package control

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"dcs-tui/jobs/runview"
)

// The bounds of a server.
const (
	maxScreens  = 64 // connections at once
	helloWithin = 10 * time.Second
	// A client that has not taken an answer for so long is cut off.
	writeWithin = 20 * time.Second
	// How long a source is kept that nobody looks at.
	lingerFor = 20 * time.Second
	// How many faults are told of.
	maxFaults = 20
)

// Options say what a server serves.
type Options struct {
	Base    string // directory of the directory of sockets; "": Base, or XDG_RUNTIME_DIR
	Program string // version of the program, for people
	Run     string // uid of the run
	Epoch   int
	// Secret is known to those alone who may read the run directory: what proves to a
	// client on another machine that it has reached us.
	Secret string
	// Open makes the source when somebody attaches and there is none; let is called some
	// time after the last has left.
	Open func() (source runview.Source, let func(), err error)
	// TakeIn looks at the requests in the run directory and returns when that of this name
	// is in the journal for good. May be nil.
	TakeIn func(ctx context.Context, name string) error
	// Fault is told, for the log, of what should never happen: a call that panicked.
	// May be nil.
	Fault func(text string)
}

// Server serves a source at a socket.
type Server struct {
	opt   Options
	l     *net.UnixListener
	hello Hello

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	all    sync.WaitGroup

	mu       sync.Mutex
	conns    map[net.Conn]bool
	attached int // connections that have said hello and are served

	faults atomic.Int64

	source lazySource
}

// Listen makes a socket and serves there until Close.
func Listen(opt Options) (*Server, error) {
	where := []string{opt.Base}
	if opt.Base == "" {
		where = bases()
	}
	l, err := listen(where...)
	if err != nil {
		return nil, fmt.Errorf("the control socket cannot be made: %w", err)
	}
	s := &Server{opt: opt, l: l, conns: map[net.Conn]bool{},
		hello: Hello{V: Version, Program: opt.Program, Run: opt.Run, Epoch: opt.Epoch, PID: os.Getpid()}}
	s.hello.Path, _ = os.Executable() // for people; they can do without
	s.source.open = opt.Open
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.all.Go(s.accept)
	return s, nil
}

// Address is the path of the socket.
func (s *Server) Address() string { return s.l.Addr().String() }

// Attached counts those who look now.
func (s *Server) Attached() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.attached
}

// byeWithin is how long a client may take to hear the goodbye.
const byeWithin = time.Second

// Close removes the socket and ends all connections, each with a goodbye: whoever
// asked for something knows then whether it was taken.
func (s *Server) Close() error {
	s.cancel()
	err := s.l.Close()
	s.each(func(c net.Conn) { c.SetReadDeadline(time.Now()) }) // no more requests
	deaf := time.AfterFunc(byeWithin, func() { s.each(func(c net.Conn) { c.Close() }) })
	defer deaf.Stop()
	s.all.Wait()
	s.source.close()
	return err
}

func (s *Server) each(do func(net.Conn)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		do(c)
	}
}

func (s *Server) accept() {
	for wait := time.Duration(0); ; {
		conn, err := s.l.AcceptUnix()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			wait = min(max(2*wait, 5*time.Millisecond), time.Second) // no descriptors left, for now
			select {
			case <-time.After(wait):
				continue
			case <-s.ctx.Done():
				return
			}
		}
		wait = 0
		s.mu.Lock()
		full := len(s.conns) >= maxScreens || s.ctx.Err() != nil
		if !full {
			s.conns[conn] = true
		}
		s.mu.Unlock()
		if full {
			refuse(conn, s.hello, fmt.Sprintf("%d screens and commands are attached already", maxScreens))
			conn.Close()
			continue
		}
		s.all.Go(func() {
			defer func() {
				conn.Close()
				s.mu.Lock()
				delete(s.conns, conn)
				s.mu.Unlock()
			}()
			s.serve(conn)
		})
	}
}

// refuseWithin bounds how long a refusal takes. The words fit into the socket and wait
// for nobody, but on a busy machine a goroutine does.
const refuseWithin = time.Second

// refuse says why.
func refuse(conn net.Conn, h Hello, why string) {
	h.Refused = why
	conn.SetWriteDeadline(time.Now().Add(refuseWithin))
	_ = h.write(conn) // whoever does not hear it sees the connection closed
}

// attach gives the source to one more connection.
func (s *Server) attach() (source runview.Source, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = s.fault(p)
		}
	}()
	return s.source.acquire()
}

// count notes that one more, or one fewer, looks.
func (s *Server) count(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.attached += n
}

// fault tells of a panic in a call, which costs that call and nothing else.
func (s *Server) fault(p any) error {
	// A screen asks again and again: the log must not grow without end.
	if s.opt.Fault != nil && s.faults.Add(1) <= maxFaults {
		s.opt.Fault(fmt.Sprintf("a call of a screen failed: %v\n%s", p, debug.Stack()))
	}
	what, _, _ := strings.Cut(fmt.Sprint(p), "\n")
	return fmt.Errorf("the dispatcher could not answer, a defect of ours: %s; the run goes on, dispatcher.log has more", what)
}
