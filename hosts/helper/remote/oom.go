//go:build linux

package remote

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// oomShare is how much more willing the kernel is, when memory runs out, to end a
// job than what it inherits from: as if it held half of the machine's memory more.
// So a job goes before its supervisor and before colleagues' programs (promise 6),
// but not before a program that holds nearly everything. Raising it needs no
// privilege.
const oomShare = 500

const maxOOM = 1000 // proc(5)

// jobOOM returns what jobs get as their oom_score_adj, "" if it cannot be known.
func jobOOM() string {
	own, err := strconv.Atoi(strings.TrimSpace(string(procFile(os.Getpid(), "oom_score_adj"))))
	if err != nil {
		return ""
	}
	return strconv.Itoa(min(own+oomShare, maxOOM))
}

// offerToKernel sets it for a job that has just been started; what the job starts
// inherits it. A host that does not let us is no reason not to run jobs.
func (s *slot) offerToKernel(pid int) {
	if s.oom == "" {
		return
	}
	path := append(strconv.AppendInt([]byte("/proc/"), int64(pid), 10), "/oom_score_adj"...)
	fd, err := unix.Open(string(path), unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	unix.Write(fd, []byte(s.oom))
	unix.Close(fd)
}
