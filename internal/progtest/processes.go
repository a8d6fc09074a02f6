package progtest

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"dcs-tui/internal/polltest"
)

// Process is one of this machine.
type Process struct {
	PID  int
	Dir  string // in /proc
	Args string // each with a NUL after it
}

func (p Process) String() string {
	return fmt.Sprint(p.PID, " ", strings.ReplaceAll(p.Args, "\x00", " "))
}

// Processes lists those that are meant, but for the test itself. It knows nothing about how
// the program marks what it starts.
func Processes(meant func(Process) bool) []Process {
	var list []Process
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, d := range dirs {
		pid, _ := strconv.Atoi(filepath.Base(d))
		if pid == os.Getpid() {
			continue
		}
		args, _ := os.ReadFile(d + "/cmdline") // none when it has just ended
		if p := (Process{pid, d, string(args)}); meant(p) {
			list = append(list, p)
		}
	}
	return list
}

// LeftBehind waits until there are none that are meant (promise 4), no longer than limit.
// Those that there are then it kills and returns.
func LeftBehind(limit time.Duration, meant func(Process) bool) (left []Process) {
	polltest.Within(limit, func() bool {
		left = Processes(meant)
		return len(left) == 0
	})
	for _, p := range left {
		syscall.Kill(p.PID, syscall.SIGKILL)
	}
	return left
}
