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

// onScreen runs the program on a terminal of 100 x 30.
func onScreen(t *testing.T, dir string, args ...string) (cmd *exec.Cmd, person *os.File) {
	t.Helper()
	// Registered before the program starts, so that it runs after the screen has ended.
	t.Cleanup(func() { endRuns(t, dir) })
	cmd, person = onTerminal(t, dir, args...)
	ptytest.Size(t, person, 100, 30)
	return cmd, person
}

// endRuns ends all dispatchers, whether the test passed or failed.
func endRuns(t *testing.T, dir string) {
	t.Helper()
	dirs, _ := filepath.Glob(filepath.Join(dir, "dcs-runs", "*"))
	for _, d := range dirs {
		run, err := rundir.Open(d)
		if err != nil {
			continue
		}
		if owner, err := journal.ReadOwner(run); err == nil && owner != nil && owner.Life() == journal.Alive && owner.PID != os.Getpid() {
			gone(t, run, true)
		}
	}
}

// ownerIn waits until the run r in dir has a dispatcher and returns the run and its owner.
func ownerIn(t *testing.T, dir string) (*rundir.Run, *journal.Owner) {
	t.Helper()
	var run *rundir.Run
	var owner *journal.Owner
	polltest.Until(t, "somebody dispatches the run", func() bool {
		var err error
		if run, err = rundir.Open(filepath.Join(dir, "dcs-runs", "r")); err != nil {
			return false
		}
		owner, err = journal.ReadOwner(run)
		return err == nil && owner != nil && owner.Life() == journal.Alive
	})
	t.Cleanup(func() { gone(t, run, true) })
	return run, owner
}

// gone waits until the run has no dispatcher. If cancel is set, it cancels the run first.
func gone(t *testing.T, run *rundir.Run, cancel bool) {
	t.Helper()
	if !polltest.Within(polltest.Patience, func() bool {
		owner, err := journal.ReadOwner(run)
		if err == nil && owner.Life() == journal.Dead {
			return true
		}
		if cancel {
			os.WriteFile(run.Path(rundir.StopNowFile), nil, 0o600)
		}
		return false
	}) {
		t.Error("the dispatcher does not end")
	}
}

// endsWith waits for the program, which must exit with that code.
func endsWith(t *testing.T, cmd *exec.Cmd, code int) {
	t.Helper()
	late := time.AfterFunc(polltest.Patience, func() { cmd.Process.Kill() })
	defer late.Stop()
	cmd.Wait()
	if got := cmd.ProcessState.ExitCode(); got != code {
		t.Errorf("exit %d, want %d", got, code)
	}
}

const gatedHere = "echo $DCS_JOB_ID >> ran; while [ -e jobs.txt -a ! -e gate ]; do sleep 0.02; done\n"

// TestScreenAndDispatcherAreTwo checks a run on a terminal: it is a screen, and a dispatcher in a
// session of its own. Detaching does not affect the dispatcher and shows how to come back; the exit
// code shows that jobs are left. attach shows the run again. Closing its terminal, or SIGTERM, ends
// only that screen. After the end of the run, attach shows how it ended.
func TestScreenAndDispatcherAreTwo(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, dir, "jobs.txt", gatedHere+"true\n")
	cmd, person := onScreen(t, dir, "run", "--name", "r", "jobs.txt")
	readUntil(t, person, `DCS_JOB`)
	run, owner := ownerIn(t, dir)
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
	for _, want := range []string{"continues in the background", "dcs-tui attach r", "dcs-tui status r"} {
		if !strings.Contains(shown, want) {
			t.Errorf("%q is not said: %q", want, shown)
		}
	}
	endsWith(t, cmd, exitLeft)

	closed, person := onScreen(t, dir, "attach")
	readUntil(t, person, `DCS_JOB`)
	ended, second := onScreen(t, dir, "attach", "r")
	readUntil(t, second, `DCS_JOB`)
	person.Close()
	endsWith(t, closed, exitLeft)
	ended.Process.Signal(syscall.SIGTERM)
	readUntil(t, second, `continues in the background`)
	endsWith(t, ended, exitLeft)
	if now, err := journal.ReadOwner(run); err != nil || now.PID != owner.PID || now.Life() != journal.Alive {
		t.Errorf("%+v, %v", now, err)
	}

	stays, person := onScreen(t, dir, "attach", "r")
	readUntil(t, person, `DCS_JOB`)
	writeFile(t, dir, "gate", "")
	readUntil(t, person, `ENDED`)
	gone(t, run, false)
	person.WriteString("q")
	readUntil(t, person, `all jobs succeeded[^$]*logs: `)
	endsWith(t, stays, exitOK)
	log, err := os.ReadFile(run.Path(dispatcherLogFile))
	if err != nil || !strings.Contains(string(log), "all jobs succeeded") || strings.ContainsRune(string(log), 0x1b) {
		t.Errorf("%q, %v", log, err)
	}
	if ran, _ := os.ReadFile(filepath.Join(dir, "ran")); string(ran) != "1\n" {
		t.Errorf("ran: %q", ran)
	}

	again, person := onScreen(t, dir, "attach", "r")
	readUntil(t, person, `ENDED`)
	person.WriteString("q")
	endsWith(t, again, exitOK)
}

// TestAttachToAHeadlessRun attaches to a dispatcher that prints lines itself (D1: headless), and
// cancels the run from there.
func TestAttachToAHeadlessRun(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, dir, "jobs.txt", gatedHere)
	lines, tty := onTerminal(t, dir, "run", "--no-tui", "--name", "r", "jobs.txt")
	readUntil(t, tty, `0/1  1 running`)
	cmd, person := onScreen(t, dir, "attach")
	readUntil(t, person, `DCS_JOB`)
	person.WriteString("q")
	readUntil(t, person, `detach`)
	person.WriteString("c")
	readUntil(t, person, `y/N`)
	person.WriteString("y")
	readUntil(t, person, `ENDED`)
	endsWith(t, lines, exitCanceled)
	person.WriteString("q")
	endsWith(t, cmd, exitCanceled)
}

// TestPipedJobsAndKeys checks that jobs keep arriving through a pipe while the screen reads keys
// from the terminal.
func TestPipedJobsAndKeys(t *testing.T) {
	dir := t.TempDir()
	cmd := inShell(program(t, dir, "run", "--name", "r", "-"), `(echo true; while [ ! -e more ]; do sleep 0.05; done; echo 'echo $DCS_JOB_ID > ran') | "$0" "$@"`)
	person := startOn(t, cmd, "xterm")
	ptytest.Size(t, person, 100, 30)
	t.Cleanup(func() {
		writeFile(t, dir, "more", "")
		cmd.Process.Kill()
		cmd.Wait()
	})
	readUntil(t, person, `true`)
	run, _ := ownerIn(t, dir)
	person.WriteString("q")
	readUntil(t, person, `detach`)
	person.WriteString("d")
	readUntil(t, person, `continues in the background`)
	writeFile(t, dir, "more", "")
	endsWith(t, cmd, exitLeft)
	gone(t, run, false)
	if ran, err := os.ReadFile(filepath.Join(dir, "ran")); string(ran) != "2\n" {
		t.Errorf("%q, %v", ran, err)
	}
}

// TestFaultsOfAStartLookTheSame checks that errors in the command line, the jobs, or the inventory
// end the program with the same message on a terminal with a screen as without.
func TestFaultsOfAStartLookTheSame(t *testing.T) {
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
			cmd, person := onScreen(t, dir, args...)
			said[screen] = readAll(person)
			endsWith(t, cmd, exitUsage)
		}
		if said[true] != said[false] || !strings.Contains(said[true], "dcs-tui: ") {
			t.Errorf("%q: with a screen\n%q, without\n%q", args, said[true], said[false])
		}
	}
}

func readAll(person *os.File) string {
	person.SetReadDeadline(time.Now().Add(polltest.Patience))
	var all []byte
	var b [4096]byte
	for {
		n, err := person.Read(b[:])
		all = append(all, b[:n]...)
		if err != nil {
			return string(all)
		}
	}
}

// TestPlainTerminals checks that a run on a terminal without cursor control prints lines, and that
// attach, which needs a screen, refuses and names an alternative.
func TestPlainTerminals(t *testing.T) {
	for _, name := range []string{"dumb", ""} {
		t.Run("TERM="+name, func(t *testing.T) {
			dir := t.TempDir()
			writeFile(t, dir, "jobs.txt", "true\n")
			cmd, person := onPlainTerminal(t, dir, name, "run", "--name", "r", "jobs.txt")
			shown := readAll(person)
			endsWith(t, cmd, exitOK)
			if !strings.Contains(shown, "this terminal cannot show the screen; printing lines, as with --no-tui") || !strings.Contains(shown, "all jobs succeeded") {
				t.Errorf("%q", shown)
			}
			cmd, person = onPlainTerminal(t, dir, name, "attach", "r")
			shown = readAll(person)
			endsWith(t, cmd, exitUsage)
			if !strings.Contains(shown, "dcs-tui status r") || !strings.Contains(shown, "dcs-tui events --follow r") {
				t.Errorf("%q", shown)
			}
		})
	}
}

func onPlainTerminal(t *testing.T, dir, name string, args ...string) (*exec.Cmd, *os.File) {
	t.Helper()
	cmd := inShell(program(t, dir, args...), `if [ -z "$TERM" ]; then unset TERM; fi; exec "$0" "$@"`)
	return cmd, startOn(t, cmd, name)
}

// inShell changes cmd so that a shell runs it within a script line, as "$0" "$@".
func inShell(cmd *exec.Cmd, line string) *exec.Cmd {
	cmd.Path, cmd.Args = "/bin/sh", append([]string{"sh", "-c", line}, cmd.Args...)
	return cmd
}

// TestNobodyIsADispatcherByAccident checks that the environment variable of a background dispatcher
// has no effect if it is set by accident, even if the descriptor is open, and that jobs never
// inherit it.
func TestNobodyIsADispatcherByAccident(t *testing.T) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs := os.NewFile(uintptr(fds[0]), "ours"), os.NewFile(uintptr(fds[1]), "theirs")
	defer ours.Close()
	defer theirs.Close()
	ours.WriteString("something of theirs")
	for i, value := range []string{"3:TOKEN", "3:", "1:x", "x", "-1:x", "99:x", ":"} {
		dir := t.TempDir()
		writeFile(t, dir, "jobs.txt", "echo [$"+run.BackgroundEnv+"] > ran\n")
		cmd := program(t, dir, "run", "--name", "r", "jobs.txt")
		cmd.Env = append(cmd.Env, run.BackgroundEnv+"="+value)
		cmd.ExtraFiles = []*os.File{theirs}
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "all jobs succeeded") {
			t.Errorf("%d %q: %v\n%s", i, value, err, out)
		}
		if ran, _ := os.ReadFile(filepath.Join(dir, "ran")); string(ran) != "[]\n" {
			t.Errorf("%q: the job sees %q", value, ran)
		}
	}
	b := make([]byte, 100)
	if n, err := theirs.Read(b); err != nil || string(b[:n]) != "something of theirs" {
		t.Errorf("%q, %v: what was on the descriptor is gone", b[:n], err)
	}
}
