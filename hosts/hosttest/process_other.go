//go:build !linux

package hosttest

import (
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"dcs-tui/internal/polltest"
)

// Process is a process of this machine. Another one may get its pid.
type Process struct{ pid int }

// Hold returns the process with a pid.
func Hold(t *testing.T, pid int) Process {
	t.Helper()
	return Process{pid}
}

// MustEnd waits for the end of the process.
func (p Process) MustEnd(t *testing.T) {
	t.Helper()
	if !polltest.Within(patience, func() bool { return unix.Kill(p.pid, 0) == unix.ESRCH }) {
		t.Errorf("process %d lives on", p.pid)
	}
}

// Kill kills the process.
func (p Process) Kill() { unix.Kill(p.pid, unix.SIGKILL) }

// startTied starts a child in a session of its own. Only Linux can tie it to this process.
func startTied(cmd *exec.Cmd) (gone <-chan struct{}, err error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	ended := make(chan struct{})
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(ended)
		cmd.Process.Wait()
	}()
	return ended, nil
}
