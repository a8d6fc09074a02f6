//go:build linux

package remote

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// keepDescriptors makes every descriptor but the standard three close on exec,
// those too that somebody let us inherit: sshd waits for each that a process
// below it holds, and jobs have no business with them.
func keepDescriptors() {
	if unix.CloseRange(3, 1<<31-1, unix.CLOSE_RANGE_CLOEXEC) == nil {
		return
	}
	entries, _ := os.ReadDir("/proc/self/fd") // a kernel older than 5.11
	for _, e := range entries {
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd > 2 {
			unix.CloseOnExec(fd)
		}
	}
}
