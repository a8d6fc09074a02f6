package cli

import (
	"bufio"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"dcs-tui/dispatch/sched"
	"dcs-tui/jobs"
	"dcs-tui/jobs/journal"
	"dcs-tui/jobs/rundir"
)

func (a *app) cancelCmd() *cobra.Command {
	var f runFlags
	var yes bool
	cmd := &cobra.Command{
		Use:     "cancel [flags] RUN",
		GroupID: groupRun,
		Short:   "End every job of a run",
		Long: `End every job of a run: queued ones are taken out, running ones are ended with all
their processes. What a dispatcher that is alive is told through the file STOP.now in
the run directory; without one this command takes the run over, ends what runs, and
leaves. A dispatcher of another machine counts as dead when its sign of life in the
run directory has not changed for half a minute. --force takes the run over from one
that hangs.

RUN is a name in ./dcs-runs or a run directory, and must be given.`,
		Example:           `dcs-tui cancel sweep-20260314-1502 --yes`,
		Args:              exactlyOneRun,
		ValidArgsFunction: completeRuns,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.runCancel(cmd, &f, args, yes)
		},
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.BoolVar(&yes, "yes", false, "do not ask")
	fs.StringVar(&f.hosts, "hosts", "", "inventory FILE to use instead of the run's own")
	sshFlags(fs, &f.SSHConfig, &f.AcceptNew)
	fs.BoolVar(&f.force, "force", false, "take the run over though its dispatcher may be alive; that one can then do no harm")
	cmd.RegisterFlagCompletionFunc("hosts", tomlFiles)
	return cmd
}

// exactlyOneRun: what ends jobs takes no default.
func exactlyOneRun(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return usagef("%s needs the run: a name in ./dcs-runs or a run directory", cmd.CommandPath()).
			withAdvice("dcs-tui runs list shows them")
	}
	return nil
}

func (a *app) runCancel(cmd *cobra.Command, f *runFlags, args []string, yes bool) error {
	run, err := openRun(args)
	if err != nil {
		return err
	}
	table, _, err := journal.Replay(run)
	if err != nil {
		return usagef("%w", err)
	}
	stored := len(table.Specs) - len(table.Jobs)
	if table.Unfinished()+stored == 0 {
		a.con.Line("nothing to cancel: all jobs of " + cleanLine(run.Name()) + " are done")
		return nil
	}
	if err := a.confirm(yes, run, table, stored); err != nil {
		return err
	}
	owner, err := journal.ReadOwner(run)
	if err != nil {
		return usagef("%w", err)
	}
	if owner != nil && owner.Life() != journal.Dead && !f.force {
		gone, err := a.askOwner(run, owner)
		if err != nil || !gone {
			return err
		}
		f.force = true // we have seen for ourselves that it is gone
	}
	return a.cancelOurselves(cmd, f, run)
}

// confirm asks, unless told not to.
func (a *app) confirm(yes bool, run *rundir.Run, t *jobs.Table, stored int) error {
	if yes {
		return nil
	}
	handed := handedOver(t)
	what := plural(t.Counts[jobs.Running]-handed, "running job")
	if handed > 0 {
		what += ", " + itoa(handed) + " handed over"
	}
	what += " and " + plural(t.Counts[jobs.Queued]+stored, "queued job") +
		" of " + cleanLine(run.Name())
	if !term.IsTerminal(int(os.Stdin.Fd())) {
		return usagef("cancel would end %s; it asks first", what).withAdvice("--yes answers for you")
	}
	a.con.Line("end " + what + "? (y/n)")
	line, _ := bufio.NewReader(a.stdin).ReadString('\n')
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "y", "yes":
		return nil
	}
	return usagef("nothing was cancelled")
}

// cancelOurselves takes the run over, ends all that is open, and leaves.
func (a *app) cancelOurselves(cmd *cobra.Command, f *runFlags, run *rundir.Run) error {
	if err := absoluteFlags(cmd.Flags()); err != nil {
		return err
	}
	if err := restoreFlags(cmd.Flags(), run.Asked.Options); err != nil {
		return err
	}
	inv, err := a.resumeInventory(f, run)
	if err != nil {
		return err
	}
	o, err := a.own(run, f.force)
	if err != nil {
		return err
	}
	a.removeStopFiles(run, func(string) {})
	s, err := a.start(o, f, inv, nil)
	if err != nil {
		o.journal.Close()
		return err
	}
	s.cancelled.Store(true)
	s.d.Do(sched.Cancel{All: true, Why: "cancelled by a person"})
	code := s.drive(cleanLine(run.Name())+": ending every job", s.submitWaiting)
	if code == ExitCancelled || code == ExitOK || code == ExitFailed {
		code = ExitOK // it did what it was asked
	}
	a.code = code
	return nil
}
