package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
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

// ProcessName identifies this process in a few characters that a file name may contain. Whoever
// finds a file that it left behind can check whether the process is alive. It is "" if the
// system does not show enough.
func ProcessName() string {
	p, err := self()
	if err != nil {
		return ""
	}
	return p.name()
}

func (p process) name() string {
	ns := strings.TrimSuffix(strings.TrimPrefix(p.PIDNS, "pid:["), "]")
	return fmt.Sprintf("%d.%d.%s.%s", p.PID, p.Start, ns, p.Boot)
}

// ProcessLiveness reports whether the process with a ProcessName is alive, as far as this machine
// can prove. The result is Unsure if name is not a ProcessName.
func ProcessLiveness(name string) Liveness {
	var q process
	if n, _ := fmt.Sscanf(strings.ReplaceAll(name, ".", " "), "%d %d %s %s", &q.PID, &q.Start, &q.PIDNS,
		&q.Boot); n < 4 {
		return Unsure
	}
	q.PIDNS = "pid:[" + q.PIDNS + "]"
	if q.name() != name {
		return Unsure
	}
	return q.liveness()
}
