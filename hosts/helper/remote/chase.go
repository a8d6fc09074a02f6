//go:build linux

package remote

import (
	"bytes"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// A process that hands over to a child and goes is in no picture of all processes,
// or gone when the signal comes. But as we are a subreaper its child becomes ours,
// and our own children can be looked up much faster.

const (
	chaseTime  = 300 * time.Millisecond // how long one chase lasts at most
	chaseLooks = 8                      // so many in a row must find nothing
	chasePause = 300 * time.Microsecond
)

// chase looks for children of ours that mine accepts, ending them with signals, and
// says whether it found any.
func chase(mine func(proc) bool, signals ...unix.Signal) (found bool) {
	until := uptime() + chaseTime
	for empty := 0; empty < chaseLooks && uptime() < until; {
		seen := orphans(mine)
		if len(seen) == 0 {
			empty++
			time.Sleep(chasePause)
			continue
		}
		found, empty = true, 0
		if len(signals) == 0 {
			break
		}
		signalAll(seen, signals...)
	}
	return found
}

// orphans returns those of the children of our first thread that mine accepts: what
// fell to us is among them. Where the kernel does not tell there are none.
func orphans(mine func(proc) bool) (out []proc) {
	var pids []int
	for _, w := range bytes.Fields(procFile(os.Getpid(), "task/"+strconv.Itoa(os.Getpid())+"/children")) {
		pids = append(pids, int(number(w)))
	}
	for _, p := range hungProcs.procs(pids) {
		if endable(p) && mine(p) {
			out = append(out, p)
		}
	}
	return out
}
