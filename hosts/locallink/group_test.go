package locallink_test

import (
	"bufio"
	"io"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"dcs-tui/hosts"
	"dcs-tui/hosts/locallink"
)

// twoPids starts a command that prints two pids and lives on.
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

// Close ends the command's whole process group, and only that: what has left
// for a session of its own, as a supervisor has, lives on.
func TestCloseSparesOtherSessions(t *testing.T) {
	l := locallink.New("here", nil)
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

// When the command ends by itself, what it left in its group ends too, and the
// streams come to an end although that held them open.
func TestLeftoversOfTheGroupEnd(t *testing.T) {
	l := locallink.New("here", nil)
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

// Closing the link ends every command that was started over it.
func TestCloseLinkEndsAll(t *testing.T) {
	l := locallink.New("here", nil)
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
