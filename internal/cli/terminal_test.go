package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"dcs-tui/internal/polltest"
	"dcs-tui/internal/ptytest"
)

// onTerminal runs the program in dir on a terminal of its own.
func onTerminal(t *testing.T, dir string, args ...string) (cmd *exec.Cmd, person *os.File) {
	t.Helper()
	cmd = program(t, dir, args...)
	person = startOn(t, cmd, "xterm")
	t.Cleanup(func() {
		if cmd.ProcessState == nil {
			cmd.Process.Kill()
			cmd.Wait()
		}
	})
	return cmd, person
}

// startOn starts a program on a new terminal; name is the value of TERM.
func startOn(t *testing.T, cmd *exec.Cmd, name string) (person *os.File) {
	t.Helper()
	person, tty := ptytest.Open(t)
	cmd.Env = append(cmd.Env, "TERM="+name)
	ptytest.Attach(cmd, tty)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	tty.Close()
	return person
}

// readUntil reads the program's output until it matches.
func readUntil(t *testing.T, person *os.File, pattern string) string {
	t.Helper()
	if err := person.SetReadDeadline(time.Now().Add(polltest.Patience)); err != nil {
		t.Fatal(err)
	}
	want := regexp.MustCompile(pattern)
	var shown []byte
	var b [4096]byte
	for {
		n, err := person.Read(b[:])
		shown = append(shown, b[:n]...)
		if want.Match(shown) {
			return string(shown)
		}
		if err != nil {
			t.Fatalf("%s was not shown (%v):\n%q", pattern, err, shown)
		}
	}
}

func writeFile(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestTheTerminalIsClosed checks that closing the terminal leaves a headless dispatcher: the queue
// continues, and further output goes to dispatcher.log.
func TestTheTerminalIsClosed(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, dir, "jobs.txt", "echo 1 > ran; while [ -e jobs.txt -a ! -e gate ]; do sleep 0.02; done\necho 2\n")
	cmd, person := onTerminal(t, dir, "run", "--no-tui", "--name", "r", "jobs.txt")
	readUntil(t, person, `0/2  1 running`)
	person.Close()
	log := filepath.Join(dir, "dcs-runs", "r", "dispatcher.log")
	untilFile(t, log, "the terminal is gone")
	writeFile(t, dir, "gate", "")
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v", err)
	}
	b, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	if text := string(b); !strings.Contains(text, "all jobs succeeded") || strings.ContainsRune(text, 0x1b) {
		t.Errorf("dispatcher.log: %q", text)
	}
}

// TestCtrlCEndsNoJob checks that Ctrl-C typed on the terminal reaches the dispatcher but no job:
// the helper and its supervisors have a session of their own.
func TestCtrlCEndsNoJob(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, dir, "jobs.txt", "echo 1 > ran; while [ -e jobs.txt -a ! -e gate ]; do sleep 0.02; done; echo done > done\necho 2\n")
	cmd, person := onTerminal(t, dir, "run", "--no-tui", "--name", "r", "jobs.txt")
	readUntil(t, person, `0/2  1 running`)
	if _, err := person.WriteString("\x03"); err != nil {
		t.Fatal(err)
	}
	readUntil(t, person, `waiting for 1 running job; Ctrl-C again`)
	writeFile(t, dir, "gate", "")
	shown := readUntil(t, person, `dcs-tui resume r`)
	if !strings.Contains(shown, "ok") {
		t.Errorf("the running job was not let finish: %q", shown)
	}
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != exitLeft {
		t.Errorf("%v, want exit %d", err, exitLeft)
	}
	if _, err := os.Stat(filepath.Join(dir, "done")); err != nil {
		t.Errorf("%v", err)
	}
}
