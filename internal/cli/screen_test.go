package cli

import (
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
func startOnScreen(t *testing.T, dir string, args ...string) *ptytest.Program {
	t.Helper()
	t.Cleanup(func() { // registered before the program starts, so that it runs after the screen has ended
		if run, err := rundir.Open(filepath.Join(dir, "dcs-runs", "r")); err == nil {
			endRun(t, run)
		}
	})
	p := startOnTerminal(t, dir, args...)
	ptytest.SetSize(t, p.Person, 100, 30)
	return p
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

// TestScreenNamesTheInventory checks what the first line calls the hosts of a run.
func TestScreenNamesTheInventory(t *testing.T) {
	for want, settings := range map[string]rundir.Settings{
		"this machine":  {},
		"2 hosts":       {InventoryText: "ws01\nws02\n"}, // of --host
		"/lab/all.toml": {InventoryFile: "/lab/all.toml", InventoryText: "[[host]]\nname = \"ws01\"\n"},
	} {
		settings.Version, settings.Cwd = "test", "/"
		run, err := rundir.Create(t.TempDir(), "r", settings)
		must(t, err)
		same(t, "name", new(app).viewOptions(run).Lab, want)
	}
}

// TestScreenAndDispatcherAreTwo checks a run on a terminal: it is a screen, and a dispatcher in a
// session of its own. Detaching does not affect the dispatcher and shows how to come back; the exit
// code shows that jobs are left. attach shows the run again. Closing its terminal, or SIGTERM, ends
// only that screen. After the end of the run, attach shows how it ended.
func TestScreenAndDispatcherAreTwo(t *testing.T) {
	t.Parallel()
	dir := tempDir(t)
	writeFile(t, dir, "jobs.txt", gated+"true\n")
	p := startOnScreen(t, dir, "run", "--name", "r", "jobs.txt")
	p.Until("while")
	run, owner := awaitOwner(t, dir)
	if sid, err := unix.Getsid(owner.PID); err != nil || owner.PID == p.Process.Pid || sid != owner.PID {
		t.Errorf("dispatcher %d of session %d, screen %d: %v", owner.PID, sid, p.Process.Pid, err)
	}
	if owner.Socket == "" {
		t.Error("no address")
	}
	p.Person.WriteString("q")
	p.Until("detach")
	p.Person.WriteString("d")
	shown := p.Until("cancel r")
	checkContains(t, shown, "continues in the background", "dcs-tui attach r", "dcs-tui status r")
	checkExit(t, p.Cmd, exitLeft)

	closed := startOnScreen(t, dir, "attach")
	closed.Until("while")
	ended := startOnScreen(t, dir, "attach", "r")
	ended.Until("while")
	closed.Person.Close()
	checkExit(t, closed.Cmd, exitLeft)
	ended.Process.Signal(syscall.SIGTERM)
	ended.Until("continues in the background")
	checkExit(t, ended.Cmd, exitLeft)
	if now, err := journal.ReadOwner(run); err != nil || now.PID != owner.PID || now.Liveness() != journal.Alive {
		t.Errorf("ReadOwner: got %+v, %v; want the same process alive", now, err)
	}

	stays := startOnScreen(t, dir, "attach", "r")
	stays.Until("while")
	writeFile(t, dir, "gate", "")
	stays.Until("ENDED")
	awaitNobody(t, run)
	stays.Person.WriteString("q")
	stays.UntilMatch(`all jobs succeeded[^$]*logs: `)
	checkExit(t, stays.Cmd, exitOK)
	awaitFile(t, run.Path(dispatcherLogFile), "all jobs succeeded") // printed after the owner file
	if log := readFile(run.Dir, dispatcherLogFile); strings.ContainsRune(log, 0x1b) {
		t.Errorf("the log: got %q, want no escapes", log)
	}
	same(t, "jobs that ran", readFile(dir, "ran"), "1\n")

	again := startOnScreen(t, dir, "attach", "r")
	again.Until("ENDED")
	again.Person.WriteString("q")
	checkExit(t, again.Cmd, exitOK)
}

// TestAttachToAHeadlessRun attaches to a dispatcher that prints lines itself (D1: headless), and
// cancels the run from there.
func TestAttachToAHeadlessRun(t *testing.T) {
	t.Parallel()
	dir := tempDir(t)
	writeFile(t, dir, "jobs.txt", gated)
	lines := startOnTerminal(t, dir, "run", "--no-tui", "--name", "r", "jobs.txt")
	lines.Until("0 of 1 ok, 1 running")
	p := startOnScreen(t, dir, "attach")
	p.Until("while")
	p.Person.WriteString("q")
	p.Until("detach")
	p.Person.WriteString("c")
	p.Until("y/N")
	p.Person.WriteString("y")
	p.Until("ENDED")
	checkExit(t, lines.Cmd, exitCanceled)
	p.Person.WriteString("q")
	checkExit(t, p.Cmd, exitCanceled)
}

// TestJobsArriveWhileTheScreenReadsKeys checks that jobs keep arriving through a pipe while the
// screen reads keys from the terminal.
func TestJobsArriveWhileTheScreenReadsKeys(t *testing.T) {
	t.Parallel()
	dir := tempDir(t)
	cmd := wrapInShell(programCommand(t, dir, "run", "--name", "r", "-"),
		`(echo true; while [ ! -e more ]; do sleep 0.05; done
		echo 'while [ ! -e go ]; do sleep 0.05; done; echo $DCS_JOB_ID > ran') | "$0" "$@"`)
	p := startOn(t, cmd, "xterm")
	ptytest.SetSize(t, p.Person, 100, 30)
	t.Cleanup(func() { writeFile(t, dir, "more", ""); writeFile(t, dir, "go", "") })
	p.Until("true")
	run, _ := awaitOwner(t, dir)
	p.Person.WriteString("q")
	p.Until("detach")
	p.Person.WriteString("d")
	p.Until("continues in the background")
	writeFile(t, dir, "more", "")
	checkExit(t, p.Cmd, exitLeft)
	writeFile(t, dir, "go", "")
	awaitNobody(t, run)
	same(t, "jobs that ran", readFile(dir, "ran"), "2\n")
}

// TestFaultsOfAStartLookTheSame checks that errors in the command line, the jobs, or the inventory
// end the program with the same message on a terminal with a screen as without.
func TestFaultsOfAStartLookTheSame(t *testing.T) {
	t.Parallel()
	dir := tempDir(t)
	writeFile(t, dir, "bad.txt", "#DCS tries=x\ntrue\n")
	writeFile(t, dir, "good.txt", "true\n")
	writeFile(t, dir, "bad.toml", "[[host]]\nname = 3\n")
	for _, args := range [][]string{
		{"bad.txt"}, {"none.txt"}, {"--hosts", "bad.toml", "good.txt"}, {"--cwd", "/none", "good.txt"}, {"--env",
			"NONE_OF_IT", "good.txt"}, {},
	} {
		said := map[bool]string{}
		for _, screen := range []bool{false, true} {
			args := append([]string{"run"}, args...)
			if !screen {
				args = append(args, "--no-tui")
			}
			p := startOnScreen(t, dir, args...)
			said[screen] = p.End()
			checkExit(t, p.Cmd, exitUsage)
		}
		if said[true] != said[false] || !strings.Contains(said[true], "dcs-tui: ") {
			t.Errorf("%q: with a screen\n%q, without\n%q", args, said[true], said[false])
		}
	}
}

// TestRunOnAPlainTerminalPrintsLines checks that a run on a terminal without cursor control prints
// lines, and that attach, which needs a screen, refuses and names an alternative.
func TestRunOnAPlainTerminalPrintsLines(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"dumb", ""} {
		t.Run("TERM="+name, func(t *testing.T) {
			dir := tempDir(t)
			writeFile(t, dir, "jobs.txt", "true\n")
			p := startOnPlainTerminal(t, dir, name, "run", "--name", "r", "jobs.txt")
			checkContains(t, p.End(), "this terminal cannot show the screen; printing lines, as with --no-tui",
				"all jobs succeeded")
			checkExit(t, p.Cmd, exitOK)
			p = startOnPlainTerminal(t, dir, name, "attach", "r")
			checkContains(t, p.End(), "dcs-tui status r", "dcs-tui events --follow r")
			checkExit(t, p.Cmd, exitUsage)
		})
	}
}

func startOnPlainTerminal(t *testing.T, dir, name string, args ...string) *ptytest.Program {
	t.Helper()
	return startOn(t, wrapInShell(programCommand(t, dir, args...),
		`if [ -z "$TERM" ]; then unset TERM; fi; exec "$0" "$@"`), name)
}

// wrapInShell changes cmd so that a shell runs it within a script line, as "$0" "$@".
func wrapInShell(cmd *exec.Cmd, line string) *exec.Cmd {
	cmd.Path, cmd.Args = "/bin/sh", append([]string{"sh", "-c", line}, cmd.Args...)
	return cmd
}

// socketpair returns two connected sockets that no started program inherits, on all systems.
func socketpair() ([2]int, error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err == nil {
		unix.CloseOnExec(fds[0])
		unix.CloseOnExec(fds[1])
	}
	return fds, err
}

// TestNobodyIsADispatcherByAccident checks that the environment variable of a background dispatcher
// has no effect if it is set by accident, even if the descriptor is open, and that jobs never
// inherit it.
func TestNobodyIsADispatcherByAccident(t *testing.T) {
	t.Parallel()
	fds, err := socketpair()
	must(t, err)
	ours, theirs := os.NewFile(uintptr(fds[0]), "ours"), os.NewFile(uintptr(fds[1]), "theirs")
	defer ours.Close()
	defer theirs.Close()
	ours.WriteString("something of theirs")
	for i, value := range []string{"3:TOKEN", "3:", "1:x", "x", "-1:x", "99:x", ":"} {
		dir := tempDir(t)
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
