package locallink_test

import (
	"testing"

	"golang.org/x/sys/unix"
)

// pidEnd takes hold of a process now and returns a wait for its end.
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
