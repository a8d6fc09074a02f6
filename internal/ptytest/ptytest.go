// Package ptytest opens pseudo-terminals and runs programs on them. It is for tests and benchmarks
// only. It does not read the output of the programs; the caller does.
package ptytest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"dcs-tui/hosts/hosttest"
)

// ErrNone reports that there are no pseudo-terminals on this machine.
var ErrNone = errors.New("there are no pseudo-terminals here")

// New returns a pseudo-terminal without a size. person is the end at which a person types; its
// reads support deadlines. program is the end for a program. The caller closes both.
func New() (person, program *os.File, err error) {
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrNone, err)
	}
	person = os.NewFile(uintptr(fd), "ptmx")
	number := 0
	if err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err == nil {
		number, err = unix.IoctlGetInt(fd, unix.TIOCGPTN)
	}
	if err == nil {
		program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		person.Close()
		return nil, nil, fmt.Errorf("opening a pseudo-terminal: %w", err)
	}
	return person, program, nil
}

// Open is New for a test. It skips the test where there are no pseudo-terminals, and closes both
// ends when the test ends.
func Open(t testing.TB) (person, program *os.File) {
	t.Helper()
	person, program, err := New()
	if errors.Is(err, ErrNone) {
		hosttest.LeaveOut(t, "%v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		program.Close()
		person.Close()
	})
	return person, program
}

// Size sets the size of the terminal in cells. A signal informs the program that runs on it.
func Size(t testing.TB, person *os.File, columns, rows int) {
	t.Helper()
	size := &unix.Winsize{Row: uint16(rows), Col: uint16(columns)}
	if err := unix.IoctlSetWinsize(int(person.Fd()), unix.TIOCSWINSZ, size); err != nil {
		t.Fatal(err)
	}
}

// State returns the settings of the terminal.
func State(t testing.TB, person *os.File) unix.Termios {
	t.Helper()
	s, err := unix.IoctlGetTermios(int(person.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	return *s
}

// Attach makes a command start with the program's end as its streams and as its controlling
// terminal, in a session of its own. The caller must close that end after the start. A read at the
// person's end fails when no process has the program's end open any more.
func Attach(cmd *exec.Cmd, program *os.File) {
	HeedSignals()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = program, program, program
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
}

// HeedSignals makes programs that are started from now on end on the signals of a terminal.
// Programs inherit the signals that this process ignores: SIGHUP under nohup, and SIGINT and
// SIGQUIT if a shell without job control started it in the background.
func HeedSignals() {
	for _, sig := range []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT} {
		if signal.Ignored(sig) {
			// A signal that this process catches has its default action in the programs that it
			// starts. The channel is never read.
			signal.Notify(make(chan os.Signal, 1), sig)
		}
	}
}
