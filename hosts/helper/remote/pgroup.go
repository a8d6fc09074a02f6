//go:build linux

package remote

// pgroup is the process group of a job's shell, remembered from when the shell
// was there. Its number alone proves nothing later: when the last member has
// gone the kernel gives the number to somebody else, perhaps of the same user.
type pgroup struct {
	id     int    // pid of the shell; 0: not known
	leader uint64 // start of the shell; 0: not known, it had gone when we looked
	since  uint64 // no member is older: start of the shell, or of its supervisor
}

// groupOf looks at a shell while it is, or may still be, its supervisor's child.
func groupOf(pid int, by holder) pgroup {
	g := pgroup{id: pid, since: by.start}
	if p, ok := readProc(pid); ok && p.ppid == by.pid && p.start >= by.start {
		g.leader, g.since = p.start, p.start
	}
	return g
}

// has says whether p, found in t, belongs to the job for no other reason than
// its group. While the shell itself is there, be it as a zombie, the number
// cannot have passed on. Without it only such members count as let us see no
// environment (bare): any other of the job's would show the job's cookie.
func (g pgroup) has(t table, p proc, bare bool) bool {
	if g.id <= 0 || p.group != g.id || p.start < g.since {
		return false
	}
	if shell, there := t[g.id]; there && g.leader != 0 {
		return shell.start == g.leader
	}
	return bare
}
