package link

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"dcs-tui/hosts"
	"dcs-tui/internal/platform"
	"dcs-tui/internal/text"
)

// LocalOpener opens links to this machine.
type LocalOpener struct{}

// Open returns a link at once.
func (LocalOpener) Open(ctx context.Context, h *hosts.Host) (hosts.Link, error) {
	if err := ctx.Err(); err != nil {
		return nil, &hosts.Error{Host: h.Name, Class: hosts.Unreachable, Err: err}
	}
	if e, refused := errors.AsType[*text.Error](hosts.CheckLocal()); refused {
		return nil, &hosts.Error{Host: h.Name, Class: hosts.Misconfigured, Err: e.Err, Advice: e.Advice}
	}
	return NewLocal(h.Name, nil), nil
}

// localLink runs commands as children of this process.
type localLink struct {
	host   string
	prefix []string // argv before /bin/sh, -c, and the command
	env    []string // nil: that of this process

	mu      sync.Mutex
	closed  bool
	streams map[*localStream]struct{}
}

// NewLocal returns a link for the host of that name. It runs prefix..., /bin/sh, -c,
// COMMAND as a child of this process, with the environment env; nil: that of this process.
func NewLocal(host string, env []string, prefix ...string) hosts.Link {
	return &localLink{host: host, prefix: prefix, env: env, streams: map[*localStream]struct{}{}}
}

// Start runs command with /bin/sh.
func (l *localLink) Start(ctx context.Context, command string) (hosts.Stream, error) {
	if err := ctx.Err(); err != nil {
		return nil, &hosts.Error{Host: l.host, Class: hosts.Unreachable, Err: err}
	}
	argv := slices.Concat(l.prefix, []string{"/bin/sh", "-c", command})
	l.mu.Lock() // also while the child starts, so that Close misses none
	defer l.mu.Unlock()
	if l.closed {
		return nil, &hosts.Error{Host: l.host, Class: hosts.Unreachable, Err: errors.New("the link is closed")}
	}
	s, err := startLocal(argv, l.env, l.forget)
	if err != nil {
		return nil, l.startError(argv[0], err)
	}
	l.streams[s] = struct{}{}
	return s, nil
}

// startError returns the error, with its class, for a child that cannot be started.
func (l *localLink) startError(name string, err error) error {
	e := &hosts.Error{Host: l.host, Class: hosts.Misconfigured, Err: err}
	switch {
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, os.ErrNotExist):
		e.Advice = "is " + name + " installed here and in PATH?"
	case errors.Is(err, os.ErrPermission):
		e.Advice = "may you run " + name + "?"
	case errors.Is(err, syscall.EAGAIN), errors.Is(err, syscall.ENOMEM):
		e.Class, e.Advice = hosts.Unreachable, "this machine has no room for another process: ulimit -u, memory"
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		e.Class, e.Advice = hosts.Unreachable, "too many open files: raise ulimit -n"
	}
	return e
}

// KeepAlive does nothing: the far end is this machine.
func (l *localLink) KeepAlive(context.Context) error { return nil }

// Close ends every command that was started.
func (l *localLink) Close() error {
	l.mu.Lock()
	l.closed = true
	list := slices.Collect(maps.Keys(l.streams))
	l.mu.Unlock()
	for _, s := range list {
		s.kill()
	}
	for _, s := range list {
		s.Close()
	}
	return nil
}

func (l *localLink) forget(s *localStream) {
	l.mu.Lock()
	delete(l.streams, s)
	l.mu.Unlock()
}

// killTimeout bounds how long Close waits for a killed command to end. Only a process
// that hangs in the kernel, on a file system that does not answer, needs longer.
const killTimeout = time.Second

// localStream is one child with its three pipes. Nothing is copied between the pipes and
// whoever reads and writes the stream.
type localStream struct {
	cmd                   *exec.Cmd
	stdin, stdout, stderr *os.File
	forget                func(*localStream)

	mu     sync.Mutex
	reaped bool // the pid may belong to another process

	done    chan struct{} // closed when the child is reaped
	exitErr error         // how it ended; valid after done

	closing   chan struct{} // closed by Close
	closeOnce sync.Once
}

// startLocal starts the child. forget is called once, when the stream is closed.
func startLocal(argv, env []string, forget func(*localStream)) (_ *localStream, err error) {
	var files [6]*os.File // stdin, stdout, stderr: read end, write end
	defer func() {
		if err != nil {
			for _, f := range files {
				f.Close() // on a nil file it only returns an error
			}
		}
	}()
	for i := 0; i < len(files); i += 2 {
		if files[i], files[i+1], err = os.Pipe(); err != nil {
			return nil, err
		}
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = files[0], files[3], files[5]
	cmd.Env = env
	// A new session has no terminal, so the command cannot ask anything.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err = cmd.Start(); err != nil {
		return nil, err
	}
	for _, f := range []*os.File{files[0], files[3], files[5]} {
		f.Close()
	}
	s := &localStream{
		cmd: cmd, stdin: files[1], stdout: files[2], stderr: files[4], forget: forget,
		done: make(chan struct{}), closing: make(chan struct{}),
	}
	go s.reap()
	return s, nil
}

// reap waits for the child and kills what is left of its process group. It does that
// before the child is reaped, because afterwards the pid may be reused.
func (s *localStream) reap() {
	pid := s.cmd.Process.Pid
	err := platform.AwaitExit(pid)
	s.mu.Lock()
	if err == nil {
		syscall.Kill(-pid, syscall.SIGKILL)
	}
	s.reaped = true
	s.mu.Unlock()
	s.exitErr = exitError(s.cmd.Wait())
	close(s.done)
}

// exitError turns an *exec.ExitError into a *hosts.ExitError.
func exitError(err error) error {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return err
	}
	if ws, ok := exit.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		name := cmp.Or(unix.SignalName(ws.Signal()), fmt.Sprintf("signal %d", ws.Signal()))
		return &hosts.ExitError{Code: -1, Signal: name}
	}
	return &hosts.ExitError{Code: exit.ExitCode()}
}

// kill kills the child's process group unless the child was reaped.
func (s *localStream) kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.reaped {
		syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL)
	}
}

func (s *localStream) Read(b []byte) (int, error) { return s.stdout.Read(b) }
func (s *localStream) Stdin() io.WriteCloser      { return s.stdin }
func (s *localStream) Stderr() io.Reader          { return s.stderr }

// Wait returns when the child has ended, at the latest killTimeout after Close.
func (s *localStream) Wait() error {
	select {
	case <-s.done:
		return s.exitErr
	case <-s.closing:
		return s.waitKilled()
	}
}

// waitKilled waits for a child that was killed, at most killTimeout.
func (s *localStream) waitKilled() error {
	if closedWithin(s.done, killTimeout) {
		return s.exitErr
	}
	return fmt.Errorf("process %d does not end although it was killed; it hangs in the kernel, "+
		"probably on a file system", s.cmd.Process.Pid)
}

// closedWithin waits until done is closed, at most d. It reports whether done is closed.
func closedWithin(done <-chan struct{}, d time.Duration) bool {
	select {
	case <-done:
		return true
	case <-time.After(d):
		return false
	}
}

// Close kills the child's process group and releases the pipes.
func (s *localStream) Close() error {
	s.closeOnce.Do(func() {
		s.kill()
		close(s.closing)
		s.stdin.Close()
		s.stdout.Close()
		s.stderr.Close()
		s.forget(s)
	})
	err := s.waitKilled()
	if _, ended := errors.AsType[*hosts.ExitError](err); ended {
		return nil
	}
	return err
}
