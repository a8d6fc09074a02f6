package cli

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"dcs-tui/dispatch"
	"dcs-tui/dispatch/run"
	"dcs-tui/internal/advice"
	"dcs-tui/internal/cli/console"
	"dcs-tui/internal/cli/exit"
	"dcs-tui/internal/text"
	"dcs-tui/internal/ttyguard"
	"dcs-tui/jobs/journal"
	"dcs-tui/jobs/metrics"
	"dcs-tui/jobs/rundir"
	"dcs-tui/jobs/runview"
	"dcs-tui/tui"
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

func (a *app) attachCmd() *cobra.Command {
	var o screenOptions
	cmd := &cobra.Command{
		Use:     "attach [flags] [RUN]",
		GroupID: groupRun,
		Short:   "The screen for a run that goes on elsewhere, or is over",
		Long: `Show the screen of a run: one that is dispatched in the background, in another terminal,
or on another machine that sees the same run directory, or one that is over. Any number
of screens may look at a run and act on it. A run that nobody dispatches can be resumed.

` + runHelp + `

Leaving the screen leaves the run alone unless you ask it to end or be cancelled: exit
code 4 when jobs are left then, else as run.`,
		Example: `dcs-tui attach
dcs-tui attach sweep-20260314-1502
dcs-tui attach ws03:dcs-runs/sweep`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: completeRuns,
		RunE: func(_ *cobra.Command, args []string) error {
			return a.runAttach(args, o)
		},
	}
	o.flags(cmd.Flags())
	return cmd
}

func (a *app) runAttach(args []string, o screenOptions) error {
	run, err := a.openRun(args)
	if err != nil {
		return err
	}
	ref := refTo(run)
	const instead = "dcs-tui status %s shows how the run stands, dcs-tui events --follow %s what happens"
	if plainTerminal() || !term.IsTerminal(int(a.stdout.Fd())) {
		return exit.Usagef("this terminal cannot show the screen").WithAdvice(instead, ref, ref)
	}
	keys, err := a.keyboard()
	if err != nil {
		return exit.Usagef("there is no terminal to type on: %w", err).WithAdvice(instead, ref, ref)
	}
	defer keys.Close()
	s := a.openScreen(run)
	defer s.Close()
	if err := s.Ready(context.Background()); err != nil {
		var e *advice.Error
		if errors.As(err, &e) {
			return err
		}
		return exit.Usagef("%w", err)
	}
	return a.screen(s, keys, o)
}

// onScreen shows the run that this command line makes or resumes, instead of dispatching it
// here. done reports whether it did. typed: the jobs are typed on the terminal.
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
	p, dir, err := a.startHere()
	if err != nil {
		return true, err
	}
	if dir == "" { // it has said why, if it could
		death := ""
		if a.code, death = codeOf(p); death != "" {
			a.warn("the background dispatcher was ended (%s) before it had begun; should dcs-tui runs list show its run, dcs-tui resume carries it on", death)
		}
		return true, nil
	}
	run, err := a.openDir(dir)
	if err != nil {
		return true, err
	}
	s := a.openScreen(run)
	s.process.Store(p)
	defer s.Close()
	return true, a.screen(s, keys, f.screen)
}

// plainTerminal reports whether the terminal has no cursor to move.
func plainTerminal() bool {
	t := os.Getenv("TERM")
	return t == "" || t == "dumb"
}

// keyboard returns where keys come from: standard input or, if that is not a terminal, the
// terminal itself. The caller closes it.
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

// startHere starts the background dispatcher of this command line. Until it has begun, signals
// are passed on to it: it has a session of its own, so those of the terminal reach only this
// process.
func (a *app) startHere() (*run.Background, string, error) {
	stdin, ok := a.stdin.(*os.File)
	if !ok || term.IsTerminal(int(stdin.Fd())) {
		null, err := os.Open(os.DevNull)
		if err != nil {
			return nil, "", exit.Usagef("%w", err)
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
	p, err := run.StartBackground(a.args, stdin, a.stderr)
	if err != nil {
		return nil, "", exit.Usagef("%w", err).WithAdvice("--no-tui does without")
	}
	over := make(chan struct{})
	defer close(over)
	go func() {
		for {
			select {
			case sig := <-signals:
				p.Process.Signal(sig)
			case <-over:
				return
			}
		}
	}()
	dir, err := p.Ready(context.Background())
	if err != nil {
		return nil, "", exit.Usagef("%w", err)
	}
	return p, dir, nil
}

// runScreen is the run that a screen shows.
type runScreen struct {
	*runview.View
	app       *app
	run       *rundir.Run
	process   atomic.Pointer[run.Background] // the last that was started here; nil: none
	cancelled atomic.Bool                    // the whole run, from here
}

func (a *app) openScreen(run *rundir.Run) *runScreen {
	// A screen is a process of its own. Nearly all of its memory is a table without pointers,
	// which costs little to collect and much to let grow: at the default of 100 a screen of
	// a million jobs would have room for twice what it needs.
	debug.SetGCPercent(25)
	s := &runScreen{app: a, run: run}
	o := a.viewOptions(run)
	o.Act = s.act
	s.View = runview.Open(run, o)
	return s
}

// viewOptions returns the options of a view of a run. Metrics that run.toml declares wrongly
// are left out; results reports them.
func (a *app) viewOptions(run *rundir.Run) runview.Options {
	figures, _ := metrics.Declared(run.Asked)
	o := runview.Options{
		Lab: labOf(run.Asked.InventoryFile), By: dispatch.Asker(), Figures: figures,
		Outputs: func(columns []*metrics.Metric) *metrics.Reader { return metrics.NewReader(run, columns) },
		Socket: func(ctx context.Context, owner *journal.Owner) (runview.Conn, error) {
			if name, err := os.Hostname(); owner.Life() != journal.Alive && (err != nil || name != owner.Host) { // else in another container, perhaps
				return nil, errors.New("the dispatcher is on another machine")
			}
			client, err := dialSocket(ctx, run, owner)
			if err != nil {
				return nil, err
			}
			return client, nil
		},
	}
	if inv, err := a.storedInventory(run); err == nil {
		o.Hosts = inv.Hosts
	}
	return o
}

// labOf returns what people call the hosts of a run.
func labOf(file string) string {
	if file == "" {
		return "this machine"
	}
	return text.Path(file)
}

// screen shows a run until the person leaves the screen, and then reports how it stands.
func (a *app) screen(s *runScreen, keys *os.File, o screenOptions) error {
	a.con.Hold()
	last, err := a.drawScreen(s, keys, o)
	a.con.Release()
	if err != nil {
		a.warn("%v", err)
	}
	return a.farewell(s, last)
}

// drawScreen draws the screen until it is left, and restores the terminal. last is the newest
// picture that was shown; it may be nil.
func (a *app) drawScreen(s *runScreen, keys *os.File, o screenOptions) (last *runview.Picture, err error) {
	given, err := ttyguard.Start(keys, a.stdout)
	if err != nil { // then only we ourselves give the terminal back
		given = func() {}
	}
	left, err := tui.Run(context.Background(), tui.Options{
		Source: s, In: keys, Out: a.stdout, ASCII: a.con.OnlyASCII() || o.ascii, NoColor: os.Getenv("NO_COLOR") != "",
		Mouse: o.mouse, Signals: true, Suspended: ttyguard.Asleep,
		Shell: func(host string) (*exec.Cmd, error) { return shellOn(s.run, host) },
	})
	given()
	var crash *tui.Crash
	if errors.As(err, &crash) { // a report of the defect needs the stack
		for line := range strings.Lines(crash.Stack) {
			a.con.Line(console.CleanLine(strings.TrimRight(line, "\n")))
		}
	}
	return left.Last, err
}
