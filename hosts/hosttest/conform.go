package hosttest

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"dcs-tui/hosts"
)

// patience is the time after which a call that must return counts as stuck. The results do
// not depend on it otherwise.
const patience = 2 * time.Minute

// Conform tests an implementation of hosts.Link and hosts.Stream. open returns an opener and
// a host whose far end is this machine. It is called once for each test.
func Conform(t *testing.T, open func(t testing.TB) (hosts.Opener, *hosts.Host)) {
	for _, part := range []struct {
		name string
		run  func(*testing.T, hosts.Link)
	}{
		{"streams are separate", separateStreams},
		{"how a command ended", exitCodes},
		{"which signal ended a command", endedBySignal},
		{"ten megabytes of any bytes both ways", bigAndBinary},
		{"a megabyte of standard error", bigStderr},
		{"many starts at once", manyStarts},
		{"a done context starts nothing", doneContext},
		{"keep alive", keepAlive},
		{"the far end leaves", farEndLeaves},
		{"closing a stream ends its command", closeStream},
		{"closing the link unblocks everything", closeLink},
		{"closed stays closed", closedTwice},
	} {
		t.Run(part.name, func(t *testing.T) {
			opener, h := open(t)
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			l, err := opener.Open(ctx, h)
			if err != nil {
				t.Fatalf("open: %v", err)
			}
			defer l.Close()
			if part.name == "which signal ended a command" && h.Shells > 0 {
				t.Skip("OpenSSH's client does not pass it on")
			}
			part.run(t, l)
		})
	}
	t.Run("a done context opens nothing", func(t *testing.T) {
		opener, h := open(t)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		l, err := opener.Open(ctx, h)
		if err == nil {
			l.Close()
			t.Fatal("opened")
		}
		if !errors.Is(err, context.Canceled) || hosts.ClassOf(err) != hosts.Unreachable {
			t.Errorf("class %v of %v", hosts.ClassOf(err), err)
		}
	})
}

// soon runs f and fails the test if it does not return.
func soon(t *testing.T, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	select {
	case <-done:
	case <-time.After(patience):
		t.Fatalf("stuck: %s", what)
	}
}

func start(t *testing.T, l hosts.Link, command string) hosts.Stream {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	s, err := l.Start(ctx, command)
	if err != nil {
		t.Fatalf("start %q: %v", command, err)
	}
	return s
}

// drain reads both outputs to their ends.
func drain(t *testing.T, s hosts.Stream) (out, errs string) {
	t.Helper()
	soon(t, "reading the outputs", func() {
		var wg sync.WaitGroup
		var o, e []byte
		wg.Go(func() { o, _ = io.ReadAll(s) })
		wg.Go(func() { e, _ = io.ReadAll(s.Stderr()) })
		wg.Wait()
		out, errs = string(o), string(e)
	})
	return out, errs
}

func separateStreams(t *testing.T, l hosts.Link) {
	s := start(t, l, "cat; echo trouble >&2; exit 3")
	defer s.Close()
	if _, err := io.WriteString(s.Stdin(), "one\ntwo"); err != nil {
		t.Fatal(err)
	}
	if err := s.Stdin().Close(); err != nil {
		t.Fatal(err)
	}
	out, errs := drain(t, s)
	if out != "one\ntwo" || errs != "trouble\n" {
		t.Errorf("stdout %q, stderr %q", out, errs)
	}
	var end *hosts.ExitError
	if err := s.Wait(); !errors.As(err, &end) || end.Code != 3 {
		t.Errorf("wait: %v", err)
	}
}

func exitCodes(t *testing.T, l hosts.Link) {
	for command, want := range map[string]*hosts.ExitError{
		"true":            nil,
		"exit 127":        {Code: 127},
		"exit 255":        {Code: 255},
		"/nonexistent/xy": {Code: 127},
	} {
		s := start(t, l, command)
		drain(t, s)
		var err error
		soon(t, "wait", func() { err = s.Wait() })
		var end *hosts.ExitError
		switch {
		case want == nil && err != nil:
			t.Errorf("%q: %v", command, err)
		case want != nil && (!errors.As(err, &end) || *end != *want):
			t.Errorf("%q: got %v, want %v", command, err, want)
		}
		s.Close()
	}
}

func endedBySignal(t *testing.T, l hosts.Link) {
	s := start(t, l, "kill -KILL $$")
	defer s.Close()
	drain(t, s)
	var err error
	soon(t, "wait", func() { err = s.Wait() })
	var end *hosts.ExitError
	if want := (hosts.ExitError{Code: -1, Signal: "SIGKILL"}); !errors.As(err, &end) || *end != want {
		t.Errorf("got %v, want %v", err, &want)
	}
}

func bigAndBinary(t *testing.T, l hosts.Link) {
	const size = 10 << 20
	sent := make([]byte, size)
	rand.NewChaCha8([32]byte{4}).Read(sent)
	s := start(t, l, "exec cat")
	defer s.Close()
	got := make([]byte, size)
	soon(t, "moving 10 MB both ways", func() {
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := s.Stdin().Write(sent); err != nil {
				t.Errorf("write: %v", err)
			}
			s.Stdin().Close()
		})
		if _, err := io.ReadFull(s, got); err != nil {
			t.Errorf("read: %v", err)
		}
		if n, err := s.Read(make([]byte, 1)); n != 0 || err != io.EOF {
			t.Errorf("after the end: %d bytes, %v", n, err)
		}
		wg.Wait()
		if err := s.Wait(); err != nil {
			t.Errorf("wait: %v", err)
		}
	})
	if !bytes.Equal(sent, got) {
		t.Error("what came back is not what was sent")
	}
}

func bigStderr(t *testing.T, l hosts.Link) {
	s := start(t, l, "head -c 1048576 /dev/zero >&2; echo done")
	defer s.Close()
	out, errs := drain(t, s)
	if out != "done\n" || len(errs) != 1<<20 || strings.Trim(errs, "\x00") != "" {
		t.Errorf("stdout %q, %d bytes of stderr", out, len(errs))
	}
}

func manyStarts(t *testing.T, l hosts.Link) {
	const n = 8 // sshd allows 10 sessions a connection
	soon(t, "many starts", func() {
		var wg sync.WaitGroup
		for i := range n {
			wg.Go(func() {
				s, err := l.Start(t.Context(), fmt.Sprintf("read x; echo $x %d", i))
				if err != nil {
					t.Error(err)
					return
				}
				defer s.Close()
				fmt.Fprintf(s.Stdin(), "line\n")
				out, err := io.ReadAll(s)
				if want := fmt.Sprintf("line %d\n", i); err != nil || string(out) != want {
					t.Errorf("got %q, %v, want %q", out, err, want)
				}
				if err := s.Wait(); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	})
}

func doneContext(t *testing.T, l hosts.Link) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s, err := l.Start(ctx, "true")
	if err == nil {
		s.Close()
		t.Fatal("started")
	}
	if !errors.Is(err, context.Canceled) || hosts.ClassOf(err) != hosts.Unreachable {
		t.Errorf("class %v of %v", hosts.ClassOf(err), err)
	}
	// The link still works.
	next := start(t, l, "echo fine")
	defer next.Close()
	if out, _ := drain(t, next); out != "fine\n" {
		t.Errorf("got %q", out)
	}
}

func keepAlive(t *testing.T, l hosts.Link) {
	soon(t, "keep alive", func() {
		for range 3 {
			if err := l.KeepAlive(t.Context()); err != nil {
				t.Error(err)
			}
		}
	})
}

func farEndLeaves(t *testing.T, l hosts.Link) {
	s := start(t, l, "echo bye")
	defer s.Close()
	if out, _ := drain(t, s); out != "bye\n" {
		t.Errorf("got %q", out)
	}
	soon(t, "wait, then writes that must fail", func() {
		if err := s.Wait(); err != nil {
			t.Errorf("wait: %v", err)
		}
		if err := s.Wait(); err != nil {
			t.Errorf("second wait: %v", err)
		}
		block := make([]byte, 64<<10)
		for {
			if _, err := s.Stdin().Write(block); err != nil {
				return
			}
		}
	})
}

// pidOf reads the pid that a command printed first.
func pidOf(t *testing.T, s hosts.Stream) int {
	t.Helper()
	var line string
	soon(t, "the first line", func() { line, _ = bufio.NewReader(s).ReadString('\n') })
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatalf("no pid in %q", line)
	}
	return pid
}

// held is a process of this machine, held by a pidfd because its pid may be reused.
type held struct{ pid, fd int }

func hold(t *testing.T, pid int) held {
	t.Helper()
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		t.Fatalf("process %d: %v", pid, err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	return held{pid, fd}
}

// mustEnd waits for the end of the process.
func (h held) mustEnd(t *testing.T) {
	t.Helper()
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(h.fd), Events: unix.POLLIN}}, int(patience.Milliseconds()))
		if err == unix.EINTR {
			continue
		}
		if n == 0 {
			t.Errorf("process %d lives on", h.pid)
		}
		return
	}
}

// end kills the process.
func (h held) end() { unix.PidfdSendSignal(h.fd, unix.SIGKILL, nil, 0) }

func closeStream(t *testing.T, l hosts.Link) {
	// The command reads its input, as the helper does: over ssh only the end of its input
	// certainly ends a command.
	s := start(t, l, "echo $$; exec cat")
	other := start(t, l, "exec cat")
	defer other.Close()
	command := hold(t, pidOf(t, s))
	soon(t, "closing a stream", func() {
		read := make(chan struct{})
		go func() {
			defer close(read)
			io.Copy(io.Discard, s)
		}()
		for range 2 {
			if err := s.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
		}
		<-read
		s.Wait()
	})
	command.mustEnd(t)
	// The link and its other streams continue.
	soon(t, "the other stream", func() {
		io.WriteString(other.Stdin(), "still here")
		other.Stdin().Close()
		if out, err := io.ReadAll(other); string(out) != "still here" || err != nil {
			t.Errorf("the other stream: %q, %v", out, err)
		}
	})
}

func closeLink(t *testing.T, l hosts.Link) {
	s := start(t, l, "echo $$; exec sleep 1000")
	// The command need not end with the link (sshd ends none), so the test ends it.
	command := hold(t, pidOf(t, s))
	defer command.end()
	ends := make(chan string)
	go func() { io.Copy(io.Discard, s); ends <- "read" }()
	go func() { io.Copy(io.Discard, s.Stderr()); ends <- "stderr" }()
	go func() {
		if s.Wait() == nil {
			t.Error("a command that was cut off counts as a success")
		}
		ends <- "wait"
	}()
	writing := make(chan struct{})
	go func() {
		// More than all buffers on the way hold, and nobody reads it.
		block := make([]byte, 1<<20)
		s.Stdin().Write(block[:1])
		close(writing)
		for {
			if _, err := s.Stdin().Write(block); err != nil {
				break
			}
		}
		ends <- "write"
	}()
	soon(t, "closing the link", func() {
		<-writing
		if err := l.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	soon(t, "read, stderr, wait and write after the link was closed", func() {
		for range 4 {
			<-ends
		}
	})
	soon(t, "closing the stream of a closed link", func() { s.Close() })
}

func closedTwice(t *testing.T, l hosts.Link) {
	soon(t, "closing", func() {
		for range 3 {
			if err := l.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
		}
		s, err := l.Start(t.Context(), "true")
		if err == nil {
			s.Close()
			t.Fatal("a closed link starts commands")
		}
		if hosts.ClassOf(err) != hosts.Unreachable {
			t.Errorf("class %v of %v", hosts.ClassOf(err), err)
		}
	})
}
