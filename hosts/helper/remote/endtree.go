//go:build linux

package remote

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// chooser selects the processes to end from a snapshot of all processes.
type chooser func(t table) []proc

// withCookie chooses every process whose environment has a cookie that ok accepts, every process of
// the group, those that also accepts (nil: none), and everything below these. It never chooses the
// caller or the pids in spare.
func withCookie(ok func(cookie string) bool, group pgroup, spare map[int]bool, also func(p proc) bool) chooser {
	return func(t table) []proc {
		var pids, roots []int
		for pid, p := range t {
			if !spare[pid] && isEndable(p) {
				pids = append(pids, pid)
			}
			if also != nil && also(p) {
				roots = append(roots, pid)
			}
		}
		for pid, m := range cookiesOf(pids) {
			if ok(m.cookie) || group.has(t, t[pid], m.cookie == "" && m.unreadable) {
				roots = append(roots, pid)
			}
		}
		return t.pickEndable(append(t.descendants(roots...), roots...), spare)
	}
}

// jobTree is withCookie for the processes of one attempt.
func jobTree(mine string, group pgroup, spare map[int]bool, also func(p proc) bool) chooser {
	return withCookie(func(s string) bool { return s == mine }, group, spare, also)
}

// isEndable excludes dead processes, kernel threads, and the caller.
func isEndable(p proc) bool {
	return p.state != 'Z' && p.state != 'X' && p.pid > 2 && p.ppid != 2 && p.pid != os.Getpid()
}

// pickEndable returns the endable processes among pids, each once.
func (t table) pickEndable(pids []int, spare map[int]bool) []proc {
	var out []proc
	seen := map[int]bool{}
	for _, pid := range pids {
		if p := t[pid]; !seen[pid] && !spare[pid] && isEndable(p) {
			seen[pid] = true
			out = append(out, p)
		}
	}
	return out
}

// Surviving processes get SIGKILL until both bounds are reached. Rounds alone would end too early
// for processes that quickly start others, and time alone would allow too few rounds on a busy
// host.
const (
	killRounds = 20
	killTime   = 10 * time.Second
)

// endAll ends what pick chooses among all processes.
func endAll(pick chooser, grace time.Duration) []proc { return endChasing(pick, nil, grace) }

// endChasing is endAll for processes that may include our own children: those that mine accepts are
// chased.
func endChasing(pick chooser, mine func(proc) bool, grace time.Duration) []proc {
	return (&ending{pick: pick, mine: mine}).run(grace)
}

// ending ends processes.
type ending struct {
	pick chooser
	mine func(proc) bool // accepts those of our own children that are chased; nil: none

	// isElsewhere reports whether a process to end may be no descendant of ours. Until it does, only
	// descendants are considered. If it is nil, all processes are considered from the start. It is
	// called when no descendant is left to end, or the rest cannot be ended.
	isElsewhere func() bool
}

// choose returns what is to be ended now.
func (e *ending) choose() []proc {
	if e.isElsewhere == nil {
		return e.pick(scan(nil))
	}
	return e.pick(scanOwn())
}

// run ends the processes, and returns what could not be ended because it is stuck in the kernel.
func (e *ending) run(grace time.Duration) []proc {
	left := e.end(grace)
	if e.isElsewhere != nil && e.isElsewhere() {
		e.isElsewhere = nil
		left = e.end(grace) // those elsewhere have their grace, too
	}
	return left
}

// end sends SIGTERM and SIGCONT, waits at most grace, and then sends SIGKILL, with a new snapshot per
// round, until nothing is left that choose finds.
func (e *ending) end(grace time.Duration) []proc {
	mine := e.mine
	c := &chaser{mine: mine, dead: map[int]bool{}}
	gone := func(left []proc, signals ...unix.Signal) bool {
		if len(left) > 0 {
			return false
		}
		if mine != nil && !hasNoChildren() && c.signalAll(signals...) {
			return false
		}
		return hungProcs.waitUntilNone()
	}
	told := map[int]uint64{} // pid: start of processes that got SIGTERM
	var deadline time.Duration
	for {
		left := e.choose()
		if gone(left) {
			return nil
		}
		now := uptime()
		if deadline == 0 {
			deadline = now + grace // not earlier, because the first snapshot may have taken long
		}
		if now >= deadline {
			break
		}
		var fresh []proc
		for _, p := range left {
			if told[p.pid] != p.start {
				told[p.pid] = p.start
				fresh = append(fresh, p)
			}
		}
		signalAll(fresh, unix.SIGTERM, unix.SIGCONT)
		// Look again soon, because processes that start in the meantime must get SIGTERM, too.
		waitAny(left, min(deadline-now, 250*time.Millisecond))
	}
	began := uptime()
	for round := 0; round < killRounds || uptime()-began < killTime; round++ {
		left := e.choose()
		if gone(left, unix.SIGKILL) {
			return nil
		}
		signalAll(left, unix.SIGKILL)
		if round > 0 && mine != nil {
			c.signalAll(unix.SIGKILL)
		}
		waitAny(left, 500*time.Millisecond)
	}
	left := e.choose()
	if len(left) == 0 && mine != nil {
		left, _ = c.ownChildren(children())
	}
	return left
}

// parentsFirst orders processes so that parents precede their children: a shell that outlives its
// command would run the next one.
func parentsFirst(ps []proc) []proc {
	parent := make(map[int]int, len(ps))
	for _, p := range ps {
		parent[p.pid] = p.ppid
	}
	depth := func(pid int) (n int) {
		for n <= len(ps) { // bounded, because a snapshot with reused pids may have cycles
			up, ok := parent[pid]
			if !ok {
				break
			}
			pid = up
			n++
		}
		return n
	}
	ordered := slices.Clone(ps)
	slices.SortStableFunc(ordered, func(a, b proc) int { return depth(a.pid) - depth(b.pid) })
	return ordered
}

// signalAll sends signals to exactly these processes, parents first. A pidfd holds each process
// while its start time is compared, so that a reused pid is never hit.
func signalAll(ps []proc, signals ...unix.Signal) {
	for _, p := range parentsFirst(ps) {
		fd, err := unix.PidfdOpen(p.pid, 0)
		if now, ok := readProc(p.pid); !ok || now.start != p.start {
			if err == nil {
				unix.Close(fd)
			}
			continue
		}
		for _, s := range signals {
			if err == nil {
				unix.PidfdSendSignal(fd, s, nil, 0)
			} else { // kernels older than 5.3
				unix.Kill(p.pid, s)
			}
		}
		if err == nil {
			unix.Close(fd)
		}
	}
}

// waitAny waits until one of these processes has ended, at most d.
func waitAny(ps []proc, d time.Duration) {
	var fds []unix.PollFd
	for _, p := range ps {
		fd, err := unix.PidfdOpen(p.pid, 0)
		if err != nil {
			continue
		}
		defer unix.Close(fd)
		if now, ok := readProc(p.pid); !ok || now.start != p.start || now.state == 'Z' {
			return
		}
		fds = append(fds, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
		if len(fds) == 256 {
			break
		}
	}
	if len(fds) == 0 {
		// No pidfds are available, or all have ended: look again soon.
		d = min(d, 10*time.Millisecond)
	}
	unix.Poll(fds, int(d/time.Millisecond))
}

// listProcs lists processes for a message.
func listProcs(ps []proc) string {
	var b strings.Builder
	for i, p := range ps {
		if i == 8 {
			fmt.Fprintf(&b, " and %d more", len(ps)-i)
			break
		}
		fmt.Fprintf(&b, " %d (%s)", p.pid, strings.TrimSpace(string(procFile(p.pid, "comm"))))
	}
	return strings.TrimSpace(b.String())
}

// A snapshot may miss a process that starts a child and exits, or it is gone when the signal comes.
// But its child becomes ours, because we are a subreaper, and our children can be listed much
// faster.

const (
	chaseTime     = 300 * time.Millisecond // maximum duration of a chase
	maxEmptyLooks = 8                      // looks in a row that must find nothing
	chasePause    = 300 * time.Microsecond
)

// chaser looks for children of ours that mine accepts.
type chaser struct {
	mine func(proc) bool
	dead map[int]bool // children that have ended and were not collected
}

// signalAll sends signals to them, and reports whether it found any or could not be sure.
func (c *chaser) signalAll(signals ...unix.Signal) (found bool) {
	until := uptime() + chaseTime
	empty := 0
	for empty < maxEmptyLooks && uptime() < until {
		seen, sure := c.ownChildren(children())
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

// children returns the children of our first thread, to which orphans fall, or none if the kernel
// does not report them.
func children() []int { return childrenOf(proc{pid: os.Getpid()}) }

// ownChildren returns those of pids, our children, that mine accepts. It is not sure if one of them
// has ended since they were listed, because its children are ours now.
func (c *chaser) ownChildren(pids []int) (out []proc, sure bool) {
	known := c.dead
	c.dead = map[int]bool{} // without those that are not listed any more: their pids may be reused
	pids = slices.DeleteFunc(pids, func(pid int) bool {
		if known[pid] {
			c.dead[pid] = true
		}
		return known[pid] || hungProcs.isHung(pid)
	})
	answered := hungProcs.procs(pids)
	sure = len(answered) == len(pids)
	for _, p := range answered {
		switch {
		case !isEndable(p):
			c.dead[p.pid], sure = true, false
		case c.mine(p):
			out = append(out, p)
		}
	}
	return out, sure
}

// pgroup is the process group of a job's shell. Its number alone proves nothing later, because the
// kernel reuses it after the last member has ended, possibly for the same user.
type pgroup struct {
	id     int    // pid of the shell; 0: unknown
	leader uint64 // start of the shell; 0: unknown, because it had ended when we looked
	since  uint64 // start of the shell or of its supervisor; members are not older
}

// groupOf returns the process group of a shell that is, or was, a child of a supervisor.
func groupOf(pid int, by holder) pgroup {
	g := pgroup{id: pid, since: by.Start}
	if p, ok := readProc(pid); ok && p.ppid == by.PID && p.start >= by.Start {
		g.leader, g.since = p.start, p.start
	}
	return g
}

// has reports whether p, found in t, belongs to the job because of its group alone. While the shell
// exists, even as a zombie, the number cannot be reused. Without it, only members count whose
// environment cannot be seen (unreadable): the others would show the job's cookie.
func (g pgroup) has(t table, p proc, unreadable bool) bool {
	if g.id <= 0 || p.group != g.id || p.start < g.since {
		return false
	}
	if shell, there := t[g.id]; there && g.leader != 0 {
		return shell.start == g.leader
	}
	return unreadable
}
