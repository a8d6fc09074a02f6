//go:build linux

package remote

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
	"dcs-tui/jobs/attempts"
)

// bound is how long a test waits for what must come; it is no measurement.
const bound = 4 * time.Minute

// world is a host for tests: a place for the program, a run directory, a work_dir.
type world struct {
	t       testing.TB
	base    string
	runDir  string
	workDir string
	run     string
}

func newWorld(t testing.TB) *world {
	t.Helper()
	root := t.TempDir()
	w := &world{t: t, base: filepath.Join(root, "base"), runDir: filepath.Join(root, "run"),
		workDir: filepath.Join(root, "work"), run: fmt.Sprintf("r%d", time.Now().UnixNano())}
	for _, d := range []string{filepath.Join(w.base, "bin"), w.runDir} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(w.runDir, "nonce"), "nonce-"+w.run+"\n")
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	place := filepath.Join(w.base, "bin", "dcs-tui-test")
	if os.Link(exe, place) != nil {
		b, err := os.ReadFile(exe)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(place, b, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(w.nothingLeft)
	return w
}

// nothingLeft ends what is left of the world's processes and fails for it (promise 4).
func (w *world) nothingLeft() {
	of := func(t table) (out []proc) {
		for pid, p := range t {
			cmd, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
			mark, _ := cookieOf(pid)
			if endable(p) && (strings.Contains(string(cmd), w.base) || strings.HasPrefix(mark, w.run+"/")) {
				out = append(out, p)
			}
		}
		return out
	}
	if left := of(scan(nil)); len(left) > 0 && !w.t.Failed() {
		w.t.Errorf("processes are left behind: %s", name(left))
	}
	endAll(of, 0)
}

func (w *world) open() *hosts.Open {
	return &hosts.Open{Version: hosts.ProtocolVersion, Run: w.run, RunName: "test", Host: "melon1", Epoch: 1,
		RunDir: w.runDir, Nonce: "nonce-" + w.run, WorkDir: w.workDir, ShareDir: filepath.Join(filepath.Dir(w.base), "share"), Cwd: w.runDir, Slots: 2, GraceSeconds: 0.2}
}

func (w *world) file(id string, f jobs.File) string {
	w.t.Helper()
	return jobs.AttemptFile(w.runDir, attemptID(w.t, id), f)
}

func (w *world) content(id string, f jobs.File) string {
	w.t.Helper()
	b, err := os.ReadFile(w.file(id, f))
	if err != nil {
		w.t.Fatal(err)
	}
	return string(b)
}

// status reads the status file of an attempt.
func (w *world) status(id string) attempts.Fate {
	w.t.Helper()
	return attempts.Decode([]byte(w.content(id, jobs.FileStatus)), w.run, attemptID(w.t, id))
}

// claim returns the claim of a process that is no more.
func (w *world) claim(id, host string) attempts.Claim {
	w.t.Helper()
	return attempts.Claim{Run: w.run, Attempt: attemptID(w.t, id), Host: host, By: holder{1, 1 << 22, 3}.String(), Boot: bootID(), At: 4}
}

func (w *world) spool() spool { return spool{filepath.Join(w.base, "runs", w.run, "melon1")} }

// fifo makes a pipe by which a job and its test wait for each other.
func (w *world) fifo(name string) string {
	w.t.Helper()
	p := filepath.Join(w.runDir, name)
	if err := unix.Mkfifo(p, 0o600); err != nil {
		w.t.Fatal(err)
	}
	return p
}

// hear waits until somebody writes a line into the pipe.
func (w *world) hear(fifo string) string {
	w.t.Helper()
	f, err := os.OpenFile(fifo, os.O_RDWR, 0)
	if err != nil {
		w.t.Fatal(err)
	}
	defer f.Close()
	f.SetReadDeadline(time.Now().Add(bound))
	var line []byte
	for b := make([]byte, 1); ; {
		if _, err := f.Read(b); err != nil {
			w.t.Fatalf("nothing was written to %s: %v", filepath.Base(fifo), err)
		}
		if b[0] == '\n' {
			return string(line)
		}
		line = append(line, b[0])
	}
}

// say writes a line into the pipe, for a job that reads it.
func (w *world) say(fifo string) {
	w.t.Helper()
	f, err := os.OpenFile(fifo, os.O_RDWR, 0)
	if err != nil {
		w.t.Fatal(err)
	}
	fmt.Fprintln(f, "go")
	w.t.Cleanup(func() { f.Close() })
}

func job(id, command string) hosts.LaunchJob {
	a, err := jobs.ParseAttemptID(id)
	if err != nil {
		panic(err)
	}
	return hosts.LaunchJob{Attempt: a, Command: command}
}

func attemptID(t testing.TB, s string) jobs.AttemptID {
	t.Helper()
	id, err := jobs.ParseAttemptID(s)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func atoi(t testing.TB, s string) int {
	t.Helper()
	n, err := strconv.Atoi(strings.TrimSpace(s))
	if err != nil {
		t.Fatal(err)
	}
	return n
}
