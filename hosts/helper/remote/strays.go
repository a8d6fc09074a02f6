//go:build linux

package remote

import (
	"os"

	"golang.org/x/sys/unix"
)

// What a supervisor was the parent of falls to the helper that started it when it
// is killed: the helper is a subreaper too. So also that is found which carries no
// cookie any more.

// adoptOrphans makes this process a subreaper. It does not touch what it had as
// children already: a login shell may have started something before it became us.
// With such children we cannot tell what comes of them from what comes of jobs.
func (h *helper) adoptOrphans() {
	if unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != nil {
		return
	}
	for _, p := range scan(nil) {
		if p.ppid == os.Getpid() {
			return
		}
	}
	h.parent = true
}

// stray says of a process whether it is the orphan of a supervisor that died, and
// carries no cookie that tells whose it is.
func (h *helper) stray(p proc) bool {
	if !h.parent || h.open.KeepChildren || p.ppid != os.Getpid() || !endable(p) {
		return false
	}
	if mark, _ := cookieOf(p.pid); mark != "" {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.sups[p.pid] == nil && p.pid != h.suspender
}

// strays chooses them and all below them.
func (h *helper) strays(t table) []proc {
	var roots []int
	for pid, p := range t {
		if h.stray(p) {
			roots = append(roots, pid)
		}
	}
	return t.pick(append(t.under(roots...), roots...), nil)
}
