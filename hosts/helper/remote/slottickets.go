//go:build linux

package remote

import (
	"fmt"

	"golang.org/x/sys/unix"

	"dcs-tui/jobs"
)

// tickets is the pipe by which the helper rings, as a supervisor has it. All of
// a helper's supervisors read the same one, so that a ticket which is seen there
// may be gone when it is read.
type tickets struct {
	fd    int
	quick int // the same pipe, read without waiting; -1: cannot be had
}

// openTickets opens the pipe behind fd once more: whether reading waits is a
// property of the open file, which the others share with us.
func openTickets(fd int) tickets {
	quick, err := unix.Open(fmt.Sprintf("/proc/self/fd/%d", fd), unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		quick = -1
	}
	return tickets{fd, quick}
}

// nextTicket waits for a ticket. What is owed is paid before it waits. It
// returns false when no ticket will come.
func (s *slot) nextTicket() (generation int64, id jobs.AttemptID, ok bool) {
	var b [ticketBytes]byte
	n, err := -1, error(unix.EAGAIN)
	if s.debt.cur.Load() != nil && s.tickets.quick >= 0 {
		n, err = readTicket(s.tickets.quick, b[:])
	}
	if err == unix.EAGAIN {
		s.pay()
		n, err = readTicket(s.tickets.fd, b[:])
	}
	if err != nil || n != ticketBytes {
		return 0, id, false
	}
	generation, id = parseTicket(b[:])
	return generation, id, true
}

func readTicket(fd int, b []byte) (int, error) {
	for {
		if n, err := unix.Read(fd, b); err != unix.EINTR {
			return n, err
		}
	}
}
