//go:build linux

package remote

import (
	"encoding/binary"
	"fmt"

	"golang.org/x/sys/unix"

	"dcs-tui/jobs"
)

// The wake pipe: a helper writes a token for each spec, and all its supervisors read.

// tokenBytes is the size of a token. It divides PIPE_BUF, so that a write of
// several is never torn and a read of one is always whole.
const tokenBytes = 32

// A token wakes one supervisor: one spec waits. Job 0 asks the one that reads
// it to leave.
func appendToken(b []byte, generation int64, id jobs.AttemptID) []byte {
	b = binary.LittleEndian.AppendUint64(b, uint64(generation))
	b = binary.LittleEndian.AppendUint64(b, uint64(id.Job))
	b = binary.LittleEndian.AppendUint64(b, uint64(id.N))
	return binary.LittleEndian.AppendUint64(b, 0)
}

func parseToken(b []byte) (generation int64, id jobs.AttemptID) {
	return int64(binary.LittleEndian.Uint64(b)), jobs.AttemptID{
		Job: jobs.ID(binary.LittleEndian.Uint64(b[8:])),
		N:   int(binary.LittleEndian.Uint64(b[16:])),
	}
}

// wakePipe is the helper's end of the pipe. It is guarded by helper.mu.
type wakePipe struct {
	read, write int
	generation  int64
	unsent      []byte // tokens that did not fit into the pipe
}

func (p *wakePipe) open(generation int64) error {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		return fmt.Errorf("making the wake pipe: %w", err)
	}
	p.read, p.write, p.generation = fds[0], fds[1], generation
	unix.SetNonblock(p.write, true)                           // ours alone: supervisors wait on the other end
	unix.FcntlInt(uintptr(p.write), unix.F_SETPIPE_SZ, 1<<20) // as much as is allowed
	return nil
}

// add puts a token into the queue; send writes it.
func (p *wakePipe) add(id jobs.AttemptID) { p.unsent = appendToken(p.unsent, p.generation, id) }

// send writes as many tokens as fit; the rest wait for the next call.
func (p *wakePipe) send() {
	for len(p.unsent) > 0 {
		// At most PIPE_BUF a write, so that it is all or nothing.
		n, err := unix.Write(p.write, p.unsent[:min(len(p.unsent), 4096)])
		if err == unix.EINTR {
			continue
		}
		if err != nil || n <= 0 {
			return
		}
		p.unsent = p.unsent[n:]
	}
	p.unsent = nil
}

// again sends a token for everything that waits if no token is left: one was lost with
// a supervisor that died or left. A token too many does no harm.
func (p *wakePipe) again(waiting map[jobs.AttemptID]bool) {
	if n, err := unix.IoctlGetInt(p.read, unix.TIOCINQ); err == nil && n == 0 && len(p.unsent) == 0 {
		for id := range waiting {
			p.add(id)
		}
	}
	p.send()
}

// dismiss asks n idle supervisors to leave.
func (p *wakePipe) dismiss(n int) {
	for range n {
		p.add(jobs.AttemptID{})
	}
	p.send()
}

func (p *wakePipe) close() {
	unix.Close(p.write)
	unix.Close(p.read)
	p.write, p.read = -1, -1
}

// tokens is a supervisor's end of the wake pipe. All of a helper's supervisors read the
// same one, so that a token which is seen there
// may be gone when it is read.
type tokens struct {
	fd    int
	quick int // the same pipe, read without waiting; -1: cannot be had
}

// openTokens opens the pipe behind fd once more: whether reading waits is a
// property of the open file, which the others share with us.
func openTokens(fd int) tokens {
	quick, err := unix.Open(fmt.Sprintf("/proc/self/fd/%d", fd), unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		quick = -1
	}
	return tokens{fd, quick}
}

// nextToken waits for a token. What is owed is paid before it waits. It
// returns false when no token will come.
func (s *slot) nextToken() (generation int64, id jobs.AttemptID, ok bool) {
	var b [tokenBytes]byte
	n, err := -1, error(unix.EAGAIN)
	if s.debt.cur.Load() != nil && s.tokens.quick >= 0 {
		n, err = readToken(s.tokens.quick, b[:])
	}
	if err == unix.EAGAIN {
		s.pay()
		s.letGo()
		n, err = readToken(s.tokens.fd, b[:])
	}
	if err != nil || n != tokenBytes {
		return 0, id, false
	}
	generation, id = parseToken(b[:])
	return generation, id, true
}

func readToken(fd int, b []byte) (int, error) {
	for {
		if n, err := unix.Read(fd, b); err != unix.EINTR {
			return n, err
		}
	}
}
