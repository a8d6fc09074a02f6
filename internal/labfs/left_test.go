//go:build linux

package labfs_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// nothingLeft fails the test when a process of the lab's run is still alive
// (promise 4). Helpers leave a moment after their dispatcher.
func (l *lab) nothingLeft() {
	var left []string
	for range 1500 {
		if left = l.ours(); len(left) == 0 {
			return
		}
		time.Sleep(20 * time.Millisecond) // a poll for the end of processes that are not our children
	}
	l.t.Errorf("left behind: %s", strings.Join(left, "; "))
	for _, p := range left {
		pid, _ := strconv.Atoi(strings.Fields(p)[0])
		syscall.Kill(pid, syscall.SIGKILL)
	}
}

// ours lists processes of the lab, as "PID command": all that name its local
// directory, which every spool and every job does.
func (l *lab) ours() []string {
	var found []string
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, d := range dirs {
		if d == fmt.Sprintf("/proc/%d", os.Getpid()) {
			continue
		}
		cmd, _ := os.ReadFile(d + "/cmdline")
		env, _ := os.ReadFile(d + "/environ")
		if bytes.Contains(cmd, []byte(l.local)) || bytes.Contains(env, []byte(l.local)) {
			found = append(found, filepath.Base(d)+" "+strings.ReplaceAll(string(cmd), "\x00", " "))
		}
	}
	return found
}
