package journal

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// process identifies a process of a machine by pid and start time, within one boot and one pid
// namespace. Containers share the boot id but not the pids.
type process struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"` // field 22 of /proc/PID/stat: clock ticks since boot
	Boot  string `json:"boot"`
	PIDNS string `json:"pidns"`
}

// proc reads /proc; tests replace it.
type proc struct{ root string }

// self returns the identity of the calling process.
func (p proc) self() (process, error) {
	boot, err := os.ReadFile(p.root + "/sys/kernel/random/boot_id")
	if err != nil {
		return process{}, fmt.Errorf("cannot read this machine's boot id: %w", err)
	}
	ns, err := os.Readlink(p.root + "/self/ns/pid")
	if err != nil {
		return process{}, fmt.Errorf("cannot read this process's pid namespace: %w", err)
	}
	pid := os.Getpid()
	_, start, err := p.stat(pid)
	if err != nil {
		return process{}, fmt.Errorf("cannot read this process's start time: %w", err)
	}
	return process{pid, start, strings.TrimSpace(string(boot)), ns}, nil
}

// stat returns the state and the start time of a process.
func (p proc) stat(pid int) (state byte, start uint64, err error) {
	b, err := os.ReadFile(fmt.Sprintf("%s/%d/stat", p.root, pid))
	if err != nil {
		return 0, 0, err
	}
	return parseStat(b)
}

// parseStat reads /proc/PID/stat. The name in parentheses may hold blanks and
// parentheses, so the fields are counted after the last one.
func parseStat(b []byte) (state byte, start uint64, err error) {
	fields := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	if len(fields) < 20 || len(fields[0]) != 1 {
		return 0, 0, fmt.Errorf("not a /proc/PID/stat: %.60q", b)
	}
	start, err = strconv.ParseUint(string(fields[19]), 10, 64)
	return fields[0][0], start, err
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
func (p proc) liveness(q process) Liveness {
	me, err := p.self()
	if err != nil || q.Boot != me.Boot || q.PIDNS != me.PIDNS || q.PID <= 0 {
		return Unsure
	}
	state, start, err := p.stat(q.PID)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ESRCH):
		return Dead
	case err != nil:
		return Unsure
	case start != q.Start || state == 'Z' || state == 'X':
		return Dead
	}
	return Alive
}

// ProcessName identifies this process in a few characters that a file name may contain. Whoever
// finds a file that it left behind can check whether the process is alive. It is "" if /proc does
// not show enough.
func ProcessName() string {
	p, err := proc{"/proc"}.self()
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
func ProcessLiveness(name string) Liveness { return proc{"/proc"}.nameLiveness(name) }

func (p proc) nameLiveness(name string) Liveness {
	var q process
	if n, _ := fmt.Sscanf(strings.ReplaceAll(name, ".", " "), "%d %d %s %s", &q.PID, &q.Start, &q.PIDNS,
		&q.Boot); n < 4 {
		return Unsure
	}
	q.PIDNS = "pid:[" + q.PIDNS + "]"
	if q.name() != name {
		return Unsure
	}
	return p.liveness(q)
}
