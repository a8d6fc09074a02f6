package cli

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"dcs-tui/dispatch/run"
	"dcs-tui/internal/cli/exit"
	"dcs-tui/jobs/journal"
	"dcs-tui/jobs/rundir"
)

// A run with a screen is two processes. The one that a person has started becomes
// the screen; before that it starts the same program with the same arguments in a
// session of its own, and that one dispatches. Until it does, what it says and how
// it exits are as if there were one process.

// backgroundEnv tells a process that it is to dispatch in the background: the number
// of a descriptor that is one end of a pair of sockets, and what is to be read there
// first. It is taken out of the environment at once; one that is there by accident
// names no such socket and means nothing.
const backgroundEnv = "DCS_TUI_BACKGROUND"

// readiness is what a background dispatcher says when it has begun.
type readiness struct {
	Dir string `json:"dir"` // of the run
}

// programName is what this program calls itself when it starts itself.
var programName = os.Args[0]

// maxReady bounds a readiness, in bytes.
const maxReady = 64 << 10

// dispatcherProcess is a background dispatcher that this process has started.
type dispatcherProcess struct {
	cmd   *exec.Cmd
	line  *os.File      // our end of the pair
	ended chan struct{} // closed when it has
	code  int           // what it exited with; after ended
	death string        // the signal that has ended it without a word; after ended
}

// startDispatcher starts this program with the arguments in the background. What it
// says before it is ready goes to errs.
func startDispatcher(args []string, stdin *os.File, errs io.Writer) (*dispatcherProcess, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("a background dispatcher cannot be started: %w", err)
	}
	theirs := os.NewFile(uintptr(fds[1]), "their end")
	defer theirs.Close()
	_ = unix.SetNonblock(fds[0], true) // so that a read can be given up
	line := os.NewFile(uintptr(fds[0]), "our end")
	token := rand.Text()
	if _, err := line.WriteString(token); err != nil {
		line.Close()
		return nil, fmt.Errorf("a background dispatcher cannot be started: %w", err)
	}
	// The very file that runs, whatever became of its name.
	cmd := exec.Command("/proc/self/exe", args...)
	cmd.Args[0] = programName
	cmd.Env = append(os.Environ(), backgroundEnv+"=3:"+token)
	cmd.ExtraFiles = []*os.File{theirs}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, errs, errs
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.WaitDelay = run.WriteTimeout // errs may be kept open by what it has started
	if err := cmd.Start(); err != nil {
		line.Close()
		return nil, fmt.Errorf("a background dispatcher cannot be started: %w", err)
	}
	p := &dispatcherProcess{cmd: cmd, line: line, ended: make(chan struct{})}
	go func() {
		cmd.Wait()
		if p.code = cmd.ProcessState.ExitCode(); p.code < 0 {
			p.code = exit.Left // killed: resume continues
			status, _ := cmd.ProcessState.Sys().(syscall.WaitStatus)
			switch status.Signal() {
			case syscall.SIGINT:
				p.code = exit.Cancelled // by Ctrl-C, before it had begun
			default:
				p.death = status.Signal().String()
			}
		}
		close(p.ended)
	}()
	return p, nil
}

// is says that the file owner names this process.
func (p *dispatcherProcess) is(o *journal.Owner) bool {
	host, err := os.Hostname()
	return err == nil && o.Host == host && o.PID == p.cmd.Process.Pid
}

// ready waits until it dispatches; nil when it has ended instead.
func (p *dispatcherProcess) ready(ctx context.Context) (*readiness, error) {
	defer p.line.Close()
	stop := context.AfterFunc(ctx, func() { p.line.Close() })
	defer stop()
	b := make([]byte, maxReady)
	n, err := p.line.Read(b)
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case n == 0 || err != nil:
		<-p.ended
		return nil, nil
	}
	r := new(readiness)
	if err := json.Unmarshal(b[:n], r); err != nil {
		return nil, fmt.Errorf("the background dispatcher says something odd: %w", err)
	}
	return r, nil
}

// starter is the process that waits for us, the background dispatcher, to begin.
type starter struct{ line *os.File }

// theStarter finds out whether we are a background dispatcher; nil: we are not.
func theStarter() *starter {
	text := os.Getenv(backgroundEnv)
	os.Unsetenv(backgroundEnv)
	number, token, _ := strings.Cut(text, ":")
	fd, err := strconv.Atoi(number)
	if err != nil || fd < 3 || token == "" {
		return nil
	}
	if kind, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE); err != nil || kind != unix.SOCK_SEQPACKET {
		return nil
	}
	b := make([]byte, len(token)+1)
	// Only looked at: it may be somebody else's.
	n, _, err := unix.Recvfrom(fd, b, unix.MSG_PEEK|unix.MSG_DONTWAIT)
	if err != nil || string(b[:max(0, n)]) != token {
		return nil
	}
	unix.Recvfrom(fd, b, unix.MSG_DONTWAIT)
	unix.CloseOnExec(fd)
	return &starter{os.NewFile(uintptr(fd), "starter")}
}

// begun tells the starter that the run is dispatched. From then on what we say goes
// to dispatcher.log.
func (a *app) begun(run *rundir.Run) {
	if a.starter == nil {
		return
	}
	log, err := dispatcherLog(run)
	if err != nil {
		log, err = os.OpenFile(os.DevNull, os.O_WRONLY, 0) // the journal has everything
	}
	if err == nil {
		unix.Dup3(int(log.Fd()), 1, 0)
		unix.Dup3(int(log.Fd()), 2, 0)
		log.Close()
	}
	a.onTerminal = false
	a.con.Detach(a.stderr)
	b, err := json.Marshal(readiness{Dir: run.Dir})
	if err == nil {
		_, err = a.starter.line.Write(b)
	}
	if err != nil && !errors.Is(err, syscall.EPIPE) { // EPIPE: it was ended meanwhile
		a.warn("the screen could not be told that the run has begun: %v", err)
	}
	a.starter.line.Close()
}

// dispatcherLogFile holds what a dispatcher without a terminal says.
const dispatcherLogFile = "dispatcher.log"

// dispatcherLog opens dispatcher.log of the run, which takes over when the
// terminal is gone.
func dispatcherLog(run *rundir.Run) (*os.File, error) {
	f, err := os.OpenFile(run.Path(dispatcherLogFile), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("the terminal is gone and the log cannot be opened: %w", err)
	}
	return f, nil
}
