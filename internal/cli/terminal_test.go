package cli

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"dcs-tui/internal/polltest"
	"dcs-tui/internal/progtest"
	"dcs-tui/internal/ptytest"
	"dcs-tui/internal/text"
	"dcs-tui/jobs/journal"
	"dcs-tui/jobs/rundir"
)

// startOnTerminal runs the program in dir on a terminal of its own.
func startOnTerminal(t *testing.T, dir string, args ...string) *ptytest.Program {
	t.Helper()
	return startOn(t, programCommand(t, dir, args...), "xterm")
}

// startOn starts a program on a new terminal. name is the value of TERM.
func startOn(t *testing.T, cmd *exec.Cmd, name string) *ptytest.Program {
	t.Helper()
	cmd.Env = append(cmd.Env, "TERM="+name)
	return ptytest.Start(t, cmd)
}

var must = polltest.Must

// checkContains checks that a text contains all of the parts.
func checkContains(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%q is missing in\n%s", part, text)
		}
	}
}

// same checks that got is want. An error message begins with what.
func same[T comparable](t *testing.T, what any, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%v:\ngot  %#v\nwant %#v", what, got, want)
	}
}

// takeOver takes a run over from its dispatcher.
func takeOver(tb testing.TB, run *rundir.Run) *journal.Journal {
	tb.Helper()
	j, _, _, err := journal.Take(context.Background(), run, journal.TakeOptions{})
	must(tb, err)
	return j
}

// tempDir is t.TempDir for programs. It waits until no process uses the directory before that is
// removed, because dispatchers and helpers end a moment after the run does.
func tempDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	t.Cleanup(func() {
		progtest.CheckNothingLeft(t, time.Minute,
			func(p progtest.Process) bool { return p.RefersTo(dir+"/", dir+"\x00") })
	})
	return dir
}

func writeFile(t *testing.T, dir, name, text string) {
	t.Helper()
	must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
}

// readFile returns the content of a file, or "" if there is none.
func readFile(dir, name string) string {
	b, _ := os.ReadFile(filepath.Join(dir, name))
	return string(b)
}

// TestTheTerminalIsClosed checks that closing the terminal leaves a headless dispatcher: the queue
// continues, and further output goes to dispatcher.log.
func TestTheTerminalIsClosed(t *testing.T) {
	t.Parallel()
	dir := tempDir(t)
	writeFile(t, dir, "jobs.txt", gated+"echo 2\n")
	p := startOnTerminal(t, dir, "run", "--no-tui", "--name", "r", "jobs.txt")
	p.Until("0 of 2 ok, 1 running")
	p.Person.Close()
	const log = "dcs-runs/r/dispatcher.log"
	awaitFile(t, filepath.Join(dir, log), "the terminal is gone")
	writeFile(t, dir, "gate", "")
	checkExit(t, p.Cmd, exitOK)
	if text := readFile(dir, log); !strings.Contains(text, "all jobs succeeded") || strings.ContainsRune(text, 0x1b) {
		t.Errorf("dispatcher.log: %q", text)
	}
}

// TestCtrlCEndsNoJob checks that Ctrl-C typed on the terminal reaches the dispatcher but no job:
// the helper and its supervisors have a session of their own.
func TestCtrlCEndsNoJob(t *testing.T) {
	t.Parallel()
	dir := tempDir(t)
	writeFile(t, dir, "jobs.txt", gated+"echo 2\n")
	p := startOnTerminal(t, dir, "run", "--no-tui", "--name", "r", "jobs.txt")
	p.Until("0 of 2 ok, 1 running")
	p.Person.WriteString("\x03")
	p.Until("waiting for 1 running job; Ctrl-C again")
	writeFile(t, dir, "gate", "")
	checkContains(t, p.Until("dcs-tui resume r"), "ok")
	checkExit(t, p.Cmd, exitLeft)
	same(t, "jobs that ran", readFile(dir, "ran"), "1\n")
}

// TestJSONOnATerminalIsEscaped checks that the JSON of commands cannot change a terminal, and that a
// program which reads it gets the original text.
func TestJSONOnATerminalIsEscaped(t *testing.T) {
	t.Parallel()
	dir := tempDir(t)
	const evil = "x\u009b31m\u202ey\u2066\x7f"
	writeFile(t, dir, "jobs.txt", `printf 'x\302\23331m\342\200\256y\342\201\246\177\n' | tee /dev/stderr; exit 3`+"\n")
	p := startOnTerminal(t, dir, "run", "--json", "--output", "--name", "r", "jobs.txt")
	isSafe := func(what, shown string) {
		t.Helper()
		shown = strings.ReplaceAll(shown, "\r\n", "")
		if i := strings.Index(shown, "{"); i >= 0 { // messages on stderr may have colors
			shown = shown[i : strings.LastIndexByte(shown, '}')+1]
		}
		if !strings.Contains(shown, `x\u009b31m\u202ey\u2066\u007f`) || text.Clean(shown, 0) != shown {
			t.Errorf("%s shows %q", what, shown)
		}
	}
	isSafe("run --json --output", p.End())
	isSafe("logs --json", startOnTerminal(t, dir, "logs", "--json", "r", "1").End())
	isSafe("events --json", startOnTerminal(t, dir, "events", "--json", "r").End())
	out, err := programCommand(t, dir, "logs", "--json", "r", "1").Output()
	must(t, err)
	checkContains(t, string(out), evil)
}
