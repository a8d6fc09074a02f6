package hosttest

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"dcs-tui/hosts"
)

// patience is how long a process may take to end. A part of Conform that takes twice as long is
// stuck: the test binary panics, and shows where. The results do not depend on it otherwise.
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
		{"three megabytes of any bytes both ways", bigAndBinary},
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
			stuck := time.AfterFunc(2*patience, func() {
				debug.SetTraceback("all")
				panic("stuck: " + part.name)
			})
			defer stuck.Stop()
			l, err := opener.Open(t.Context(), h)
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
		checkUnreachable(t, l, err)
		if !errors.Is(err, context.Canceled) {
			t.Errorf("not context.Canceled: %v", err)
		}
	})
}

// checkUnreachable fails the test unless a call has failed because the host is unreachable.
func checkUnreachable(t *testing.T, opened io.Closer, err error) {
	t.Helper()
	if err == nil {
		opened.Close()
		t.Fatal("no error")
	}
	if hosts.ClassOf(err) != hosts.Unreachable {
		t.Errorf("class %v of %v", hosts.ClassOf(err), err)
	}
}

func start(t *testing.T, l hosts.Link, command string) hosts.Stream {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel() // it applies only until the command has started
	s, err := l.Start(ctx, command)
	if err != nil {
		t.Fatalf("start %q: %v", command, err)
	}
	return s
}

// drain reads both outputs to their ends.
func drain(s hosts.Stream) (out, errs string) {
	var wg sync.WaitGroup
	var o, e []byte
	wg.Go(func() { o, _ = io.ReadAll(s) })
	wg.Go(func() { e, _ = io.ReadAll(s.Stderr()) })
	wg.Wait()
	return string(o), string(e)
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
	out, errs := drain(s)
	if out != "one\ntwo" || errs != "trouble\n" {
		t.Errorf("stdout %q, stderr %q", out, errs)
	}
	var end *hosts.ExitError
	if err := s.Wait(); !errors.As(err, &end) || end.Code != 3 {
		t.Errorf("wait: %v", err)
	}
}

// checkEnd runs a command that must end as described; nil: successfully.
func checkEnd(t *testing.T, l hosts.Link, command string, want *hosts.ExitError) {
	t.Helper()
	s := start(t, l, command)
	defer s.Close()
	drain(s)
	err := s.Wait()
	var end *hosts.ExitError
	switch {
	case want == nil && err != nil:
		t.Errorf("%q: %v", command, err)
	case want != nil && (!errors.As(err, &end) || *end != *want):
		t.Errorf("%q: got %v, want %v", command, err, want)
	}
}

func exitCodes(t *testing.T, l hosts.Link) {
	checkEnd(t, l, "true", nil)
	checkEnd(t, l, "exit 127", &hosts.ExitError{Code: 127})
	checkEnd(t, l, "exit 255", &hosts.ExitError{Code: 255})
	checkEnd(t, l, "/nonexistent/xy", &hosts.ExitError{Code: 127})
}

func endedBySignal(t *testing.T, l hosts.Link) {
	checkEnd(t, l, "kill -KILL $$", &hosts.ExitError{Code: -1, Signal: "SIGKILL"})
}

func bigAndBinary(t *testing.T, l hosts.Link) {
	const size = 3 << 20 // more than the window of a channel
	sent := make([]byte, size)
	rand.NewChaCha8([32]byte{4}).Read(sent)
	s := start(t, l, "exec cat")
	defer s.Close()
	got := make([]byte, size)
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
	if !bytes.Equal(sent, got) {
		t.Error("what came back is not what was sent")
	}
}

func bigStderr(t *testing.T, l hosts.Link) {
	s := start(t, l, "head -c 1048576 /dev/zero >&2; echo done")
	defer s.Close()
	out, errs := drain(s)
	if out != "done\n" || len(errs) != 1<<20 || strings.Trim(errs, "\x00") != "" {
		t.Errorf("stdout %q, %d bytes of stderr", out, len(errs))
	}
}

func manyStarts(t *testing.T, l hosts.Link) {
	const n = 8 // sshd allows 10 sessions a connection
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
}

func doneContext(t *testing.T, l hosts.Link) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s, err := l.Start(ctx, "true")
	checkUnreachable(t, s, err)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("not context.Canceled: %v", err)
	}
	// The link still works.
	next := start(t, l, "echo fine")
	defer next.Close()
	if out, _ := drain(next); out != "fine\n" {
		t.Errorf("got %q", out)
	}
}

func keepAlive(t *testing.T, l hosts.Link) {
	for range 3 {
		if err := l.KeepAlive(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

func farEndLeaves(t *testing.T, l hosts.Link) {
	s := start(t, l, "echo bye")
	defer s.Close()
	if out, _ := drain(s); out != "bye\n" {
		t.Errorf("got %q", out)
	}
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
}

// pidOf reads the pid that a command printed first.
func pidOf(t *testing.T, s hosts.Stream) int {
	t.Helper()
	line, _ := bufio.NewReader(s).ReadString('\n')
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatalf("no pid in %q", line)
	}
	return pid
}

func closeStream(t *testing.T, l hosts.Link) {
	// The command reads its input, as the helper does: over ssh only the end of its input
	// certainly ends a command.
	s := start(t, l, "echo $$; exec cat")
	other := start(t, l, "exec cat")
	defer other.Close()
	command := Hold(t, pidOf(t, s))
	var reading sync.WaitGroup
	reading.Go(func() { io.Copy(io.Discard, s) })
	for range 2 {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
	reading.Wait()
	s.Wait()
	command.MustEnd(t)
	// The link and its other streams continue.
	io.WriteString(other.Stdin(), "still here")
	other.Stdin().Close()
	if out, err := io.ReadAll(other); string(out) != "still here" || err != nil {
		t.Errorf("the other stream: %q, %v", out, err)
	}
}

func closeLink(t *testing.T, l hosts.Link) {
	s := start(t, l, "echo $$; exec sleep 1000")
	// The command need not end with the link (sshd ends none), so the test ends it.
	command := Hold(t, pidOf(t, s))
	defer command.Kill()
	var blocked sync.WaitGroup
	blocked.Go(func() { io.Copy(io.Discard, s) })
	blocked.Go(func() { io.Copy(io.Discard, s.Stderr()) })
	blocked.Go(func() {
		if s.Wait() == nil {
			t.Error("a command that was cut off counts as a success")
		}
	})
	writing := make(chan struct{})
	blocked.Go(func() {
		// More than all buffers on the way hold, and nobody reads it.
		block := make([]byte, 1<<20)
		s.Stdin().Write(block[:1])
		close(writing)
		for {
			if _, err := s.Stdin().Write(block); err != nil {
				return
			}
		}
	})
	<-writing
	if err := l.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	blocked.Wait()
	s.Close()
}

func closedTwice(t *testing.T, l hosts.Link) {
	for range 3 {
		if err := l.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
	s, err := l.Start(t.Context(), "true")
	checkUnreachable(t, s, err)
}
