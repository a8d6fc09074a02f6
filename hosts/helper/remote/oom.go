//go:build linux

package remote

import (
	"bytes"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// oomShare is how much more willing the kernel is, when memory runs out, to end a
// job than what it inherits from: as if it held half of the machine's memory more.
// So a job goes before its supervisor and before colleagues' programs (promise 6),
// but not before a program that holds nearly everything. Raising it needs no
// privilege.
const oomShare = 500

const maxOOM = 1000 // proc(5)

// oomScore is the oom_score_adj of this process and of the jobs that it starts.
type oomScore struct {
	fd       int // -1: it cannot be set
	own, job []byte
}

// openOOM returns the score of this process. A host that does not let us set it is no
// reason not to run jobs.
func openOOM() oomScore {
	const path = "/proc/self/oom_score_adj"
	o := oomScore{fd: -1}
	own, err := os.ReadFile(path)
	o.own = bytes.TrimSpace(own)
	n, err2 := strconv.Atoi(string(o.own))
	if err != nil || err2 != nil || n >= maxOOM {
		return o
	}
	o.job = strconv.AppendInt(nil, int64(min(n+oomShare, maxOOM)), 10)
	if o.fd, err = unix.Open(path, unix.O_WRONLY|unix.O_CLOEXEC, 0); err != nil {
		o.fd = -1
	}
	return o
}

// offer makes children that are started from here on the ones that the kernel ends
// first, and this process with them until withdraw. A child has the score from its first
// instruction on, and so has what it starts.
func (o *oomScore) offer() {
	if o.fd >= 0 {
		unix.Pwrite(o.fd, o.job, 0)
	}
}

func (o *oomScore) withdraw() {
	if o.fd >= 0 {
		unix.Pwrite(o.fd, o.own, 0)
	}
}
