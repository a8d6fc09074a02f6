package link

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// userTimeout bounds, in milliseconds, how long sent bytes may stay unanswered
// before the kernel gives the connection up: what was written into a cut link
// must not run when the link heals.
const userTimeout = 30_000

// control sets what the net package has no word for.
func control(_, _ string, c syscall.RawConn) error {
	var set error
	if err := c.Control(func(fd uintptr) {
		set = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, userTimeout)
	}); err != nil {
		return err
	}
	return set
}
