//go:build linux

package labfs

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// gate is what every call of a mount must pass. While it is shut, calls wait, like those on a
// hard-mounted NFS. Only the calls of a process that is being killed return.
type gate struct {
	mu      sync.Mutex
	shut    chan struct{} // closed when the gate opens; nil: the gate is open
	closing chan struct{} // closed when the mount ends
	waiting int
}

// Hang makes every call hang until Resume or the end of the test.
func (m *Mount) Hang() {
	m.gate.mu.Lock()
	defer m.gate.mu.Unlock()
	if m.gate.shut == nil {
		m.gate.shut = make(chan struct{})
	}
}

// Resume lets calls continue, both those that hang and new ones.
func (m *Mount) Resume() {
	m.gate.mu.Lock()
	defer m.gate.mu.Unlock()
	if m.gate.shut != nil {
		close(m.gate.shut)
		m.gate.shut = nil
	}
}

// NumWaiting returns the number of calls that hang now.
func (m *Mount) NumWaiting() int {
	m.gate.mu.Lock()
	defer m.gate.mu.Unlock()
	return m.gate.waiting
}

// pass waits until the gate is open.
func (g *gate) pass(ctx context.Context) syscall.Errno {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut == nil {
		return 0
	}
	g.waiting++
	defer func() { g.waiting-- }()
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	for g.shut != nil {
		shut := g.shut
		g.mu.Unlock()
		errno := syscall.Errno(0)
		select {
		case <-shut:
		case <-g.closing:
			errno = syscall.EIO
		case <-look.C:
			if isDying(ctx) {
				errno = syscall.EINTR
			}
		}
		g.mu.Lock()
		if errno != 0 {
			return errno
		}
	}
	return 0
}

// isDying reports whether the thread that made the call was killed or is exiting. Other signals do
// not interrupt a call on a hard-mounted NFS. It reads only the file status in /proc. A read of
// stat waits in the kernel for a program that is being started, which may be the caller itself
// while it closes its files.
func isDying(ctx context.Context) bool {
	caller, ok := fuse.FromContext(ctx)
	if !ok || caller.Pid == 0 {
		return false
	}
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", caller.Pid))
	if err != nil {
		return true // the thread is gone
	}
	memory := false // an exiting process has no memory any more when it closes its files
	for line := range bytes.Lines(b) {
		if hex, ok := bytes.CutPrefix(line, []byte("SigPnd:")); ok {
			mask, _ := strconv.ParseUint(string(bytes.TrimSpace(hex)), 16, 64)
			if mask&(1<<(uint(syscall.SIGKILL)-1)) != 0 {
				return true
			}
		}
		memory = memory || bytes.HasPrefix(line, []byte("VmSize:"))
	}
	return !memory
}
