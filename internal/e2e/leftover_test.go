package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"time"

	"dcs-tui/internal/progtest"
)

// nothingLeft fails the test when a process of the lab is still alive (promise
// 4). Helpers leave a moment after their dispatcher, so it waits for that.
func (l *lab) nothingLeft() {
	l.t.Helper()
	for _, p := range progtest.LeftBehind(20*time.Second, l.ours()) {
		l.t.Errorf("left behind: %s", p)
	}
}

// ours tells the processes that have to do with this lab: whatever names the test's
// directories or a run's uid in its arguments or environment, runs a program from
// there, works there, or has a file open there. The ssh servers themselves belong to
// the test.
func (l *lab) ours() func(progtest.Process) bool {
	marks := l.marks()
	return func(p progtest.Process) bool {
		exe, _ := os.Readlink(p.Dir + "/exe")
		return !strings.HasPrefix(filepath.Base(exe), "sshd") && names(p, exe, marks)
	}
}

// names reports whether a process has to do with a mark.
func names(p progtest.Process, exe string, marks []string) bool {
	env, _ := os.ReadFile(p.Dir + "/environ")
	cwd, _ := os.Readlink(p.Dir + "/cwd")
	texts := []string{p.Args, string(env), exe, cwd}
	fds, _ := filepath.Glob(p.Dir + "/fd/*")
	for _, fd := range fds {
		file, _ := os.Readlink(fd)
		texts = append(texts, file)
	}
	for _, mark := range marks {
		for _, text := range texts {
			if strings.Contains(text, mark) {
				return true
			}
		}
	}
	return false
}

// marks are the words by which a process of this lab can be told: the directory
// that holds all directories of the test, and the uids of the runs in it.
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

// uidOf reads the uid of a run from its run.toml, "" when it has none.
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
