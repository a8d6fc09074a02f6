package progtest

import (
	"os/exec"
	"strings"
	"testing"
	"time"
)

// TestKillLeftBehind checks that a live process is found, named, and killed, and one that has ended
// is ignored. The tests of promise 4 rely on it.
func TestKillLeftBehind(t *testing.T) {
	mark := "of " + t.TempDir()
	meant := func(p Process) bool { return p.RefersTo(mark) }
	lives := exec.Command("/bin/sh", "-c", "read x; : "+mark)
	in, err := lives.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if err := lives.Start(); err != nil {
		t.Fatal(err)
	}
	left := KillLeftBehind(0, meant)
	if len(left) != 1 || left[0].PID != lives.Process.Pid ||
		!strings.Contains(left[0].String(), "sh -c read x; : "+mark) {
		t.Errorf("left behind: %v", left)
	}
	if err := lives.Wait(); err == nil || lives.ProcessState.ExitCode() != -1 {
		t.Errorf("it was not killed: %v", lives.ProcessState)
	}
	if left := KillLeftBehind(time.Second, meant); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}
