package platform

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// TestMain also runs this binary as a child that ends at once, or at the end of its standard input.
func TestMain(m *testing.M) {
	if len(os.Args) >= 2 && os.Args[1] == "child" {
		if len(os.Args) > 2 {
			io.Copy(io.Discard, os.Stdin)
		}
		os.Exit(7)
	}
	os.Exit(m.Run())
}

// TestChildIsThereUntilItIsReaped checks that a program starts itself again, that waiting for the end of
// the child does not reap it, and that the system describes it until it is reaped.
func TestChildIsThereUntilItIsReaped(t *testing.T) {
	cmd, err := SelfCommand("name", "child")
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pid := cmd.Process.Pid
	for range 2 { // the second time it has certainly ended
		if err := AwaitExit(pid); err != nil {
			t.Fatal(err)
		}
	}
	p, err := FindProcess(pid)
	if !errors.Is(err, ErrHidden) && (err != nil || p.Parent != os.Getpid() || !p.Ended || p.Start == 0) {
		t.Errorf("a child that has ended: %+v, %v", p, err)
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 7 {
		t.Errorf("the child was reaped by another: %v", err)
	}
	if _, err := FindProcess(pid); !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ESRCH) {
		t.Errorf("a process that is gone: %v", err)
	}
}

// TestIdentityIsStable checks that the process, the boot, and the set of pids have the same identity
// each time.
func TestIdentityIsStable(t *testing.T) {
	for name, get := range map[string]func() (string, error){"boot": BootID, "pids": PIDNamespace,
		"program": Executable} {
		a, err := get()
		b, err2 := get()
		if a == "" || a != b || err != nil || err2 != nil {
			t.Errorf("%s: %q, %q, %v, %v", name, a, b, err, err2)
		}
	}
	a, err := FindProcess(os.Getpid())
	b, _ := FindProcess(os.Getpid())
	if a != b || a.Ended || a.Stopped || err != nil && !errors.Is(err, ErrHidden) {
		t.Errorf("%+v, %+v, %v", a, b, err)
	}
}
