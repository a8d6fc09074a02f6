package link

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// userTimeout is how long, in milliseconds, sent bytes may stay unacknowledged before the
// kernel closes the connection. What was written into a cut link must not run when the link
// is restored.
const userTimeout = 30_000

// control sets the option that the net package lacks.
func control(_, _ string, c syscall.RawConn) error {
	var set error
	if err := c.Control(func(fd uintptr) {
		set = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, userTimeout)
	}); err != nil {
		return err
	}
	return set
}
