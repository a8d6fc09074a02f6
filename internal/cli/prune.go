package cli

import (
	"errors"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"dcs-tui/internal/cli/console"
	"dcs-tui/internal/cli/exit"
	"dcs-tui/internal/cli/standing"
	"dcs-tui/jobs"
	"dcs-tui/jobs/journal"
	"dcs-tui/jobs/rundir"
)

// pruneOptions say which runs are removed.
type pruneOptions struct {
	older      time.Duration
	keep       int
	unfinished bool
	yes        bool
}

func (a *app) pruneCmd() *cobra.Command {
	var p pruneOptions
	cmd := &cobra.Command{
		Use:   "prune [flags] [RUN...]",
		Short: "Remove runs that are over, with the outputs of their jobs",
		Long: `Remove runs that are over, with all that their directories hold: job specs, journal,
and what the jobs printed. The runs named, or of those in ./dcs-runs the ones that
--older and --keep leave. A run that is dispatched, or may be, is never removed; one
with jobs left, with requests that wait, or whose hosts were not left clean, only with
--unfinished.

On this machine what the run has in work_dir (~/.dcs-tui/UID) goes as well. Other hosts
are not connected to: there work_dir/UID stays, with a file of a few bytes for each
dispatcher that the run had and, if the host did not see the run directory, the
outputs of what ran there. The commands that remove those are printed.`,
		Example: `dcs-tui runs prune --older 30d
dcs-tui runs prune --keep 10 --yes
dcs-tui runs prune --unfinished sweep-20260314-1502`,
		ValidArgsFunction: completeManyRuns,
		RunE: func(_ *cobra.Command, args []string) error {
			return a.runPrune(args, &p)
		},
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.Var(ageFlag(&p.older), "older", "only runs in which nothing was recorded for this TIME, with a unit, such as 30d")
	fs.Var(countFlag(&p.keep), "keep", "leave the newest N")
	fs.BoolVar(&p.unfinished, "unfinished", false, "also runs with jobs left; those that still run are left alone and lose their output")
	fs.BoolVar(&p.yes, "yes", false, "do not ask")
	return cmd
}

func (a *app) runPrune(args []string, p *pruneOptions) error {
	if len(args) == 0 && p.older == 0 && p.keep == 0 {
		return exit.Usagef("which runs?").WithAdvice("their names, --older TIME or --keep N")
	}
	dirs, err := p.candidates(args)
	if err != nil {
		return err
	}
	a.sweepPruned()
	var runs []*rundir.Run
	count := 0
	for _, dir := range dirs {
		run, err := rundir.Open(dir)
		var table *jobs.Table
		if err == nil {
			table, err = p.mayGo(run)
		}
		switch {
		case err == nil:
			runs = append(runs, run)
			count += len(table.Jobs)
		case !errors.Is(err, errTooYoung):
			a.con.Line("kept: " + console.CleanLine(filepath.Base(dir)) + ": " + console.CleanLine(firstLine(err.Error())))
		}
	}
	if len(runs) == 0 {
		a.con.Line("no run is removed")
		return nil
	}
	what := jobs.Plural(len(runs), "run")
	if len(runs) == 1 {
		what = "the run " + console.CleanLine(runs[0].Name())
	}
	if p.older > 0 {
		what += " older than " + ageText(p.older)
	}
	if err := a.agree(p.yes, "prune", "remove "+what+" with the outputs of "+jobs.Plural(count, "job")); err != nil {
		return err
	}
	removed := 0
	for _, run := range runs {
		left, err := prune(run)
		if err != nil {
			a.warn("%s: %v", run.Name(), err)
			a.code = exit.Failed
			continue
		}
		removed++
		for _, l := range left {
			a.con.Line("  " + console.CleanLine(l))
		}
	}
	a.con.Line(jobs.Plural(removed, "run") + " removed")
	return nil
}

// candidates are the run directories that are meant.
func (p *pruneOptions) candidates(args []string) ([]string, error) {
	var dirs []string
	for _, name := range args {
		dir, err := rundir.Find(rundir.Base, name)
		if err != nil {
			return nil, exit.Usagef("%w", err)
		}
		if dir, err = filepath.Abs(dir); err != nil {
			return nil, exit.Usagef("%w", err)
		}
		if !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	if len(args) > 0 {
		return dirs, nil
	}
	found, err := rundir.List(rundir.Base)
	if err != nil {
		return nil, exit.Usagef("%w", err)
	}
	for _, e := range found[min(p.keep, len(found)):] {
		dirs = append(dirs, e.Dir)
	}
	return dirs, nil
}

var errTooYoung = errors.New("it is too young")

// mayGo says why a run must stay, nil if nothing speaks for it.
func (p *pruneOptions) mayGo(run *rundir.Run) (*jobs.Table, error) {
	if p.older > 0 {
		last, err := lastRecorded(run)
		if err != nil {
			return nil, err
		}
		if time.Since(last) < p.older {
			return nil, errTooYoung
		}
	}
	owner, err := journal.ReadOwner(run)
	switch {
	case err != nil && !p.unfinished:
		return nil, err
	case owner != nil && owner.Life() == journal.Alive:
		return nil, errors.New("it is dispatched by " + owner.String())
	case owner != nil && owner.Life() == journal.Unsure:
		return nil, errors.New("it may be dispatched by " + owner.String() + ", which this machine cannot see: prune it there")
	}
	table, report, err := journal.Replay(run)
	if err != nil {
		return nil, err
	}
	standing.AcceptRest(table)
	waiting, _, err := run.RequestNames()
	switch {
	case p.unfinished:
		return table, nil
	case err != nil:
		return nil, err
	case table.Unfinished() > 0:
		return nil, errors.New("jobs are left: " + standing.Counts(table, false) + "; cancel ends those that run, --unfinished removes it all the same")
	case len(waiting) > 0:
		return nil, errors.New("requests wait for its next resume (--unfinished removes it all the same)")
	case report.Damaged:
		return nil, errors.New("its journal is damaged, so jobs may be left (--unfinished removes it all the same)")
	case !table.Ended && len(table.Jobs) > 0:
		return nil, errors.New("its hosts were not all left clean; resume looks for what is left there (--unfinished removes it all the same)")
	}
	return table, nil
}

// lastRecorded is when something was last written down in a run.
func lastRecorded(run *rundir.Run) (time.Time, error) {
	names, err := run.Disk.Names(run.Path(rundir.JournalDir))
	if err != nil {
		return time.Time{}, err
	}
	last := run.Asked.Created
	for _, name := range names {
		info, err := run.Disk.Stat(run.Path(rundir.JournalDir, name))
		if err != nil {
			return time.Time{}, err
		}
		if info.ModTime().After(last) {
			last = info.ModTime()
		}
	}
	return last, nil
}

// completeManyRuns completes runs that are not named yet.
func completeManyRuns(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	names, how := completeRuns(cmd, nil, prefix)
	kept := names[:0]
	for _, n := range names {
		taken := false
		for _, arg := range args {
			taken = taken || arg == n
		}
		if !taken {
			kept = append(kept, n)
		}
	}
	return kept, how
}
