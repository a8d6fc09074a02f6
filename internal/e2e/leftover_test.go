//go:build linux

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"time"

	"dcs-tui/internal/progtest"
)

// checkNothingLeft fails the test if a process of the lab is still alive (promise 4). It waits
// because helpers leave a moment after their dispatcher.
func (l *lab) checkNothingLeft() {
	l.t.Helper()
	progtest.CheckNothingLeft(l.t, time.Minute, l.ownProcess())
}

// ownProcess returns a function that reports whether a process belongs to this lab: it refers to
// the test's directories or to the uid of a run. The ssh servers belong to the test and are
// excluded.
func (l *lab) ownProcess() func(progtest.Process) bool {
	marks := l.marks()
	return func(p progtest.Process) bool {
		exe, _ := os.Readlink(p.Dir + "/exe")
		return !strings.HasPrefix(filepath.Base(exe), "sshd") && p.RefersTo(marks...)
	}
}

// marks returns the strings that identify processes of this lab: the directory that contains all
// directories of the test, and the uids of its runs.
func (l *lab) marks() []string {
	root := filepath.Dir(l.dir)
	marks := []string{root + "/"}
	for _, depth := range []string{"*/*", "*/*/*", "*/*/*/*"} {
		files, _ := filepath.Glob(filepath.Join(root, depth, "run.toml"))
		for _, f := range files {
			if uid := uidOf(f); uid != "" {
				marks = append(marks, uid)
			}
		}
	}
	return marks
}

// uidOf returns the uid of a run from its run.toml, or "" if it has none.
func uidOf(file string) string {
	b, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(b)) {
		if k, v, ok := strings.Cut(line, "="); ok && strings.EqualFold(strings.TrimSpace(k), "uid") {
			return strings.Trim(strings.TrimSpace(v), `"'`)
		}
	}
	return ""
}
