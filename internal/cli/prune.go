package cli

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"dcs-tui/internal/cli/console"
	"dcs-tui/internal/cli/exit"
	"dcs-tui/jobs"
	"dcs-tui/jobs/journal"
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
	a.removePruned()
	var runs []*rundir.Run
	count := 0
	for _, dir := range dirs {
		run, err := rundir.Open(dir)
		var table *jobs.Table
		if err == nil {
			table, err = p.check(run)
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

var errTooYoung = errors.New("it is too young")

// check returns an error if a run must stay.
func (p *pruneOptions) check(run *rundir.Run) (*jobs.Table, error) {
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
	table.AcceptStored()
	waiting, _, err := run.RequestNames()
	switch {
	case p.unfinished:
		return table, nil
	case err != nil:
		return nil, err
	case table.Unfinished() > 0:
		return nil, errors.New("jobs are left: " + runview.Counts(table, false) + "; cancel ends those that run, --unfinished removes it all the same")
	case len(waiting) > 0:
		return nil, errors.New("requests wait for its next resume (--unfinished removes it all the same)")
	case report.Damaged:
		return nil, errors.New("its journal is damaged, so jobs may be left (--unfinished removes it all the same)")
	case !table.Ended && len(table.Jobs) > 0:
		return nil, errors.New("its hosts were not all left clean; resume looks for what is left there (--unfinished removes it all the same)")
	}
	return table, nil
}

// lastRecorded returns the time of the last record of a run.
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

// prunedPrefix begins the name of a run directory that is being removed. What is left of it
// when this process is killed is not a run any more.
const prunedPrefix = ".pruned."

// prune removes a run. It renames the directory and checks the owner again before it
// removes files, so that nobody dispatches half a run. left describes what hosts keep.
func prune(run *rundir.Run) (left []string, err error) {
	if info, err := os.Lstat(run.Dir); err != nil {
		return nil, err
	} else if info.Mode()&fs.ModeSymlink != 0 { // only the link would be removed
		return nil, errors.New("it is a symbolic link: name the directory that it leads to")
	}
	before, _ := journal.ReadOwner(run)
	left = leftOnHosts(run)
	hidden := filepath.Join(filepath.Dir(run.Dir), prunedPrefix+filepath.Base(run.Dir)+"."+strings.ToLower(rand.Text()[:8]))
	if err := os.Rename(run.Dir, hidden); err != nil {
		return nil, err
	}
	moved := &rundir.Run{Dir: hidden, Nonce: run.Nonce, Asked: run.Asked, Disk: run.Disk}
	if after, _ := journal.ReadOwner(moved); after != nil && (before == nil || after.Token != before.Token || after.Beat != before.Beat) {
		return nil, errors.Join(errors.New("somebody has just begun to dispatch it; it stays"), os.Rename(hidden, run.Dir))
	}
	if err := os.RemoveAll(hidden); err != nil {
		return nil, err
	}
	return left, removeWork(run)
}

// removePruned removes what interrupted prunes have left.
func (a *app) removePruned() {
	names, _ := rundir.OS.Names(rundir.Base)
	for _, name := range names {
		if strings.HasPrefix(name, prunedPrefix) {
			if err := os.RemoveAll(filepath.Join(rundir.Base, name)); err != nil {
				a.warn("%v", err)
			}
		}
	}
}

// workDirs returns the directories of the run in the work_dir of its hosts. A leading ~ is
// the home directory on the host.
func workDirs(run *rundir.Run) []string {
	uid := run.UID()
	if uid == "" || strings.Trim(uid, "abcdefghijklmnopqrstuvwxyz0123456789") != "" {
		return nil // not made by dcs-tui: it could be any path
	}
	dirs := []string{"~/.dcs-tui/" + uid}
	if inv, err := new(app).storedInventory(run); err == nil {
		for _, h := range inv.Hosts {
			if dir := strings.TrimSuffix(h.WorkDir, "/") + "/" + uid; h.WorkDir != "" && !slices.Contains(dirs, dir) {
				dirs = append(dirs, dir)
			}
		}
	}
	return dirs
}

// removeWork removes the directories of the run in a work_dir on this machine.
func removeWork(run *rundir.Run) error {
	home, err := os.UserHomeDir()
	if err != nil {
		return nil
	}
	var errs []error
	for _, dir := range workDirs(run) {
		if rest, ok := strings.CutPrefix(dir, "~/"); ok {
			dir = filepath.Join(home, rest)
		}
		if !filepath.IsAbs(dir) || !usedByHost(dir) {
			continue
		}
		if err := os.RemoveAll(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// usedByHost reports whether a directory is ours and a host has used it for a run: the
// path comes from run.toml and could be any.
func usedByHost(dir string) bool {
	info, err := os.Lstat(dir)
	if err != nil || !info.IsDir() {
		return false
	}
	if st, ok := info.Sys().(*syscall.Stat_t); !ok || int(st.Uid) != os.Geteuid() {
		return false
	}
	names, err := rundir.OS.Names(dir)
	return err == nil && slices.ContainsFunc(names, func(n string) bool {
		return strings.HasPrefix(n, "epoch.") || strings.HasPrefix(n, "place.")
	})
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
