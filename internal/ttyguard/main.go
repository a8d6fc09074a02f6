package ttyguard

import (
	"bufio"
	"encoding/binary"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"dcs-tui/jobs"
)

// Main is the guard: standard input is the pipe, standard output and descriptor 3 the
// terminal. It returns the exit code.
func Main() int {
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU, syscall.SIGPIPE)
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(16 << 20)
	in := os.NewFile(3, "terminal")
	if in == nil {
		return 2
	}
	state := new(unix.Termios)
	if binary.Read(os.Stdin, binary.NativeEndian, state) != nil {
		return 0 // it died before its screen was up
	}
	crash, needed := listen(os.Stdin)
	if !needed {
		return 0
	}
	time.AfterFunc(patience, func() { os.Exit(1) }) // the terminal takes nothing
	restore(int(in.Fd()), state)
	os.Stdout.WriteString(leave)
	if crash != "" {
		os.Stdout.WriteString(plain(crash))
	}
	return 0
}

// listen reads from a screen until it ends: what it wrote when it crashed, and whether the
// terminal must be given back for it.
func listen(from io.Reader) (crash string, needed bool) {
	r := bufio.NewReader(from)
	needed = true
	for {
		b, err := r.ReadByte()
		switch {
		case err != nil:
			return "", needed
		case b == asleep:
			needed = false
		case b == awake:
			needed = true
		case b == goodbye:
			return "", false
		default:
			r.UnreadByte()
			text, _ := io.ReadAll(io.LimitReader(r, maxCrash))
			io.Copy(io.Discard, r) // until it is dead
			return string(text), needed
		}
	}
}

// maxCrash bounds the text of a crash that is kept.
const maxCrash = 256 << 10

// leave takes back everything that a screen may have asked of a terminal.
const leave = "\x18" + // a sequence that was cut off
	"\x1b[?2026l" + // synchronized output
	"\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l" + // mouse
	"\x1b[?1004l\x1b[?2004l\x1b[?2027l" + // focus, bracketed paste, Unicode core
	"\x1b[>4m\x1b[<1u" + // keyboard
	"\x1b[r" + // scroll region
	"\x1b[0m\x0f" + // colors, character set
	"\x1b[?1049l" + // alternate screen
	"\x1b[?25h" // cursor

// restore puts the saved state back unless somebody else, a shell that has noticed
// the death first, has changed it already.
func restore(fd int, saved *unix.Termios) {
	now, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil || *now != raw(*saved) {
		return
	}
	unix.IoctlSetTermios(fd, unix.TCSETS, saved)
}

// raw is what a screen makes of a terminal's state.
func raw(t unix.Termios) unix.Termios {
	t.Iflag &^= unix.IGNBRK | unix.BRKINT | unix.PARMRK | unix.ISTRIP | unix.INLCR | unix.IGNCR | unix.ICRNL | unix.IXON
	t.Oflag &^= unix.OPOST
	t.Lflag &^= unix.ECHO | unix.ECHONL | unix.ICANON | unix.ISIG | unix.IEXTEN
	t.Cflag &^= unix.CSIZE | unix.PARENB
	t.Cflag |= unix.CS8
	t.Cc[unix.VMIN] = 1
	t.Cc[unix.VTIME] = 0
	return t
}

// plain is the text of a crash as lines for a terminal: it may hold text of jobs.
func plain(crash string) string {
	var b strings.Builder
	for l := range strings.SplitSeq(strings.TrimRight(crash, "\n"), "\n") {
		if rest, ok := strings.CutPrefix(l, "\t"); ok {
			l = "    " + rest
		}
		b.WriteString(jobs.Clean(l, 0) + "\r\n")
	}
	return b.String()
}
