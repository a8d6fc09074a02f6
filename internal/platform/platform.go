// Package platform holds what differs between the operating systems on which people start the
// program: Linux, macOS, and FreeBSD. The dispatcher, the screen, and the commands run on all of
// them. Jobs run on Linux only (see RunsJobs), and what only a host needs is in hosts/helper/remote.
//
// platform_linux.go, platform_darwin.go, and platform_freebsd.go have the differences, and
// platform_bsd.go what the latter two share. docs/internals/platforms.md describes them for users.
package platform

import (
	"errors"
	"os/exec"
	"runtime"

	"golang.org/x/sys/unix"
)

// RunsJobs reports whether jobs can run on this machine.
const RunsJobs = runtime.GOOS == "linux"

// Process describes a process of this machine.
type Process struct {
	Start   uint64 // identifies the start of the process within a boot
	Parent  int    // 0: unknown
	Ended   bool   // it is a zombie
	Stopped bool   // SIGSTOP, Ctrl-Z
}

// ErrHidden is returned by FindProcess for an existing process whose start time the system does not
// report reliably.
var ErrHidden = errors.New("this system does not report when a process started")

// SelfCommand returns a command that starts this program again. args[0] of the new process is name.
func SelfCommand(name string, args ...string) (*exec.Cmd, error) {
	path, err := Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(path, args...)
	cmd.Args[0] = name
	return cmd, nil
}

// Termios returns the settings of a terminal.
func Termios(fd int) (*unix.Termios, error) { return unix.IoctlGetTermios(fd, getTermios) }

// SetTermios changes the settings of a terminal at once.
func SetTermios(fd int, t *unix.Termios) error { return unix.IoctlSetTermios(fd, setTermios, t) }

// SetTermiosFlush changes the settings of a terminal when its output is written, and discards input
// that was not read.
func SetTermiosFlush(fd int, t *unix.Termios) error {
	return unix.IoctlSetTermios(fd, setTermiosFlush, t)
}

// MaxSocketPath is the maximum length of the path of a Unix socket, in bytes.
const MaxSocketPath = len(unix.RawSockaddrUnix{}.Path) - 1 // without the final zero
