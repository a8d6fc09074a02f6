package cli

import (
	"maps"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"dcs-tui/dispatch/run"
	"dcs-tui/internal/cli/console"
	"dcs-tui/internal/cli/exit"
	"dcs-tui/jobs"
	"dcs-tui/jobs/rundir"
)

// jobSource is where the jobs of a new run come from: all of them at once, or one after
// another while the first ones run.
type jobSource struct {
	files []string     // what they are read from, for run.toml, messages and the name of the run
	known []*jobs.Spec // all of them, numbered or not; nil: next yields them

	// next yields the next job or line, io.EOF after the last. Any other error ends the run's
	// input there: the jobs before it go on, and it is reported at the end. It is called by
	// one goroutine, and may be left waiting when the run ends.
	next func() (jobs.Line, error)
	// what names jobs that next yields in the first line: "jobs from standard input".
	what string
	// source is kept in run.toml (rundir.OptionSource): what grid.Rest needs to yield the jobs again
	// that were not stored when the dispatcher ended. "": they cannot be had again.
	source string
	search *run.Search    // nil: no job depends on the results of others
	keep   map[string]any // more options for run.toml
}

// stdinFile stands for standard input among files.
const stdinFile = "-"

func (src *jobSource) lazy() bool {
	return src.next != nil || src.search != nil && src.search.Proposer != nil
}

// fromStdin reports whether the jobs are read from standard input.
func (src *jobSource) fromStdin() bool { return len(src.files) == 1 && src.files[0] == stdinFile }

// runJobs makes a run of the jobs that src yields, dispatches it to its end, and sets the
// exit code. The flags have been checked, and absoluteFlags was called.
func (a *app) runJobs(cmd *cobra.Command, f *runFlags, src jobSource) error {
	refs, env, err := run.ParseEnv(f.env, os.LookupEnv)
	if err != nil {
		return err
	}
	cwd, err := workDir(f.Cwd)
	if err != nil {
		return err
	}
	relative := jobs.AbsoluteCwd{Base: cwd}
	for _, spec := range src.known {
		relative.Resolve(spec)
	}
	inv, err := a.selectInventory(f)
	if err != nil {
		return err
	}
	if err := checkFiles(cwd, f, inv.Hosts); err != nil {
		return err
	}
	if err := checkCwd(cwd, inv.Hosts); err != nil {
		return err
	}
	if err := a.checkSSH(&f.options, inv.reached()); err != nil {
		return err
	}
	if err := f.findStandbys(inv); err != nil {
		return err
	}
	f.setSlots(inv.Hosts)
	if f.dryRun {
		a.warnSSH()
		return a.dryRun(f, src.known, inv, cwd)
	}
	file := inv.File // absolute: resume may be called from another directory
	if f.HostList != "" {
		file = "" // run.toml keeps the list
	} else if file != "" {
		if file, err = filepath.Abs(file); err != nil {
			return exit.Usagef("inventory file: %w", err)
		}
	}
	asked := rundir.Asked{
		Version: version(), Cwd: cwd, Shell: f.Shell, Setup: f.Setup, JobsFile: strings.Join(src.files, " "),
		InventoryFile: file, InventoryText: inv.text,
		Send: f.send, Return: f.returns, KeepFiles: f.keepFiles, Options: keepFlags(cmd.Flags()), EnvNames: refs,
	}
	maps.Copy(asked.Options, src.keep)
	if src.source != "" {
		asked.Options[rundir.OptionSource] = src.source
	}
	if !src.lazy() {
		asked.Options[rundir.OptionJobs] = int64(len(src.known))
		asked.JobsFile = src.files[0]
	}
	r, err := run.Create(f.runDir, f.name, asked)
	if err != nil {
		return err
	}
	if src.lazy() {
		if err := r.WriteInput(rundir.Input{State: rundir.InputOpen}); err != nil {
			return exit.Usagef("%w", err)
		}
	}
	o, err := a.own(r, false)
	if err != nil {
		return err
	}
	if err := o.Store(src.known); err != nil {
		o.Release()
		return err
	}
	d := a.dispatching(f, inv, env)
	d.opening = opening(r, &src, inv)
	d.typed = src.fromStdin() && term.IsTerminal(int(os.Stdin.Fd()))
	d.opts.Search = src.search
	if d.opts.Lines = src.next; src.lazy() {
		d.opts.Input = rundir.Input{State: rundir.InputOpen, Again: src.source != ""}
	}
	a.code, err = d.drive(o)
	if err == nil && src.fromStdin() && a.code != exit.OK && a.code != exit.Failed {
		a.flushTyped()
	}
	return err
}

// opening returns the first line without the name of the run: what is run where.
func opening(run *rundir.Run, src *jobSource, inv *loadedInventory) string {
	what := jobs.Plural(len(src.known), "job")
	if src.what != "" {
		what = src.what
	}
	where := "this machine"
	if inv.File != "" {
		var parts []string
		if n := len(inv.Hosts); n > 0 || len(inv.Providers) == 0 {
			parts = append(parts, jobs.Plural(n, "host"))
		}
		if n := len(inv.Providers); n > 0 {
			parts = append(parts, "the instances of "+jobs.Plural(n, "provider"))
		}
		where = strings.Join(parts, " and ") + " of " + console.CleanLine(inv.File)
	}
	return what + " on " + where + ", kept in " + dirOf(run)
}
