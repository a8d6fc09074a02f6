package cli

import (
	"errors"
	"io/fs"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"dcs-tui/dispatch/run"
	"dcs-tui/internal/cli/standing"
	"dcs-tui/jobs"
	"dcs-tui/jobs/rundir"
)

func (a *app) resumeCmd() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:     "resume [flags] [RUN]",
		GroupID: groupRun,
		Short:   "Carry on a run that was stopped, or whose dispatcher died",
		Long: `Carry on a run: adopt the jobs that are still running, count those that have
finished meanwhile, and run the rest. Jobs that are done are not run again.

` + runHelp + `
Options are those of the run, except where they are given anew. The inventory is read
again from the file that the run was started with, or from --hosts, and what has changed
in it is said. If the file cannot be read, the run keeps the inventory that it had.

With --json, results that no earlier --json has acknowledged are printed again.`,
		Example: `dcs-tui resume
dcs-tui resume sweep-20260314-1502 --hosts more-hosts.toml`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: completeRuns,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.runResume(cmd, &f, args)
		},
	}
	fs := cmd.Flags()
	f.hostFlags(fs)
	f.policyFlags(fs)
	f.endFlags(fs)
	f.screenFlags(fs)
	fs.BoolVar(&f.force, "force", false, "take the run over though its dispatcher may be alive; that one can then do no harm")
	return cmd
}

func (a *app) runResume(cmd *cobra.Command, f *runFlags, args []string) error {
	if done, err := a.onScreen(f, false); done {
		return err
	}
	run, err := a.openRun(args)
	if err != nil {
		return err
	}
	if err := absoluteFlags(cmd.Flags()); err != nil {
		return err
	}
	if err := restoreFlags(cmd.Flags(), run.Asked.Options); err != nil {
		return err
	}
	if err := f.check(); err != nil {
		return err
	}
	env, err := resolveEnv(run.Asked.EnvNames, os.LookupEnv)
	if err != nil {
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
	if err := o.CheckComplete(); err != nil {
		o.Release()
		return err
	}
	a.keepInventory(run, inv)
	a.removeStopFiles(run, func(name string) {
		a.con.Line("the file " + name + " of the run is removed: the run goes on")
	})
	for _, text := range standing.Absent(o.Table, inv.Hosts, f.Buffer) {
		a.warn("%s", text)
	}
	had, err := run.ReadInput()
	if err != nil {
		a.warn("%v", err)
	}
	d := a.dispatching(f, inv, env)
	d.opening = recovered(o, standing.Requests(run, o.Table, a.warn))
	d.opts.Input, d.opts.Next = had, a.restOfInput(run, had, o.NumFromSource())
	a.code, err = d.drive(o)
	return err
}

// restOfInput yields the jobs that were not made yet when the last dispatcher ended. It is
// nil if there are none that can be made again.
func (a *app) restOfInput(run *rundir.Run, had rundir.Input, have int) func() (*jobs.Spec, error) {
	source, _ := run.Asked.Options[rundir.OptionSource].(string)
	if !had.Again || had.State != rundir.InputOpen {
		return nil
	}
	next, err := restJobs(source, have)
	if err != nil {
		a.warn("the jobs that were not made yet cannot be made now: %v", err)
		return nil
	}
	return next
}

// removeStopFiles takes away what an earlier stop left: whoever says resume wants
// the run to go on, and cancel has done what was asked. removed is told of each.
func (a *app) removeStopFiles(run *rundir.Run, removed func(name string)) {
	for _, name := range []string{rundir.StopFile, rundir.StopNowFile} {
		err := run.Disk.Remove(run.Path(name))
		switch {
		case err == nil:
			removed(name)
		case !errors.Is(err, fs.ErrNotExist):
			a.warn("the file %s cannot be removed: %v", name, err)
		}
	}
}

// recovered returns the first line of a resumed run without its name. asked is the number of requests that
// wait.
func recovered(o *run.Owned, asked int) string {
	c := o.Table.Counts
	done := 0
	for st := jobs.Succeeded; st <= jobs.Skipped; st++ {
		done += c[st]
	}
	text := jobs.Plural(done, "job") + " done, " +
		strconv.Itoa(c[jobs.Running]) + " to adopt, " + strconv.Itoa(c[jobs.Queued]+o.NumStored()) + " to run"
	if asked > 0 { // what they bring back is still among those that are done
		text += ", " + jobs.Plural(asked, "request") + " to carry out"
	}
	return text
}
