//go:build linux

package remote

import (
	"fmt"
	"strings"

	"golang.org/x/sys/unix"
)

// What a supervisor has to say while no helper is there goes to its log, standard
// error: the FIFO forgets it when the last supervisor leaves.

// alone says that the helper which started this supervisor is gone.
func (s *slot) alone() bool {
	fds := []unix.PollFd{{Fd: int32(s.tokens.fd)}}
	n, err := unix.Poll(fds, 0)
	return err == nil && n > 0 && fds[0].Revents&unix.POLLHUP != 0
}

// hearLogsLocked passes on what supervisors of earlier helpers have left in their
// logs, once.
func (h *helper) hearLogsLocked() {
	names, err := h.spool.list(dirLog)
	if err != nil {
		h.troubleLocked(err.Error())
		return
	}
	ours := fmt.Sprintf("%d.", h.generation)
	for _, n := range names {
		if strings.HasPrefix(n, ours) {
			continue
		}
		path := h.spool.path(dirLog, n)
		text, err := beginning(path)
		if err != nil {
			h.troubleLocked("spool: " + err.Error())
			continue
		}
		if text != "" {
			h.troubleLocked("said while no helper was here: " + text)
		}
		remove(path)
	}
}

// beginning returns the beginning of a log on one line: a crash says what happened
// first.
func beginning(path string) (string, error) {
	buf := make([]byte, 2048)
	n, err := readInto(unix.AT_FDCWD, path, buf)
	text := strings.Join(strings.Fields(string(buf[:n])), " ")
	return text[:min(len(text), 900)], err
}
