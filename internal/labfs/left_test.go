//go:build linux

package labfs_test

import (
	"os"
	"strings"
	"time"

	"dcs-tui/internal/progtest"
)

// nothingLeft fails the test if a process of the lab's run is still alive (promise 4). Helpers exit
// a moment after their dispatcher.
func (l *lab) nothingLeft() {
	for _, p := range progtest.LeftBehind(45*time.Second, l.isOurs) {
		l.t.Errorf("left behind: %s", p)
	}
}

// isOurs reports whether a process names the lab's local directory. Every spool and every job does.
func (l *lab) isOurs(p progtest.Process) bool {
	env, _ := os.ReadFile(p.Dir + "/environ")
	return strings.Contains(p.Args, l.local) || strings.Contains(string(env), l.local)
}
