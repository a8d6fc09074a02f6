package cli

import (
	"bufio"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"dcs-tui/dispatch/run"
	"dcs-tui/internal/cli/console"
	"dcs-tui/internal/cli/exit"
	"dcs-tui/internal/cli/standing"
	"dcs-tui/jobs"
	"dcs-tui/jobs/journal"
	"dcs-tui/jobs/rundir"
)

func (a *app) cancelCmd() *cobra.Command {
	var f runFlags
	var sel selection
	var opt askOptions
	cmd := &cobra.Command{
		Use:     "cancel [flags] RUN [JOBS...]",
		GroupID: groupRun,
		Short:   "End jobs of a run, or all of them",
		Long: `End jobs of a run: queued ones are taken out, running ones are ended with all their
processes. Jobs that are over are left alone and counted.

JOBS are numbers and ranges, such as 3 9-17; with --where those that are not over and
have what it says. Without either every job is meant, and the dispatcher ends with them.

A dispatcher that is alive is asked, on whatever machine it is; without one this command takes the run over, ends what was asked, and leaves. A
dispatcher of another machine counts as dead when its sign of life in the run directory
has not changed for half a minute. --force takes the run over from one that hangs.

RUN is a name in ./dcs-runs or a run directory, and must be given.`,
		Example: `dcs-tui cancel sweep-20260314-1502 --yes
dcs-tui cancel sweep-20260314-1502 3 9-17
dcs-tui cancel sweep-20260314-1502 --where state=queued,name='big*'`,
		Args:              runAndJobs,
		ValidArgsFunction: completeRuns,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.runCancel(cmd, &f, args, &sel, opt)
		},
	}
	fs := cmd.Flags()
	fs.BoolVar(&sel.all, "all", false, "every job, as without JOBS")
	selectFlags(cmd, &sel, &opt)
	fs.StringVar(&f.hosts, "hosts", "", "inventory FILE to use instead of the run's own")
	sshFlags(fs, &f.SSHConfig, &f.AcceptNew)
	fs.BoolVar(&f.force, "force", false, "take the run over though its dispatcher may be alive; that one can then do no harm")
	return cmd
}

// exactlyOneRun: what ends jobs takes no default.
func exactlyOneRun(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return exit.Usagef("%s needs the run: a name in ./dcs-runs or a run directory", cmd.CommandPath()).
			WithAdvice("dcs-tui runs list shows them")
	}
	return nil
}

func (a *app) runCancel(cmd *cobra.Command, f *runFlags, args []string, sel *selection, opt askOptions) error {
	if err := sel.parseNamed(args[1:]); err != nil {
		return err
	}
	run, err := a.openRun(args[:1])
	if err != nil {
		return err
	}
	some := sel.named != nil || len(sel.where) > 0
	switch {
	case some && sel.all:
		return exit.Usagef("--all says everything: leave the rest out")
	case some:
		return a.cancelSome(cmd, f, run, sel, opt)
	case opt.json:
		return exit.Usagef("--json says what became of some jobs: of all of them status --json does")
	}
	table, _, err := journal.Replay(run)
	if err != nil {
		return exit.Usagef("%w", err)
	}
	waiting, _, err := run.RequestNames()
	if err != nil {
		return exit.Usagef("%w", err)
	}
	stored := len(table.Specs) - len(table.Jobs)
	if table.Unfinished()+stored+len(waiting) == 0 { // a requeue that waits would open jobs again
		a.con.Line("nothing to cancel: all jobs of " + console.CleanLine(run.Name()) + " are done")
		return nil
	}
	if err := a.agree(opt.yes, "cancel", allOpenText(run, table, stored)); err != nil {
		return err
	}
	owner, err := journal.ReadOwner(run)
	if err != nil {
		return exit.Usagef("%w", err)
	}
	if owner != nil && owner.Life() != journal.Dead && !f.force {
		gone, err := a.askOwner(cmd.Context(), run, owner)
		if err != nil || !gone {
			return err
		}
		f.force = true // we have seen for ourselves that it is gone
	}
	return a.cancelOurselves(cmd, f, run)
}

// allOpenText says what a cancel of all would end.
func allOpenText(run *rundir.Run, t *jobs.Table, stored int) string {
	handed := standing.HandedOver(t)
	what := "end " + jobs.Plural(t.Counts[jobs.Running]-handed, "running job")
	if handed > 0 {
		what += ", " + strconv.Itoa(handed) + " handed over"
	}
	return what + " and " + jobs.Plural(t.Counts[jobs.Queued]+stored, "queued job") + " of " + console.CleanLine(run.Name())
}

// agree asks whether to do what the command is about to, unless told not to.
func (a *app) agree(yes bool, command, what string) error {
	if yes {
		return nil
	}
	if !term.IsTerminal(int(os.Stdin.Fd())) {
		return exit.Usagef("%s would %s; it asks first", command, what).WithAdvice("--yes answers for you")
	}
	a.con.Line(what + "? (y/n)")
	line, _ := bufio.NewReader(a.stdin).ReadString('\n')
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "y", "yes":
		return nil
	}
	return exit.Usagef("nothing was done")
}

// takeOver takes the run over, for a dispatcher that ends jobs and starts none.
func (a *app) takeOver(cmd *cobra.Command, f *runFlags, run *rundir.Run) (*dispatching, *run.Owned, error) {
	if err := absoluteFlags(cmd.Flags()); err != nil {
		return nil, nil, err
	}
	if err := restoreFlags(cmd.Flags(), run.Asked.Options); err != nil {
		return nil, nil, err
	}
	inv, err := a.cancelInventory(f, run)
	if err != nil {
		return nil, nil, err
	}
	o, err := a.own(run, f.force)
	if err != nil {
		return nil, nil, err
	}
	a.removeStopFiles(run, func(string) {})
	d := a.dispatching(f, inv, nil)
	d.opts.EndOnly = true
	return d, o, nil
}

// cancelInventory returns the inventory that was given, or that of the run, which
// includes hosts that the inventory file no longer has.
func (a *app) cancelInventory(f *runFlags, run *rundir.Run) (*loadedInventory, error) {
	inv, err := a.storedInventory(run)
	if f.hosts != "" {
		inv, err = a.loadInventory(f.hosts)
	}
	if err != nil {
		return nil, err
	}
	return inv, a.checkSSH(&f.options, inv.Hosts)
}

// cancelOurselves takes the run over, ends all that is open, and leaves.
func (a *app) cancelOurselves(cmd *cobra.Command, f *runFlags, run *rundir.Run) error {
	d, o, err := a.takeOver(cmd, f, run)
	if err != nil {
		return err
	}
	d.opts.CancelAll = "cancelled by a person"
	d.opening = "ending every job"
	code, err := d.drive(o)
	if err != nil {
		return err
	}
	if code == exit.Cancelled || code == exit.OK || code == exit.Failed {
		code = exit.OK // it did what it was asked
	}
	a.code = code
	return nil
}
