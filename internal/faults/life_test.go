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

// life is one dispatcher of a run, from its start to its end.
type life struct {
	desk  *machine
	name  string // for people: "desk1#3"
	said  string // the file of its standard error, on this machine
	cmd   *exec.Cmd
	code  int // once done is closed; -1: ended by a signal
	done  chan struct{}
	begun time.Time
}

var errNoPower = errors.New("the machine has no power")

// dispatch starts the program on a machine of the user.
func (l *lab) dispatch(desk *machine, name string, args ...string) (*life, error) {
	s := desk.now.Load()
	if s == nil {
		return nil, fmt.Errorf("%s: %w", desk.name, errNoPower)
	}
	d := &life{desk: desk, name: name, said: filepath.Join(l.dir, name+".err"), done: make(chan struct{}), begun: time.Now()}
	errs, err := os.Create(d.said)
	if err != nil {
		return nil, err
	}
	defer errs.Close()
	d.cmd = invoke(s, args...)
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

// invoke gives the program under test on a machine, as its user would call it there.
func invoke(s *space, args ...string) *exec.Cmd {
	args = append(append(s.prefix(), "env", "-C", sharedDir, binDir+"/dcs-tui"), args...)
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "LC_ALL=C", "USER=root", "DCS_TUI_RUN_SHARE=off"}
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd
}

// ended reports whether it has ended.
func (d *life) ended() bool {
	select {
	case <-d.done:
		return true
	default:
		return false
	}
}

// signal reaches the program itself and, for stops, whoever waits for it: nsenter
// stops and goes on with its child.
func (d *life) signal(sig syscall.Signal) bool {
	if d.ended() {
		return false
	}
	kids := children(d.cmd.Process.Pid)
	for _, pid := range kids {
		syscall.Kill(pid, sig)
	}
	if sig == syscall.SIGCONT {
		syscall.Kill(d.cmd.Process.Pid, sig)
	}
	return len(kids) > 0
}

// words is what it has said so far.
func (d *life) words() string {
	b, _ := os.ReadFile(d.said)
	return string(b)
}

// ask runs a command of the program that only looks, and returns what it prints.
func (l *lab) ask(desk *machine, args ...string) (out string, code int, err error) {
	s := desk.now.Load()
	if s == nil {
		return "", 0, fmt.Errorf("%s: %w", desk.name, errNoPower)
	}
	cmd := invoke(s, args...)
	b, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return string(b) + string(exit.Stderr), exit.ExitCode(), nil
	}
	return string(b), 0, err
}
