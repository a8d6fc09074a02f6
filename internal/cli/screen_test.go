package cli

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"dcs-tui/dispatch/run"
	"dcs-tui/internal/polltest"
	"dcs-tui/internal/ptytest"
	"dcs-tui/jobs/journal"
	"dcs-tui/jobs/rundir"
)

// startOnScreen runs the program on a terminal of 100 x 30.
func startOnScreen(t *testing.T, dir string, args ...string) (cmd *exec.Cmd, person *os.File) {
	t.Helper()
	t.Cleanup(func() { // registered before the program starts, so that it runs after the screen has ended
		if run, err := rundir.Open(filepath.Join(dir, "dcs-runs", "r")); err == nil {
			endRun(t, run)
		}
	})
	cmd, person = startOnTerminal(t, dir, args...)
	ptytest.SetSize(t, person, 100, 30)
	return cmd, person
}

// awaitOwner waits until the run r in dir has a dispatcher and returns the run and its owner.
func awaitOwner(t *testing.T, dir string) (*rundir.Run, *journal.Owner) {
	t.Helper()
	var run *rundir.Run
	var owner *journal.Owner
	polltest.Until(t, "somebody dispatches the run", func() bool {
		var err error
		if run, err = rundir.Open(filepath.Join(dir, "dcs-runs", "r")); err != nil {
			return false
		}
		owner, err = journal.ReadOwner(run)
		return err == nil && owner != nil && owner.Liveness() == journal.Alive
	})
	t.Cleanup(func() { endRun(t, run) })
	return run, owner
}

// checkExit waits for the program, which must exit with that code.
func checkExit(t *testing.T, cmd *exec.Cmd, code int) {
	t.Helper()
	late := time.AfterFunc(polltest.Patience, func() { cmd.Process.Kill() })
	defer late.Stop()
	cmd.Wait()
	same(t, "exit code", cmd.ProcessState.ExitCode(), code)
}

// TestScreenAndDispatcherAreTwo checks a run on a terminal: it is a screen, and a dispatcher in a
// session of its own. Detaching does not affect the dispatcher and shows how to come back; the exit
// code shows that jobs are left. attach shows the run again. Closing its terminal, or SIGTERM, ends
// only that screen. After the end of the run, attach shows how it ended.
func TestScreenAndDispatcherAreTwo(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeFile(t, dir, "jobs.txt", gated+"true\n")
	cmd, person := startOnScreen(t, dir, "run", "--name", "r", "jobs.txt")
	readUntil(t, person, `while`)
	run, owner := awaitOwner(t, dir)
	if sid, err := unix.Getsid(owner.PID); err != nil || owner.PID == cmd.Process.Pid || sid != owner.PID {
		t.Errorf("dispatcher %d of session %d, screen %d: %v", owner.PID, sid, cmd.Process.Pid, err)
	}
	if owner.Socket == "" {
		t.Error("no address")
	}
	person.WriteString("q")
	readUntil(t, person, `detach`)
	person.WriteString("d")
	shown := readUntil(t, person, `cancel r`)
	checkContains(t, shown, "continues in the background", "dcs-tui attach r", "dcs-tui status r")
	checkExit(t, cmd, exitLeft)

	closed, person := startOnScreen(t, dir, "attach")
	readUntil(t, person, `while`)
	ended, second := startOnScreen(t, dir, "attach", "r")
	readUntil(t, second, `while`)
	person.Close()
	checkExit(t, closed, exitLeft)
	ended.Process.Signal(syscall.SIGTERM)
	readUntil(t, second, `continues in the background`)
	checkExit(t, ended, exitLeft)
	if now, err := journal.ReadOwner(run); err != nil || now.PID != owner.PID || now.Liveness() != journal.Alive {
		t.Errorf("%+v, %v", now, err)
	}

	stays, person := startOnScreen(t, dir, "attach", "r")
	readUntil(t, person, `while`)
	writeFile(t, dir, "gate", "")
	readUntil(t, person, `ENDED`)
	awaitNobody(t, run)
	person.WriteString("q")
	readUntil(t, person, `all jobs succeeded[^$]*logs: `)
	checkExit(t, stays, exitOK)
	if log := readFile(run.Dir, dispatcherLogFile); !strings.Contains(log, "all jobs succeeded") || strings.ContainsRune(log, 0x1b) {
		t.Errorf("%q", log)
	}
	same(t, "jobs that ran", readFile(dir, "ran"), "1\n")

	again, person := startOnScreen(t, dir, "attach", "r")
	readUntil(t, person, `ENDED`)
	person.WriteString("q")
	checkExit(t, again, exitOK)
}

// TestAttachToAHeadlessRun attaches to a dispatcher that prints lines itself (D1: headless), and
// cancels the run from there.
func TestAttachToAHeadlessRun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeFile(t, dir, "jobs.txt", gated)
	lines, tty := startOnTerminal(t, dir, "run", "--no-tui", "--name", "r", "jobs.txt")
	readUntil(t, tty, `0/1  1 running`)
	cmd, person := startOnScreen(t, dir, "attach")
	readUntil(t, person, `while`)
	person.WriteString("q")
	readUntil(t, person, `detach`)
	person.WriteString("c")
	readUntil(t, person, `y/N`)
	person.WriteString("y")
	readUntil(t, person, `ENDED`)
	checkExit(t, lines, exitCanceled)
	person.WriteString("q")
	checkExit(t, cmd, exitCanceled)
}

// TestPipedJobsAndKeys checks that jobs keep arriving through a pipe while the screen reads keys
// from the terminal.
func TestPipedJobsAndKeys(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cmd := wrapInShell(programCommand(t, dir, "run", "--name", "r", "-"), `(echo true; while [ ! -e more ]; do sleep 0.05; done; echo 'echo $DCS_JOB_ID > ran') | "$0" "$@"`)
	person := startOn(t, cmd, "xterm")
	ptytest.SetSize(t, person, 100, 30)
	t.Cleanup(func() {
		writeFile(t, dir, "more", "")
		cmd.Process.Kill()
		cmd.Wait()
	})
	readUntil(t, person, `true`)
	run, _ := awaitOwner(t, dir)
	person.WriteString("q")
	readUntil(t, person, `detach`)
	person.WriteString("d")
	readUntil(t, person, `continues in the background`)
	writeFile(t, dir, "more", "")
	checkExit(t, cmd, exitLeft)
	awaitNobody(t, run)
	same(t, "jobs that ran", readFile(dir, "ran"), "2\n")
}

// TestFaultsOfAStartLookTheSame checks that errors in the command line, the jobs, or the inventory
// end the program with the same message on a terminal with a screen as without.
func TestFaultsOfAStartLookTheSame(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeFile(t, dir, "bad.txt", "#DCS tries=x\ntrue\n")
	writeFile(t, dir, "good.txt", "true\n")
	writeFile(t, dir, "bad.toml", "[[host]]\nname = 3\n")
	for _, args := range [][]string{
		{"bad.txt"}, {"none.txt"}, {"--hosts", "bad.toml", "good.txt"}, {"--cwd", "/none", "good.txt"}, {"--env", "NONE_OF_IT", "good.txt"}, {},
	} {
		said := map[bool]string{}
		for _, screen := range []bool{false, true} {
			args := append([]string{"run"}, args...)
			if !screen {
				args = append(args, "--no-tui")
			}
			cmd, person := startOnScreen(t, dir, args...)
			said[screen] = readAll(person)
			checkExit(t, cmd, exitUsage)
		}
		if said[true] != said[false] || !strings.Contains(said[true], "dcs-tui: ") {
			t.Errorf("%q: with a screen\n%q, without\n%q", args, said[true], said[false])
		}
	}
}

func readAll(person *os.File) string {
	person.SetReadDeadline(time.Now().Add(polltest.Patience))
	all, _ := io.ReadAll(person) // the error is the end of the program
	return string(all)
}

// TestPlainTerminals checks that a run on a terminal without cursor control prints lines, and that
// attach, which needs a screen, refuses and names an alternative.
func TestPlainTerminals(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"dumb", ""} {
		t.Run("TERM="+name, func(t *testing.T) {
			dir := t.TempDir()
			writeFile(t, dir, "jobs.txt", "true\n")
			cmd, person := startOnPlainTerminal(t, dir, name, "run", "--name", "r", "jobs.txt")
			checkContains(t, readAll(person), "this terminal cannot show the screen; printing lines, as with --no-tui", "all jobs succeeded")
			checkExit(t, cmd, exitOK)
			cmd, person = startOnPlainTerminal(t, dir, name, "attach", "r")
			checkContains(t, readAll(person), "dcs-tui status r", "dcs-tui events --follow r")
			checkExit(t, cmd, exitUsage)
		})
	}
}

func startOnPlainTerminal(t *testing.T, dir, name string, args ...string) (*exec.Cmd, *os.File) {
	t.Helper()
	cmd := wrapInShell(programCommand(t, dir, args...), `if [ -z "$TERM" ]; then unset TERM; fi; exec "$0" "$@"`)
	return cmd, startOn(t, cmd, name)
}

// wrapInShell changes cmd so that a shell runs it within a script line, as "$0" "$@".
func wrapInShell(cmd *exec.Cmd, line string) *exec.Cmd {
	cmd.Path, cmd.Args = "/bin/sh", append([]string{"sh", "-c", line}, cmd.Args...)
	return cmd
}

// TestNobodyIsADispatcherByAccident checks that the environment variable of a background dispatcher
// has no effect if it is set by accident, even if the descriptor is open, and that jobs never
// inherit it.
func TestNobodyIsADispatcherByAccident(t *testing.T) {
	t.Parallel()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	must(t, err)
	ours, theirs := os.NewFile(uintptr(fds[0]), "ours"), os.NewFile(uintptr(fds[1]), "theirs")
	defer ours.Close()
	defer theirs.Close()
	ours.WriteString("something of theirs")
	for i, value := range []string{"3:TOKEN", "3:", "1:x", "x", "-1:x", "99:x", ":"} {
		dir := t.TempDir()
		writeFile(t, dir, "jobs.txt", "echo [$"+run.BackgroundEnv+"] > ran\n")
		cmd := programCommand(t, dir, "run", "--name", "r", "jobs.txt")
		cmd.Env = append(cmd.Env, run.BackgroundEnv+"="+value)
		cmd.ExtraFiles = []*os.File{theirs}
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "all jobs succeeded") {
			t.Errorf("%d %q: %v\n%s", i, value, err, out)
		}
		same(t, "what the job sees with "+value, readFile(dir, "ran"), "[]\n")
	}
	b := make([]byte, 100)
	if n, err := theirs.Read(b); err != nil || string(b[:n]) != "something of theirs" {
		t.Errorf("%q, %v: what was on the descriptor is gone", b[:n], err)
	}
}
