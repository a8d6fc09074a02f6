// Package ptytest opens pseudo-terminals, runs programs on them, and reads what they show, up to a
// text or to their end. It is for tests and benchmarks only.
package ptytest

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"dcs-tui/hosts/hosttest"
	"dcs-tui/internal/platform"
	"dcs-tui/internal/polltest"
)

// ErrNone reports that there are no pseudo-terminals on this machine.
var ErrNone = errors.New("there are no pseudo-terminals here")

// OpenForTest is New for a test. It skips the test where there are no pseudo-terminals, and closes
// both ends when the test ends.
func OpenForTest(t testing.TB) (person, program *os.File) {
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

// SetSize sets the size of the terminal in cells. A signal informs the program that runs on it.
func SetSize(t testing.TB, person *os.File, columns, rows int) {
	t.Helper()
	size := &unix.Winsize{Row: uint16(rows), Col: uint16(columns)}
	if err := unix.IoctlSetWinsize(int(person.Fd()), unix.TIOCSWINSZ, size); err != nil {
		t.Fatal(err)
	}
}

// Settings returns the settings of the terminal.
func Settings(t testing.TB, person *os.File) unix.Termios {
	t.Helper()
	s, err := platform.Termios(int(person.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	return *s
}

// Attach makes a command start with the program's end as its streams and as its controlling
// terminal, in a session of its own. The caller must close that end after the start. A read at the
// person's end fails when no process has the program's end open any more.
func Attach(cmd *exec.Cmd, program *os.File) {
	UnignoreSignals()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = program, program, program
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
}

// Program is a program that a test has started on a terminal.
type Program struct {
	*exec.Cmd
	Person *os.File     // the person's end
	Before unix.Termios // the settings of the terminal before the start
	t      testing.TB
	shown  bytes.Buffer // the output that Until has not returned yet
}

// Start starts a command on a terminal of 80x24 cells. It kills what is left of the command's
// process group when the test ends.
func Start(t testing.TB, cmd *exec.Cmd) *Program {
	t.Helper()
	person, program := OpenForTest(t)
	SetSize(t, person, 80, 24)
	p := &Program{Cmd: cmd, Person: person, Before: Settings(t, person), t: t}
	Attach(cmd, program)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	program.Close()
	t.Cleanup(func() {
		if cmd.ProcessState == nil {
			syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
			cmd.Wait()
		}
	})
	return p
}

// Until returns the output up to a text. It fails the test if the text is not shown.
func (p *Program) Until(text string) string {
	p.t.Helper()
	return p.UntilMatch(regexp.QuoteMeta(text))
}

// UntilMatch returns the output up to the end of the first match of a regular expression. It fails
// the test if there is none.
func (p *Program) UntilMatch(pattern string) string {
	p.t.Helper()
	for want := regexp.MustCompile(pattern); ; {
		if at := want.FindIndex(p.shown.Bytes()); at != nil {
			return string(p.shown.Next(at[1]))
		}
		if err := p.read(); err != nil {
			p.t.Fatalf("it does not show %q (%v): %q", pattern, err, p.shown.String())
		}
	}
}

// End returns the rest of the output and waits for the program. It fails the test if a process
// keeps the terminal.
func (p *Program) End() string {
	p.t.Helper()
	for {
		err := p.read()
		if errors.Is(err, syscall.EIO) || errors.Is(err, io.EOF) { // nothing has the program's end open
			p.Wait() // the caller reads its state
			return p.shown.String()
		}
		if err != nil {
			p.t.Fatalf("a process still has the terminal (%v): %q", err, p.shown.String())
		}
	}
}

func (p *Program) read() error {
	p.Person.SetReadDeadline(time.Now().Add(polltest.Patience))
	b := make([]byte, 16384)
	n, err := p.Person.Read(b)
	p.shown.Write(b[:n])
	return err
}

var unignoreMu sync.Mutex

// UnignoreSignals makes programs that are started from now on end on the signals of a terminal.
// Programs inherit the signals that this process ignores: SIGHUP under nohup, and SIGINT and
// SIGQUIT if a shell without job control started it in the background. Concurrent calls wait for
// each other, because a signal stops to be reported as ignored a little before it is caught.
func UnignoreSignals() {
	unignoreMu.Lock()
	defer unignoreMu.Unlock()
	for _, sig := range []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT} {
		if signal.Ignored(sig) {
			// A signal that this process catches has its default action in the programs that it
			// starts. The channel is never read.
			signal.Notify(make(chan os.Signal, 1), sig)
		}
	}
}
