//go:build linux

package remote

import (
	"bytes"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// chaseTime is how long one chase lasts at most.
const chaseTime = 300 * time.Millisecond

// chase ends those of our children that mine accepts, again and again, faster than
// a picture of all processes can be taken: a process that hands over to a child and
// goes is never in any picture when the signal comes. As we are a subreaper, its
// child becomes ours.
func chase(mine func(proc) bool) {
	for until := uptime() + chaseTime; uptime() < until; {
		found := false
		for _, pid := range orphans() {
			if p, ok := readProc(pid); ok && endable(p) && mine(p) {
				found = true
				signalAll([]proc{p}, unix.SIGKILL)
			}
		}
		if !found {
			return
		}
	}
}

// orphans returns the children of our first thread: those that fell to us are
// among them. Where the kernel does not tell there are none.
func orphans() (pids []int) {
	for _, w := range bytes.Fields(procFile(os.Getpid(), "task/"+strconv.Itoa(os.Getpid())+"/children")) {
		pids = append(pids, int(number(w)))
	}
	return pids
}
