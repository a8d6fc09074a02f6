package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"dcs-tui/internal/polltest"
	"dcs-tui/internal/ptytest"
)

// watched is the program on a pseudo-terminal, with the output that it has sent.
type watched struct {
	cmd    *exec.Cmd
	person *os.File
	dir    string // the run directory
	ended  chan struct{}

	mu    sync.Mutex
	bytes int64
	first time.Time // when the first byte after mark arrived
	last  time.Time
	tail  []byte
}

// watch starts the program with a screen of the given size.
func (l *lab) watch(w, h int, dir string, args ...string) (*watched, error) {
	return l.open(w, h, dir, append([]string{"run", "--run-dir", dir}, args...)...)
}

// open runs a command that shows the screen of the run in dir.
func (l *lab) open(w, h int, dir string, args ...string) (*watched, error) {
	person, program, err := ptytest.New()
	if err != nil {
		return nil, err
	}
	defer program.Close()
	s := &watched{person: person, dir: dir, ended: make(chan struct{})}
	unix.IoctlSetWinsize(int(person.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: uint16(h), Col: uint16(w)})
	s.cmd = exec.Command(l.bin, args...)
	s.cmd.Dir, s.cmd.Env = l.dir, append(os.Environ(), "TERM=xterm-256color", "LANG=C.UTF-8", "SSH_TTY=/dev/pts/0",
		"TERM_PROGRAM=")
	ptytest.Attach(s.cmd, program)
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	go s.read()
	if !polltest.Within(2*time.Minute, func() bool { return s.has("1 Jobs") }) {
		s.end(l)
		return nil, fmt.Errorf("the screen does not open: %q", s.tail)
	}
	return s, nil
}

func (s *watched) read() {
	defer close(s.ended)
	b := make([]byte, 64<<10)
	for {
		n, err := s.person.Read(b)
		now := time.Now()
		s.mu.Lock()
		s.bytes += int64(n)
		if n > 0 {
			s.last = now
			if s.first.IsZero() {
				s.first = now
			}
			s.tail = append(s.tail, b[:n]...)
			s.tail = s.tail[max(0, len(s.tail)-256<<10):]
		}
		s.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// sent returns the number of bytes that the program has sent.
func (s *watched) sent() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bytes
}

func (s *watched) has(text string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Contains(string(s.tail), text)
}

// quiet waits until nothing was sent for d.
func (s *watched) quiet(d time.Duration) {
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		s.mu.Lock()
		last := s.last
		s.mu.Unlock()
		if time.Since(last) > d {
			return
		}
	}
}

// press sends a key. It returns the times until the first and the last byte of the reaction.
func (s *watched) press(key string) (first, last time.Duration, ok bool) {
	s.quiet(80 * time.Millisecond)
	// Frames are drawn periodically, and people do not type in step with them.
	time.Sleep(rand.N(40 * time.Millisecond))
	s.mu.Lock()
	s.first = time.Time{}
	s.mu.Unlock()
	sent := time.Now()
	s.person.WriteString(key)
	for time.Since(sent) < time.Second {
		time.Sleep(time.Millisecond)
		s.mu.Lock()
		f := s.first
		s.mu.Unlock()
		if !f.IsZero() {
			s.quiet(60 * time.Millisecond)
			s.mu.Lock()
			defer s.mu.Unlock()
			return f.Sub(sent), s.last.Sub(sent), true
		}
	}
	return 0, 0, false // the key changes nothing
}

// useOver returns the CPU time that the screen uses and the bytes that it sends within a time, and its
// state at the end.
func (s *watched) useOver(span time.Duration) (cpu time.Duration, sent int64, end proc, err error) {
	before, _ := readProc(s.cmd.Process.Pid)
	sent = s.sent()
	time.Sleep(span)
	end, err = readProc(s.cmd.Process.Pid)
	return end.cpu - before.cpu, s.sent() - sent, end, err
}

// share formats a part of a core.
func share(cpu, span time.Duration) string {
	return fmt.Sprintf("%.2f %%", 100*cpu.Seconds()/span.Seconds())
}

// end quits the screen, ends the run, and kills what is left of both.
func (s *watched) end(l *lab) {
	s.cmd.Process.Signal(syscall.SIGTERM)
	cancel := exec.Command(l.bin, "cancel", "--all", "--yes", s.dir)
	cancel.Run()
	s.leave()
}

// leave quits the screen.
func (s *watched) leave() {
	s.cmd.Process.Signal(syscall.SIGTERM)
	kill := time.AfterFunc(10*time.Second, func() { s.cmd.Process.Kill() })
	s.cmd.Wait()
	kill.Stop()
	s.person.Close()
	<-s.ended
}
