//go:build linux

package remote

import (
	"bytes"
	"os"
	"slices"
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

// chaser looks for children of ours that mine accepts.
type chaser struct {
	mine func(proc) bool
	dead map[int]bool // children that have ended and were not waited for: they are not looked up again
}

// chase ends them with signals, and says whether it found any, or could not be sure.
func (c *chaser) chase(signals ...unix.Signal) (found bool) {
	until := uptime() + chaseTime
	empty := 0
	for empty < chaseLooks && uptime() < until {
		seen, sure := c.look(children())
		switch {
		case len(seen) > 0 && len(signals) == 0:
			return true
		case len(seen) > 0:
			found, empty = true, 0
			signalAll(seen, signals...)
			continue
		case sure:
			empty++
		}
		time.Sleep(chasePause)
	}
	return found || empty == 0
}

// children lists the children of our first thread, to which orphans fall. Where the
// kernel does not tell there are none.
func children() (pids []int) {
	for _, w := range bytes.Fields(procFile(os.Getpid(), "task/"+strconv.Itoa(os.Getpid())+"/children")) {
		pids = append(pids, int(number(w)))
	}
	return pids
}

// look returns those of pids, our children, that are ours to end. It is not sure if one of
// them has ended since they were listed, because that one's children are ours now.
func (c *chaser) look(pids []int) (out []proc, sure bool) {
	known := c.dead
	c.dead = map[int]bool{} // a pid that is not listed any more may pass to another child
	pids = slices.DeleteFunc(pids, func(pid int) bool {
		if known[pid] {
			c.dead[pid] = true
		}
		return known[pid] || hungProcs.has(pid)
	})
	answered := hungProcs.procs(pids)
	sure = len(answered) == len(pids)
	for _, p := range answered {
		switch {
		case !endable(p):
			c.dead[p.pid], sure = true, false
		case c.mine(p):
			out = append(out, p)
		}
	}
	return out, sure
}
