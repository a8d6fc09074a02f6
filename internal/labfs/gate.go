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

// gate is what every call of a mount passes. While it is shut calls wait, as
// those of a hard-mounted NFS do; only a process that is being killed gets away.
type gate struct {
	mu      sync.Mutex
	shut    chan struct{} // closed when the gate opens; nil: it is open
	closing chan struct{} // closed at the end of the mount
	once    sync.Once
	waiting int
}

// Wedge makes every call hang until Unwedge or the end of the test.
func (m *Mount) Wedge() {
	m.gate.mu.Lock()
	defer m.gate.mu.Unlock()
	if m.gate.shut == nil {
		m.gate.shut = make(chan struct{})
	}
}

// Unwedge lets calls continue: those that hang, and new ones.
func (m *Mount) Unwedge() {
	m.gate.mu.Lock()
	defer m.gate.mu.Unlock()
	if m.gate.shut != nil {
		close(m.gate.shut)
		m.gate.shut = nil
	}
}

// Waiting returns how many calls hang now.
func (m *Mount) Waiting() int {
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
			if dying(ctx) {
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

// dying reports whether the thread that made the call has been killed, or is
// exiting. Other signals do not interrupt a call to a hard-mounted NFS. It reads
// nothing but status: to read stat the kernel waits for a program that is being
// started, and that may be the one that waits for us, closing its files.
func dying(ctx context.Context) bool {
	caller, ok := fuse.FromContext(ctx)
	if !ok || caller.Pid == 0 {
		return false
	}
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", caller.Pid))
	if err != nil {
		return true // it is gone
	}
	memory := false // what exits has none any more when it closes its files
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
