package cli

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"dcs-tui/internal/cli/console"
	"dcs-tui/internal/cli/exit"
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
	fs.SortFlags = false
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
	if err := o.whole(); err != nil {
		o.journal.Close()
		return err
	}
	a.keepInventory(run, inv)
	a.removeStopFiles(run, func(name string) {
		a.con.Line("the file " + name + " of the run is removed: the run goes on")
	})
	for _, text := range standing.Absent(o.table, inv.Hosts, f.Buffer) {
		a.warn("%s", text)
	}
	before, have, asked := o.table.Counts, o.fromSource(), standing.Requests(run, o.table, a.warn)
	stored := len(o.table.Specs) - len(o.table.Jobs) + len(o.waiting) // and not accepted yet
	had, err := standing.ReadInput(run)
	if err != nil {
		a.warn("%v", err)
	}
	s, err := a.start(o, f, inv, env)
	if err != nil {
		o.journal.Close()
		return err
	}
	s.intake = had
	feed := s.submitWaiting
	if next := s.rest(have); next != nil {
		feed = func(ctx context.Context) error { return s.stream(ctx, next) }
	}
	a.code = s.drive(s.recovered(before, stored, asked), feed)
	return nil
}

// rest yields the jobs that were not made yet when the last dispatcher ended, nil
// when there are none that can be had again.
func (s *session) rest(have int) func() (*jobs.Spec, error) {
	source, _ := s.run.Asked.Options[standing.OptionSource].(string)
	if !s.intake.Again || s.intake.State != standing.InputOpen || restJobs == nil {
		return nil
	}
	next, err := restJobs(source, have)
	if err != nil {
		s.app.warn("the jobs that were not made yet cannot be made now: %v", err)
		return nil
	}
	return next
}

// whole refuses a run whose jobs were never all stored: it was cut off before
// anything had started, and what is missing only the jobs file knows.
func (o *owned) whole() error {
	want, ok := o.run.Asked.Options[optionJobs].(int64)
	have := len(o.table.Specs) + len(o.waiting)
	if !ok || have >= int(want) {
		return nil
	}
	if o.run.HasAttempts() || slices.ContainsFunc(o.table.Jobs, func(j jobs.Job) bool { return len(j.Attempts) > 0 }) {
		return exit.Usagef("%s of the run %s has lost jobs: it has %d of %d, and some were started", rundir.SpecsFile, o.run.Name(), have, want).
			WithAdvice("keep %s; restore %s from a backup, or run again what is missing", console.ShellWord(standing.Dir(o.run)), rundir.SpecsFile)
	}
	return exit.Usagef("the run %s was cut off while its jobs were being stored (%d of %d); none of them was started",
		o.run.Name(), have, want).WithAdvice("run %s again, and remove %s", console.ShellWord(o.run.Asked.JobsFile), console.ShellWord(standing.Dir(o.run)))
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

// recovered is the first line of a resumed run.
func (s *session) recovered(c [jobs.Skipped + 1]int, waiting, asked int) string {
	done := 0
	for st := jobs.Succeeded; st <= jobs.Skipped; st++ {
		done += c[st]
	}
	text := s.con.Paint(console.Bold, console.CleanLine(s.run.Name())) + ": " + jobs.Plural(done, "job") + " done, " +
		strconv.Itoa(c[jobs.Running]) + " to adopt, " + strconv.Itoa(c[jobs.Queued]+waiting) + " to run"
	if asked > 0 { // what they bring back is still among those that are done
		text += ", " + jobs.Plural(asked, "request") + " to carry out"
	}
	return text
}
