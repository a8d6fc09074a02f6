//go:build linux

package remote

import (
	"fmt"

	"golang.org/x/sys/unix"

	"dcs-tui/jobs"
)

// ringer is the helper's end of the ticket pipe. Guarded by helper.mu.
type ringer struct {
	read, write int
	generation  int64
	unrung      []byte // tickets that did not fit into the pipe
}

func (r *ringer) open(generation int64) error {
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
		return fmt.Errorf("making the ticket pipe: %w", err)
	}
	r.read, r.write, r.generation = p[0], p[1], generation
	unix.SetNonblock(r.write, true)                           // ours alone: supervisors wait on the other end
	unix.FcntlInt(uintptr(r.write), unix.F_SETPIPE_SZ, 1<<20) // as much as is allowed
	return nil
}

// add puts a ticket into the queue; ring sends the queue.
func (r *ringer) add(id jobs.AttemptID) { r.unrung = appendTicket(r.unrung, r.generation, id) }

// ring writes as many tickets as fit; the rest wait for the next call.
func (r *ringer) ring() {
	for len(r.unrung) > 0 {
		// At most PIPE_BUF a write, so that it is all or nothing.
		n, err := unix.Write(r.write, r.unrung[:min(len(r.unrung), 4096)])
		if err == unix.EINTR {
			continue
		}
		if err != nil || n <= 0 {
			return
		}
		r.unrung = r.unrung[n:]
	}
	r.unrung = nil
}

// again rings once more for everything that waits if no ticket is left: one was
// lost with a supervisor that died or left. A ticket too many does no harm.
func (r *ringer) again(waiting map[jobs.AttemptID]bool) {
	if n, err := unix.IoctlGetInt(r.read, unix.TIOCINQ); err == nil && n == 0 && len(r.unrung) == 0 {
		for id := range waiting {
			r.add(id)
		}
	}
	r.ring()
}

// dismiss asks n idle supervisors to leave.
func (r *ringer) dismiss(n int) {
	for range n {
		r.add(jobs.AttemptID{})
	}
	r.ring()
}

func (r *ringer) close() {
	unix.Close(r.write)
	unix.Close(r.read)
	r.write, r.read = -1, -1
}
