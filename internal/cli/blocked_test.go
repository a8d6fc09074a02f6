package cli

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"dcs-tui/hosts/hosttest"
	"dcs-tui/internal/polltest"
	"dcs-tui/internal/progtest"
)

// fullPipe returns a pipe of one page that nobody reads.
func fullPipe(t *testing.T) *os.File {
	t.Helper()
	r, w, err := os.Pipe()
	must(t, err)
	t.Cleanup(func() { r.Close(); w.Close() })
	const setPipeSize = 1031 // F_SETPIPE_SZ of fcntl(2), which only Linux has
	if _, err := unix.FcntlInt(w.Fd(), setPipeSize, 4096); err != nil {
		hosttest.LeaveOut(t, "the size of a pipe cannot be set here: %v", err)
	}
	return w
}

// programCommand returns a command that runs the program in dir.
func programCommand(t *testing.T, dir string, args ...string) *exec.Cmd {
	t.Helper()
	path, err := exec.LookPath("dcs-tui") // testscript puts it there
	must(t, err)
	cmd := exec.Command(path, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "LANG=C.UTF-8", "TEST_BASES="+filepath.Join(dir, "base"))
	cmd.Env = append(cmd.Env, progtest.HomeEnv(dir)...)
	return cmd
}

// startProgram starts a program and kills it at the end of the test if it still runs.
func startProgram(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	must(t, cmd.Start())
	late := time.AfterFunc(polltest.Patience, func() { cmd.Process.Kill() })
	t.Cleanup(func() {
		cmd.Process.Kill() // has no effect unless the test has failed
		cmd.Wait()
		late.Stop()
	})
}

// awaitFile waits until a file contains a text.
func awaitFile(t *testing.T, path, text string) {
	t.Helper()
	polltest.Until(t, fmt.Sprintf("%q in %s", text, path),
		func() bool { return strings.Contains(readFile("", path), text) })
}

// TestSIGTERMWhileNobodyReadsResults checks that SIGTERM stops the dispatcher even if the reader of
// --json has stopped reading, and that resume prints the results that were not read (promise 1: at
// least once).
func TestSIGTERMWhileNobodyReadsResults(t *testing.T) {
	t.Parallel()
	dir := tempDir(t)
	const n = 100
	writeFile(t, dir, "jobs.txt", strings.Repeat("echo >> ran\n", n))
	cmd := programCommand(t, dir, "run", "--json", "--name", "r", "--max-slots", "4", "jobs.txt")
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = fullPipe(t), &said
	startProgram(t, cmd)
	awaitFile(t, filepath.Join(dir, "ran"), strings.Repeat("\n", n))
	cmd.Process.Signal(syscall.SIGTERM)
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != exitLeft {
		t.Fatalf("%v, want exit %d:\n%s", err, exitLeft, said.String())
	}
	out, err := programCommand(t, dir, "resume", "--json", "r").Output()
	must(t, err)
	checkContains(t, string(out), `"job":50,`, `"job":100,`)
	same(t, "number of starts", len(readFile(dir, "ran")), n)
}

// TestSignalsWhileNobodyReadsTheConsole checks a program whose standard error is a pipe that nobody
// reads. One SIGTERM stops the dispatcher in time, and further Ctrl-C end the program immediately.
func TestSignalsWhileNobodyReadsTheConsole(t *testing.T) {
	polltest.Long(t)
	for name, again := range map[syscall.Signal]bool{syscall.SIGTERM: false, syscall.SIGINT: true} {
		t.Run(name.String(), func(t *testing.T) {
			t.Parallel()
			dir := tempDir(t)
			writeFile(t, dir, "jobs.txt",
				"echo 1 > ran; while [ -e jobs.txt -a ! -e gate ]; do sleep 0.02; done\necho 2\n")
			cmd := programCommand(t, dir, "run", "--name", "r", "jobs.txt")
			full := fullPipe(t)
			if _, err := full.Write(make([]byte, 4096)); err != nil {
				t.Fatal(err)
			}
			cmd.Stderr = full
			startProgram(t, cmd)
			awaitFile(t, filepath.Join(dir, "ran"), "1")
			var ended atomic.Bool
			go func() { cmd.Wait(); ended.Store(true) }()
			cmd.Process.Signal(name)
			polltest.Until(t, "it ends", func() bool {
				if again {
					cmd.Process.Signal(name)
				}
				return ended.Load()
			})
			same(t, "exit code", cmd.ProcessState.ExitCode(), exitLeft)
			writeFile(t, dir, "gate", "")
			if out, err := programCommand(t, dir, "resume", "r").CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}
