package hosttest

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// proc is one process below a server.
type proc struct {
	pid, parent int
	name        string
}

// below lists the living descendants of pid, parents before children. pid must
// be a child of ours that has not been reaped, so its number cannot be reused.
func below(pid int) []proc {
	children := map[int][]proc{}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	for _, e := range entries {
		if n, err := strconv.Atoi(e.Name()); err == nil {
			if p, ok := readProc(n); ok {
				children[p.parent] = append(children[p.parent], p)
			}
		}
	}
	var list []proc
	for queue := []int{pid}; len(queue) > 0; queue = queue[1:] {
		for _, c := range children[queue[0]] {
			list = append(list, c)
			queue = append(queue, c.pid)
		}
	}
	return list
}

// readProc reads name and parent of a process that is no zombie.
func readProc(pid int) (proc, bool) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return proc{}, false
	}
	open, end := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if open < 0 || end < open {
		return proc{}, false
	}
	f := strings.Fields(string(b[end+1:]))
	if len(f) < 2 || f[0] == "Z" || f[0] == "X" {
		return proc{}, false
	}
	parent, err := strconv.Atoi(f[1])
	return proc{pid: pid, parent: parent, name: string(b[open+1 : end])}, err == nil
}

// killTree ends a server with everything below it and waits for the server.
// The listener is stopped first, so that nothing new appears meanwhile.
func killTree(p *process) {
	syscall.Kill(p.pid, syscall.SIGSTOP)
	for range 100 {
		list := below(p.pid)
		if len(list) == 0 {
			break
		}
		for _, c := range list {
			syscall.Kill(c.pid, syscall.SIGSTOP)
		}
		// Leaves first: a child whose parent is dead is nobody's descendant.
		for i := len(list) - 1; i >= 0; i-- {
			syscall.Kill(list[i].pid, syscall.SIGKILL)
		}
	}
	syscall.Kill(p.pid, syscall.SIGKILL)
	<-p.gone
}
