package ttyguard

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"dcs-tui/internal/platform"
	"dcs-tui/internal/polltest"
	"dcs-tui/internal/ptytest"
)

// TestMain also runs this binary as the program that has the screen, and as its guard.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == Word {
		os.Exit(Main())
	}
	if how := os.Getenv("TTYGUARD_DIES"); how != "" {
		os.Exit(screen(how))
	}
	os.Exit(m.Run())
}

const enter = "\x1b[?1049h\x1b[?25l\x1b[?2004h"

// screen sets up the terminal as Bubble Tea does and ends in the requested way.
func screen(how string) int {
	done, err := Start(os.Stdin, os.Stdout)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	saved, _ := platform.Termios(0)
	now := rawState(*saved)
	platform.SetTermios(0, &now)
	fmt.Print(enter)
	back := func() {
		fmt.Print("\x1b[?1049l")
		platform.SetTermios(0, saved)
	}
	switch how {
	case "quit":
		back()
		done()
		return 0
	case "done without giving it back":
		done()
		return 0
	case "exit":
		return 3
	case "panic":
		go panic("of a goroutine: \x1b]0;title\x07")
	case "fatal":
		go new(sync.Mutex).Unlock()
	case "asleep":
		back()
		SetSuspended(true)
	case "awake again":
		back()
		SetSuspended(true)
		platform.SetTermios(0, &now)
		SetSuspended(false)
	case "shell first":
		shell := now
		shell.Oflag |= unix.OPOST
		platform.SetTermios(0, &shell)
	}
	fmt.Print("ready")
	<-time.After(polltest.Patience) // until the test kills it
	return 4
}

// TestTheTerminalIsGivenBack checks that the terminal is restored however the program ends, and
// that no process remains on it.
func TestTheTerminalIsGivenBack(t *testing.T) {
	for _, c := range []struct {
		how      string
		signal   syscall.Signal // sent when the screen is up; 0: none
		group    bool           // sent to the whole process group
		restored bool           // by the guard, with all its sequences
		shown    string         // shown after that
	}{
		{how: "quit"},
		{how: "done without giving it back", restored: true},
		{how: "exit", restored: true},
		{how: "panic", restored: true, shown: "panic: of a goroutine: ␛]0;title␇"},
		{how: "fatal", restored: true, shown: "[running]"},
		{how: "kill", signal: syscall.SIGKILL, restored: true},
		{how: "kill the group", signal: syscall.SIGKILL, group: true, restored: true},
		{how: "term", signal: syscall.SIGTERM, group: true, restored: true},
		{how: "hup", signal: syscall.SIGHUP, group: true, restored: true},
		{how: "quit signal", signal: syscall.SIGQUIT, group: true, restored: true, shown: "SIGQUIT: quit"},
		{how: "asleep", signal: syscall.SIGKILL},
		{how: "awake again", signal: syscall.SIGKILL, restored: true},
	} {
		t.Run(c.how, func(t *testing.T) {
			t.Parallel()
			p, shown := runToDeath(t, c.how, c.signal, c.group)
			if after := ptytest.Settings(t, p.Person); after != p.Before {
				t.Errorf("the terminal was %+v and is %+v", p.Before, after)
			}
			if _, after, found := strings.Cut(shown, resetSequence); found != c.restored ||
				!strings.Contains(after, c.shown) {
				t.Errorf("shown: %q", shown)
			} else if strings.ContainsAny(after, "\x1b\x07") {
				t.Errorf("the text of the crash has control characters: %q", after)
			}
		})
	}
}

// TestAShellThatWasFasterIsLeftAlone checks that the guard does not change the terminal settings if
// a shell noticed the death first and set its own.
func TestAShellThatWasFasterIsLeftAlone(t *testing.T) {
	p, shown := runToDeath(t, "shell first", syscall.SIGKILL, false)
	if after := ptytest.Settings(t, p.Person); after == p.Before || after.Oflag&unix.OPOST == 0 {
		t.Errorf("the shell's state was changed: %+v", after)
	}
	if !strings.Contains(shown, resetSequence) {
		t.Errorf("shown: %q", shown)
	}
}

// TestGuardWithoutATerminalReportsAnError checks that the guard reports an error if there is no
// terminal.
func TestGuardWithoutATerminalReportsAnError(t *testing.T) {
	f, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	done, err := Start(f, f)
	if err == nil {
		t.Error("no error")
	}
	done()
	SetSuspended(true)
}

// runToDeath runs the program and its guard on a terminal to their ends, and returns the program
// and what the terminal has shown. A signal is sent when the screen is up.
func runToDeath(t *testing.T, how string, sig syscall.Signal, group bool) (*ptytest.Program, string) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), "TTYGUARD_DIES="+how)
	p := ptytest.Start(t, cmd)
	if sig == 0 {
		return p, p.End()
	}
	shown := p.Until("ready")
	pid := p.Process.Pid
	if group {
		pid = -pid
	}
	syscall.Kill(pid, sig)
	return p, shown + p.End()
}
