package link

import (
	"bufio"
	"io"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"dcs-tui/hosts"
	"dcs-tui/hosts/hosttest"
)

// TestLocalConformance checks that the local link keeps every promise of hosts.Link.
func TestLocalConformance(t *testing.T) {
	hosttest.Conform(t, func(testing.TB) (hosts.Opener, *hosts.Host) {
		return LocalOpener{}, &hosts.Host{Name: "here", Link: "local"}
	})
}

// twoPids starts a command that prints two pids and keeps running.
func twoPids(t *testing.T, l hosts.Link, command string) (s hosts.Stream, first, second int) {
	t.Helper()
	s = start(t, l, command)
	line, err := bufio.NewReader(s).ReadString('\n')
	must(t, err)
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
	l := NewLocal("here", nil)
	defer l.Close()
	s, inside, outside := twoPids(t, l, `
		sleep 1000 & in=$!
		setsid sh -c 'echo $$; exec sleep 1000 >/dev/null 2>&1' </dev/null | { read out; echo $in $out; }
		wait`)
	group, other := hosttest.Hold(t, inside), hosttest.Hold(t, outside)
	must(t, s.Close())
	group.MustEnd(t)
	if err := syscall.Kill(outside, 0); err != nil {
		t.Errorf("process %d of another session: %v", outside, err)
	}
	other.Kill()
	other.MustEnd(t)
}

// TestLeftoversOfTheGroupEnd checks that, when the command ends by itself, the rest of its process
// group ends too. The streams then end, although these processes held them open.
func TestLeftoversOfTheGroupEnd(t *testing.T) {
	l := NewLocal("here", nil)
	defer l.Close()
	s, shell, left := twoPids(t, l, `sleep 1000 & echo $$ $!; read x`)
	if shell == left {
		t.Fatal("one process only")
	}
	other := hosttest.Hold(t, left)
	s.Stdin().Close()
	if err := s.Wait(); err == nil {
		t.Error("read at the end of input exits with 1")
	}
	other.MustEnd(t)
	if _, err := io.Copy(io.Discard, s); err != nil {
		t.Error(err)
	}
	s.Close()
}

// TestCloseLinkEndsAll checks that closing the link ends every command that was started over it.
func TestCloseLinkEndsAll(t *testing.T) {
	l := NewLocal("here", nil)
	var all []hosttest.Process
	for range 3 {
		_, a, b := twoPids(t, l, `sleep 1000 & echo $$ $!; wait`)
		all = append(all, hosttest.Hold(t, a), hosttest.Hold(t, b))
	}
	must(t, l.Close())
	for _, p := range all {
		p.MustEnd(t)
	}
}
