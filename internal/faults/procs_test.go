package faults

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// proc is a process of a machine, as this test sees it from outside.
type proc struct {
	pid  int // outside
	in   int // in its machine
	ppid int // outside
	name string
	args []string

	stopped bool // by a signal
}

func (p proc) String() string { return strconv.Itoa(p.in) + " " + strings.Join(p.args, " ") }

func (p proc) has(arg string) bool {
	for _, a := range p.args {
		if a == arg {
			return true
		}
	}
	return false
}

// What there is on a machine.
func isListener(p proc) bool {
	return p.name == "sshd" && strings.Contains(strings.Join(p.args, " "), "[listener]")
}
func isSession(p proc) bool    { return strings.HasPrefix(p.name, "sshd") && !isListener(p) }
func isHelper(p proc) bool     { return p.has("__host") }
func isSupervisor(p proc) bool { return p.has("__slot") }
func isDispatcher(p proc) bool { return len(p.args) > 1 && p.has("--no-tui") && p.name == "dcs-tui" }

// find lists the living processes of the machine that are meant. It reads
// this machine's own /proc and goes by pid namespace: no word of the product is
// believed.
func (m *machine) find(meant func(proc) bool) []proc {
	s := m.now.Load()
	if s == nil {
		return nil
	}
	ns, err := os.Readlink(pidNS(s.init))
	if err != nil {
		return nil
	}
	var list []proc
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == s.init {
			continue
		}
		if here, err := os.Readlink(pidNS(pid)); err != nil || here != ns {
			continue
		}
		if p, ok := look(pid); ok && meant(p) {
			list = append(list, p)
		}
	}
	return list
}

// strangers are all processes that belong neither to the machine itself nor to
// its ssh server. When no run is on, there must be none. (A session of the server
// whose peer vanished without a word stays until the kernel finds out; it
// counts when something runs below it, and then that counts.)
func (m *machine) strangers() []proc {
	s := m.now.Load()
	if s == nil {
		return nil
	}
	return m.find(func(p proc) bool {
		idle := p.ppid == s.init && len(p.args) == 2 && p.args[1] == "3600" // pid 1 waits by it
		return !idle && !isListener(p) && !isSession(p)
	})
}

func pidNS(pid int) string { return filepath.Join("/proc", strconv.Itoa(pid), "ns/pid") }

// look reads a process that is no zombie.
func look(pid int) (p proc, ok bool) {
	dir := filepath.Join("/proc", strconv.Itoa(pid))
	stat, err := os.ReadFile(dir + "/stat")
	if err != nil {
		return p, false
	}
	open, end := bytes.IndexByte(stat, '('), bytes.LastIndexByte(stat, ')')
	if open < 0 || end < open {
		return p, false
	}
	rest := strings.Fields(string(stat[end+1:]))
	if len(rest) < 2 || rest[0] == "Z" || rest[0] == "X" {
		return p, false
	}
	p.pid, p.name, p.stopped = pid, string(stat[open+1:end]), rest[0] == "T"
	p.ppid, _ = strconv.Atoi(rest[1])
	status, _ := os.ReadFile(dir + "/status")
	for line := range strings.Lines(string(status)) {
		if ids, ok := strings.CutPrefix(line, "NSpid:"); ok {
			f := strings.Fields(ids)
			p.in, _ = strconv.Atoi(f[len(f)-1])
		}
	}
	args, err := os.ReadFile(dir + "/cmdline")
	if err != nil || len(args) == 0 {
		return p, false // it is just going
	}
	p.args = strings.Split(strings.TrimRight(string(args), "\x00"), "\x00")
	return p, true
}

// isInit says that a process is the first of a pid namespace.
func isInit(pid int) bool {
	p, ok := look(pid)
	return ok && p.in == 1
}

func children(pid int) []int {
	b, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "task", strconv.Itoa(pid), "children"))
	var list []int
	for _, f := range strings.Fields(string(b)) {
		if n, err := strconv.Atoi(f); err == nil {
			list = append(list, n)
		}
	}
	return list
}

// signal sends sig to processes; those that are gone do not matter.
func signal(list []proc, sig syscall.Signal) {
	for _, p := range list {
		syscall.Kill(p.pid, sig)
	}
}
