package run

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"dcs-tui/internal/platform"
	"dcs-tui/jobs/journal"
)

// A run with a screen has two processes. The process that a person started becomes the screen.
// Before that it starts the same program, with the same arguments, in a session of its own, and
// that process dispatches. Until it does, its output and exit code are those of the first process.

// BackgroundEnv makes a process dispatch in the background. Its value is the number of a
// descriptor, which is one end of a socket pair, and a token that can be read there first, before a
// task. The process removes it from the environment immediately. A value without such a socket has no effect.
const BackgroundEnv = "DCS_TUI_BACKGROUND"

// ProgramName is argv[0] of the processes that this program starts.
var ProgramName = os.Args[0]

// maxMessage bounds a message to the starter, in bytes.
const maxMessage = 64 << 10

// Background is a dispatcher that this process has started in the background.
type Background struct {
	Process *os.Process
	Ended   chan struct{}  // closed when it has ended and Code and Signal are set
	Code    int            // exit code; -1 if a signal has ended it
	Signal  syscall.Signal // signal that has ended it
	Problem string         // its error, if it ended before it dispatched; set by Ready

	socket *os.File // our end of the pair
}

// task is what a background dispatcher gets to know from its starter, besides its arguments.
type task struct {
	Silent *journal.Owner `json:"silent,omitempty"` // as in journal.TakeOptions
}

// StartBackground starts this program with the arguments in the background. Without stdin, it reads
// nothing. Output that the process prints before it is ready goes to errs. silent is an owner of the run
// whose silence the caller has observed, as in journal.TakeOptions; nil: there is none.
func StartBackground(args []string, stdin io.Reader, errs io.Writer, silent *journal.Owner) (*Background, error) {
	its, err := json.Marshal(task{silent})
	if err != nil {
		return nil, fmt.Errorf("a background dispatcher cannot be started: %w", err)
	}
	syscall.ForkLock.RLock() // macOS has no SOCK_CLOEXEC
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err == nil {
		unix.CloseOnExec(fds[0])
		unix.CloseOnExec(fds[1])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, fmt.Errorf("a background dispatcher cannot be started: %w", err)
	}
	theirs := os.NewFile(uintptr(fds[1]), "their end")
	defer theirs.Close()
	_ = unix.SetNonblock(fds[0], true) // so that a read can be canceled
	line := os.NewFile(uintptr(fds[0]), "our end")
	token := rand.Text()
	if _, err := line.WriteString(token + string(its)); err != nil {
		line.Close()
		return nil, fmt.Errorf("a background dispatcher cannot be started: %w", err)
	}
	cmd, err := platform.SelfCommand(ProgramName, args...)
	if err != nil {
		line.Close()
		return nil, fmt.Errorf("a background dispatcher cannot be started: %w", err)
	}
	cmd.Env = append(os.Environ(), BackgroundEnv+"=3:"+token)
	cmd.ExtraFiles = []*os.File{theirs}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, errs, errs
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.WaitDelay = WriteTimeout // its children may keep errs open
	if err := cmd.Start(); err != nil {
		line.Close()
		return nil, fmt.Errorf("a background dispatcher cannot be started: %w", err)
	}
	p := &Background{Process: cmd.Process, socket: line, Ended: make(chan struct{})}
	go func() {
		cmd.Wait()
		p.Code = cmd.ProcessState.ExitCode()
		if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			p.Signal = status.Signal()
		}
		close(p.Ended)
	}()
	return p, nil
}

// IsOwner reports whether this process is the owner of a run.
func (p *Background) IsOwner(o *journal.Owner) bool {
	host, err := os.Hostname()
	return err == nil && o.Host == host && o.PID == p.Process.Pid
}

// Ready waits until the process dispatches and returns the directory of its run. It returns
// "" if the process has ended instead.
func (p *Background) Ready(ctx context.Context) (dir string, err error) {
	defer p.socket.Close()
	stop := context.AfterFunc(ctx, func() { p.socket.Close() })
	defer stop()
	b, err := io.ReadAll(io.LimitReader(p.socket, maxMessage))
	switch {
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case len(b) == 0 || err != nil:
		<-p.Ended
		return "", nil
	}
	text := string(b[1:])
	if b[0] == messageFailed {
		p.Problem = text
		<-p.Ended
		return "", nil
	}
	return text, nil
}

// The first byte of the only message to the starter, whose end is that of the stream: this process
// dispatches the run in a directory, or has ended with an error.
const (
	messageReady  = 'R'
	messageFailed = 'F'
)

// Starter is the process that waits for this process, a background dispatcher, to begin.
type Starter struct {
	// Silent is an owner of the run whose silence the starter has observed, as in journal.TakeOptions; nil:
	// there is none.
	Silent *journal.Owner

	socket *os.File
}

// FindStarter returns the Starter, or nil if this process was not started by StartBackground.
func FindStarter() *Starter {
	text := os.Getenv(BackgroundEnv)
	os.Unsetenv(BackgroundEnv)
	number, token, _ := strings.Cut(text, ":")
	fd, err := strconv.Atoi(number)
	if err != nil || fd < 3 || token == "" {
		return nil
	}
	if kind, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE); err != nil || kind != unix.SOCK_STREAM {
		return nil
	}
	b := make([]byte, maxMessage)
	// The socket may belong to another program, so nothing is taken from it yet. The starter has sent all, and
	// one of an older version only the token.
	n, _, err := unix.Recvfrom(fd, b, unix.MSG_PEEK|unix.MSG_DONTWAIT)
	if err != nil || !strings.HasPrefix(string(b[:max(0, n)]), token) {
		return nil
	}
	unix.Recvfrom(fd, b, unix.MSG_DONTWAIT)
	unix.CloseOnExec(fd)
	var its task
	if json.Unmarshal(b[len(token):n], &its) != nil {
		its = task{} // the run is taken over as without it
	}
	return &Starter{Silent: its.Silent, socket: os.NewFile(uintptr(fd), "starter")}
}

// Ready notifies the starter that the run in dir is dispatched.
func (s *Starter) Ready(dir string) error {
	return s.send(messageReady, dir)
}

// Failed notifies the starter of the error with which this process ends. It has no effect after
// Ready.
func (s *Starter) Failed(problem string) {
	_ = s.send(messageFailed, problem[:min(len(problem), maxMessage-1)])
}

func (s *Starter) send(kind byte, text string) error {
	_, err := s.socket.WriteString(string(kind) + text)
	if errors.Is(err, syscall.EPIPE) { // the starter has ended
		err = nil
	}
	return errors.Join(err, s.socket.Close())
}
