package e2e

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// nothingLeft fails the test when a process of the lab is still alive (promise
// 4). Helpers leave a moment after their dispatcher, so it waits for that.
func (l *lab) nothingLeft() {
	l.t.Helper()
	var left []string
	for range 500 {
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

// ours lists the processes that have to do with this lab, as "PID command". It
// knows nothing of how the program marks what it starts: whatever names the
// test's directories or a run's uid in its arguments or environment, runs a
// program from there, works there, or has a file open there. The ssh servers
// themselves belong to the test.
func (l *lab) ours() []string {
	marks := l.marks()
	var found []string
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, d := range dirs {
		exe, _ := os.Readlink(d + "/exe")
		if filepath.Base(d) == strconv.Itoa(os.Getpid()) || strings.HasPrefix(filepath.Base(exe), "sshd") {
			continue
		}
		cmd, _ := os.ReadFile(d + "/cmdline")
		if names(d, exe, cmd, marks) {
			found = append(found, filepath.Base(d)+" "+strings.ReplaceAll(string(cmd), "\x00", " "))
		}
	}
	return found
}

// names says whether the process of a directory in /proc has to do with a mark.
func names(proc, exe string, cmd []byte, marks []string) bool {
	env, _ := os.ReadFile(proc + "/environ")
	cwd, _ := os.Readlink(proc + "/cwd")
	texts := [][]byte{cmd, env, []byte(exe), []byte(cwd)}
	fds, _ := filepath.Glob(proc + "/fd/*")
	for _, fd := range fds {
		file, _ := os.Readlink(fd)
		texts = append(texts, []byte(file))
	}
	for _, mark := range marks {
		for _, text := range texts {
			if bytes.Contains(text, []byte(mark)) {
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
