package run

import (
	"fmt"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"dcs-tui/internal/polltest"
)

// TestStarterOfAnOlderVersion checks that a background dispatcher does not wait for a starter that sends only
// the token and keeps its end open, as programs before the task did: on macOS, the program may have been
// replaced since its start.
func TestStarterOfAnOlderVersion(t *testing.T) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	must(t, err)
	defer unix.Close(fds[0])
	const token = "TOKEN"
	_, err = unix.Write(fds[0], []byte(token))
	must(t, err)
	t.Setenv(BackgroundEnv, fmt.Sprintf("%d:%s", fds[1], token))
	found := make(chan *Starter, 1)
	go func() { found <- FindStarter() }()
	select {
	case s := <-found:
		if s == nil || s.Silent != nil {
			t.Fatalf("got %+v, want a starter without a task", s)
		}
		s.socket.Close()
	case <-time.After(polltest.Patience):
		t.Fatal("it waits for the starter")
	}
}
