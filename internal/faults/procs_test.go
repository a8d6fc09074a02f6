//go:build linux

package faults

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// process is a process of a machine.
type process struct {
	dir  string // its directory below /proc, as seen by this test
	in   int    // its pid inside
	ppid int    // the parent's pid inside; 0: its parent is outside
	sid  int    // its session inside
	name string
	args []string

	stopped bool // by a signal
}

func (p process) String() string { return strconv.Itoa(p.in) + " " + strings.Join(p.args, " ") }

func (p process) has(arg string) bool { return slices.Contains(p.args, arg) }

// isListener and the functions below select processes of a machine.
func isListener(p process) bool {
	return p.name == "sshd" && strings.Contains(strings.Join(p.args, " "), "[listener]")
}
func isSession(p process) bool    { return strings.HasPrefix(p.name, "sshd") && !isListener(p) }
func isHelper(p process) bool     { return p.has("__host") }
func isSupervisor(p process) bool { return p.has("__slot") }

// isReceiver selects the program that waits for a piece of ours with a limit of time.
func isReceiver(p process) bool { return p.name == "timeout" && p.has("900") && p.has("head") }

// find returns the living processes of the machine that are selected by meant. It reads the
// machine's /proc from outside, and does not rely on the program under test.
func (m *machine) find(meant func(process) bool) []process {
	s := m.running.Load()
	if s == nil {
		return nil
	}
	var list []process
	entries, _ := os.ReadDir(s.path("/proc"))
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == 1 {
			continue
		}
		if p, ok := readProcess(s.path("/proc"), pid); ok && meant(p) {
			list = append(list, p)
		}
	}
	return list
}

// unexpectedProcesses returns all processes that belong neither to the machine itself nor to its
// ssh server. There must be none while there is no run. A session of the ssh server whose peer
// vanished silently remains until the kernel notices. Only the processes below such a session
// count, unless they receive the program: they wait for the next piece of it for 15 minutes.
func (m *machine) unexpectedProcesses() []process {
	receiving := map[int]bool{} // by session
	for _, p := range m.find(isReceiver) {
		receiving[p.sid] = true
	}
	return m.find(func(p process) bool {
		idle := p.ppid == 1 && len(p.args) == 2 && p.args[1] == "3600" // pid 1 waits for it
		return !idle && !isListener(p) && !isSession(p) && !receiving[p.sid]
	})
}

// readProcess reads a process that is not a zombie. It must be called only for the machine's own
// processes: reading /proc/PID/stat hangs for a process that calls exec while its files hang.
func readProcess(root string, pid int) (p process, ok bool) {
	p.dir, p.in = filepath.Join(root, strconv.Itoa(pid)), pid
	stat, err := os.ReadFile(p.dir + "/stat")
	if err != nil {
		return p, false
	}
	open, end := bytes.IndexByte(stat, '('), bytes.LastIndexByte(stat, ')')
	if open < 0 || end < open {
		return p, false
	}
	rest := strings.Fields(string(stat[end+1:]))
	if len(rest) < 4 || rest[0] == "Z" || rest[0] == "X" {
		return p, false
	}
	p.name, p.stopped = string(stat[open+1:end]), rest[0] == "T"
	p.ppid, _ = strconv.Atoi(rest[1])
	p.sid, _ = strconv.Atoi(rest[3])
	args, err := os.ReadFile(p.dir + "/cmdline")
	if err != nil || len(args) == 0 {
		return p, false // it is exiting
	}
	p.args = strings.Split(strings.TrimRight(string(args), "\x00"), "\x00")
	return p, true
}

// isInit reports whether a process is the first of a pid namespace.
func isInit(pid int) bool {
	status, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))
	for line := range strings.Lines(string(status)) {
		if ids, ok := strings.CutPrefix(line, "NSpid:"); ok {
			f := strings.Fields(ids)
			return len(f) > 1 && f[len(f)-1] == "1"
		}
	}
	return false
}

func childrenOf(pid int) []int {
	b, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "task", strconv.Itoa(pid), "children"))
	var list []int
	for _, f := range strings.Fields(string(b)) {
		if n, err := strconv.Atoi(f); err == nil {
			list = append(list, n)
		}
	}
	return list
}

// signalAll sends sig to processes. It ignores those that are gone.
func signalAll(list []process, sig syscall.Signal) {
	for _, p := range list {
		if fd, err := unix.Open(p.dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0); err == nil {
			// A /proc/PID directory identifies the process in any pid namespace.
			unix.PidfdSendSignal(fd, sig, nil, 0)
			unix.Close(fd)
		}
	}
}
