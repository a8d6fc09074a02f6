package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"dcs-tui/dispatch"
	"dcs-tui/dispatch/run"
	"dcs-tui/internal/text"
	"dcs-tui/jobs"
	"dcs-tui/jobs/action"
	"dcs-tui/jobs/journal"
	"dcs-tui/jobs/results"
	"dcs-tui/jobs/rundir"
	"dcs-tui/observe/ask"
	"dcs-tui/observe/runview"
)

func (a *app) cancelCmd() *cobra.Command {
	var flags runFlags
	var sel selection
	var opt requestFlags
	var waiting string
	cmd := &cobra.Command{
		Use:   "cancel [flags] RUN [JOBS...]",
		Short: "Cancel jobs of a run, or all of them",
		Long: `Cancel jobs of a run: queued jobs will not run, and running jobs are ended with all their processes. JOBS
are numbers and ranges, such as 3 9-17; without JOBS and --where, all jobs are canceled. If nobody
dispatches the run, this command takes it over, ends the jobs, and exits.`,
		Example: `dcs-tui cancel sweep-20260314-1502 3 9-17
dcs-tui cancel sweep-20260314-1502 --where state=queued,name='big*'`,
		Args: requireRun,
		RunE: func(cmd *cobra.Command, args []string) error {
			if waiting != "" {
				return a.cancelWaiting(cmd, &flags, args, waiting)
			}
			return a.runCancel(cmd, &flags, args, &sel, opt)
		},
	}
	fs := cmd.Flags()
	fs.BoolVar(&sel.all, "all", false, "all jobs, as without JOBS")
	sel.addWhereFlag(fs)
	endGroup(fs, titleWhich)
	fs.StringVar(&flags.hosts, "hosts", "", "inventory `FILE` to use instead of the run's own")
	addSSHFlags(fs, &flags.SSHConfig, &flags.AcceptNew)
	flags.addForceFlag(fs)
	fs.StringVar(&waiting, "request", "", "carry out the waiting request with this `NAME`")
	fs.MarkHidden("request")
	endGroup(fs, "Taking the run over")
	opt.addFlags(cmd)
	endGroup(fs, "Confirmation and output")
	return cmd
}

func (a *app) runCancel(cmd *cobra.Command, flags *runFlags, args []string, sel *selection, opt requestFlags) error {
	if err := sel.parseNamed(args[1:]); err != nil {
		return err
	}
	some := sel.named != nil || len(sel.where) > 0
	if some && sel.all {
		return text.Errorf("--all cannot be combined with JOBS or --where")
	}
	run, table, err := a.openTable(args)
	if err != nil {
		return err
	}
	waiting, err := run.WaitingRequests(table)
	if err != nil {
		return err
	}
	numWaiting := len(slices.DeleteFunc(waiting, func(q *action.Request) bool { return !q.AddsJobs() }))
	ids, err := a.selectJobs(cmd.Context(), run, table, sel,
		func(st jobs.JobState) bool { return !some || !st.Terminal() })
	if err != nil {
		return err
	}
	request := &action.Request{Do: action.Cancel, All: !some}
	if some {
		request.Jobs = jobs.RangesOf(ids)
	}
	nFinished, what := unfinishedText(table, ids)
	switch isOpen := nFinished < len(ids) || numWaiting > 0; { // a waiting requeue would open jobs again
	case (some || opt.json) && (len(ids) == 0 || !isOpen):
		return a.reportNothing(run, request.Do, sel, table, nFinished, opt.json)
	case !some && !isOpen:
		a.con.Line("nothing to cancel: all jobs of " + text.Line(run.Name()) + " have finished")
		if input, err := run.ReadInput(); err == nil && input.IsKeptOpen {
			a.con.Line("  " + keptOpenText(run))
		}
		return nil
	}
	if waiting := "the jobs of " + text.Plural(numWaiting, "waiting request"); numWaiting > 0 && nFinished == len(ids) {
		what = waiting
	} else if numWaiting > 0 && !some {
		what += " and " + waiting
	}
	if err := a.confirm(opt.yes, "cancel", "end "+what+" of "+text.Line(run.Name())); err != nil {
		return err
	}
	owner, err := journal.ReadOwner(run)
	if err != nil {
		return err
	}
	var asked *ask.TrackedRequest
	hasDispatcher := owner.Liveness() != journal.Dead && !flags.force
	switch {
	case !hasDispatcher:
		request.By, request.At = dispatch.Asker(), time.Now()
		if asked, err = ask.Leave(run, request); err != nil {
			return err
		}
	case request.All:
		if asked, hasDispatcher, err = a.askOwnerToCancel(cmd.Context(), run, request, owner); err != nil {
			return err
		}
		flags.force = true // its heartbeats have stopped
	default:
		sent, err := a.sendRequests(cmd.Context(), run, table, request)
		if err != nil {
			return err
		}
		asked, hasDispatcher, flags.force = sent.requests[0], sent.hasDispatcher, true
		if hasDispatcher && !asked.Answered {
			a.con.Line("  " + forceText(run))
		}
	}
	if !hasDispatcher {
		if err := a.cancelWithoutDispatcher(cmd, flags, run, asked, table); err != nil {
			return err
		}
	}
	return a.reportCanceled(run, request, asked, opt.json)
}

// unfinishedText describes the unfinished ones of some jobs. It returns the number of the others.
func unfinishedText(table *jobs.Table, ids []jobs.ID) (nFinished int, what string) {
	var counts [jobs.Skipped + 1]int
	var idle results.Idle
	for _, id := range ids {
		state := table.State(id)
		if state.Terminal() {
			nFinished++
			continue
		}
		counts[state]++
		if state == jobs.Running && runview.OpenAttempt(table.Job(id)).State == jobs.AttemptLaunching {
			idle.Sent++
		}
	}
	return nFinished, text.Plural(len(ids)-nFinished, "job") + " (" +
		strings.Join(results.StateCounts(counts, idle, true), ", ") + ")"
}

// cancelTimeout is the time that a live dispatcher has to cancel all jobs and end. Jobs have 5 s
// between TERM and KILL.
const cancelTimeout = 60 * time.Second

// forceDelay is the delay before --force is suggested to a waiting user.
const forceDelay = 15 * time.Second

// forceText describes how to end a run whose dispatcher hangs.
func forceText(run *rundir.Run) string {
	return "dcs-tui cancel --force " + refTo(run) + "  takes the run over from it and ends every job"
}

// askOwnerToCancel asks the dispatcher to cancel all jobs and waits until it has ended. isDone is
// false if the dispatcher is dead and has left jobs, which the caller must end.
func (a *app) askOwnerToCancel(ctx context.Context, run *rundir.Run, request *action.Request,
	owner *journal.Owner) (asked *ask.TrackedRequest, isDone bool, err error) {
	request.By, request.At = dispatch.Asker(), time.Now()
	asked, err = ask.Prepare(run, request)
	if err != nil {
		return nil, false, err
	}
	a.con.Line("asked " + text.Line(owner.String()) + " to cancel; waiting until it has ended")
	if owner.Liveness() == journal.Unsure {
		a.con.Line(fmt.Sprintf("this machine cannot check whether that process is alive: "+
			"if it sends no heartbeat for %.0f s, the run is taken over",
			journal.StaleAfter.Seconds()))
	}
	if owner.IsStopped() {
		a.con.Line(runview.StoppedText(owner), "  "+forceText(run))
	}
	slow := time.AfterFunc(forceDelay, func() {
		a.con.Line("still waiting; if that dcs-tui hangs:", "  "+forceText(run))
	})
	defer slow.Stop()
	gone := asked.Wait(ctx, owner, dialRun)
	if asked.Refused != "" {
		return nil, false, text.Errorf("%s", text.Line(asked.Refused))
	}
	if !gone && !awaitOwnerEnd(run, owner) {
		a.exitCode = exitLeft
		a.warn("the dispatcher is alive and has not ended yet; dcs-tui status %s shows its status", refTo(run))
		a.con.Line("  " + forceText(run))
		return asked, true, nil
	}
	asked.Poll()
	table, err := replayTable(run)
	if err != nil {
		return nil, false, err
	}
	if table.Unfinished() > 0 {
		return asked, false, nil
	}
	a.con.Line(runview.ProgressOf(table, nil).Counts())
	return asked, true, nil
}

// awaitOwnerEnd waits until the owner has ended, is dead, or has sent no heartbeat for StaleAfter.
// It returns false if the owner is alive and has not ended in time.
func awaitOwnerEnd(run *rundir.Run, owner *journal.Owner) (gone bool) {
	r := journal.NewReader(run, nil)
	r.Owner = owner
	for until := time.Now().Add(cancelTimeout); ; time.Sleep(200 * time.Millisecond) {
		err := r.Watch(false)
		switch {
		case err == nil && r.Owner != nil && !r.IsDispatched(): // a file that cannot be read proves nothing
			return true
		case time.Now().Before(until):
		case r.SinceHeartbeat() < 2*journal.HeartbeatInterval || time.Now().After(until.Add(cancelTimeout)):
			return false
		}
	}
}

// takeOverToEnd takes the run over to end jobs. It starts no jobs.
func (a *app) takeOverToEnd(cmd *cobra.Command, flags *runFlags,
	run *rundir.Run) (session *dispatchSession, owned *run.Owned, err error) {
	if err := restoreFlags(cmd.Flags(), run.Settings.Options); err != nil {
		return nil, nil, err
	}
	inv, err := a.inventoryOf(run, flags.hosts)
	if err == nil {
		err = a.loadSSH(&flags.options, inv.Hosts)
	}
	if err == nil {
		owned, err = a.becomeOwner(run, flags.force)
	}
	if err != nil {
		return nil, nil, err
	}
	a.removeStopFiles(run, func(string) {})
	session = a.newDispatchSession(flags, inv, nil)
	session.opts.EndOnly = true
	return session, owned, nil
}

// cancelWithoutDispatcher takes the run over, carries out the waiting requests, and ends when the
// jobs of this request have ended. It starts no jobs.
func (a *app) cancelWithoutDispatcher(cmd *cobra.Command, flags *runFlags, dir *rundir.Run, asked *ask.TrackedRequest,
	table *jobs.Table) error {
	session, owned, err := a.takeOverToEnd(cmd, flags, dir)
	if err != nil {
		dir.RemoveRequest(asked.Name) // the user does not expect a later effect
		return err
	}
	session.startLine = "canceling all jobs"
	if ids := asked.Jobs().IDs(jobs.ID(table.NumJobs())); len(ids) > 0 {
		session.startLine = "nobody dispatches it; canceling the requested jobs"
		session.noSummary, flags.OnDone = true, ""
		for _, id := range ids {
			if !table.State(id).Terminal() {
				asked.Await(id) // also jobs that an earlier request ends
			}
		}
		session.opts.StopWhen = func(ctx context.Context) string { return awaitCancel(ctx, asked) }
	}
	if a.exitCode, err = session.runToEnd(owned); err != nil {
		return err
	}
	asked.Poll()
	if asked.Answered && (session.noSummary && a.exitCode != exitNoHosts || a.exitCode == exitCanceled ||
		a.exitCode == exitFailed) {
		a.exitCode = exitOK // the jobs have ended, as requested
	}
	return nil
}

// awaitCancel waits until a request has been answered and its jobs have ended. It returns the
// reason for the end of the wait.
func awaitCancel(ctx context.Context, asked *ask.TrackedRequest) string {
	late := time.After(cancelTimeout)
	every := time.NewTicker(50 * time.Millisecond)
	defer every.Stop()
	for asked.Poll(); !asked.IsOver() || asked.IsAwaiting(); asked.Poll() {
		select {
		case <-ctx.Done():
			return "the run has ended"
		case <-late:
			return "some jobs have not ended in time"
		case <-every.C:
		}
	}
	return "the requested jobs have ended"
}

// reportCanceled reports the result of a cancel. What became of all jobs was printed before.
func (a *app) reportCanceled(run *rundir.Run, request *action.Request, asked *ask.TrackedRequest, asJSON bool) error {
	outcome := asked.Outcome()
	if len(outcome.Ending) > 0 && !request.All {
		a.exitCode = exitLeft
	}
	switch {
	case asJSON:
		return a.printRequestJSON(run, request.Do, asked)
	case asked.Answered && !request.All: // otherwise it was reported
		a.con.Line(request.Answer(outcome))
	}
	return nil
}

// cancelWaiting is cancel --request: it carries out a cancel that a screen has left in the run directory.
func (a *app) cancelWaiting(cmd *cobra.Command, flags *runFlags, args []string, name string) error {
	run, table, err := a.openTable(args)
	if err != nil {
		return err
	}
	asked, err := ask.Open(run, name)
	if err != nil {
		return err
	}
	if asked.Do() != action.Cancel {
		return fmt.Errorf("the request %s is not a cancel", name)
	}
	return a.cancelWithoutDispatcher(cmd, flags, run, asked, table)
}
