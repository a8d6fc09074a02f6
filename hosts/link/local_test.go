package link_test

import (
	"bufio"
	"io"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"dcs-tui/hosts"
	"dcs-tui/hosts/hosttest"
	"dcs-tui/hosts/link"
)

// TestLocalConformance checks that the local link keeps every promise of hosts.Link.
func TestLocalConformance(t *testing.T) {
	hosttest.Conform(t, func(testing.TB) (hosts.Opener, *hosts.Host) {
		return link.LocalOpener{}, &hosts.Host{Name: "here", Link: "local"}
	})
}

// twoPids starts a command that prints two pids and keeps running.
func twoPids(t *testing.T, l hosts.Link, command string) (s hosts.Stream, first, second int) {
	t.Helper()
	s, err := l.Start(t.Context(), command)
	if err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(s).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	f := strings.Fields(line)
	if len(f) != 2 {
		t.Fatalf("got %q", line)
	}
	first, _ = strconv.Atoi(f[0])
	second, _ = strconv.Atoi(f[1])
	return s, first, second
}

// TestCloseSparesOtherSessions checks that Close ends the command's whole process group, and
// nothing else: a process in a session of its own, such as a supervisor, keeps running.
func TestCloseSparesOtherSessions(t *testing.T) {
	l := link.NewLocal("here", nil)
	defer l.Close()
	s, inside, outside := twoPids(t, l, `
		sleep 1000 & in=$!
		setsid sh -c 'echo $$; exec sleep 1000 >/dev/null 2>&1' </dev/null | { read out; echo $in $out; }
		wait`)
	end := pidEnd(t, inside)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	end()
	if err := syscall.Kill(outside, 0); err != nil {
		t.Errorf("process %d of another session: %v", outside, err)
	}
	gone := pidEnd(t, outside)
	if err := syscall.Kill(outside, syscall.SIGKILL); err != nil {
		t.Error(err)
	}
	gone()
}

// TestLeftoversOfTheGroupEnd checks that, when the command ends by itself, the rest of its process
// group ends too. The streams then end, although these processes held them open.
func TestLeftoversOfTheGroupEnd(t *testing.T) {
	l := link.NewLocal("here", nil)
	defer l.Close()
	s, shell, left := twoPids(t, l, `sleep 1000 & echo $$ $!; read x`)
	if shell == left {
		t.Fatal("one process only")
	}
	gone := pidEnd(t, left)
	s.Stdin().Close()
	if err := s.Wait(); err == nil {
		t.Error("read at the end of input exits with 1")
	}
	gone()
	if _, err := io.Copy(io.Discard, s); err != nil {
		t.Error(err)
	}
	s.Close()
}

// TestCloseLinkEndsAll checks that closing the link ends every command that was started over it.
func TestCloseLinkEndsAll(t *testing.T) {
	l := link.NewLocal("here", nil)
	var gone []func()
	for range 3 {
		_, a, b := twoPids(t, l, `sleep 1000 & echo $$ $!; wait`)
		gone = append(gone, pidEnd(t, a), pidEnd(t, b))
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	for _, f := range gone {
		f()
	}
}

// pidEnd opens a handle of a process and returns a function that waits for its end.
func pidEnd(t *testing.T, pid int) func() {
	t.Helper()
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		t.Fatalf("process %d: %v", pid, err)
	}
	return func() {
		t.Helper()
		defer unix.Close(fd)
		for {
			n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 30_000)
			if err == unix.EINTR {
				continue
			}
			if n == 0 {
				t.Errorf("process %d lives on", pid)
			}
			return
		}
	}
}
