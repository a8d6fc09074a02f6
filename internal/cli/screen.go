package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"dcs-tui/dispatch"
	"dcs-tui/dispatch/run"
	"dcs-tui/internal/text"
	"dcs-tui/internal/ttyguard"
	"dcs-tui/jobs"
	"dcs-tui/jobs/ask"
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
	fs.BoolVar(&o.mouse, "mouse", false, "use the mouse on the screen (text can then not be selected)")
}

func (a *app) attachCmd() *cobra.Command {
	var o screenOptions
	cmd := &cobra.Command{
		Use:     "attach [flags] [RUN]",
		GroupID: groupRun,
		Short:   "Show the screen of a run",
		Long: `Show the screen of a run. The run may be dispatched in the background, in another terminal, or on another machine
that sees the same run directory, or it may have ended. Any number of screens may show a run and act on it. ` + runHelp,
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
	const instead = "dcs-tui status %s shows the status of the run, and dcs-tui events --follow %s its events"
	if plainTerminal() || !term.IsTerminal(int(a.stdout.Fd())) {
		return text.Errorf("this terminal cannot show the screen").WithAdvice(instead, ref, ref)
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
		a.con.Line("this terminal cannot show the screen; printing lines, as with --no-tui")
		return false, nil
	}
	p, dir, err := a.startHere()
	if err != nil {
		return true, err
	}
	if dir == "" { // it has said why, if it could
		death := ""
		if a.code, death = codeOf(p); death != "" {
			a.warn("the background dispatcher was killed (%s) before the run had begun; if dcs-tui runs list shows the run, dcs-tui resume continues it", death)
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
			return nil, "", err
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
		return nil, "", text.Errorf("%w", err).WithAdvice("--no-tui needs no background process")
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
		return nil, "", err
	}
	return p, dir, nil
}

// runScreen is the run that a screen shows.
type runScreen struct {
	*runview.View
	app      *app
	run      *rundir.Run
	process  atomic.Pointer[run.Background] // the last that was started here; nil: none
	canceled atomic.Bool                    // the whole run, from here
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
			a.con.Line(text.Line(strings.TrimRight(line, "\n")))
		}
	}
	return left.Last, err
}

// Do is runview.Source's.
func (s *runScreen) Do(ctx context.Context, a runview.Action) (*runview.Answer, error) {
	ans, err := s.View.Do(ctx, a)
	if err == nil && a.Do == runview.CancelRun {
		s.canceled.Store(true)
	}
	return ans, err
}

// act carries out what a person asks of a run that nobody dispatches. What only a
// dispatcher can do waits in the run directory as a request, and one is started.
func (s *runScreen) act(ctx context.Context, a runview.Action) (*runview.Answer, error) {
	switch a.Do {
	case runview.Resume:
		if err := s.resume(ctx); err != nil {
			return nil, err
		}
		return &runview.Answer{Done: 1, Text: "the run continues"}, nil
	case runview.Requeue, runview.Edit, runview.Priority:
		return s.request(ctx, a)
	case runview.Cancel:
		if a.Waiting { // what of them runs is not known here, and would be ended
			return nil, &runview.Refused{Why: "the dispatcher has ended meanwhile; resume the run first"}
		}
		const limit = 2000 // ranges that fit on a command line
		var ids []string
		for _, r := range a.Jobs {
			ids = append(ids, fmt.Sprintf("%d-%d", r.First, r.Last))
		}
		switch {
		case len(ids) > limit:
			return nil, &runview.Refused{Why: "too many separate jobs to cancel without a dispatcher; resume the run first"}
		case len(ids) == 0:
			return &runview.Answer{}, nil
		}
		return s.cancel(ctx, ids...)
	case runview.CancelRun:
		return s.cancel(ctx)
	case runview.DrainRun, runview.StopRun:
		return nil, &runview.Refused{Why: "nobody dispatches the run"}
	}
	return nil, &runview.Refused{Why: "nobody dispatches the run; resume it first"}
}

// requests returns an action as requests.
func (s *runScreen) requests(a runview.Action) ([]*rundir.Request, error) {
	table, err := wholeTable(s.run)
	if err != nil {
		return nil, err
	}
	if err := applyWaiting(s.run, table); err != nil {
		return nil, err
	}
	list, err := runview.Requests(a, table, nil)
	for _, q := range list {
		q.By, q.At = dispatch.Asker(), time.Now()
	}
	return list, err
}

// applyWaiting gives jobs the priorities that requests ask for that wait for a dispatcher:
// a relative change adds to those.
func applyWaiting(run *rundir.Run, t *jobs.Table) error {
	names, _, err := run.RequestNames()
	for _, name := range names {
		if t.Requests[name] {
			continue
		}
		q, readErr := run.ReadRequest(name)
		var refused *rundir.RefusedError
		switch {
		case errors.As(readErr, &refused), errors.Is(readErr, fs.ErrNotExist): // comes to nothing
		case readErr != nil:
			return readErr
		case q.Do == rundir.DoPriority:
			for _, id := range q.Jobs.IDs(jobs.ID(len(t.Jobs))) {
				t.Job(id).Priority = int32(q.Priority)
			}
		}
	}
	return err
}

// request leaves an action as requests. A change of priorities waits for the next resume.
// For others it starts a dispatcher, which carries them out before it launches anything.
func (s *runScreen) request(ctx context.Context, a runview.Action) (*runview.Answer, error) {
	list, err := s.requests(a)
	if err != nil {
		return nil, err
	}
	var q *ask.Request
	n := 0
	for _, r := range list {
		if q, err = ask.Leave(s.run, r); err != nil {
			return nil, err
		}
		n += r.Jobs.Count()
	}
	if a.Do == runview.Priority {
		return &runview.Answer{Done: n, Text: "noted for the next resume"}, nil
	}
	if err := s.resume(ctx); err != nil {
		s.run.RemoveRequest(q.Name) // nobody would expect it to come into effect later
		return nil, err
	}
	owner, err := journal.ReadOwner(s.run)
	if err != nil {
		return nil, err
	}
	if owner != nil {
		q.Wait(ctx, owner, dialRun)
	}
	switch {
	case q.Refused != "":
		return nil, &runview.Refused{Why: q.Refused}
	case !q.Answered:
		return &runview.Answer{Text: "requested; the dispatcher has not answered yet"}, nil
	}
	return &runview.Answer{Done: q.Done, Left: q.Left, Text: jobs.Plural(q.Done, "job") + " queued again; the run continues"}, nil
}

// resume starts a dispatcher in the background and waits until it dispatches.
func (s *runScreen) resume(ctx context.Context) error {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return err
	}
	defer null.Close()
	var said output
	p, err := run.StartBackground([]string{"resume", s.run.Dir}, null, &said)
	if err != nil {
		return err
	}
	dir, err := p.Ready(ctx)
	if err != nil {
		return err
	}
	if dir == "" {
		otherwise := "it could not be resumed"
		if _, death := codeOf(p); death != "" {
			otherwise += ": the dispatcher was killed (" + death + ") before it had taken the run over"
		}
		return &runview.Refused{Why: said.problem(otherwise)}
	}
	s.process.Store(p)
	return nil
}

// cancel has the cancel command take the run over, end jobs, and leave.
func (s *runScreen) cancel(ctx context.Context, ids ...string) (*runview.Answer, error) {
	before, err := wholeTable(s.run)
	if err != nil {
		return nil, err
	}
	var said output
	// It continues when the screen is left: what was asked for is done to its end. In a
	// session of its own it asks nothing on the terminal that the screen is on.
	cmd := exec.Command("/proc/self/exe", append([]string{"cancel", "--yes", s.run.Dir}, ids...)...)
	cmd.Args[0] = run.ProgramName
	cmd.Stderr = &said
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.WaitDelay = run.WriteTimeout
	ended := make(chan error, 1)
	go func() { ended <- cmd.Run() }()
	select {
	case err = <-ended:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) {
		return nil, err
	}
	if failed != nil && failed.ExitCode() == exitUsage {
		return nil, &runview.Refused{Why: said.problem("it could not be canceled")}
	}
	after, err := wholeTable(s.run)
	if err != nil {
		return nil, err
	}
	return cancelAnswer(before, after, failed != nil), nil
}

// cancelAnswer returns the result of a cancel, from the run before and after it. It
// does not use the output of the command, which is written for a terminal.
func cancelAnswer(before, after *jobs.Table, failed bool) *runview.Answer {
	n := after.Counts[jobs.Canceled] - before.Counts[jobs.Canceled]
	a := &runview.Answer{Done: n, Text: jobs.Plural(n, "job") + " canceled"}
	for j := range after.Rows() {
		if old := before.Job(j.Spec.ID); j.State == jobs.Canceled && old != nil && old.State != jobs.Canceled {
			a.Changed.Add(j.Spec.ID)
		}
	}
	if n == 0 {
		a.Text = "no job was canceled"
	}
	if running := after.Counts[jobs.Running]; failed && running > 0 {
		a.Text += fmt.Sprintf(", %s not ended yet: %s ended as soon as %s can be reached", jobs.Verb(running, "1 has", fmt.Sprintf("%d have", running)),
			jobs.Verb(running, "it is", "they are"), jobs.Verb(running, "its host", "their hosts"))
	}
	return a
}

// output keeps what a program that we have started prints, up to a bound. exec writes to it
// from one goroutine and waits for that before it tells that the program has ended.
type output struct{ b bytes.Buffer }

func (w *output) Write(p []byte) (int, error) {
	w.b.Write(p[:min(len(p), max(0, 8192-w.b.Len()))])
	return len(p), nil
}

// problem returns the error that the program printed, on one line and without advice
// for a command line. If there is no error, it returns everything that was printed.
func (w *output) problem(otherwise string) string {
	for line := range strings.Lines(w.b.String()) {
		if msg, ok := strings.CutPrefix(line, "dcs-tui: "); ok {
			return text.Line(strings.TrimSpace(msg))
		}
	}
	if msg := text.Line(strings.TrimSpace(w.b.String())); msg != "" {
		return msg
	}
	return otherwise
}
