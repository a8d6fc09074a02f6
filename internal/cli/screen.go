package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"dcs-tui/dispatch"
	"dcs-tui/dispatch/run"
	"dcs-tui/internal/text"
	"dcs-tui/internal/ttyguard"
	"dcs-tui/jobs/action"
	"dcs-tui/jobs/journal"
	"dcs-tui/jobs/metrics"
	"dcs-tui/jobs/rundir"
	"dcs-tui/observe/ask"
	"dcs-tui/observe/runview"
	"dcs-tui/tui"
)

// screenFlags are the flags of every command that has a screen. They override settings, which may be
// true, only if they are given.
type screenFlags struct {
	ascii, mouse *bool
}

func (o *screenFlags) addFlags(fs *pflag.FlagSet) {
	add := func(to **bool, name, usage string) {
		fs.VarPF(newFlag(to, "bool", optional(strconv.ParseBool)), name, "", usage).NoOptDefVal = "true"
	}
	add(&o.ascii, "ascii", "draw the screen with ASCII characters only")
	add(&o.mouse, "mouse", "use the mouse on the screen (text can then not be selected)")
}

func (a *app) attachCmd() *cobra.Command {
	var o screenFlags
	cmd := &cobra.Command{
		Use:   "attach [flags] [RUN]",
		Short: "Show the screen of a run",
		Long: `Show the screen of a run, which may be dispatched in the background, in another terminal, or on another
machine that sees the same run directory, or may have ended. ` + runHelp,
		Example: `dcs-tui attach sweep-20260314-1502
dcs-tui attach ws03:dcs-runs/sweep`,
		Args: atMost(1),
		RunE: func(_ *cobra.Command, args []string) error { return a.runAttach(args, o) },
	}
	o.addFlags(cmd.Flags())
	return cmd
}

func (a *app) runAttach(args []string, o screenFlags) error {
	run, err := a.openRun(args)
	if err != nil {
		return err
	}
	ref := refTo(run)
	const instead = "dcs-tui status %s shows the status of the run, and dcs-tui events --follow %s its events"
	if plainTerminal() || !isTerminal(a.stdout) {
		return text.Errorf("this terminal cannot show the screen").WithAdvice(instead, ref, ref)
	}
	options, err := a.screenOptions(o)
	if err != nil {
		return err
	}
	keys, err := a.keyboard()
	if err != nil {
		return text.Errorf("there is no terminal for input: %w", err).WithAdvice(instead, ref, ref)
	}
	defer keys.Close()
	s := a.openScreen(run)
	defer s.Close()
	if err := s.Ready(context.Background()); err != nil {
		return err
	}
	return a.showScreen(s, keys, options)
}

// runOnScreen shows the run of this command line on a screen, while a background process dispatches
// it. done is false if that is not possible or not wanted. typed means that the jobs are typed on
// the terminal.
func (a *app) runOnScreen(flags *runFlags, typed bool) (done bool, err error) {
	if a.starter != nil || flags.noTUI || flags.json || flags.output || flags.dryRun || typed ||
		!isTerminal(a.stdout) || !a.stderrIsTerminal {
		return false, nil
	}
	keys, err := a.keyboard()
	if err != nil {
		return false, nil // without a keyboard, as without a terminal
	}
	defer keys.Close()
	if plainTerminal() {
		a.con.Line("this terminal cannot show the screen; printing lines, as with --no-tui")
		return false, nil
	}
	options, err := a.screenOptions(flags.screen)
	if err != nil { // before the run begins
		return true, err
	}
	process, dir, err := a.startBackground()
	if err != nil {
		return true, err
	}
	if dir == "" { // the process has reported why, if it could
		signal := ""
		a.exitCode, signal = backgroundExitCode(process)
		if signal != "" {
			a.warn("the background dispatcher was killed (%s) before the run had begun; "+
				"if dcs-tui runs list shows the run, dcs-tui resume continues it", signal)
		}
		return true, nil
	}
	run, err := a.openDir(dir)
	if err != nil {
		return true, err
	}
	s := a.openScreen(run)
	s.process.Store(process)
	defer s.Close()
	return true, a.showScreen(s, keys, options)
}

// plainTerminal reports whether the terminal cannot move its cursor.
func plainTerminal() bool {
	t := os.Getenv("TERM")
	return t == "" || t == "dumb"
}

// keyboard returns the file to read keys from: standard input or, if that is not a terminal,
// /dev/tty. The caller closes it.
func (a *app) keyboard() (*os.File, error) {
	if f, ok := a.stdin.(*os.File); ok && isTerminal(f) {
		fd, err := syscall.Dup(int(f.Fd()))
		if err != nil {
			return nil, err
		}
		syscall.CloseOnExec(fd)
		return os.NewFile(uintptr(fd), f.Name()), nil
	}
	return os.OpenFile("/dev/tty", os.O_RDWR, 0)
}

// startBackground starts the background dispatcher of this command line and waits until it
// dispatches. It returns the run directory, which is "" if the dispatcher ended before. Meanwhile
// it passes signals on to the dispatcher, which has a session of its own and gets none from the
// terminal.
func (a *app) startBackground() (*run.Background, string, error) {
	stdin := a.stdin
	if isTerminal(stdin) {
		stdin = nil
	}
	signals := make(chan os.Signal, 16)
	defer close(signals)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT, syscall.SIGHUP)
	defer signal.Stop(signals)
	if a.quitSignals != nil {
		signal.Stop(a.quitSignals)
	}
	process, err := run.StartBackground(a.args, stdin, a.stderr, nil)
	if err != nil {
		return nil, "", text.Errorf("%w", err).WithAdvice("--no-tui needs no background process")
	}
	go func() {
		for sig := range signals {
			process.Process.Signal(sig)
		}
	}()
	dir, err := process.Ready(context.Background())
	if err != nil {
		return nil, "", err
	}
	return process, dir, nil
}

// runScreen is the source of a screen: a view of a run, and actions without a dispatcher.
type runScreen struct {
	*runview.View
	app      *app
	run      *rundir.Run
	process  atomic.Pointer[run.Background] // the last dispatcher that was started here; nil: none
	canceled atomic.Bool                    // the whole run was canceled from here
}

func (a *app) openScreen(run *rundir.Run) *runScreen {
	keepHeapSmall(tablePercent)
	s := &runScreen{app: a, run: run}
	o := a.viewOptions(run)
	o.Act = s.actUndispatched
	s.View = runview.Open(run, o)
	return s
}

// viewOptions returns the options of a view of a run. Invalid declarations of metrics in run.toml
// are left out; dcs-tui results reports them.
func (a *app) viewOptions(run *rundir.Run) runview.Options {
	declared, _ := metrics.Declared(run.Settings)
	o := runview.Options{
		Lab: "this machine", By: dispatch.Asker(), Metrics: declared,
		Outputs: func(columns []*metrics.Metric) *metrics.Reader { return metrics.NewReader(run, columns) },
		Socket: func(ctx context.Context, owner *journal.Owner) (runview.Conn, error) {
			if !isOnThisMachine(owner) {
				return nil, errors.New("the dispatcher is on another machine")
			}
			client, err := dialSocket(ctx, run, owner)
			if err != nil {
				return nil, err // not a nil *socket.Client in the interface
			}
			return client, nil
		},
	}
	if inv, err := a.storedInventory(run); err == nil {
		o.Hosts = inv.Hosts
		if inv.Text != "" {
			o.Lab = text.Plural(len(inv.Hosts), "host") // those of --host have no file
		}
	}
	if file := run.Settings.InventoryFile; file != "" {
		o.Lab = text.Path(file)
	}
	return o
}

// showScreen shows a run until the user leaves the screen, and then reports its status.
func (a *app) showScreen(s *runScreen, keys *os.File, o tui.Options) error {
	a.con.Hold()
	last, err := a.drawScreen(s, keys, o)
	a.con.Release()
	if err != nil {
		a.warn("%v", err)
	}
	return a.reportLeft(s, last)
}

// drawScreen draws the screen until the user leaves it, and restores the terminal. last is the last
// snapshot that was shown; it may be nil.
func (a *app) drawScreen(s *runScreen, keys *os.File, o tui.Options) (last *runview.Snapshot, err error) {
	// Without a guard only this process restores the terminal.
	endGuard, _ := ttyguard.Start(keys, a.stdout.File)
	o.Source, o.In, o.Out, o.Suspended = s, keys, a.stdout.File, ttyguard.SetSuspended
	o.Shell = func(host string) (*exec.Cmd, error) { return shellCommand(s.run, host) }
	last, err = tui.Run(o)
	endGuard()
	if crash, ok := errors.AsType[*tui.Crash](err); ok { // a report of the defect needs the stack
		for line := range strings.Lines(crash.Stack) {
			a.con.Line(text.Line(strings.TrimRight(line, "\n")))
		}
	}
	return last, err
}

// Do implements runview.Source.
func (s *runScreen) Do(ctx context.Context, a action.Request) (*runview.Answer, error) {
	ans, err := s.View.Do(ctx, a)
	if err == nil && a.All {
		s.canceled.Store(true)
	}
	return ans, err
}

// actUndispatched carries out an action on a run that nobody dispatches, as its declaration demands: it
// refuses the request, leaves it for the next resume, or starts a process that takes the run over from its
// owner, whose silence may have been observed.
func (s *runScreen) actUndispatched(ctx context.Context, q action.Request,
	silent *journal.Owner) (*runview.Answer, error) {
	if q.Do == action.Resume {
		if _, err := s.start(ctx, silent, "resume"); err != nil {
			return nil, err
		}
		return &runview.Answer{Done: 1, Text: "the run continues"}, nil
	}
	table, err := replayTable(s.run)
	if err != nil {
		return nil, err
	}
	request, err := runview.ResolveRequest(q, table, nil)
	if err != nil {
		return nil, err
	}
	target, err := s.run.UndispatchedTarget(table)
	if err != nil {
		return nil, err
	}
	why, _, err := s.app.whyNotAdmitted(s.run, table, target, []*action.Request{request})
	if err != nil || why != "" {
		return nil, cmp.Or(err, error(&runview.Refused{Why: why}))
	}
	effect := request.EffectOn(target)
	if effect == action.IsFulfilled {
		return &runview.Answer{Text: request.Answer(action.Outcome{})}, nil
	}
	request.By, request.At = dispatch.Asker(), time.Now()
	asked, err := ask.Leave(s.run, request)
	switch {
	case err != nil:
		return nil, err
	case effect == action.IsCarriedOut:
		err = s.endJobs(ctx, asked, silent)
	case request.AddsJobs():
		err = s.resumeFor(ctx, asked, silent)
	default:
		return &runview.Answer{Done: max(1, request.Jobs.Count()), Text: "noted for the next resume"}, nil
	}
	switch {
	case err != nil:
		return nil, err
	case asked.Refused != "":
		return nil, &runview.Refused{Why: asked.Refused}
	case !asked.Answered:
		return &runview.Answer{Text: "requested; the dispatcher has not answered yet"}, nil
	}
	if table, err = replayTable(s.run); err != nil {
		return nil, err
	}
	answer, err := runview.AnswerTo(request, &asked.Trace, table, nil)
	if err == nil && request.AddsJobs() {
		answer.Text += "; the run continues"
	}
	return answer, err
}

// resumeFor resumes the run and waits for the answer to a request. The dispatcher carries the request
// out before it launches anything.
func (s *runScreen) resumeFor(ctx context.Context, asked *ask.TrackedRequest, silent *journal.Owner) error {
	if _, err := s.start(ctx, silent, "resume"); err != nil {
		s.run.RemoveRequest(asked.Name) // the user does not expect a later effect
		return err
	}
	owner, err := journal.ReadOwner(s.run)
	if err == nil && owner != nil {
		asked.Wait(ctx, owner, dialRun)
	}
	return err
}

// endJobs runs the cancel command, which takes the run over, carries a request out, and exits. The
// command continues when the screen is left.
func (s *runScreen) endJobs(ctx context.Context, asked *ask.TrackedRequest, silent *journal.Owner) error {
	process, err := s.start(ctx, silent, "cancel", "--request", asked.Name)
	if err != nil {
		if ctx.Err() == nil { // otherwise the process carries it out
			s.run.RemoveRequest(asked.Name)
		}
		return err
	}
	select {
	case <-process.Ended:
		asked.Poll()
		if asked.Problem == nil && !asked.Answered && asked.Refused == "" {
			return errors.New("the process that cancels the jobs has failed; the request waits for the next resume")
		}
		return asked.Problem
	case <-ctx.Done():
		return nil // the process continues; there is no answer yet
	}
}

// start starts a command in the background that takes the run over, and waits until it dispatches. silent is
// as in journal.TakeOptions.
func (s *runScreen) start(ctx context.Context, silent *journal.Owner, command ...string) (*run.Background, error) {
	var out commandOutput
	process, err := run.StartBackground(append(command, s.run.Dir), nil, &out, silent)
	if err != nil {
		return nil, err
	}
	dir, err := process.Ready(ctx)
	if err != nil {
		return nil, err
	}
	if dir == "" {
		otherwise := "the run could not be taken over"
		if _, signal := backgroundExitCode(process); signal != "" {
			otherwise += ": the dispatcher was killed (" + signal + ")"
		}
		return nil, &runview.Refused{Why: out.problemOf(process, otherwise)}
	}
	s.process.Store(process)
	return process, nil
}

// commandOutput keeps the first part of the output of a program that was started here. exec writes
// to it from one goroutine, which ends before Wait returns.
type commandOutput struct{ b bytes.Buffer }

func (w *commandOutput) Write(p []byte) (int, error) {
	w.b.Write(p[:min(len(p), max(0, 8192-w.b.Len()))])
	return len(p), nil
}

// problemOf returns the error of the process as one line. If it reported none, problemOf returns
// everything that was printed or, without that, otherwise.
func (w *commandOutput) problemOf(p *run.Background, otherwise string) string {
	return cmp.Or(p.Problem, text.Line(strings.TrimSpace(w.b.String())), otherwise)
}
