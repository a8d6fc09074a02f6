package hosttest

import (
	"bufio"
	"io"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"dcs-tui/hosts"
)

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

// held is a hold on a process of this machine that no reuse of its number
// can fool.
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

// mustEnd waits, without polling, for its end.
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

// end kills it.
func (h held) end() { unix.PidfdSendSignal(h.fd, unix.SIGKILL, nil, 0) }

func closeStream(t *testing.T, l hosts.Link) {
	// It reads its input, as the helper does: over ssh that is all that certainly
	// ends a command.
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
	// The link and its other streams go on.
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
	// Whether the command ends with the link is not promised (sshd ends none), so
	// the suite does it.
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
		// More than every buffer on the way holds, read by nobody.
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
