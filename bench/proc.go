package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"dcs-tui/internal/platform"
	"dcs-tui/internal/progtest"
)

// proc is the state of one process according to /proc.
type proc struct {
	cpu       time.Duration // user and system
	childCPU  time.Duration // of the children that it has waited for, and of their children
	rss, peak int64         // in bytes
}

func readProc(pid int) (proc, error) {
	var p proc
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return p, err
	}
	f := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	ticks := func(i int) time.Duration {
		n, _ := strconv.ParseInt(f[i], 10, 64)
		return time.Duration(n) * 10 * time.Millisecond // USER_HZ is 100 on Linux
	}
	p.cpu, p.childCPU = ticks(11)+ticks(12), ticks(13)+ticks(14)
	if exact := threadCPU(pid); exact > 0 {
		p.cpu = exact
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return p, err
	}
	for line := range strings.Lines(string(status)) {
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		kb, _ := strconv.ParseInt(f[1], 10, 64)
		switch f[0] {
		case "VmRSS:":
			p.rss = kb << 10
		case "VmHWM:":
			p.peak = kb << 10
		}
	}
	return p, nil
}

// threadCPU returns the CPU time of the threads of a process. Its resolution is nanoseconds instead
// of clock ticks. It is the total CPU time as long as no thread has ended.
func threadCPU(pid int) (sum time.Duration) {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	for _, f := range files {
		b, _ := os.ReadFile(f)
		if f := strings.Fields(string(b)); len(f) > 0 {
			n, _ := strconv.ParseInt(f[0], 10, 64)
			sum += time.Duration(n)
		}
	}
	return sum
}

// children lists the children of a process.
func children(pid int) (pids []int) {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		child, _ := strconv.Atoi(filepath.Base(dir))
		if p, err := platform.FindProcess(child); err == nil && p.Parent == pid {
			pids = append(pids, child)
		}
	}
	return pids
}

// withArg lists the lab's processes whose second argument is arg, which are helpers or supervisors.
func (l *lab) withArg(arg string) []progtest.Process { return withArg(arg, labMarks(l.dir)) }

func withArg(arg string, marks []string) []progtest.Process {
	return progtest.FindProcesses(func(p progtest.Process) bool {
		args := strings.Split(p.Args, "\x00")
		return len(args) > 1 && args[1] == arg && isMarked(p, marks)
	})
}

// cancel ends a run through its stop file and waits for the dispatcher.
func (l *lab) cancel(cmd *exec.Cmd, dir string) error {
	if err := os.WriteFile(filepath.Join(dir, cancelFile), nil, 0o600); err != nil {
		return err
	}
	cmd.Wait() // its exit code is 130: canceled
	return nil
}
