package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"dcs-tui/jobs"
	"dcs-tui/jobs/journal"
	"dcs-tui/jobs/rundir"
)

func (a *app) runCmd() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:     "run [flags] FILE...|-",
		GroupID: groupRun,
		Short:   "Run the jobs of a file",
		Long: `Run the jobs of a file: one shell command a line, blank lines and # comments left
out, \ at the end of a line goes on in the next. A line "#DCS key=value …" sets
options of the next job, "#DCS default key=value …" of all that follow: name,
priority, tries, timeout, deadline, est, tags, gpus, mem, slots, after, env.NAME,
cwd, setup, on_lost. docs/formats.md explains them; queue and hardness are kept with
the job and not acted on yet. A file that ends in .jsonl holds one JSON object a line.
- reads jobs from standard input and starts each as it comes.

Without an inventory the jobs run on this machine, on all cores but one. Everything
about the run is kept in dcs-runs/NAME.

Ctrl-C lets running jobs finish and starts no more; a second one stops at once and
leaves them running, to be adopted by resume; so does Ctrl-\. Closing the terminal stops nothing.
A file STOP in the run directory drains as Ctrl-C does, STOP.now cancels.

` + exitHelp,
		Example: `dcs-tui run jobs.txt
dcs-tui run --hosts hosts.toml --tries 1 --timeout 2h sweep.txt
dcs-tui run --dry-run jobs.txt
generate-jobs | dcs-tui run --json - | jq -r .state`,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.runRun(cmd, &f, args)
		},
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	f.hostFlags(fs)
	f.jobFlags(fs)
	f.policyFlags(fs)
	f.endFlags(fs)
	f.screenFlags(fs)
	fs.BoolVar(&f.dryRun, "dry-run", false, "say what would run where, and start nothing")
	fs.StringVar(&f.name, "name", "", "NAME of the run (made from the file's name and the time)")
	fs.StringVar(&f.runDir, "run-dir", "", "keep the run in DIRECTORY instead of dcs-runs/NAME")
	completeChoices(cmd)
	cmd.RegisterFlagCompletionFunc("cwd", dirsOnly)
	cmd.RegisterFlagCompletionFunc("run-dir", dirsOnly)
	cmd.RegisterFlagCompletionFunc("hosts", tomlFiles)
	cmd.RegisterFlagCompletionFunc("env", completeEnv)
	return cmd
}

func (a *app) runRun(cmd *cobra.Command, f *runFlags, args []string) error {
	streaming, err := f.checkRun(a, args)
	if err != nil {
		return err
	}
	if err := absoluteFlags(cmd.Flags()); err != nil {
		return err
	}
	refs, env, err := parseEnv(f.env, os.LookupEnv)
	if err != nil {
		return err
	}
	cwd, err := workDir(f.Cwd)
	if err != nil {
		return err
	}
	var specs []*jobs.Spec
	if !streaming {
		if specs, err = parseFiles(args); err != nil {
			return err
		}
		relative := cwdResolver{cwd: cwd}
		for _, spec := range specs {
			relative.resolve(spec)
		}
	}
	inv, err := a.loadInventory(f.hosts)
	if err != nil {
		return err
	}
	if err := checkCwd(cwd, inv.Hosts); err != nil {
		return err
	}
	if err := a.checkSSH(&f.options, inv.Hosts); err != nil {
		return err
	}
	if f.dryRun {
		return a.dryRun(f, specs, inv, cwd)
	}
	asked := rundir.Asked{
		Version: version(), Cwd: cwd, Shell: f.Shell, Setup: f.Setup, JobsFile: strings.Join(args, " "),
		InventoryFile: inv.File, InventoryText: inv.text, Options: keepFlags(cmd.Flags()), EnvNames: refs,
	}
	if !streaming {
		asked.Options[optionJobs] = int64(len(specs))
		asked.JobsFile = args[0]
	}
	run, err := a.newRun(f, asked)
	if err != nil {
		return err
	}
	if streaming {
		if err := writeInput(run, input{state: intakeOpen}); err != nil {
			return usagef("%w", err)
		}
	}
	o, err := a.own(run, false)
	if err != nil {
		return err
	}
	if err := o.storeAll(specs); err != nil {
		return err
	}
	s, err := a.start(o, f, inv, env)
	if err != nil {
		o.journal.Close()
		return err
	}
	s.typed = streaming && term.IsTerminal(int(os.Stdin.Fd()))
	a.code = s.drive(s.opening(len(specs), streaming, inv), func(ctx context.Context) error {
		if streaming {
			return s.stream(ctx)
		}
		return s.submitWaiting(ctx)
	})
	if streaming && a.code != ExitOK && a.code != ExitFailed {
		a.flushTyped()
	}
	return nil
}

// optionJobs is how many jobs the files held; a run directory with fewer was cut
// off before anything had started.
const optionJobs = "jobs"

// checkRun finds what is wrong with the command line before anything is read.
func (f *runFlags) checkRun(a *app, args []string) (streaming bool, err error) {
	if err := f.check(); err != nil {
		return false, err
	}
	if f.json && f.output {
		return false, usagef("--json and --output both write to standard output: choose one")
	}
	if f.name != "" {
		if err := rundir.CheckName(f.name); err != nil {
			return false, usagef("--name: %w", err)
		}
	}
	if len(args) == 0 {
		return false, usagef("which jobs?").withAdvice("dcs-tui run FILE, one shell command a line; - reads them from standard input")
	}
	for _, arg := range args {
		streaming = streaming || arg == "-"
	}
	if streaming && len(args) > 1 {
		return false, usagef("- cannot be mixed with files").withAdvice("cat FILE... | dcs-tui run -")
	}
	if streaming && f.dryRun {
		return false, usagef("--dry-run needs a file: jobs on standard input are not known before they come")
	}
	if streaming && term.IsTerminal(int(os.Stdin.Fd())) {
		a.con.Line("reading jobs from the terminal, one command a line; Ctrl-D ends them")
	}
	return streaming, nil
}

// parseFiles reads all files, and names the faults of all.
func parseFiles(args []string) ([]*jobs.Spec, error) {
	var specs []*jobs.Spec
	var faults []error
	for _, file := range args {
		more, err := jobs.ParseFile(file, jobs.ID(len(specs)+1))
		if err != nil {
			faults = append(faults, err)
			continue
		}
		if specs == nil {
			specs = more
		} else {
			specs = append(specs, more...)
		}
	}
	if len(faults) > 0 {
		return nil, usagef("%w", errors.Join(faults...))
	}
	return specs, nil
}

// newRun makes the run directory.
func (a *app) newRun(f *runFlags, asked rundir.Asked) (*rundir.Run, error) {
	var run *rundir.Run
	var err error
	if f.runDir != "" {
		run, err = rundir.CreateAt(f.runDir, f.name, asked)
	} else {
		run, err = rundir.Create(rundir.Base, f.name, asked)
	}
	if err != nil {
		if owner := ownerOf(f.runDir, f.name); owner != "" {
			return nil, usagef("%s", owner)
		}
		if text, ok := strings.CutSuffix(err.Error(), ": "+fs.ErrExist.Error()); ok {
			return nil, usagef("%s", text) // it says so in better words
		}
		return nil, usagef("%w", err)
	}
	return run, nil
}

// ownerOf says who dispatches the run that is in the way; "" when nobody does.
func ownerOf(dir, name string) string {
	if dir == "" {
		dir = filepath.Join(rundir.Base, name)
	}
	run, err := rundir.Open(dir)
	if err != nil {
		return ""
	}
	owner, err := journal.ReadOwner(run)
	if err != nil || owner == nil || owner.Left || owner.Life() == journal.Dead {
		return ""
	}
	return fmt.Sprintf("the run %s in %s is in use by %s; choose another --name or --run-dir, or look at it with dcs-tui status %s",
		run.Name(), dir, owner, shellWord(run.Ref()))
}

// storeAll makes all jobs durable before the first starts, so that a run that is
// killed while it submits them loses none.
func (o *owned) storeAll(specs []*jobs.Spec) error {
	for i, spec := range specs {
		spec.ID = jobs.ID(i + 1)
	}
	if err := o.run.AppendSpecs(specs); err != nil {
		o.journal.Close()
		return usagef("%w; nothing was started", err).withAdvice("remove %s and start again", shellWord(runDirText(o.run)))
	}
	o.waiting = specs
	return nil
}

// opening is the first line: what is run where.
func (s *session) opening(n int, streaming bool, inv *loadedInventory) string {
	what := plural(n, "job")
	if streaming {
		what = "jobs from standard input"
	}
	where := "this machine"
	if inv.File != "" {
		where = plural(len(inv.Hosts), "host") + " of " + cleanLine(inv.File)
	}
	return s.con.paint(bold, cleanLine(s.run.Name())) + ": " + what + " on " + where + ", kept in " + cleanLine(runDirText(s.run))
}

func (s *session) warnStore(err error) {
	if err == nil {
		s.say(func() string { return "jobs are stored again; the run goes on" })
		return
	}
	s.say(func() string { return "no more jobs are taken until they can be stored: " + cleanLine(err.Error()) })
}
