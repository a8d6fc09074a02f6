//go:build linux

package remote

import (
	"bytes"
	"os"
	"strconv"
	"time"

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
	kills    uint64        // of the machine when last counted
	countAt  time.Duration // boot clock; 0: never
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

// oomFresh is how old the count of kills may be when a job begins.
const oomFresh = 10 * time.Second

// begin counts the processes that the kernel has ended so far because memory ran out. It
// is called when a job begins, and reads the count again only if the last one is old.
func (o *oomScore) begin() {
	if now := uptime(); o.countAt == 0 || now-o.countAt > oomFresh {
		o.kills, o.countAt = oomKills(), now
	}
}

// killed reports whether the kernel has ended processes for that reason since begin.
func (o *oomScore) killed() bool {
	before := o.kills
	o.kills, o.countAt = oomKills(), uptime()
	return o.kills > before
}

var vmstatFile = "/proc/vmstat" // tests put another file there

// oomKills reads the count of such kills on this machine. It is 0 on kernels older than 4.13.
func oomKills() uint64 {
	b, _ := os.ReadFile(vmstatFile)
	_, rest, _ := bytes.Cut(b, []byte("\noom_kill "))
	return number(rest)
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
