package cli

import (
	"time"

	"github.com/spf13/cobra"

	"dcs-tui/dispatch/run"
	"dcs-tui/internal/text"
	"dcs-tui/jobs/journal"
	"dcs-tui/observe/runview"
)

func (a *app) waitCmd() *cobra.Command {
	return &cobra.Command{
		Use:                   "wait [RUN]",
		DisableFlagsInUseLine: true,
		Short:                 "Wait for the end of a run",
		Long: `Wait until no dispatcher runs the run any more, on any machine, and exit with the exit code of the run.
If jobs are left, print how many. ` + runHelp,
		Example: `dcs-tui wait sweep && dcs-tui results sweep > table.txt`,
		Args:    atMost(1),
		RunE:    a.runWait,
	}
}

func (a *app) runWait(_ *cobra.Command, args []string) error {
	dir, err := a.openRun(args)
	if err != nil {
		return err
	}
	r := journal.NewReader(dir, journal.Follow(dir).Packed())
	for {
		if _, err := r.Poll(nil); err != nil {
			return withCode(exitLeft, err)
		}
		if !r.IsDispatched() {
			break
		}
		time.Sleep(pollInterval)
	}
	return a.reportUndispatched(r)
}

// reportUndispatched sets the exit code of a run that nobody dispatches, and reports jobs that are
// left, also those that no dispatcher has accepted. r has read the journal.
func (a *app) reportUndispatched(r *journal.Reader) error {
	if err := r.AcceptStored(); err != nil {
		return withCode(exitLeft, err)
	}
	dir, table := r.Run, r.Table()
	input, err := dir.ReadInput()
	if err != nil {
		a.warn("%v", err)
	}
	state := run.StateOf(run.FinishOf(table).How, table.Judged(), table.CanceledAll, input.Cut(), keptHalt(dir))
	progress := runview.ProgressOf(table, r)
	left := "jobs are left: " + progress.Counts()
	waiting, err := dir.WaitingRequests(table)
	if err != nil {
		a.warn("%v", err)
	}
	if n := len(waiting); n > 0 && state != run.Stopped {
		state, left = run.Stopped, text.Plural(n, "request")+" "+text.Verb(n, "waits", "wait")
	}
	a.exitCode = exitCode(state)
	if state == run.Stopped || state == run.NoHosts {
		a.con.Line("nobody dispatches the run, and "+left, text.Line(progress.End))
		a.con.Line("  dcs-tui resume " + refTo(dir) + "  continues it")
	}
	return nil
}
