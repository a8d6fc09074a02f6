package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"dcs-tui/dispatch"
	"dcs-tui/dispatch/run"
	"dcs-tui/dispatch/sched"
	"dcs-tui/hosts"
	"dcs-tui/internal/text"
	"dcs-tui/jobs"
	"dcs-tui/jobs/action"
	"dcs-tui/jobs/journal"
	"dcs-tui/jobs/results"
	"dcs-tui/jobs/rundir"
	"dcs-tui/observe/runview"
)

// becomeOwner takes the run over. If another dispatcher owns the run, the error names the owner.
func (a *app) becomeOwner(dir *rundir.Run, force bool) (*run.Owned, error) {
	opt := journal.TakeOptions{Force: force, Notify: func(msg string) { a.con.Line(text.Line(msg)) }}
	if a.starter != nil {
		opt.Silent = a.starter.Silent
	}
	owned, err := run.Take(context.Background(), dir, opt)
	if taken, ok := errors.AsType[*journal.OwnedError](err); ok {
		return nil, inUseError(dir, taken.Owner)
	}
	if err != nil {
		return nil, err
	}
	a.warnAll(owned.Warnings)
	return owned, nil
}

// inUseError returns the error for a run that another process dispatches.
func inUseError(run *rundir.Run, owner *journal.Owner) error {
	who := "another dcs-tui that is just starting"
	if owner != nil {
		who = owner.String()
	}
	p := text.Errorf("the run %s is dispatched by %s", run.Name(), who)
	if owner != nil && owner.IsStopped() {
		return p.WithAdvice("%s; --force takes the run over from it", runview.StoppedText(owner))
	}
	return p.WithAdvice("dcs-tui attach %s shows its screen; if that dcs-tui hangs, --force takes the run over",
		refTo(run))
}

// dispatchSession dispatches a run and prints what happens.
type dispatchSession struct {
	app   *app
	flags *runFlags
	inv   *hosts.Inventory
	opts  run.Options

	startLine    string // the first line, without the name of the run
	startNotes   []string
	jobsAreTyped bool // the user types the jobs on the terminal
	noSummary    bool // print no summary, because the caller reports the result

	run          *run.Run // set by start
	printer      *resultPrinter
	hasUnprinted bool // results could not be printed
	hostEvents   map[string]runview.HostEvent
	progressAt   time.Time    // when the progress was last printed as a line
	abortCode    atomic.Int32 // exit code of an immediate exit: exitLeft until the run was closed

	repliesMu sync.Mutex
	replies   []*run.Reply  // to print
	replied   chan struct{} // wakes printReplies; its capacity is 1

	heldMu        sync.Mutex
	heldHostTexts []runview.HostText // to print before the next line, grouped
}

func (a *app) newDispatchSession(flags *runFlags, inv *hosts.Inventory, env []jobs.EnvVar) *dispatchSession {
	session := &dispatchSession{app: a, flags: flags, inv: inv, replied: make(chan struct{}, 1),
		hostEvents: map[string]runview.HostEvent{}, progressAt: time.Now()}
	session.abortCode.Store(exitLeft)
	flags.setSlots(inv)
	session.opts = run.Options{
		Inventory: inv, PrepareInventory: flags.setSlots, Standby: flags.standbys,
		Connector: func(log func(host, line string)) (hosts.Connector, error) {
			return a.connector(&flags.options, reachableHosts(inv), log)
		},
		Policy: flags.schedConfig(), Env: env, WarnSignal: flags.Warn.signal, KeepChildren: flags.KeepChildren,
		Printer: session, JobLog: flags.joblog,
		Signals: a.catchSignals, InterruptCancels: flags.OnInterrupt == "cancel", Interactive: a.starter == nil &&
			!flags.background,
		Detach: session.detachTerminal, ReportAbort: session.reportAbort,
		Exit:      func() { os.Exit(int(session.abortCode.Load())) },
		Questions: a.questions, SocketBase: socketBase, NeedSocket: a.starter != nil, Program: version(),
		PackFiles:  flags.PackFiles,
		OnStart:    session.handleStarted,
		Reply:      session.queueReply,
		AcceptJobs: flags.KeepOpen,
	}
	return session
}

// socketBase is the directory for sockets. "" is the default of dispatch/socket. Tests change it.
var socketBase = ""

// schedConfig returns the scheduling policy of the run.
func (f *runFlags) schedConfig() sched.Config {
	c := f.Config
	c.RunShare, c.WarnTime, c.IsFinal = runShare(f.RunShare), f.Warn.before,
		finalFailures(f.RetryOn, f.NoRetryOn, f.RetryTimeouts)
	if f.OnLost == "wait" {
		c.OnLost = jobs.OnLostWait
	}
	if !f.Speculate {
		c.Copies = 0
	}
	return c
}

// runToEnd dispatches a run to its end and returns the exit code. After an error the run has been
// released.
func (d *dispatchSession) runToEnd(owned *run.Owned) (code int, err error) {
	if d.flags.Speculate && d.flags.Tries == 1 && !d.opts.EndOnly {
		d.app.warn("with --tries 1, --speculate makes no copies, because a copy is one of the tries of a job: " +
			"only jobs with tries= have copies")
	}
	switch flags := d.flags; {
	case flags.hosts != "":
		d.opts.InventoryFile, _ = filepath.Abs(flags.hosts)
	case flags.HostList == "":
		d.opts.InventoryFile = owned.Run.Settings.InventoryFile
	}
	if _, err := run.Start(context.Background(), owned, d.opts); err != nil {
		owned.Release()
		return 0, err
	}
	if !d.flags.standby { // it leaves nothing on its host
		defer indexRun(owned.Run)()
	}
	if d.flags.json || d.flags.output {
		d.printer = newResultPrinter(d.app, d.flags, d.run)
	}
	over := make(chan struct{})
	var replies sync.WaitGroup
	out := d.printer
	replies.Go(func() { d.printReplies(out, over) })
	taken, err := d.run.Consume(d.printResult)
	if err != nil {
		d.app.warn("not all results were printed: %v", err)
	}
	close(over)
	taken = d.run.WithTimeout(replies.Wait) && taken
	if d.printer != nil {
		d.handlePrintErrors(d.printer.printHeld())
	}
	outcome, err := d.run.Close()
	if err != nil {
		d.run.WithTimeout(func() { d.app.warn("%v", err) })
		return exitLeft, nil
	}
	s := &summary{
		app:          d.app,
		Outcome:      outcome,
		hostEvents:   d.hostEvents,
		flags:        d.flags,
		providers:    d.inv.Providers,
		hasUnprinted: !taken || d.hasUnprinted,
	}
	code = s.exitCode()
	d.abortCode.Store(int32(code)) // the hook and the packing may last
	d.run.WithTimeout(func() {
		d.app.con.Status("")
		d.printHostNotices()
		d.app.warnAll(outcome.Warnings)
		if !d.noSummary {
			s.print(code)
		}
	})
	if d.flags.OnDone != "" {
		if err := outcome.RunHook(d.flags.OnDone, code, d.app.stderr); err != nil {
			d.app.warn("%v", err)
		}
	}
	d.run.PackRest()
	return code, nil
}

// handleStarted implements run.Options.Started.
func (d *dispatchSession) handleStarted(r *run.Run) {
	d.run = r
	con := d.app.con
	d.app.notifyStarter(r.Dir())
	r.WithTimeout(func() {
		con.Line(append([]string{con.Paint(bold, text.Line(r.Dir().Name())) + ": " + d.startLine}, d.startNotes...)...)
	})
}

// Line implements run.Printer.
func (d *dispatchSession) Line(msg string) {
	d.printHostNotices()
	d.app.con.Line(text.Line(msg))
}

// Warning implements run.Printer.
func (d *dispatchSession) Warning(msg string) {
	d.printHostNotices()
	d.app.warn("%s", msg)
}

// Notice implements run.Printer.
func (d *dispatchSession) Notice(n dispatch.Notice) {
	if n.Canceling && d.opts.EndOnly {
		return // as in printResult
	}
	if n.Host == "" || n.Job != 0 {
		d.printHostNotices()
		d.app.con.Line(d.app.con.NoticeLine(n))
		return
	}
	d.hostEvents[n.Host] = d.hostEvents[n.Host].After(jobs.StampOf(n.At), n.Text, n.ReasonKind)
	d.heldMu.Lock()
	d.heldHostTexts = append(d.heldHostTexts, runview.HostText{Host: n.Host, Text: n.Text, At: n.At})
	d.heldMu.Unlock()
}

// printHostNotices prints the notices about hosts since its last call. Hosts with the same notice
// share a line.
func (d *dispatchSession) printHostNotices() {
	d.heldMu.Lock()
	defer d.heldMu.Unlock()
	for _, g := range runview.GroupHosts(d.heldHostTexts) {
		n := dispatch.Notice{At: g.At, Text: g.Sentence()}
		if len(g.Hosts) == 1 {
			n.Host = g.Hosts[0]
		}
		d.app.con.Line(d.app.con.NoticeLine(n))
	}
	d.heldHostTexts = nil
}

// Interval implements run.Printer.
func (d *dispatchSession) Interval() time.Duration {
	if d.app.con.IsTerminal() {
		return 500 * time.Millisecond
	}
	return 2 * time.Second
}

// Progress implements run.Printer.
func (d *dispatchSession) Progress(snap *dispatch.Snapshot) {
	d.printHostNotices()
	switch con := d.app.con; {
	case snap.Finished:
		con.Status("")
	case d.jobsAreTyped && snap.InputOpen: // the progress would appear in the line that is being typed
	case con.IsTerminal():
		con.Status(progressLine(snap, con.Width()))
	case time.Since(d.progressAt) >= time.Minute:
		d.progressAt = time.Now()
		con.Line(progressLine(snap, con.Width()))
	}
}

// printResult prints one result. Results of earlier dispatchers are printed again only for
// --json, which acknowledges them.
func (d *dispatchSession) printResult(r *results.Result) {
	switch {
	case d.opts.EndOnly && r.State == jobs.Canceled: // a line at the end has their number
	case !d.run.IsRepeated(r):
		d.printHostNotices()
		d.app.con.Line(d.app.con.JobLine(r))
		if line := jobLogLine(d.run.Dir(), r); line != "" {
			d.app.con.Line(line)
		}
	case !d.flags.json:
		return
	}
	if d.printer == nil {
		return
	}
	if errs := d.printer.Print(r); len(errs) > 0 {
		d.handlePrintErrors(errs)
	} else if d.flags.json {
		d.run.Ack(r.Seq)
	}
}

func (d *dispatchSession) handlePrintErrors(errs []error) {
	for _, err := range errs {
		switch {
		case errors.Is(err, syscall.EPIPE):
			d.printer = nil
			d.stopOnClosedStdout()
		case d.flags.json || d.printer.broken.Load(): // the run continues; resume --json or logs prints the rest
			d.printer, d.hasUnprinted = nil, true
			d.app.warn("no more results are printed: %v", err)
		default: // the output of one job cannot be read
			d.hasUnprinted = true
			d.app.warn("%v", err)
		}
	}
}

func (d *dispatchSession) stopOnClosedStdout() {
	d.run.Do("stdout", &action.Request{Do: action.StopRun, Why: "standard output was closed"})
}

// queueReply implements run.Options.Reply. It does not wait for the reader of standard output.
func (d *dispatchSession) queueReply(r *run.Reply) {
	d.repliesMu.Lock()
	d.replies = append(d.replies, r)
	d.repliesMu.Unlock()
	select {
	case d.replied <- struct{}{}:
	default: // printReplies has not handled the last wake-up yet
	}
}

// printReplies prints replies until over is closed and no replies are left.
func (d *dispatchSession) printReplies(out *resultPrinter, over <-chan struct{}) {
	for ended := false; !ended; {
		select {
		case <-d.replied:
		case <-over:
			ended = true
		}
		d.repliesMu.Lock()
		list := d.replies
		d.replies = nil
		d.repliesMu.Unlock()
		for _, r := range list {
			if err := out.printReply(r); errors.Is(err, syscall.EPIPE) {
				d.stopOnClosedStdout()
			}
		}
	}
}

// detachTerminal implements run.Options.Detach: it continues without the terminal.
func (d *dispatchSession) detachTerminal(r *run.Run) {
	a := d.app
	if !a.stderrIsTerminal {
		return // standard error is not the terminal
	}
	log, err := openDispatcherLog(r.Dir())
	if err != nil {
		return // nobody can read the error; the journal has everything
	}
	defer log.Close()
	leaveTerminal(log)
	a.con.Detach(a.stderr)
	a.con.Line(time.Now().Format("2006-01-02 15:04:05") + "  the terminal is gone; the run continues")
}

// notifyStarter notifies the starter that the run is dispatched. After that, messages go to
// dispatcher.log.
func (a *app) notifyStarter(run *rundir.Run) {
	if a.starter == nil {
		return
	}
	log, err := openDispatcherLog(run)
	if err != nil {
		log, err = os.OpenFile(os.DevNull, os.O_WRONLY, 0) // the journal has everything
	}
	if err == nil {
		unix.Dup2(int(log.Fd()), 1)
		unix.Dup2(int(log.Fd()), 2)
		log.Close()
	}
	a.stderrIsTerminal = false
	a.con.Detach(a.stderr)
	if err := a.starter.Ready(run.Dir); err != nil {
		a.warn("the screen could not be told that the run has begun: %v", err)
	}
}

// dispatcherLogFile has the messages of a dispatcher without a terminal.
const dispatcherLogFile = "dispatcher.log"

func openDispatcherLog(run *rundir.Run) (*os.File, error) {
	f, err := run.OpenFile(rundir.AppendFlags, dispatcherLogFile)
	if err != nil {
		return nil, fmt.Errorf("open the log of the dispatcher: %w", err)
	}
	return f, nil
}

// backgroundExitCode returns the exit code of a background dispatcher that has ended, and the
// signal that killed it without a message; "" if none did.
func backgroundExitCode(process *run.Background) (code int, signal string) {
	switch {
	case process.Code >= 0:
		return process.Code, ""
	case process.Signal == syscall.SIGINT: // Ctrl-C, before the run had begun
		return exitCanceled, ""
	}
	return exitLeft, process.Signal.String() // resume continues the run
}

// reportAbort implements run.Options.ReportAbort: it reports the exit at once, and what is left
// running unless the run has ended.
func (d *dispatchSession) reportAbort(r *run.Run, why string) {
	left := "running jobs continue, `dcs-tui resume " + refTo(r.Dir()) + "` adopts them"
	switch {
	case d.abortCode.Load() != exitLeft:
		left = "the run has ended"
	case r.Deleted():
		left = "running jobs continue, and cannot be adopted because the run directory was deleted"
	}
	d.app.con.Status("")
	d.app.con.Line("dcs-tui: exited at once on " + why + "; " + left)
}
