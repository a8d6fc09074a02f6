//go:build linux

package remote

import (
	"encoding/binary"
	"fmt"

	"golang.org/x/sys/unix"

	"dcs-tui/jobs"
)

// tokenBytes is the size of a token. It divides PIPE_BUF, so that tokens are never torn.
const tokenBytes = 32

// appendToken appends a token, which wakes one supervisor for one waiting spec. A token of job 0
// asks the supervisor that reads it to leave.
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

// wakePipe is the helper's end of the pipe, guarded by helper.mu.
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
	// Not inherited: supervisors block on the other end.
	unix.SetNonblock(p.write, true)
	unix.FcntlInt(uintptr(p.write), unix.F_SETPIPE_SZ, 1<<20) // fails if less is allowed
	return nil
}

// add queues a token for send.
func (p *wakePipe) add(id jobs.AttemptID) { p.unsent = appendToken(p.unsent, p.generation, id) }

// send writes as many tokens as fit. The others wait for the next call.
func (p *wakePipe) send() {
	for len(p.unsent) > 0 {
		// At most PIPE_BUF bytes, so that the write is all or nothing.
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

// resendLost sends tokens for everything that waits if no token is left: a token is lost when the
// supervisor that read it dies or leaves. A surplus token is harmless.
func (p *wakePipe) resendLost(waiting map[jobs.AttemptID]bool) {
	if n, err := unix.IoctlGetInt(p.read, unix.TIOCINQ); err == nil && n == 0 && len(p.unsent) == 0 {
		for id := range waiting {
			p.add(id)
		}
	}
	p.send()
}

// dismissIdle asks n idle supervisors to leave.
func (p *wakePipe) dismissIdle(n int) {
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

// tokens is a supervisor's end of the wake pipe. All supervisors of a helper read the same
// pipe, so a token that poll has shown may be gone when it is read.
type tokens struct {
	fd          int
	nonBlocking int // the same pipe, opened non-blocking; -1: not available
}

// openTokens opens the pipe behind fd a second time, because O_NONBLOCK belongs to the open
// file, which the other supervisors share.
func openTokens(fd int) tokens {
	quick, err := unix.Open(fmt.Sprintf("/proc/self/fd/%d", fd), unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		quick = -1
	}
	return tokens{fd, quick}
}

// nextToken waits for a token. It sends the pending report before it waits. It returns false
// when no token will come.
func (s *slot) nextToken() (generation int64, id jobs.AttemptID, ok bool) {
	var b [tokenBytes]byte
	n, err := -1, error(unix.EAGAIN)
	if s.pending.report.Load() != nil && s.tokens.nonBlocking >= 0 {
		n, err = readToken(s.tokens.nonBlocking, b[:])
	}
	if err == unix.EAGAIN {
		s.flushPending()
		s.releaseSlots()
		s.cores.release()
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
