package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// proc is what /proc says of one process.
type proc struct {
	cpu       time.Duration // user and system
	rss, peak int64         // bytes
}

func readProc(pid int) (proc, error) {
	var p proc
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return p, err
	}
	f := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	user, _ := strconv.ParseInt(f[11], 10, 64)
	sys, _ := strconv.ParseInt(f[12], 10, 64)
	p.cpu = time.Duration(user+sys) * 10 * time.Millisecond // USER_HZ is 100 on Linux
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

// withArg lists the processes whose second argument is arg: helpers or
// supervisors (no other run may be going on while this is measured).
func withArg(arg string) []int {
	var pids []int
	lists, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, f := range lists {
		b, err := os.ReadFile(f)
		if err != nil {
			continue
		}
		args := strings.Split(string(b), "\x00")
		if len(args) > 1 && args[1] == arg {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(f)))
			pids = append(pids, pid)
		}
	}
	return pids
}

// cancel ends a run through its stop file and waits for the dispatcher.
func (l *lab) cancel(cmd *exec.Cmd, dir string) error {
	if err := os.WriteFile(filepath.Join(dir, cancelFile), nil, 0o600); err != nil {
		return err
	}
	cmd.Wait() // it says 130: cancelled
	return nil
}
