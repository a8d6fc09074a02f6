package cli

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"iter"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"dcs-tui/grid"
	"dcs-tui/internal/cli/console"
	"dcs-tui/internal/cli/exit"
	"dcs-tui/jobs"
	"dcs-tui/jobs/results/column"
	"dcs-tui/jobs/results/outputs"
)

// gridFlags are those of grid beside run's.
type gridFlags struct {
	runFlags
	count bool
	limit int
}

func (a *app) gridCmd() *cobra.Command {
	f := gridFlags{limit: grid.DefaultLimit}
	cmd := &cobra.Command{
		Use:     "grid [flags] TEMPLATE",
		GroupID: groupRun,
		Short:   "Run a command for all combinations of parameters",
		Long: `Run a command for all combinations of parameters. A template has a command with
parameters in brackets, [C] or [1], and a line of values for each of them. The last
parameter runs fastest; several commands of one combination follow one another.

[C] is replaced by the value as text, [C:q] by the value quoted for the shell; the job
finds it in DCS_PARAM_C too. Values are texts, in quotes if they have blanks or
commas, and 1..10, 0..1 step 0.1, log 1e-3..1e2 x6, lin 0..1 x5, file: list.txt,
command: ls *.csv. Lines with @ choose: @where C < gamma, @zip a, b,
@sample 50 latin seed 7 of C, gamma. @result acc declares a figure of the output, and
@hardness variant:quick<slow, n says what is harder: a timeout skips what is at least as
hard. A line #DCS sets options as in a jobs file. docs/grid.md explains it all.

- reads the template from standard input. Everything else is as with run.

` + exit.Help,
		Example: `# svm.txt, 30 jobs:
#   svm -train -kernel rbf -C [1] -gamma [2]
#   [1] 0.001, 0.01, 0.1, 1, 10, 100
#   [2] 0 0.25 0.5 0.75 1
dcs-tui grid svm.txt

# look before you leap
dcs-tui grid --dry-run svm.txt | head
dcs-tui grid --count svm.txt

# on the hosts of an inventory
dcs-tui grid --hosts hosts.toml --timeout 2h --tries 1 svm.txt`,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.runGrid(cmd, &f, args)
		},
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.BoolVar(&f.dryRun, "dry-run", false, "print the commands, one a line, and start nothing")
	fs.BoolVar(&f.count, "count", false, "print the number of jobs, and start nothing")
	fs.Var(countFlag(&f.limit), "limit", "refuse a product of more than N jobs without @where or @sample")
	f.hostFlags(fs)
	f.newRunFlags(fs, "template")
	return cmd
}

func (a *app) runGrid(cmd *cobra.Command, f *gridFlags, args []string) error {
	if err := f.checkGrid(args); err != nil {
		return err
	}
	if !f.count && !f.dryRun {
		if done, err := a.onScreen(&f.runFlags, args[0] == stdinFile && term.IsTerminal(int(os.Stdin.Fd()))); done {
			return err
		}
	}
	if err := absoluteFlags(cmd.Flags()); err != nil {
		return err
	}
	t, err := a.template(f, args[0])
	if err != nil {
		return err
	}
	switch {
	case f.count:
		if t.Filtered() && t.Points() > longCount {
			a.con.Line("looking through " + jobs.Plural(t.Points(), "point") + "; Ctrl-C ends it")
		}
		n, err := t.Count()
		if err != nil {
			return exit.Usagef("%w", err)
		}
		if n == 0 {
			a.warn("%v", noJobs(t, io.EOF))
		}
		fmt.Fprintln(a.stdout, n)
		return nil
	case f.dryRun:
		return a.printCommands(t)
	}
	src, err := gridSource(t, args[0], f.limit)
	if err != nil {
		return err
	}
	return a.runJobs(cmd, &f.runFlags, src)
}

// longCount is how many points take some seconds to look through.
const longCount = 50_000_000

// checkGrid finds what is wrong with the command line before anything is read.
func (f *gridFlags) checkGrid(args []string) error {
	if err := f.checkNewRun(); err != nil {
		return err
	}
	switch {
	case f.dryRun && f.count:
		return exit.Usagef("--dry-run prints the commands and --count their number: choose one")
	case len(args) == 0:
		return exit.Usagef("which template?").WithAdvice("dcs-tui grid TEMPLATE; dcs-tui grid --help shows one")
	case len(args) > 1:
		return exit.Usagef("one template makes a grid; %s is one too many", console.Shorten(args[1])).
			WithAdvice("dcs-tui run TEMPLATE TEMPLATE... makes a run of several, each a queue of its own; a template may have several command lines, too")
	}
	return nil
}

// maxWarnings is how many warnings about a template are shown.
const maxWarnings = 10

// template reads a template and shows what is doubtful in it. A signal ends the
// commands that it takes values from.
func (a *app) template(f *gridFlags, file string) (*grid.Template, error) {
	cwd, err := workDir(f.Cwd)
	if err != nil {
		return nil, err
	}
	in, name := a.stdin, "standard input"
	if file == stdinFile {
		if term.IsTerminal(int(os.Stdin.Fd())) {
			a.con.Line("reading the template from the terminal; Ctrl-D ends it")
		}
	} else {
		r, err := os.Open(file)
		if err != nil {
			return nil, exit.Usagef("cannot read the template: %w", err)
		}
		defer r.Close()
		if info, err := r.Stat(); err == nil && info.IsDir() {
			return nil, exit.Usagef("%s is a directory, not a template", console.Shorten(file))
		}
		in, name = r, file
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	config := grid.Config{Dir: cwd, Limit: f.limit, OtherShell: !quotesLikeSh(f.Shell), CheckResult: checkColumn}
	t, err := config.Parse(ctx, in, name)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, &exit.Problem{Err: fmt.Errorf("stopped while the template was read; nothing was started"), Code: exit.Cancelled}
	case err != nil:
		return nil, exit.Usagef("%w", err)
	}
	for i, w := range t.Warnings {
		if i == maxWarnings {
			a.warn("and %d further warnings about %s", len(t.Warnings)-i, name)
			break
		}
		a.warn("%v", w)
	}
	return t, nil
}

// checkColumn says what is wrong with an @result line.
func checkColumn(name, from string) error {
	_, err := column.New(name, from)
	return err
}

// quotesLikeSh says whether quotes mean to a shell what they mean to /bin/sh.
func quotesLikeSh(shell string) bool {
	program, _, _ := strings.Cut(shell, " ")
	switch filepath.Base(program) {
	case ".", "sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "busybox":
		return true
	}
	return false
}

// printCommands writes the commands, one a line, each as soon as it is made.
func (a *app) printCommands(t *grid.Template) error {
	toTerminal := term.IsTerminal(int(a.stdout.Fd()))
	w := bufio.NewWriter(a.stdout)
	none := true
	for s, err := range t.Jobs() {
		none = false
		if err != nil {
			w.Flush()
			return exit.Usagef("%w", err)
		}
		text := s.Command
		if toTerminal {
			text = jobs.Clean(text, 0)
		}
		if _, err := io.WriteString(w, text+"\n"); err != nil {
			return exit.Usagef("%w", err)
		}
	}
	if err := w.Flush(); err != nil {
		return exit.Usagef("%w", err)
	}
	if none {
		return noJobs(t, io.EOF)
	}
	return nil
}

// gridSource yields the jobs of a template to a new run. Usually they are all made
// and stored before the first starts; of a product that is too large for that each is
// made while those before it run, and resume goes on where it was cut off.
func gridSource(t *grid.Template, file string, limit int) (jobSource, error) {
	if file == stdinFile {
		file = "grid" // was read whole; nothing comes from there any more
	}
	src := jobSource{files: []string{file}, source: sourceText(t, limit)}
	if columns := columnsOf(t); len(columns) > 0 {
		src.keep = map[string]any{outputs.Option: columns}
	}
	next := pulling(t.Jobs())
	large := t.Most() > grid.DefaultLimit // to look through, or to store
	if large {
		first, err := next()
		if err != nil {
			return src, noJobs(t, err)
		}
		src.what = "jobs of " + console.CleanLine(file)
		src.next = func() (*jobs.Spec, error) {
			if s := first; s != nil {
				first = nil
				return s, nil
			}
			return next()
		}
		return src, nil
	}
	if len(src.source) > maxKeptTemplate || t.Compared() {
		src.source = "" // nothing needs it
	}
	for {
		s, err := next()
		switch {
		case err == io.EOF && len(src.known) > 0:
			return src, nil
		case err != nil:
			return src, noJobs(t, err)
		}
		src.known = append(src.known, s)
	}
}

// columnsOf are the @result lines, as `results` reads them from run.toml.
func columnsOf(t *grid.Template) []string {
	var columns []string
	for _, r := range t.Results {
		if c, err := column.New(r.Name, r.From); err == nil { // was checked when the template was read
			columns = append(columns, c.String())
		}
	}
	return columns
}

// noJobs is the error of a grid without any job.
func noJobs(t *grid.Template, err error) error {
	if err != io.EOF {
		return exit.Usagef("%w", err)
	}
	return exit.Usagef("%s: its filter leaves none of %s", t.File, jobs.Plural(t.Points(), "point")).WithAdvice("look at the @where lines")
}

// pulling yields what a sequence has, io.EOF after the last.
func pulling(seq iter.Seq2[*jobs.Spec, error]) func() (*jobs.Spec, error) {
	next, _ := iter.Pull2(seq) // left where it is when the run ends before
	return func() (*jobs.Spec, error) {
		s, err, ok := next()
		if !ok {
			return nil, io.EOF
		}
		return s, err
	}
}
