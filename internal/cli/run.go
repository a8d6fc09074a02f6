package cli

import (
	"cmp"
	"math/rand/v2"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"dcs-tui/dispatch/run"
	"dcs-tui/grid"
	"dcs-tui/internal/cli/console"
	"dcs-tui/internal/cli/exit"
	"dcs-tui/jobs"
	"dcs-tui/jobs/metrics"
)

func (a *app) runCmd() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:     "run [flags] FILE...|-|COMMAND ::: VALUE...",
		GroupID: groupRun,
		Short:   "Run the jobs of a file",
		Long: `Run the jobs of a file: one shell command a line, blank lines and # comments left
out, \ at the end of a line goes on in the next. A line "#DCS key=value …" sets
options of the next job, "#DCS default key=value …" of all that follow: name,
priority, tries, retry_delay, timeout, deadline, est, tags, gpus, mem, slots, tokens, after,
env.NAME, cwd, setup, on_lost, speculate, hardness, send, return, queue, share,
queue_priority, queue_slots. docs/jobs.md explains them.
A file that ends in .jsonl holds one JSON object a line; one with lines of values such as
"[C] 0.1 1 10" is a template (see grid). - reads jobs from standard input and starts each
as it comes; with --json also JSON objects, see docs/protocol.md.

COMMAND ::: VALUE... runs the command for each value, as GNU parallel does: {} stands for the
value, {.} {/} {//} {/.} for parts of it, {#} for the job's number, {2} {2/.} for values of
the second list. Several ::: give all combinations, :::+ goes along with the list before,
:::: takes the lines of files. Values are quoted for the shell and are the jobs' parameters.
Options stand before the command.

Each of several files is a queue of its own, named after it. Queues get slot time in
proportion to their shares; docs/queues.md explains it. submit adds jobs to a run; with
--keep-open the run waits for them, also without FILE, until submit --end.

Without an inventory the jobs run on this machine, on all cores but one. Everything
about the run is kept in dcs-runs/NAME.

On a terminal a screen shows the run, and a background process that ends with the run
dispatches it: leave the screen with q, or lose it, and the run goes on; attach shows it again.

With --no-tui, --json, --output or no terminal this process dispatches, and prints lines.
Ctrl-C then lets running jobs finish and starts no more; a second one stops at once and
leaves them running, to be adopted by resume; so does Ctrl-\. Closing the terminal stops nothing.

A file STOP in the run directory drains as Ctrl-C does, until it is removed; STOP.now cancels.

` + exit.Help,
		Example: `dcs-tui run jobs.txt
dcs-tui run --hosts hosts.toml --tries 1 --timeout 2h sweep.txt
dcs-tui run --dry-run jobs.txt
dcs-tui run 'gzip -9 {}' ::: *.log
generate-jobs | dcs-tui run --json - | jq -r .state`,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.runRun(cmd, &f, args)
		},
	}
	fs := cmd.Flags()
	fs.SetInterspersed(a.arguments == nil) // gzip -9 {} ::: *.log
	f.hostFlags(fs)
	f.queues.flags(fs)
	f.newRunFlags(fs, "file")
	fs.BoolVar(&f.dryRun, "dry-run", false, "print what would run where, and start nothing")
	return cmd
}

func (a *app) runRun(cmd *cobra.Command, f *runFlags, args []string) error {
	streaming, err := f.checkRun(a, args)
	if err != nil {
		return err
	}
	return a.startRun(cmd, f, streaming, func() (jobSource, error) {
		switch {
		case a.arguments != nil:
			return a.argumentsSource(f, strings.Join(args, " "))
		case streaming:
			next := readingLines(a.stdin, nil)
			if !f.json { // nobody reads what is wrong with a line
				next = run.JobLines(readingJobs(a.stdin))
			}
			return jobSource{files: args, what: "jobs from standard input", next: f.queues.applying(next)}, nil
		case len(args) == 0:
			return jobSource{files: []string{"open"}, what: "jobs that will be submitted"}, nil
		}
		return a.filesSource(f, args)
	})
}

// startRun makes and dispatches a run: from a screen if this is a terminal, otherwise in
// this process. stdin reports whether source reads standard input.
func (a *app) startRun(cmd *cobra.Command, f *runFlags, stdin bool, source func() (jobSource, error)) error {
	if done, err := a.onScreen(f, stdin && term.IsTerminal(int(os.Stdin.Fd()))); done {
		return err
	}
	if err := absoluteFlags(cmd.Flags()); err != nil {
		return err
	}
	src, err := source()
	if err == nil && f.shuf {
		err = shuffle(&src, f.seed)
	}
	if err != nil {
		return err
	}
	return a.runJobs(cmd, f, src)
}

// shuffle puts the jobs of src into random order and numbers them anew.
func shuffle(src *jobSource, seed uint64) error {
	if src.lazy() {
		return exit.Usagef("--shuf needs all jobs at once: it cannot be used with standard input or a grid of more than %d jobs", grid.DefaultLimit)
	}
	for _, s := range src.known {
		if len(s.After) > 0 {
			return exit.Usagef("--shuf: a job has the option after, which gives an order")
		}
	}
	src.source = "" // would yield the jobs in their first order
	if seed == 0 {
		seed = rand.Uint64()
	}
	rand.New(rand.NewPCG(seed, seed)).Shuffle(len(src.known), func(i, j int) {
		src.known[i], src.known[j] = src.known[j], src.known[i]
	})
	for i, s := range src.known {
		s.ID = jobs.ID(i + 1)
	}
	return nil
}

// argumentsSource returns the jobs of a command and the values behind the first :::.
func (a *app) argumentsSource(f *runFlags, command string) (jobSource, error) {
	arguments, err := grid.ParseArguments(command, a.arguments, a.stdin)
	if err != nil {
		return jobSource{}, exit.Usagef("%w", err)
	}
	specs, err := arguments.Jobs(grid.DefaultLimit)
	if err != nil {
		return jobSource{}, exit.Usagef("%w", err)
	}
	f.queues.apply(specs)
	name, _, _ := strings.Cut(strings.TrimSpace(command), " ")
	return jobSource{files: []string{cmp.Or(name, "commands")}, known: specs}, f.queues.check(jobs.QueuesOf(specs))
}

// filesSource returns the jobs of files and templates for a new run. Each of several files
// is a queue of its own. A single template makes a grid.
func (a *app) filesSource(f *runFlags, files []string) (jobSource, error) {
	g := &gridFlags{runFlags: *f, limit: grid.DefaultLimit}
	if len(files) == 1 && grid.IsTemplate(files[0]) && f.queues.empty() {
		t, err := a.template(g, files[0])
		if err != nil {
			return jobSource{}, err
		}
		a.con.Line(console.CleanLine(files[0]) + " is a template: its jobs are those of dcs-tui grid")
		return a.gridSource(t, files[0], g)
	}
	b, err := a.readBatch(g, files, len(files) > 1)
	if err != nil {
		return jobSource{}, err
	}
	if err := f.queues.check(b.Queues); err != nil {
		return jobSource{}, err
	}
	f.queues.apply(b.Specs)
	src := jobSource{files: files, known: b.Specs}
	if len(b.Columns) > 0 {
		src.keep = map[string]any{metrics.Option: b.Columns}
	}
	return src, nil
}

// checkRun checks the command line before anything is read.
func (f *runFlags) checkRun(a *app, args []string) (streaming bool, err error) {
	if err := f.checkNewRun(); err != nil {
		return false, err
	}
	if a.arguments != nil {
		return false, nil
	}
	if len(args) == 0 && !f.KeepOpen {
		return false, exit.Usagef("which jobs?").WithAdvice("dcs-tui run FILE, one shell command a line; - reads them from standard input")
	}
	streaming = slices.Contains(args, stdinFile)
	switch {
	case streaming && len(args) > 1:
		return false, exit.Usagef("- cannot be mixed with files").WithAdvice("cat FILE... | dcs-tui run -")
	case streaming && f.dryRun:
		return false, exit.Usagef("--dry-run needs a file: jobs on standard input are not known before they come")
	case streaming && term.IsTerminal(int(os.Stdin.Fd())):
		a.con.Line("reading jobs from the terminal, one command a line; Ctrl-D ends them")
	}
	return streaming, nil
}
