package cli

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"dcs-tui/dispatch/run"
	"dcs-tui/grid"
	"dcs-tui/grid/search"
	"dcs-tui/internal/text"
	"dcs-tui/internal/trust"
	"dcs-tui/jobs"
	"dcs-tui/jobs/metrics"
	"dcs-tui/jobs/results"
	"dcs-tui/jobs/shell"
)

// gridFlags holds the flags of grid, which include those of run.
type gridFlags struct {
	runFlags
	count bool
	limit int

	// The flags of a search.
	search, ask        string
	trials             int
	minimize, maximize string
}

func (a *app) gridCmd() *cobra.Command {
	flags := gridFlags{limit: grid.DefaultLimit}
	cmd := &cobra.Command{
		Use:   "grid [flags] TEMPLATE",
		Short: "Run a command for all combinations of parameters",
		Long: `Run a command for all combinations of parameters: of a template that has a command with parameters in
brackets, and a line with the values of each; - reads it from standard input. With --search, a search
chooses some points of continuous ranges instead. See dcs-tui help grid.md and dcs-tui help search.`,
		Example: `# svm.txt, 30 jobs:
#   svm -train -kernel rbf -C [1] -gamma [2]
#   [1] 0.001, 0.01, 0.1, 1, 10, 100
#   [2] 0 0.25 0.5 0.75 1
dcs-tui grid svm.txt
dcs-tui grid --dry-run svm.txt | head

# 100 trials that make the metric loss small
dcs-tui grid --search tpe --trials 100 --minimize loss train.txt`,
		ValidArgsFunction: cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault),
		RunE:              func(cmd *cobra.Command, args []string) error { return a.runGrid(cmd, &flags, args) },
	}
	fs := cmd.Flags()
	fs.BoolVar(&flags.dryRun, "dry-run", false, "print the commands, one per line, and start nothing")
	fs.BoolVar(&flags.count, "count", false, "print the number of jobs, and start nothing")
	fs.Var(newChoice(&flags.search, grid.SearchMethods...), "search", "let `METHOD` choose the combinations: "+
		strings.Join(grid.SearchMethods, ", "))
	fs.StringVar(&flags.ask, "ask", "",
		"let `COMMAND`, an optimizer that reads and writes lines of JSON, choose the combinations")
	fs.IntVar(&flags.trials, "trials", 0, "let a search choose `N` combinations")
	fs.StringVar(&flags.minimize, "minimize", "", "let a search minimize `METRIC`")
	fs.StringVar(&flags.maximize, "maximize", "", "let a search maximize `METRIC`")
	fs.Var(newFlag(&flags.limit, "N", parseCount), "limit",
		"refuse a template of more than N combinations without @where or @sample")
	endGroup(fs, "Combinations")
	flags.addNewRunFlags(fs, "template")
	return cmd
}

func (a *app) runGrid(cmd *cobra.Command, flags *gridFlags, args []string) error {
	if err := flags.checkGrid(cmd.Flags(), args); err != nil {
		return err
	}
	if !flags.count && !flags.dryRun {
		return a.startRun(cmd, &flags.runFlags, args[0] == stdinFile, func() (jobSource, error) {
			template, err := a.parseTemplate(flags, args[0])
			if err != nil {
				return jobSource{}, err
			}
			return a.gridSource(template, args[0], flags)
		})
	}
	template, err := a.parseTemplate(flags, args[0])
	switch {
	case err != nil:
		return err
	case flags.count:
		return a.printCount(template)
	}
	return a.printCommands(template)
}

// checkGrid checks the command line before anything is read.
func (f *gridFlags) checkGrid(fs *pflag.FlagSet, args []string) error {
	if err := f.checkNewRun(fs); err != nil {
		return err
	}
	switch {
	case f.search != "" && f.ask != "":
		return text.Errorf("--search and --ask both choose the combinations: choose one")
	case f.minimize != "" && f.maximize != "":
		return text.Errorf("--minimize and --maximize cannot be combined: a search has one metric")
	case f.search == "" && f.ask == "" && (f.trials != 0 || f.minimize != "" || f.maximize != ""):
		return text.Errorf("--trials, --minimize, and --maximize need a search: --search METHOD or --ask COMMAND")
	case strings.ContainsAny(f.ask+f.minimize+f.maximize, "\r\n"):
		return text.Errorf("the values of --ask, --minimize, and --maximize cannot have several lines")
	case f.dryRun && f.count:
		return text.Errorf("--dry-run prints the commands and --count their number: choose one")
	case len(args) == 0:
		return text.Errorf("no template was given").WithAdvice("dcs-tui grid TEMPLATE; dcs-tui grid --help shows one")
	case len(args) > 1:
		return text.Errorf("dcs-tui grid takes one template; %s is the second", text.Shorten(args[1])).
			WithAdvice("dcs-tui run TEMPLATE TEMPLATE... makes a run of several, each a queue of its own; " +
				"a template may have several command lines, too")
	}
	return nil
}

// maxWarnings is the number of warnings about a template that are shown.
const maxWarnings = 10

// parseTemplate reads a template and prints its warnings. A signal ends the commands that yield its
// values.
func (a *app) parseTemplate(flags *gridFlags, file string) (*grid.Template, error) {
	cwd, err := workDir(flags.Cwd)
	if err != nil {
		return nil, err
	}
	in, name := a.stdin, "standard input"
	if file != stdinFile {
		r, err := a.openTrusted(file, "template")
		if err != nil {
			return nil, err
		}
		defer r.Close()
		in, name = r, file
	} else if isTerminal(os.Stdin) {
		a.con.Line("reading the template from the terminal; Ctrl-D ends it")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	checkResult := func(name, from string) error { _, err := metrics.New(name, from); return err }
	config := grid.Config{Dir: cwd, Search: flags.searchLine(), Limit: flags.limit, Return: flags.returns,
		CheckResult: checkResult, CheckCommand: shell.Checker(flags.Shell)}
	template, err := config.Parse(ctx, in, name)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, withCode(exitCanceled, fmt.Errorf("stopped while the template was read; nothing was started"))
	case err != nil:
		return nil, err
	}
	for i, w := range template.Warnings {
		if i == maxWarnings {
			a.warn("and %d further warnings about %s", len(template.Warnings)-i, name)
			break
		}
		a.warn("%v", w)
	}
	return template, nil
}

// searchLine returns the @search line of the flags, or "" for none.
func (f *gridFlags) searchLine() string {
	s := grid.Search{Method: f.search, Trials: f.trials, Metric: cmp.Or(f.minimize, f.maximize),
		Maximize: f.maximize != "", Seed: f.Seed, Command: f.ask}
	switch {
	case f.ask != "":
		s.Method = grid.Ask
	case f.search == "":
		return ""
	}
	return s.Line()
}

// longCount is a number of points that takes seconds to filter.
const longCount = 50_000_000

func (a *app) printCount(template *grid.Template) error {
	if template.HasFilter() && template.Points() > longCount {
		a.con.Line("checking " + text.Plural(template.Points(), "point") + "; Ctrl-C stops")
	}
	n, err := template.Count()
	if err != nil {
		return err
	}
	if n == 0 {
		a.warn("%v", noJobsError(template))
	}
	fmt.Fprintln(a.stdout, n)
	return nil
}

// printCommands prints the commands, one per line, each as soon as it is created.
func (a *app) printCommands(template *grid.Template) error {
	toTerminal := isTerminal(a.stdout)
	w := bufio.NewWriter(a.stdout)
	none := true
	for s, err := range template.Jobs() {
		none = false
		if err != nil {
			w.Flush()
			return err
		}
		msg := s.Command
		if toTerminal {
			msg = text.Clean(msg, 0)
		}
		if _, err := w.WriteString(msg + "\n"); err != nil {
			return err
		}
	}
	if none {
		return noJobsError(template)
	}
	return w.Flush()
}

// maxKeptTemplate is the maximum size of a template that is kept although all of its jobs are
// stored, in bytes.
const maxKeptTemplate = 1 << 20

// gridSource returns the jobs of a template for a new run. Usually all jobs are created and stored
// before the first one starts. The jobs of a large product are created while the first ones run,
// and resume continues where that was interrupted.
func (a *app) gridSource(template *grid.Template, file string, flags *gridFlags) (jobSource, error) {
	if file == stdinFile {
		file = "grid" // standard input has been read to its end
	}
	src := jobSource{files: []string{file}, options: map[string]any{}, returns: template.Returns}
	if columns := resultColumnsOf(template); len(columns) > 0 {
		src.options[metrics.Option] = columns
	}
	if template.Search != nil && template.Search.Metric != "" {
		src.options[metrics.BestOption] = template.Search.Best()
	}
	var err error
	large := template.MaxJobs() > grid.DefaultLimit
	if source := template.Source(flags.limit); large || template.Search != nil || len(source) <= maxKeptTemplate &&
		!template.HasComparison() {
		src.source = source
	}
	if template.Search != nil {
		cwd, err := workDir(flags.Cwd)
		if err != nil {
			return src, err
		}
		src.search = searchOf(template, cwd)
		if src.isLazy() {
			src.description = text.Plural(template.Search.Trials, "trial") + " of " + text.Line(file)
			return src, nil
		}
	}
	if !large {
		src.specs, err = templateJobs(template)
		return src, err
	}
	src.description = "jobs of " + text.Line(file)
	next := template.Pull()
	first, err := next()
	switch {
	case err == io.EOF:
		return src, noJobsError(template)
	case err != nil:
		return src, err
	}
	src.next = run.JobLines(func() (*jobs.Spec, error) {
		if s := first; s != nil {
			first = nil
			return s, nil
		}
		return next()
	})
	return src, nil
}

// templateJobs returns all jobs of a template. It is an error if there are none.
func templateJobs(template *grid.Template) ([]*jobs.Spec, error) {
	var specs []*jobs.Spec
	for s, err := range template.Jobs() {
		if err != nil {
			return nil, err
		}
		specs = append(specs, s)
	}
	if len(specs) == 0 {
		return nil, noJobsError(template)
	}
	return specs, nil
}

// resultColumnsOf returns the @result lines in the form of run.toml.
func resultColumnsOf(template *grid.Template) []string {
	var columns []string
	for _, r := range template.Results {
		if c, err := metrics.New(r.Name, r.From); err == nil { // was checked when the template was read
			columns = append(columns, c.String())
		}
	}
	if s := template.Search; s != nil && s.Metric != "" &&
		!slices.ContainsFunc(template.Results, func(r grid.Result) bool { return r.Name == s.Metric }) {
		if _, err := results.NewTable(results.TableInput{}).Column(s.Metric); err != nil { // not one that every run has
			columns = append(columns, s.Metric)
		}
	}
	return columns
}

// searchOf returns the search of a template, with a proposer of jobs if the search learns. It
// returns nil if the search only determines the jobs.
func searchOf(template *grid.Template, cwd string) *run.Search {
	o := &run.Search{Trials: template.Search.Trials, Coordinates: template.Coordinates}
	o.Best, _ = results.ParseBest(template.Search.Best())
	o.Trial = func(at []float64) *jobs.Spec { return template.Trial(0, at) }
	switch {
	case template.Search.Learns():
		o.Proposer = template.Proposer(cwd)
	case template.Search.Method == search.Halving:
		o.Rungs = &search.Rungs{First: template.Search.First, Factor: template.Search.Factor,
			Maximize: template.Search.Maximize}
	default:
		return nil
	}
	return o
}

// noJobsError returns the error for a grid without any job.
func noJobsError(template *grid.Template) error {
	return text.Errorf("%s: the @where lines exclude all of %s", template.File,
		text.Plural(template.Points(), "point")).WithAdvice("check the @where lines")
}

// readBatch reads files of jobs and templates; see grid.ReadBatch.
func (a *app) readBatch(flags *gridFlags, files []string, named bool) (*grid.Batch, error) {
	return grid.ReadBatch(files, named, func(file string) ([]*jobs.Spec, []string, error) {
		return a.readJobsFile(flags, file)
	})
}

// readJobsFile reads one file. The numbers of its jobs begin at 1.
func (a *app) readJobsFile(flags *gridFlags, file string) ([]*jobs.Spec, []string, error) {
	switch {
	case file == stdinFile:
		return a.readStdinJobs(flags)
	case grid.IsTemplate(file):
		return a.readTemplateJobs(flags, file)
	}
	specs, err := a.parseJobsFile(flags, file)
	switch command := text.ShellWord(text.Line(file)); {
	case !errors.Is(err, os.ErrNotExist):
	case jobs.AmbiguousWord(file) != "":
		err = text.Errorf("%w", err).WithAdvice("%s", jobs.AmbiguousWord(file))
	case strings.Contains(file, "{"):
		err = text.Errorf("%w", err).WithAdvice("a command needs ::: before its values: dcs-tui run %s ::: VALUE...",
			command)
	case strings.Contains(file, " "):
		err = text.Errorf("%w", err).
			WithAdvice("to run a command, write it on a line of a jobs file, or: echo %s | dcs-tui run -; "+
				"for each of some values: dcs-tui run %s ::: VALUE...", command, command)
	}
	return specs, nil, err
}

// foreignKinds describes files that are never jobs files, by the ends of their names.
var foreignKinds = map[string]string{
	".py": "a Python program", ".ipynb": "a notebook", ".r": "an R program", ".jl": "a Julia program",
	".toml": "a TOML file", ".json": "a JSON file", ".yaml": "a YAML file", ".yml": "a YAML file",
}

// parseJobsFile parses a list of jobs, if it can be trusted.
func (a *app) parseJobsFile(flags *gridFlags, file string) ([]*jobs.Spec, error) {
	f, err := a.openTrusted(file, "jobs file")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if kind := foreignKinds[strings.ToLower(filepath.Ext(file))]; kind != "" {
		return nil, text.Errorf("%s is %s, not a jobs file: each of its lines would run as a shell command",
			text.Shorten(file), kind).
			WithAdvice("a jobs file has one command per line, or, with a name that ends in .jsonl, one JSON object")
	}
	scan := jobs.NewScanner(f, file, jobs.IsJSONLines(file), 1).CheckCommands(a.newCommandCheck(flags.Shell))
	specs, err := scan.All()
	a.newShellWarning(file)(specs...)
	return specs, err
}

// openTrusted opens a file with commands, and warns if a group can write it. what names the kind of
// file.
func (a *app) openTrusted(file, what string) (*os.File, error) {
	if file == "" { // probably an unset variable of a shell
		return nil, text.Errorf("the name of the %s is empty", what)
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, text.Errorf("cannot read the %s: %w", what, err)
	}
	info, err := f.Stat()
	warning := ""
	switch {
	case err != nil:
	case info.IsDir():
		err = text.Errorf("%s is a directory, not a %s", text.Shorten(file), what)
	default:
		warning, err = trust.Check(info, text.Line(file), trust.WarnGroup)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	if warning != "" {
		a.warn("%s", warning)
	}
	return f, nil
}

// readStdinJobs reads standard input: a list of commands, or a template.
func (a *app) readStdinJobs(flags *gridFlags) ([]*jobs.Spec, []string, error) {
	r := bufio.NewReaderSize(a.stdin, grid.MaxPeek)
	head, err := r.Peek(grid.MaxPeek)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, nil, fmt.Errorf("standard input: %w", err)
	}
	a.stdin = r
	if grid.HasParameterLine(bytes.NewReader(head)) {
		return a.readTemplateJobs(flags, stdinFile)
	}
	specs, err := a.scanStdin(flags.Shell).All()
	a.newShellWarning("standard input")(specs...)
	return specs, nil, err
}

func (a *app) readTemplateJobs(flags *gridFlags, file string) ([]*jobs.Spec, []string, error) {
	template, err := a.parseTemplate(flags, file)
	if err != nil {
		return nil, nil, err
	}
	if template.MaxJobs() > grid.DefaultLimit {
		return nil, nil, fmt.Errorf("%s: a template of more than %d jobs must be a run of its own: dcs-tui grid %s",
			file, grid.DefaultLimit, text.ShellWord(file))
	}
	specs, err := templateJobs(template)
	return specs, resultColumnsOf(template), err
}

// scanStdin returns a scanner of the commands on standard input, which a shell runs.
func (a *app) scanStdin(shellPath string) *jobs.Scanner {
	return jobs.NewScanner(a.stdin, "standard input", false, 1).CheckCommands(a.newCommandCheck(shellPath))
}

// stdinJobs returns a function that yields the jobs of standard input.
func (a *app) stdinJobs(shellPath string) func() (*jobs.Spec, error) {
	scan, warnAbout := a.scanStdin(shellPath), a.newShellWarning("standard input")
	return func() (*jobs.Spec, error) {
		spec, err := scan.Next()
		if err == nil {
			warnAbout(spec)
		}
		if err == nil && grid.IsParameterLine(spec.Command) {
			err = text.Errorf("standard input:%d: this is a template, which dcs-tui grid - reads: %s", spec.Line,
				text.Shorten(text.Line(spec.Command)))
		}
		if err != nil && !errors.Is(err, io.EOF) && isTerminal(a.stdin) {
			go io.Copy(io.Discard, a.stdin) // otherwise the shell would run the rest of what is being pasted
		}
		return spec, err
	}
}
