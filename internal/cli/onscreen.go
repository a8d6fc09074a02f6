package cli

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/pflag"
	"golang.org/x/term"

	"dcs-tui/internal/cli/exit"
	"dcs-tui/jobs/rundir"
)

// screenOptions are the flags of every command that has a screen.
type screenOptions struct {
	ascii bool
	mouse bool
}

func (o *screenOptions) flags(fs *pflag.FlagSet) {
	fs.BoolVar(&o.ascii, "ascii", false, "draw the screen with ASCII characters only")
	fs.BoolVar(&o.mouse, "mouse", false, "take the mouse on the screen (text can then not be selected)")
}

// onScreen shows the run that this command line makes or carries on, instead of
// dispatching it here; done says that it did. typed: the jobs are typed on the terminal.
func (a *app) onScreen(f *runFlags, typed bool) (done bool, err error) {
	if a.starter != nil || f.noTUI || f.json || f.output || f.dryRun || typed ||
		!term.IsTerminal(int(a.stdout.Fd())) || !a.onTerminal {
		return false, nil
	}
	keys, err := a.keyboard()
	if err != nil {
		return false, nil // nobody could type: as without a terminal
	}
	defer keys.Close()
	if plainTerminal() {
		a.con.Line("this terminal cannot show the screen; lines instead, as with --no-tui")
		return false, nil
	}
	p, ready, err := a.startHere()
	if err != nil {
		return true, err
	}
	if ready == nil { // it has said why, if it could
		a.code = p.code
		if p.death != "" {
			a.warn("the background dispatcher was ended (%s) before it had begun; should dcs-tui runs list show its run, dcs-tui resume carries it on", p.death)
		}
		return true, nil
	}
	run, err := rundir.OpenOn(a.slowDir(ready.Dir), ready.Dir)
	if err != nil {
		return true, exit.Usagef("%w", err)
	}
	// On another machine it is when somebody there has taken the run over.
	follow := a.follow(run, a.reachAnywhere(run, &attachFlags{sshConfig: f.SSHConfig, acceptNew: f.AcceptNew}))
	follow.process.Store(p)
	defer follow.Close()
	return true, a.screen(follow, keys, f.screen)
}

// plainTerminal says that the terminal has no cursor to move.
func plainTerminal() bool {
	t := os.Getenv("TERM")
	return t == "" || t == "dumb"
}

// keyboard is where keys come from: standard input, or the terminal itself when
// that is something else. The caller closes it.
func (a *app) keyboard() (*os.File, error) {
	if f, ok := a.stdin.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		fd, err := syscall.Dup(int(f.Fd()))
		if err != nil {
			return nil, err
		}
		syscall.CloseOnExec(fd)
		return os.NewFile(uintptr(fd), f.Name()), nil
	}
	return os.OpenFile("/dev/tty", os.O_RDWR, 0)
}

// startHere starts the background dispatcher of this command line. While it begins,
// signals mean what they mean to it: it has a session of its own, and the terminal's
// reach only us.
func (a *app) startHere() (*dispatcherProcess, *readiness, error) {
	stdin, ok := a.stdin.(*os.File)
	if !ok || term.IsTerminal(int(stdin.Fd())) {
		null, err := os.Open(os.DevNull)
		if err != nil {
			return nil, nil, exit.Usagef("%w", err)
		}
		defer null.Close()
		stdin = null
	}
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT, syscall.SIGHUP)
	defer signal.Stop(signals)
	if a.early != nil {
		signal.Stop(a.early)
	}
	p, err := startDispatcher(a.args, stdin, a.stderr)
	if err != nil {
		return nil, nil, exit.Usagef("%w", err).WithAdvice("--no-tui does without")
	}
	over := make(chan struct{})
	defer close(over)
	go func() {
		for {
			select {
			case sig := <-signals:
				p.cmd.Process.Signal(sig)
			case <-over:
				return
			}
		}
	}()
	ready, err := p.ready(context.Background())
	if err != nil {
		return nil, nil, exit.Usagef("%w", err)
	}
	return p, ready, nil
}

// screen shows a run until its person leaves, and says then how it stands.
func (a *app) screen(follow *follower, keys *os.File, o screenOptions) error {
	a.con.Hold()
	left, err := a.drawScreen(follow, keys, o)
	a.con.Release()
	if err != nil {
		a.warn("%v", err)
	}
	return a.farewell(follow, left)
}
