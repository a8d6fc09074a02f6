package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"dcs-tui/internal/platform"
)

// process identifies a process of a machine by pid and start time, within one boot and one pid
// namespace. Containers share the boot id but not the pids.
type process struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"` // Linux: field 22 of /proc/PID/stat, clock ticks since boot
	Boot  string `json:"boot"`
	PIDNS string `json:"pidns"`
}

// self returns the identity of the calling process.
func self() (process, error) {
	boot, err := platform.BootID()
	if err != nil {
		return process{}, fmt.Errorf("cannot read this machine's boot id: %w", err)
	}
	ns, err := platform.PIDNamespace()
	if err != nil {
		return process{}, fmt.Errorf("cannot read this process's pid namespace: %w", err)
	}
	pid := os.Getpid()
	me, err := platform.FindProcess(pid)
	if err != nil && !errors.Is(err, platform.ErrHidden) {
		return process{}, fmt.Errorf("cannot read this process's start time: %w", err)
	}
	return process{pid, me.Start, boot, ns}, nil
}

// Liveness tells whether the process of an owner is alive.
type Liveness uint8

// The values of Liveness.
const (
	Unsure Liveness = iota // the process is on another machine: only heartbeats can tell
	Alive
	Dead
)

// liveness returns what this machine can prove about q.
func (q process) liveness() Liveness {
	me, err := self()
	if err != nil || q.Boot != me.Boot || q.PIDNS != me.PIDNS || q.PID <= 0 {
		return Unsure
	}
	now, err := platform.FindProcess(q.PID)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ESRCH):
		return Dead
	case err != nil:
		return Unsure
	case now.Start != q.Start || now.Ended:
		return Dead
	}
	return Alive
}
