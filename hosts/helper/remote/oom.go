//go:build linux

package remote

import (
	"bytes"
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
// from then on inherits it, and what it has started already is looked for. A host
// that does not let us is no reason not to run jobs.
func (s *slot) offerToKernel(pid int) {
	if s.oom == "" {
		return
	}
	number := strconv.Itoa(pid)
	fd, err := unix.Open("/proc/"+number+"/oom_score_adj", unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	unix.Write(fd, []byte(s.oom))
	unix.Close(fd)
	if fd, err = openProc("/proc/" + number + "/task/" + number + "/children"); err != nil {
		return
	}
	var buf [256]byte
	n, _ := unix.Read(fd, buf[:])
	unix.Close(fd)
	for _, w := range bytes.Fields(buf[:max(0, n)]) {
		if child, err := strconv.Atoi(string(w)); err == nil {
			s.offerToKernel(child)
		}
	}
}
