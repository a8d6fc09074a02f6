//go:build linux

package faults

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// dispatcher is one dispatcher process of a run, from its start to its end.
type dispatcher struct {
	desk       *machine
	name       string // for messages: "desk1#3"
	stderrFile string // the file of its standard error, on this machine
	cmd        *exec.Cmd
	code       int // valid after done is closed; -1: ended by a signal
	done       chan struct{}
	startedAt  time.Time
}

var errNoPower = errors.New("the machine has no power")

// dispatch starts the program on a desk.
func (l *lab) dispatch(desk *machine, name string, args ...string) (*dispatcher, error) {
	s := desk.running.Load()
	if s == nil {
		return nil, fmt.Errorf("%s: %w", desk.name, errNoPower)
	}
	d := &dispatcher{desk: desk, name: name, stderrFile: filepath.Join(l.dir, name+".err"), done: make(chan struct{}),
		startedAt: time.Now()}
	errs, err := os.Create(d.stderrFile)
	if err != nil {
		return nil, err
	}
	defer errs.Close()
	d.cmd = programCommand(s, args...)
	d.cmd.Stdout, d.cmd.Stderr = errs, errs
	if err := d.cmd.Start(); err != nil {
		return nil, err
	}
	desk.mu.Lock()
	desk.waiters = append(desk.waiters, d.cmd.Process)
	desk.mu.Unlock()
	go func() {
		defer close(d.done)
		d.cmd.Wait()
		d.code = d.cmd.ProcessState.ExitCode()
	}()
	return d, nil
}

// programCommand returns a command that runs the program under test on a machine as its user would.
func programCommand(s *namespaces, args ...string) *exec.Cmd {
	args = append(append(s.prefix(), "env", "-C", sharedDir, binDir+"/dcs-tui"), args...)
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "LC_ALL=C",
		"USER=root", "DCS_TUI_RUN_SHARE=off", "XDG_STATE_HOME=/dev/null"} // /root is that of this machine
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd
}

// hasEnded reports whether the dispatcher has ended.
func (d *dispatcher) hasEnded() bool {
	select {
	case <-d.done:
		return true
	default:
		return false
	}
}

// sendSignal signals the program itself and, for stops, its waiting parent: nsenter stops and
// continues together with its child.
func (d *dispatcher) sendSignal(sig syscall.Signal) bool {
	if d.hasEnded() {
		return false
	}
	kids := childrenOf(d.cmd.Process.Pid)
	for _, pid := range kids {
		syscall.Kill(pid, sig)
	}
	if sig == syscall.SIGCONT {
		syscall.Kill(d.cmd.Process.Pid, sig)
	}
	return len(kids) > 0
}

// output returns the output of the dispatcher so far.
func (d *dispatcher) output() string {
	b, _ := os.ReadFile(d.stderrFile)
	return string(b)
}

// query runs a read-only command of the program and returns its output.
func (l *lab) query(desk *machine, args ...string) (out string, code int, err error) {
	s := desk.running.Load()
	if s == nil {
		return "", 0, fmt.Errorf("%s: %w", desk.name, errNoPower)
	}
	cmd := programCommand(s, args...)
	b, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return string(b) + string(exit.Stderr), exit.ExitCode(), nil
	}
	return string(b), 0, err
}
