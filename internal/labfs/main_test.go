//go:build linux

package labfs_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	// the program under test, imported so that a change of it invalidates cached results of these tests
	_ "dcs-tui/internal/cli"
	"dcs-tui/internal/progtest"
)

// program is the path of the binary under test, which is built once.
var program string

// wordEnter makes the test binary act as a machine. It enters a mount namespace in which that
// machine's mount is at the common path, and executes another program.
const wordEnter = "__enter"

// envHeld makes the test binary a program that holds the named file open and written while it
// starts another program.
const envHeld = "LABFS_HELD"

func hold(name string) error {
	f, err := os.Create(name)
	if err == nil {
		_, err = f.WriteString("hello")
	}
	if err != nil {
		return err
	}
	fmt.Println("ready")
	fmt.Scanln()
	cmd := exec.Command("/bin/echo", "started")
	cmd.Stdout = os.Stdout
	return cmd.Run()
}

func TestMain(m *testing.M) {
	if name := os.Getenv(envHeld); name != "" {
		if err := hold(name); err != nil {
			fmt.Println(err)
		}
		return
	}
	if len(os.Args) > 6 && os.Args[1] == wordEnter {
		fmt.Fprintln(os.Stderr, enter(os.Args[2], os.Args[3], os.Args[4], os.Args[5], os.Args[6:]))
		os.Exit(126)
	}
	flag.Parse()
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue { // the tests mostly wait for time to pass
		f.Value.Set("6")
	}
	os.Exit(progtest.Main(m, &program))
}

// enter executes argv in a mount namespace of its own, derived from the namespace file. It binds
// mount to place and sets dir as the working directory. It does not access the mount, so it does
// not hang with it, unless dir is in it.
func enter(namespace, mount, place, dir string, argv []string) error {
	runtime.LockOSThread()
	ns, err := unix.Open(namespace, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("opening %s: %w", namespace, err)
	}
	// Threads share their file system attributes. This thread must stop sharing them to change its
	// own.
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return fmt.Errorf("unshare: %w", err)
	}
	if err := unix.Setns(ns, unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("setns: %w", err)
	}
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("unshare: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_PRIVATE|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("making mounts private: %w", err)
	}
	if err := unix.Mount(mount, place, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("binding %s: %w", mount, err)
	}
	if err := unix.Chdir(dir); err != nil {
		return fmt.Errorf("entering %s: %w", dir, err)
	}
	path, err := exec.LookPath(argv[0])
	if err != nil {
		return err
	}
	return unix.Exec(path, argv, os.Environ())
}
