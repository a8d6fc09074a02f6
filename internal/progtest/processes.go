package progtest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"dcs-tui/internal/polltest"
)

// Process is a process of this machine.
type Process struct {
	PID  int
	Dir  string // its directory in /proc
	Args string // each argument is followed by a NUL
}

func (p Process) String() string {
	return fmt.Sprint(p.PID, " ", strings.ReplaceAll(p.Args, "\x00", " "))
}

// RefersTo reports whether the arguments or the environment of the process contain one of the
// marks, or the path of its program, its working directory, or a file that it has open does. A NUL
// follows each argument, variable, and path.
func (p Process) RefersTo(marks ...string) bool {
	env, _ := os.ReadFile(p.Dir + "/environ")
	all := p.Args + "\x00" + string(env) + "\x00"
	links, _ := filepath.Glob(p.Dir + "/fd/*")
	for _, link := range append(links, p.Dir+"/exe", p.Dir+"/cwd") {
		path, _ := os.Readlink(link)
		all += path + "\x00"
	}
	return slices.ContainsFunc(marks, func(mark string) bool { return strings.Contains(all, mark) })
}

// FindProcesses lists the processes for which meant returns true, except the test itself. It knows
// nothing about how the program marks the processes that it starts.
func FindProcesses(meant func(Process) bool) []Process {
	var list []Process
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, d := range dirs {
		pid, _ := strconv.Atoi(filepath.Base(d))
		if pid == os.Getpid() {
			continue
		}
		args, _ := os.ReadFile(d + "/cmdline") // empty if the process has just ended
		if p := (Process{pid, d, string(args)}); meant(p) {
			list = append(list, p)
		}
	}
	return list
}

// KillLeftBehind waits, at most for limit, until meant returns true for no process. It
// kills and returns the processes that are left.
func KillLeftBehind(limit time.Duration, meant func(Process) bool) (left []Process) {
	polltest.Within(limit, func() bool {
		left = FindProcesses(meant)
		return len(left) == 0
	})
	for _, p := range left {
		syscall.Kill(p.PID, syscall.SIGKILL)
	}
	return left
}

// CheckNothingLeft fails the test if meant still returns true for a process after limit.
func CheckNothingLeft(t testing.TB, limit time.Duration, meant func(Process) bool) {
	t.Helper()
	for _, p := range KillLeftBehind(limit, meant) {
		t.Errorf("left behind: %s", p)
	}
}
