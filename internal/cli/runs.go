package cli

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"dcs-tui/dispatch/run"
	"dcs-tui/hosts"
	"dcs-tui/internal/text"
	"dcs-tui/jobs"
	"dcs-tui/jobs/rundir"
	"dcs-tui/observe/runindex"
	"dcs-tui/observe/runview"
	"dcs-tui/tui"
)

func (a *app) runsCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "runs",
		Short: "List your runs, pack their outputs, or remove old ones",
		Long: `List the runs in ./dcs-runs, pack their outputs, or remove old ones. Without a command, list the newest
runs here. dcs-tui runs list --all lists those in other directories, too.`,
		Example: `dcs-tui runs list --all
dcs-tui runs prune --older 30d`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownCommand(cmd, args[0])
			}
			return a.runRunsList(listFlags{limit: defaultLimit})
		},
	}
	var flags listFlags
	list := &cobra.Command{
		Use:   "list [flags]",
		Short: "List the runs in ./dcs-runs, or in all directories",
		Long: `List the runs in ./dcs-runs, the newest first. With --all, your runs in other directories follow. NAME is
then the path of the run, which all commands accept.`,
		Example: `dcs-tui runs list --all --limit 0`,
		Args:    atMost(0),
		RunE:    func(*cobra.Command, []string) error { return a.runRunsList(flags) },
	}
	fs := list.Flags()
	fs.BoolVar(&flags.all, "all", false, "also list your runs in other directories")
	fs.IntVar(&flags.limit, "limit", defaultLimit, "list at most `N` runs, and as many of other directories; 0: all")
	fs.BoolVar(&flags.json, "json", false, "print one JSON object per run")
	cmd.AddCommand(list, a.packCmd(), a.pruneCmd())
	return cmd
}

// runWithoutCommand runs dcs-tui without a command. On a terminal, it lists the runs here and in other
// directories, with keys for commands; otherwise only those here. If there are none, it prints the help.
func (a *app) runWithoutCommand(cmd *cobra.Command, args []string) error {
	for {
		list, err := rundir.List(rundir.Base)
		if len(args) > 0 && a.findPage(cmd.Root(), args[0]) != "" {
			return unknownCommand(cmd, args[0]).WithAdvice("dcs-tui help %s shows the page about it", args[0])
		}
		if len(args) > 0 || err != nil {
			return needsCommand(cmd, args)
		}
		var keys *os.File
		if isTerminal(a.stdout) && !plainTerminal() {
			keys, _ = a.keyboard()
		}
		switch {
		case keys == nil && len(list) == 0:
			return needsCommand(cmd, args)
		case keys == nil:
			return a.runRunsList(listFlags{limit: defaultLimit})
		case len(list) == 0 && len(a.others().runChoices().Rows) == 0:
			keys.Close()
			return needsCommand(cmd, args)
		}
		o, err := a.screenOptions(screenFlags{})
		if err != nil {
			keys.Close()
			return err
		}
		o.In, o.Out = keys, a.stdout.File
		name, key, err := tui.Choose(o, a.others().runChoices,
			tui.ChoiceKey{Key: "enter", Help: "show the screen of the run"},
			tui.ChoiceKey{Key: "R", Help: "resume the run: start a dispatcher"},
			tui.ChoiceKey{
				Key:      "P",
				Help:     "remove the run and its outputs",
				Question: "remove the run and its outputs:",
			})
		keys.Close()
		if err != nil {
			return err
		}
		dir := dirOfChoice(name)
		switch key {
		case "":
			return nil
		case "enter":
			return a.execute("attach", dir)
		case "R":
			return a.execute("resume", dir)
		}
		if err := a.execute("runs", "prune", "--yes", dir); err != nil {
			a.printError(err)
		}
	}
}

// pruneFlags holds the flags of runs prune.
type pruneFlags struct {
	older      time.Duration
	keep       int
	unfinished bool
	yes        bool
}

func (a *app) pruneCmd() *cobra.Command {
	var p pruneFlags
	cmd := &cobra.Command{
		Use:   "prune [flags] [RUN...]",
		Short: "Remove finished runs with the outputs of their jobs",
		Long: `Remove finished runs with their journals and the outputs of their jobs: the RUNs, or the runs in
./dcs-runs that --older and --keep select. A run that may be dispatched is never removed, and a run with
unfinished jobs only with --unfinished. For hosts that keep files of the runs, the commands that remove them
are printed.`,
		Example: `dcs-tui runs prune --older 30d
dcs-tui runs prune --unfinished sweep-20260314-1502`,
		ValidArgsFunction: completeMany(completeAnyRun),
		RunE:              func(_ *cobra.Command, args []string) error { return a.runPrune(args, &p) },
	}
	fs := cmd.Flags()
	fs.Var(newFlag(&p.older, "TIME", parseAge), "older",
		"only runs that have recorded nothing for this TIME, which needs a unit, such as 30d")
	fs.Var(newFlag(&p.keep, "N", parseCount), "keep", "keep the newest N runs")
	fs.BoolVar(&p.unfinished, "unfinished", false,
		"also runs with unfinished jobs; jobs that still run are not ended, and their output is lost")
	fs.BoolVar(&p.yes, "yes", false, "do not ask for confirmation")
	return cmd
}

func (a *app) runPrune(args []string, p *pruneFlags) error {
	if len(args) == 0 && p.older == 0 && p.keep == 0 {
		return text.Errorf("no runs were given").WithAdvice("their names, --older TIME or --keep N")
	}
	dirs, err := p.candidates(args)
	if err != nil {
		return err
	}
	if err := run.RemovePruned(); err != nil {
		a.warn("%v", err)
	}
	var runs []*rundir.Run
	var tables []*jobs.Table
	count := 0
	for _, dir := range dirs {
		runDir, table, err := p.openForRemoval(dir)
		switch {
		case err != nil:
			if len(args) > 0 {
				a.exitCode = exitFailed
			}
			a.con.Line("kept: " + text.Line(filepath.Base(dir)) + ": " + text.Line(firstLine(err.Error())))
		case runDir != nil:
			runs, tables, count = append(runs, runDir), append(tables, table), count+table.NumJobs()
		}
	}
	if len(runs) == 0 {
		a.con.Line("no runs were removed")
		return nil
	}
	what := text.Plural(len(runs), "run")
	if len(runs) == 1 {
		what = "the run " + text.Line(runs[0].Name())
	}
	what += text.If(p.older > 0, " older than "+text.Duration(p.older))
	if err := a.confirm(p.yes, "prune", "remove "+what+" with the outputs of "+text.Plural(count, "job")); err != nil {
		return err
	}
	removed := 0
	for i, runDir := range runs {
		var inventory []*hosts.Host
		if inv, err := a.storedInventory(runDir); err == nil {
			inventory = inv.Hosts
		}
		left := leftoverLines(runDir, tables[i], inventory)
		if err := run.Remove(runDir, inventory); err != nil {
			a.warn("%s: %v", runDir.Name(), err)
			a.exitCode = exitFailed
			continue
		}
		removed++
		_ = runindex.OfUser().Remove(runDir) // otherwise a list of runs does it
		for _, l := range left {
			a.con.Line("  " + text.Line(l))
		}
	}
	a.con.Line(text.Plural(removed, "run") + " removed")
	return nil
}

// openForRemoval opens a run for removal. It returns an error if the run must stay, and a nil run
// if the run is too young.
func (p *pruneFlags) openForRemoval(dir string) (*rundir.Run, *jobs.Table, error) {
	runDir, err := rundir.Open(dir)
	if err != nil {
		return nil, nil, err
	}
	if p.older > 0 {
		if last, err := run.LastRecorded(runDir); err != nil || time.Since(last) < p.older {
			return nil, nil, err
		}
	}
	table, err := run.Removable(runDir, p.unfinished)
	if unfinished, ok := errors.AsType[*run.UnfinishedError](err); ok {
		err = fmt.Errorf("%w (--unfinished removes it all the same)", unfinished)
	}
	if errors.Is(err, run.ErrJobsLeft) {
		err = fmt.Errorf("jobs are left: %s; dcs-tui cancel ends those that run, --unfinished removes the run anyway",
			runview.ProgressOf(table, nil).Counts())
	}
	return runDir, table, err
}

// candidates returns the run directories of the arguments or, without arguments, all but the newest
// ones of --keep.
func (p *pruneFlags) candidates(args []string) (dirs []string, err error) {
	if len(args) == 0 {
		found, err := rundir.List(rundir.Base)
		if err != nil {
			return nil, err
		}
		dirs = text.Each(found[min(p.keep, len(found)):], func(e rundir.Entry) string { return e.Dir })
	}
	for _, name := range args {
		dir, err := rundir.Find(rundir.Base, name)
		if err == nil {
			dir, err = filepath.Abs(dir)
		}
		if err != nil {
			return nil, err
		}
		if !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs, nil
}

// leftoverLines returns a line for each host that keeps outputs of the run, or files that a job could
// not return, with the command that removes them. A path that the host has reported must be a
// directory with the id of the run.
func leftoverLines(run *rundir.Run, table *jobs.Table, inventory []*hosts.Host) []string {
	var lines []string
	named := run.HostDirs()
	for host, place := range named {
		dir := strings.TrimPrefix(place, host+":")
		if !filepath.IsAbs(dir) || filepath.Clean(dir) != dir || filepath.Base(dir) != run.UID() {
			lines = append(lines, host+" says that it keeps the outputs of its jobs in "+dir+"; look there yourself")
			continue
		}
		lines = append(lines, host+" keeps the outputs of its jobs: "+hostCommandLine(run, host, "rm", "-r", dir))
	}
	if strings.ContainsAny(run.UID(), "/.") {
		return lines // not created by dcs-tui: it could be any path
	}
	for job := range table.Rows() {
		for _, a := range job.Attempts {
			if _, isNamed := named[a.Host]; isNamed || a.Outcome == nil || !a.Outcome.Unreturned {
				continue
			}
			named[a.Host] = ""
			i := slices.IndexFunc(inventory, func(h *hosts.Host) bool { return h.Name == a.Host })
			if i < 0 || inventory[i].Link == "local" {
				continue // removed with the run, or not known how to reach
			}
			dir := cmp.Or(inventory[i].WorkDir, ".dcs-tui") + "/" + run.UID()
			lines = append(lines, a.Host+" may keep files that jobs could not return: "+
				hostCommandLine(run, a.Host, "rm", "-rf", strings.TrimPrefix(dir, "~/")))
		}
	}
	slices.Sort(lines)
	return lines
}
