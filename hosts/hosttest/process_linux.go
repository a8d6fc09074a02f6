package hosttest

import (
	"os/exec"
	"runtime"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// Process is a process of this machine, held by a pidfd because its pid may be reused.
type Process struct{ pid, fd int }

// Hold returns the process with a pid.
func Hold(t *testing.T, pid int) Process {
	t.Helper()
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		t.Fatalf("process %d: %v", pid, err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	return Process{pid, fd}
}

// MustEnd waits for the end of the process.
func (p Process) MustEnd(t *testing.T) {
	t.Helper()
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(p.fd), Events: unix.POLLIN}}, int(patience.Milliseconds()))
		if err == unix.EINTR {
			continue
		}
		if n == 0 {
			t.Errorf("process %d lives on", p.pid)
		}
		return
	}
}

// Kill kills the process.
func (p Process) Kill() { unix.PidfdSendSignal(p.fd, unix.SIGKILL, nil, 0) }

// startTied starts a child that is killed when this process ends, as when a test is killed.
// The kernel sends the signal at the end of the thread that started the child, so the thread
// is kept. gone is closed when the child has been reaped.
func startTied(cmd *exec.Cmd) (gone <-chan struct{}, err error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setsid: true}
	started, ended := make(chan error, 1), make(chan struct{})
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(ended)
		err := cmd.Start()
		started <- err
		if err == nil {
			cmd.Process.Wait()
		}
	}()
	return ended, <-started
}
