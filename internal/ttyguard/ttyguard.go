// Package ttyguard restores the terminal after a program with a screen could not: it was killed, or
// it crashed in a goroutine that nothing recovers. Start runs a guard, which is a child of the same
// program. The guard holds the terminal and one end of a pipe, and does nothing until the pipe
// closes.
//
// A program that is alive restores its terminal itself, and tells the guard.
package ttyguard

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"dcs-tui/internal/platform"
	"dcs-tui/internal/text"
)

// Word is the hidden argument with which the program starts itself as a guard.
const Word = "__ttyguard"

// Messages to the guard, of one byte each. Anything else is the text of a crash.
const (
	suspended = 1 // the terminal was given back for a while: ctrl+z
	resumed   = 2
	restored  = 3 // the terminal was restored
)

// exitTimeout bounds the wait for the end of a guard, and the restoring by a guard.
const exitTimeout = time.Second

// guard is the guard of this process, for SetSuspended.
var guard struct {
	sync.Mutex
	pipe *os.File
}

// Start starts a guard of the terminal in and out. The terminal must still be in the state that is
// to be restored. done ends the guard; call it when the screen has restored the terminal. After an
// error there is no guard, and done does nothing.
//
// If this process crashes, the guard prints the text of the crash on the restored terminal, because
// the runtime wrote it to the alternate screen, which is gone then.
func Start(in, out *os.File) (done func(), err error) {
	state, err := platform.Termios(int(in.Fd()))
	if err != nil {
		return func() {}, fmt.Errorf("the terminal cannot be guarded: %w", err)
	}
	theirs, ours, err := os.Pipe()
	if err != nil {
		return func() {}, fmt.Errorf("the terminal cannot be guarded: %w", err)
	}
	defer theirs.Close()
	child, err := platform.SelfCommand(os.Args[0], Word)
	if err != nil {
		ours.Close()
		return func() {}, fmt.Errorf("the terminal cannot be guarded: %w", err)
	}
	child.Stdin, child.Stdout, child.ExtraFiles = theirs, out, []*os.File{in}
	// A session of its own: no key of this terminal and no hang-up reaches it, and it may
	// write to it at any time.
	child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	child.Dir = "/"
	if err := child.Start(); err != nil {
		ours.Close()
		return func() {}, fmt.Errorf("the terminal cannot be guarded: %w", err)
	}
	// A pipe takes it at once; a guard without it does nothing.
	binary.Write(ours, binary.NativeEndian, state)
	debug.SetCrashOutput(ours, debug.CrashOptions{})
	guard.Lock()
	guard.pipe = ours
	guard.Unlock()
	return sync.OnceFunc(func() {
		guard.Lock()
		guard.pipe = nil
		guard.Unlock()
		debug.SetCrashOutput(nil, debug.CrashOptions{})
		// A screen that could not write to the terminal, and so not restore it, leaves that to the
		// guard.
		if now, err := platform.Termios(int(in.Fd())); err != nil || isSame(now, state) {
			ours.Write([]byte{restored})
		}
		ours.Close()
		kill := time.AfterFunc(exitTimeout, func() { child.Process.Kill() })
		child.Wait()
		kill.Stop()
	}), nil
}

// SetSuspended tells the guard that the terminal is given back for a while (true), or in use again
// (false). If the program dies meanwhile, the guard must not disturb the shell.
func SetSuspended(yes bool) {
	guard.Lock()
	defer guard.Unlock()
	if guard.pipe == nil {
		return
	}
	word := byte(resumed)
	if yes {
		word = suspended
	}
	guard.pipe.Write([]byte{word})
}

// Main runs a guard and returns its exit code. Standard input is the pipe; standard output and
// descriptor 3 are the terminal.
func Main() int {
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGTSTP, syscall.SIGTTIN,
		syscall.SIGTTOU, syscall.SIGPIPE)
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(16 << 20)
	in := os.NewFile(3, "terminal")
	if in == nil {
		return 2
	}
	state := new(unix.Termios)
	if binary.Read(os.Stdin, binary.NativeEndian, state) != nil {
		return 0 // the program died before it had a screen
	}
	crash, needed := readMessages(os.Stdin)
	if !needed {
		return 0
	}
	time.AfterFunc(exitTimeout, func() { os.Exit(1) }) // writing to the terminal blocks
	restore(int(in.Fd()), state)
	os.Stdout.WriteString(resetSequence)
	if crash != "" {
		os.Stdout.WriteString(cleanCrash(crash))
	}
	return 0
}

// readMessages reads the messages of a program until it ends. It returns what the program wrote
// when it crashed, and whether the terminal must be restored.
func readMessages(from io.Reader) (crash string, needed bool) {
	r := bufio.NewReader(from)
	needed = true
	for {
		b, err := r.ReadByte()
		switch {
		case err != nil:
			return "", needed
		case b == suspended:
			needed = false
		case b == resumed:
			needed = true
		case b == restored:
			return "", false
		default:
			r.UnreadByte()
			text, _ := io.ReadAll(io.LimitReader(r, maxCrash))
			io.Copy(io.Discard, r) // until it is dead
			return string(text), needed
		}
	}
}

// maxCrash bounds the text of a crash, in bytes.
const maxCrash = 256 << 10

// resetSequence turns off everything that a screen may have turned on.
const resetSequence = "\x18" + // a sequence that was cut off
	"\x1b[?2026l" + // synchronized output
	"\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l" + // mouse
	"\x1b[?1004l\x1b[?2004l\x1b[?2027l" + // focus, bracketed paste, Unicode core
	"\x1b[>4m\x1b[<1u" + // keyboard
	"\x1b[r" + // scroll region
	"\x1b[0m\x0f" + // colors, character set
	"\x1b[?1049l" + // alternate screen
	"\x1b[?25h" // cursor

// restore restores the saved state, unless a shell that noticed the death first has changed it
// already.
func restore(fd int, saved *unix.Termios) {
	now, err := platform.Termios(fd)
	raw := rawState(*saved)
	if err != nil || !isSame(now, &raw) {
		return
	}
	platform.SetTermios(fd, saved)
}

// isSame reports whether two states are the same but for PENDIN, which macOS and FreeBSD change.
func isSame(a, b *unix.Termios) bool {
	now, then := *a, *b
	now.Lflag &^= unix.PENDIN
	then.Lflag &^= unix.PENDIN
	return now == then
}

// rawState returns the state that a screen gives a terminal in state t.
func rawState(t unix.Termios) unix.Termios {
	t.Iflag &^= unix.IGNBRK | unix.BRKINT | unix.PARMRK | unix.ISTRIP | unix.INLCR | unix.IGNCR | unix.ICRNL | unix.IXON
	t.Oflag &^= unix.OPOST
	t.Lflag &^= unix.ECHO | unix.ECHONL | unix.ICANON | unix.ISIG | unix.IEXTEN
	t.Cflag &^= unix.CSIZE | unix.PARENB
	t.Cflag |= unix.CS8
	t.Cc[unix.VMIN] = 1
	t.Cc[unix.VTIME] = 0
	return t
}

// cleanCrash cleans the text of a crash, which may have text of jobs, for a terminal.
func cleanCrash(crash string) string {
	var b strings.Builder
	for l := range strings.SplitSeq(strings.TrimRight(crash, "\n"), "\n") {
		if rest, ok := strings.CutPrefix(l, "\t"); ok {
			l = "    " + rest
		}
		b.WriteString(text.Clean(l, 0) + "\r\n")
	}
	return b.String()
}
