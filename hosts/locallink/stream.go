package locallink

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"dcs-tui/hosts"
)

// reapLimit bounds how long Close waits for a killed command to be gone. Only a
// process that hangs in the kernel (a wedged file system) needs longer.
const reapLimit = time.Second

// stream is one child with its three pipes. The pipes are files of the kernel:
// nothing is copied in between.
type stream struct {
	cmd                   *exec.Cmd
	stdin, stdout, stderr *os.File
	forget                func(*stream)

	mu     sync.Mutex
	reaped bool // the pid may belong to somebody else from now on

	done  chan struct{} // closed when the child is reaped
	state error         // how it ended; read it after done

	closing   chan struct{} // closed by Close
	closeOnce sync.Once
}

// start makes the child. forget is called once, when the stream is closed.
func start(argv, env []string, forget func(*stream)) (_ *stream, err error) {
	var files [6]*os.File // stdin, stdout, stderr: read end, write end
	defer func() {
		if err != nil {
			for _, f := range files {
				f.Close() // a nil file only answers with an error
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
	// A session of its own has no terminal, so the command cannot ask anything.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err = cmd.Start(); err != nil {
		return nil, err
	}
	for _, f := range []*os.File{files[0], files[3], files[5]} {
		f.Close()
	}
	s := &stream{
		cmd: cmd, stdin: files[1], stdout: files[2], stderr: files[4], forget: forget,
		done: make(chan struct{}), closing: make(chan struct{}),
	}
	go s.reap()
	return s, nil
}

// reap waits for the child and ends what is left of its process group. That is
// done before the child is reaped: until then its number is certainly its own.
func (s *stream) reap() {
	pid := s.cmd.Process.Pid
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if err != unix.EINTR {
			break
		}
	}
	s.mu.Lock()
	syscall.Kill(-pid, syscall.SIGKILL)
	s.reaped = true
	s.mu.Unlock()
	s.state = endOf(s.cmd.Wait())
	close(s.done)
}

// endOf turns how a child ended into the words of hosts.
func endOf(err error) error {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return err
	}
	if ws, ok := exit.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		name := unix.SignalName(ws.Signal())
		if name == "" {
			name = fmt.Sprintf("signal %d", ws.Signal())
		}
		return &hosts.ExitError{Code: -1, Signal: name}
	}
	return &hosts.ExitError{Code: exit.ExitCode()}
}

// kill ends the child's process group, as long as it is known to be that.
func (s *stream) kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.reaped {
		syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL)
	}
}

func (s *stream) Read(b []byte) (int, error) { return s.stdout.Read(b) }
func (s *stream) Stdin() io.WriteCloser      { return s.stdin }
func (s *stream) Stderr() io.Reader          { return s.stderr }

// Wait returns when the child has ended, at the latest shortly after Close.
func (s *stream) Wait() error {
	select {
	case <-s.done:
		return s.state
	case <-s.closing:
		return s.waitKilled()
	}
}

// waitKilled waits for a child that has been killed, within bounds.
func (s *stream) waitKilled() error {
	limit := time.NewTimer(reapLimit)
	defer limit.Stop()
	select {
	case <-s.done:
		return s.state
	case <-limit.C:
		return fmt.Errorf("process %d does not end although it was killed; it hangs in the kernel, probably on a file system", s.cmd.Process.Pid)
	}
}

// Close kills the child's process group and releases the pipes.
func (s *stream) Close() error {
	s.closeOnce.Do(func() {
		s.kill()
		close(s.closing)
		s.stdin.Close()
		s.stdout.Close()
		s.stderr.Close()
		s.forget(s)
	})
	var end *hosts.ExitError
	if err := s.waitKilled(); err != nil && !errors.As(err, &end) {
		return err
	}
	return nil
}
