package helper

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"dcs-tui/hosts"
	"dcs-tui/internal/polltest"
)

// TestMain runs this test binary also on the far side, because Connect sends it there. There it
// answers __sum like the real program, and plays a helper for __host.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 {
		switch os.Args[1] {
		case "__sum":
			f, err := os.Open("/proc/self/exe")
			if err != nil {
				panic(err)
			}
			h := sha256.New()
			io.Copy(h, f)
			fmt.Printf("%x\n", h.Sum(nil))
			os.Exit(0)
		case "__host":
			os.Exit(fakeHost(os.Getenv("DCS_FAKE")))
		}
	}
	lastWait = polltest.Patience // commands of tests end, though late on a busy machine
	// With -race, each helper would otherwise sleep for a second when it exits.
	os.Setenv("GORACE", "atexit_sleep_ms=0 "+os.Getenv("GORACE"))
	os.Exit(polltest.RunWithoutLeaks(m))
}

var must = polltest.Must

// file writes a file that may be executed. A child that another test starts at the same time does not
// hold it open, because the kernel executes no file that is open for writing.
func file(t testing.TB, path, text string) {
	t.Helper()
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	must(t, os.WriteFile(path, []byte(text), 0o700))
}

// fakeHost plays a helper with the fault that how names.
func fakeHost(how string) int {
	if how == "dies" {
		fmt.Fprintln(os.Stderr, "\x1b[31mno\x07 spool\x1b[0m here")
		return 3
	}
	if how == "threads" { // as the Go runtime
		fmt.Fprintln(os.Stderr, "runtime: failed to create new OS thread (have 5 already; errno=11)\n"+
			"runtime: may need to increase max user processes (ulimit -u)\nfatal error: newosproc\n\n"+
			"goroutine 1 [running]:")
		return 2
	}
	if how == "forks" {
		fmt.Fprintln(os.Stderr, "fork/exec /bin/probe: resource temporarily unavailable\nthe spool is gone")
		return 3
	}
	r, w := NewReader(os.Stdin), NewWriter(os.Stdout)
	m, err := r.Read()
	if err != nil {
		fmt.Fprintln(os.Stderr, "open:", err)
		return 4
	}
	open := m.(*hosts.Open)
	exe, _ := os.Executable()
	var mask string
	if b, err := os.ReadFile("/proc/self/status"); err == nil {
		_, mask, _ = strings.Cut(string(b), "Umask:\t")
		mask, _, _ = strings.Cut(mask, "\n")
	}
	hello := &hosts.Hello{Version: open.Version, Dir: filepath.Dir(filepath.Dir(exe)), Spool: open.Host, BootID: mask,
		PID: os.Getpid()}
	switch how {
	case "mute":
		io.Copy(io.Discard, os.Stdin)
		return 0
	case "old":
		hello.Version = 99
	case "fenced":
		hello.FencedBy = 7
	case "cwd":
		hello.CwdError = "no such directory"
	case "workdir":
		hello.Error = "work_dir cannot be used: mkdir /proc/nowhere: no such file or directory; " +
			"set work_dir for this host"
	case "full":
		hello.Error, hello.Passing = "no job can be run here, its files could not be written: "+
			"no space left on device", true
	case "fatal":
		w.Write(hosts.Trouble{Text: "spool cannot be made", Fatal: true})
	}
	w.Write(hosts.Trouble{Text: "early"}, hello)
	for {
		m, err := r.Read()
		if err != nil {
			return 5
		}
		switch m := m.(type) {
		case *hosts.Ping:
			if how == "panics" {
				panic("the helper is broken")
			}
			if how == "aborts" { // prints its stacks and registers
				syscall.Kill(os.Getpid(), syscall.SIGABRT)
				select {}
			}
			w.Write(hosts.Heartbeat{Seq: m.Seq})
		case *hosts.Bye:
			return 0
		}
	}
}

// memLink is a far side in memory. Its standard output is a prepared text. The test decides whether
// what is written to it is accepted, delayed, or refused.
type memLink struct {
	script func(nonce string) []byte // the whole standard output; nil: no output
	atEnd  error                     // after the last byte; nil: silence until closed
	wait   error                     // result of Wait
	// Reads standard input after the first write; nil: at once.
	take func(stop <-chan struct{}, p []byte) error
	open func(ctx context.Context) error // before the link exists; nil: at once

	once   sync.Once
	ended  chan error // end sends the error that replaces the silence
	closed chan struct{}
	nonce  chan string
}

func newMemLink() *memLink {
	return &memLink{closed: make(chan struct{}), ended: make(chan error, 1), nonce: make(chan string, 1)}
}

func (l *memLink) Open(ctx context.Context, h *hosts.Host) (hosts.Link, error) {
	if l.open != nil {
		if err := l.open(ctx); err != nil {
			return nil, err
		}
	}
	return l, nil
}

func (l *memLink) Start(ctx context.Context, command string) (hosts.Stream, error) {
	l.nonce <- command[strings.LastIndexByte(command, ' ')+1:]
	return &memStream{l: l}, nil
}

// end replaces the silence after the last byte by an error.
func (l *memLink) end(err error) { l.ended <- err }

func (l *memLink) KeepAlive(context.Context) error { return errors.New("kept alive") }
func (l *memLink) Close() error                    { l.once.Do(func() { close(l.closed) }); return nil }

// memStream is the only stream of a memLink.
type memStream struct {
	l     *memLink
	out   io.Reader
	asked bool // the first lines have been written
}

func (s *memStream) Read(p []byte) (int, error) {
	if s.out == nil {
		select {
		case n := <-s.l.nonce:
			s.out = bytes.NewReader(nil)
			if s.l.script != nil {
				s.out = bytes.NewReader(s.l.script(n))
			}
		case <-s.l.closed:
			return 0, errors.New("closed")
		}
	}
	select {
	case <-s.l.closed:
		return 0, errors.New("closed")
	default:
	}
	if n, _ := s.out.Read(p); n > 0 {
		return n, nil
	}
	if s.l.atEnd != nil {
		return 0, s.l.atEnd
	}
	select {
	case err := <-s.l.ended:
		return 0, err
	case <-s.l.closed:
		return 0, errors.New("closed")
	}
}

func (s *memStream) Stdin() io.WriteCloser { return s }
func (s *memStream) Close() error          { return nil }

// Stderr returns an output that is empty, and ends unless the link is silent.
func (s *memStream) Stderr() io.Reader {
	if s.l.atEnd != nil {
		return strings.NewReader("")
	}
	return silence{s.l.closed}
}

func (s *memStream) Wait() error { return s.l.wait }

func (s *memStream) Write(p []byte) (int, error) {
	if !s.asked {
		s.asked = true
		return len(p), nil
	}
	if s.l.take != nil {
		if err := s.l.take(s.l.closed, p); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}

// silence is a standard error that returns nothing until it is closed.
type silence struct{ closed chan struct{} }

func (s silence) Read([]byte) (int, error) {
	<-s.closed
	return 0, io.EOF
}
