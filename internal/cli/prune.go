package cli

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"dcs-tui/dispatch/run"
	"dcs-tui/hosts"
	"dcs-tui/internal/cli/console"
	"dcs-tui/internal/cli/exit"
	"dcs-tui/jobs"
	"dcs-tui/jobs/rundir"
	"dcs-tui/jobs/runview"
)

// pruneOptions holds the flags of runs prune.
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
		ValidArgsFunction: completeMany(completeRuns),
		RunE: func(_ *cobra.Command, args []string) error {
			return a.runPrune(args, &p)
		},
	}
	fs := cmd.Flags()
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
	if err := run.RemovePruned(); err != nil {
		a.warn("%v", err)
	}
	var runs []*rundir.Run
	count := 0
	for _, dir := range dirs {
		r, table, err := p.open(dir)
		switch {
		case err != nil:
			a.con.Line("kept: " + console.CleanLine(filepath.Base(dir)) + ": " + console.CleanLine(firstLine(err.Error())))
		case r != nil:
			runs, count = append(runs, r), count+len(table.Jobs)
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
	for _, r := range runs {
		var inventory []*hosts.Host
		if inv, err := a.storedInventory(r); err == nil {
			inventory = inv.Hosts
		}
		left := leftOnHosts(r)
		if err := run.Remove(r, inventory); err != nil {
			a.warn("%s: %v", r.Name(), err)
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

// open opens a run that is to be removed. It returns an error if the run must stay, and no
// run if the run is too young.
func (p *pruneOptions) open(dir string) (*rundir.Run, *jobs.Table, error) {
	r, err := rundir.Open(dir)
	if err != nil {
		return nil, nil, err
	}
	if p.older > 0 {
		if last, err := run.LastRecorded(r); err != nil || time.Since(last) < p.older {
			return nil, nil, err
		}
	}
	table, err := run.Removable(r, p.unfinished)
	if errors.Is(err, run.ErrJobsLeft) {
		err = fmt.Errorf("jobs are left: %s; cancel ends those that run, --unfinished removes it all the same", runview.Counts(table, false))
	}
	return r, table, err
}

// candidates returns the run directories that the arguments or --keep select.
func (p *pruneOptions) candidates(args []string) (dirs []string, err error) {
	if len(args) == 0 {
		found, err := rundir.List(rundir.Base)
		if err != nil {
			return nil, exit.Usagef("%w", err)
		}
		for _, e := range found[min(p.keep, len(found)):] {
			dirs = append(dirs, e.Dir)
		}
	}
	for _, name := range args {
		dir, err := rundir.Find(rundir.Base, name)
		if err == nil {
			dir, err = filepath.Abs(dir)
		}
		if err != nil {
			return nil, exit.Usagef("%w", err)
		}
		if !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs, nil
}

// leftOnHosts returns a line for each host that keeps outputs of the run, with the command
// that removes them. The host has reported the path, so only a directory with the run's own
// name gets into the command.
func leftOnHosts(run *rundir.Run) []string {
	var lines []string
	for host, place := range run.HostDirs() {
		dir := strings.TrimPrefix(place, host+":")
		if !filepath.IsAbs(dir) || filepath.Clean(dir) != dir || filepath.Base(dir) != run.UID() {
			lines = append(lines, host+" keeps the outputs of its jobs, in "+dir+" as it says; look there yourself")
			continue
		}
		lines = append(lines, host+" keeps the outputs of its jobs: "+onHost(run, host, "rm", "-r", dir))
	}
	slices.Sort(lines)
	return lines
}
