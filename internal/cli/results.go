package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"dcs-tui/internal/text"
	"dcs-tui/jobs"
	"dcs-tui/jobs/metrics"
	"dcs-tui/jobs/query"
	"dcs-tui/jobs/results"
	"dcs-tui/jobs/rundir"
)

// resultsFlags holds the flags of results. All but the first two are about a table.
type resultsFlags struct {
	json, failed bool

	metrics  []*metrics.Metric
	where    []*query.Query // all must hold
	columns  []string
	order    []results.Order
	best     *results.Order // nil: not given
	group    []string
	measures []results.Measure // nil: all
	minSize  int
	keep     []string // columns of the groups to which minSize applies in a table of jobs
	pivot    pivotValue
	pivotOf  *results.PivotInput // nil: no pivot table
	format   string
	all      bool
	strict   bool
}

func (a *app) resultsCmd() *cobra.Command {
	flags := &resultsFlags{format: results.TableFormat}
	cmd := &cobra.Command{
		Use:   "results [flags] [RUN]",
		Short: "Print the results of the jobs of a run",
		Long: `Print one line per finished job, in the order of the jobs file. If the run has parameters, or with any
flag other than --json and --failed, print a table of parameters, metrics, state, time, and host instead.
dcs-tui help metrics and dcs-tui help results.md explain metrics and groups. ` + runHelp,
		Example: `dcs-tui results sweep-20260314-1502 --json | jq -r 'select(.exit == 3) | .stderr'
dcs-tui results --result 'acc=re:Accuracy: ([0-9.]+)' --group C,gamma --min-group-size 3
dcs-tui results --result acc=json:test.accuracy --pivot C gamma acc
dcs-tui results --result acc --where 'C>=0.1 and host=ws*' --format csv`,
		Args: func(cmd *cobra.Command, args []string) error {
			_, rest, err := flags.pivot.split(args)
			if err != nil {
				return err
			}
			return atMost(1)(cmd, rest)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if flags.pivotOf, args, err = flags.pivot.split(args); err != nil {
				return err
			}
			return a.runResults(cmd, args, flags)
		},
	}
	fs := cmd.Flags()
	fs.BoolVar(&flags.failed, "failed", false, "only jobs that failed or timed out")
	fs.Var(newListFlag(&flags.where, query.Parse), "where",
		"only jobs that match `QUERY`, such as 'C>=0.1 and state=succeeded'; may be given several times; "+
			"dcs-tui help query explains queries")
	fs.BoolVar(&flags.all, "all", false, "also unfinished jobs")
	endGroup(fs, titleWhich)
	flags.addTableFlags(cmd)
	fs.BoolVar(&flags.json, "json", false, "print one JSON object per job")
	fs.BoolVar(&flags.strict, "strict", false, strictHelp)
	endGroup(fs, titleOutput)
	return cmd
}

const strictHelp = "print nothing and exit with 1 if jobs are missing in a column or in a number, " +
	"because they are not over, did not succeed, or have no value"

// checkStrict returns the error of --strict if jobs are missing.
func checkStrict(notes results.Notes) error {
	if len(notes.Basis) == 0 {
		return nil
	}
	return withCode(exitFailed, text.Errorf("--strict: %s", text.Line(strings.Join(notes.Basis, "; "))))
}

const resultHelp = "show `METRIC`: NAME, NAME=json:PATH, NAME=re:EXPR, NAME=key:OTHER, or NAME=file:PATH:HOW; " +
	"may be given several times"

func (f *resultsFlags) addTableFlags(cmd *cobra.Command) {
	fs := cmd.Flags()
	f.pivot.flags = fs
	fs.Var(newListFlag(&f.metrics, metrics.Parse), "result", resultHelp)
	fs.StringSliceVar(&f.columns, "columns", nil, "show these `COLUMNS`; with --group: summarize these metrics")
	fs.Var(newCommaFlag(&f.order, "stringArray", appending(results.ParseSort)), "sort",
		"sort by `COLUMN`, or by COLUMN:desc in descending order")
	fs.Var(newFlag(&f.best, "", optional(results.ParseBest)), "best",
		"show only the best job or group: `COLUMN:max` or COLUMN:min")
	endGroup(fs, "Columns and order")
	fs.StringSliceVar(&f.group, "group", nil,
		"show one row for all jobs with the same values in `COLUMNS`, with measures of each metric")
	fs.Var(newCommaFlag(&f.measures, "stringArray", appending(results.ParseMeasure)), "stats",
		"show these `MEASURES` of groups: count,mean,sd,min,max,median (default: all)")
	fs.Var(&f.pivot, "pivot",
		"show a metric over two columns: ROWS COLUMNS METRIC, or ROWS,COLUMNS,METRIC:MEASURE (default mean)")
	fs.IntVar(&f.minSize, "min-group-size", 0, "leave out groups with fewer than `N` jobs that succeeded")
	fs.StringSliceVar(&f.keep, "keep-groups", nil,
		"show the jobs whose group by `COLUMNS` is as large as --min-group-size")
	endGroup(fs, "Groups and pivot tables")
	fs.Var(newChoice(&f.format, results.Formats...), "format", "`FORMAT` of the table: "+
		strings.Join(results.Formats, ", "))
	for _, name := range []string{"result", "columns", "sort", "best", "min-group-size"} {
		cmd.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions)
	}
	cmd.RegisterFlagCompletionFunc("group", completeParams)
	cmd.RegisterFlagCompletionFunc("keep-groups", completeParams)
}

// completeParams completes the names of a run's parameters, in a list that commas separate. It looks
// only at the first jobs.
func completeParams(_ *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	const maxJobs = 1000
	var names []string
	a := &app{con: consoleTo(io.Discard)} // a warning would appear in the line that is being typed
	if state, err := a.openState(args[:min(1, len(args))]); err == nil {
		before := prefix[:strings.LastIndexByte(prefix, ',')+1]
		for id := range jobs.ID(min(maxJobs, state.Table.NumJobs())) {
			for _, p := range state.Table.Spec(id + 1).Params() {
				if name := before + p.Name; !slices.Contains(names, name) {
					names = append(names, name)
				}
			}
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// firstGiven returns the first given flag of the table, or "".
func (f *resultsFlags) firstGiven(fs *pflag.FlagSet) (name string) {
	fs.Visit(func(g *pflag.Flag) {
		if name == "" && g.Name != "json" && g.Name != "failed" {
			name = g.Name
		}
	})
	return name
}

// check refuses flags that cannot be combined.
func (f *resultsFlags) check(fs *pflag.FlagSet) error {
	has := fs.Changed
	for _, pair := range [][2]string{{"pivot", "group"}, {"pivot", "sort"}, {"pivot", "best"}, {"pivot", "stats"},
		{"pivot", "columns"}, {"best", "sort"}, {"keep-groups", "group"}, {"keep-groups", "pivot"}} {
		if has(pair[0]) && has(pair[1]) {
			return text.Errorf("--%s and --%s cannot be combined", pair[0], pair[1])
		}
	}
	switch {
	case has("stats") && !has("group"):
		return text.Errorf("--stats needs --group")
	case has("min-group-size") && !has("group") && !has("pivot") && !has("keep-groups"):
		return text.Errorf("--min-group-size needs --group, --pivot, or --keep-groups")
	case has("keep-groups") && f.minSize == 0:
		return text.Errorf("--keep-groups needs --min-group-size")
	case f.minSize < 0:
		return text.Errorf("--min-group-size %d is negative", f.minSize)
	}
	for i, m := range f.metrics {
		if slices.ContainsFunc(f.metrics[:i], func(o *metrics.Metric) bool { return o.Name == m.Name }) {
			return text.Errorf("--result: %s is given twice", m.Name)
		}
	}
	return nil
}

func (a *app) runResults(cmd *cobra.Command, args []string, flags *resultsFlags) error {
	wants := flags.firstGiven(cmd.Flags())
	if flags.json && wants != "" {
		return text.Errorf("--json prints whole results and cannot be combined with --%s, which asks for a table; "+
			"--format jsonl prints the table as JSON", wants)
	}
	if err := flags.check(cmd.Flags()); err != nil {
		return err
	}
	state, err := a.openState(args)
	if err != nil {
		return err
	}
	columns := a.resultColumns(state.Run, flags.metrics)
	keep := jobs.JobState.Terminal
	isTable := wants != "" || !flags.json && !flags.failed && (len(columns) > 0 || hasParams(state.Table))
	if isTable { // unfinished jobs are missing in its numbers
		keep = nil
	}
	if flags.failed {
		keep = func(s jobs.JobState) bool { return s == jobs.Failed || s == jobs.TimedOut }
	}
	rows := metrics.Locations(state.Run).Rows(state.Table, keep)
	if flags.json { // by end; otherwise by job number
		rows.SortBySeq()
	}
	if isTable {
		err = a.printTable(cmd.Context(), state, rows, columns, flags)
	} else {
		err = a.writeResults(rows, flags.json)
		switch {
		case rows.Len() > 0 || flags.json:
		case flags.failed:
			a.con.Line("no job has failed")
		default:
			a.con.Line("no job is over yet")
		}
	}
	if errors.Is(err, syscall.EPIPE) {
		return nil
	}
	return err
}

func (a *app) writeResults(rows *results.Rows, asJSON bool) error {
	w := bufio.NewWriterSize(a.stdout, 64<<10)
	style := newConsole(a.stdout)
	var buf []byte
	for i := range rows.Len() {
		buf = buf[:0]
		if r := rows.Result(i); asJSON {
			buf = r.AppendJSON(buf)
		} else {
			buf = append(append(buf, style.JobLine(r)...), '\n')
		}
		if _, err := w.Write(buf); err != nil {
			return err
		}
	}
	return w.Flush()
}

// pivotValue is the value of --pivot ROWS COLUMNS METRIC. pflag takes only the first word as the
// value; the other two are the next arguments. One word with commas is allowed, too.
type pivotValue struct {
	flags *pflag.FlagSet
	names []string // all three, or ROWS alone
	at    int      // number of arguments before the flag
}

func (v *pivotValue) String() string { return strings.Join(v.names, ",") }
func (v *pivotValue) Type() string   { return "ROWS COLUMNS METRIC" }
func (v *pivotValue) Set(s string) error {
	v.names, v.at = strings.Split(s, ","), v.flags.NArg()
	if len(v.names) != 1 && len(v.names) != 3 {
		return text.Errorf("%q is not ROWS,COLUMNS,METRIC, such as C,gamma,acc", text.Shorten(s))
	}
	return nil
}

// split returns the pivot, which is nil if the flag was not given, and the arguments that are not
// part of the flag.
func (v *pivotValue) split(args []string) (of *results.PivotInput, rest []string, err error) {
	names := v.names
	switch {
	case len(names) == 0:
		return nil, args, nil
	case len(names) == 1 && len(args) < v.at+2:
		return nil, nil, text.Errorf("--pivot needs rows, columns, and a metric, such as --pivot C gamma acc")
	case len(names) == 1:
		names = append(names[:1:1], args[v.at:v.at+2]...)
		args = slices.Concat(args[:v.at], args[v.at+2:])
	}
	pivot, err := results.ParsePivot(names)
	if err != nil {
		return nil, nil, text.Errorf("--pivot: %w", err)
	}
	return &pivot, args, nil
}

// resultColumns returns the columns that the run declares and those of the flags, which replace
// declared ones of the same name.
func (a *app) resultColumns(run *rundir.Run, asked []*metrics.Metric) []*metrics.Metric {
	columns, err := metrics.Declared(run.Settings)
	if err != nil {
		a.warn("%v", err)
	}
	return metrics.Merge(columns, asked...)
}

// printTable prints the table. Notes about it go to standard error.
func (a *app) printTable(ctx context.Context, state *runState, rows *results.Rows, columns []*metrics.Metric,
	flags *resultsFlags) error {
	best := metrics.Best(state.Run.Settings)
	whole, read, err := readResultTable(ctx, state.Run, state.Table, rows, columns, flags.names(best))
	if err != nil {
		return err
	}
	filters, having := flags.where, []*query.Query(nil)
	if len(flags.group) > 0 {
		filters, having = whole.Split(filters)
	}
	s, warnings, err := whole.Where(filters...)
	if err != nil {
		return text.Errorf("--where: %w", err)
	}
	notes := results.Notes{Others: slices.Concat(read, warnings)}
	if len(flags.keep) > 0 {
		var left []string
		if s, left, err = s.KeepGroups(flags.keep, flags.minSize); err != nil {
			return text.Errorf("--keep-groups: %w", err)
		}
		notes.Others = append(notes.Others, left...)
	}
	if flags.pivotOf != nil {
		err = a.printPivot(s, flags, notes)
	} else {
		err = a.printRows(s, flags, having, notes)
	}
	if order, wrong := results.ParseBest(best); err == nil && wrong == nil {
		a.printCourse(whole, order)
	}
	return err
}

// names returns the names of the columns that a table needs, with the objective of a search. nil
// stands for all metrics.
func (f *resultsFlags) names(best string) []string {
	p := f.pivotOf
	if p == nil && len(f.columns) == 0 || p != nil && p.Metric == "" {
		return nil
	}
	names := slices.Concat(f.columns, f.group, f.keep, queriedNames(f.where))
	orders := f.order
	if f.best != nil {
		orders = append(slices.Clip(orders), *f.best)
	}
	if o, err := results.ParseBest(best); err == nil {
		orders = append(slices.Clip(orders), o)
	}
	names = append(names, text.Each(orders, func(o results.Order) string { return o.Column })...)
	if p != nil {
		names = append(names, p.Down, p.Across, p.Metric)
	}
	return names
}

// readResultTable reads the metrics of jobs and returns the table of them, with notes about what
// could not be read. Metrics that none of the names means have no values; nil: all are read.
func readResultTable(ctx context.Context, run *rundir.Run, table *jobs.Table, rows *results.Rows,
	columns []*metrics.Metric, names []string) (*results.Table, []string, error) {
	in := results.TableInput{Rows: rows}
	in.Params, in.AreNamed = paramNames(table)
	in.Suggest = func(k int, text string) string { return columns[k].Suggest(text) }
	needed := columns
	if names != nil {
		in.Names = metricNames(columns)
		var others []*metrics.Metric
		needed, others = namedMetrics(results.NewTable(in), columns, names)
		columns = slices.Concat(needed, others)
	}
	reader := metrics.NewReader(run, needed)
	reader.UseCache()
	found, err := reader.Read(ctx, rows, func(i int) string { return table.Spec(rows.Job(i)).Cwd })
	if err != nil {
		return nil, nil, err
	}
	in.Names, in.Metrics = metricNames(columns), found.Values
	return results.NewTable(in), found.Notes, nil
}

func metricNames(columns []*metrics.Metric) []string {
	return text.Each(columns, func(c *metrics.Metric) string { return c.Name })
}

// courseWidth is the number of steps of the course of a search that are shown.
const courseWidth = 24

// printCourse prints the best job of a search, and a graph of the best value over the trials.
func (a *app) printCourse(s *results.Table, order results.Order) {
	best, err := s.BestBy(order)
	if err != nil {
		return // there is none yet
	}
	course, levels := "", []rune(a.con.Glyph("▁▂▃▄▅▆▇█", "_.-=#"))
	for _, v := range s.BestOverTime(order, courseWidth) {
		course += string(levels[int(v*float64(len(levels)-1)+0.5)])
	}
	a.con.Line(a.con.Paint(bold, "best: ") +
		text.Line(fmt.Sprintf("%s=%s (job %d)", order.Column, s.At(best.Row, best.Column).Text, s.Job(best.Row))) +
		" " + course)
	a.printNotes(best.Notes.Basis...)
}

// printNotes prints notes about a table on standard error.
func (a *app) printNotes(lines ...string) {
	for _, l := range lines {
		a.con.Line(a.con.Paint(dim, "note: ") + text.Line(l))
	}
}

// printRows prints jobs or groups.
func (a *app) printRows(s *results.Table, flags *resultsFlags, having []*query.Query, notes results.Notes) error {
	var more results.Notes
	var err error
	switch {
	case len(flags.group) > 0:
		g := results.Grouping{By: flags.group, Metrics: flags.columns, Measures: flags.measures, MinSize: flags.minSize,
			Where: having, Started: !flags.all}
		if len(g.Measures) == 0 {
			g.Measures = results.AllMeasures()
		}
		if s, more, err = s.Group(g); err != nil {
			flag := "--group"
			if len(flags.columns) > 0 {
				flag = "--group, with metrics as --columns"
			}
			return text.Errorf("%s: %w", flag, err)
		}
	case len(flags.columns) > 0:
		shown, err := s.FindColumns(flags.columns)
		if err != nil {
			return text.Errorf("--columns: %w", err)
		}
		s = s.Show(shown)
		more = s.MissingValues(slices.DeleteFunc(s.Metrics(), func(c int) bool { return !slices.Contains(shown, c) }))
	default:
		if flags.format == results.JSONLFormat { // for programs
			s = s.AlsoShow("exit", "signal", "reason")
		}
		more = s.MissingValues(s.Metrics())
	}
	if len(flags.group) == 0 && !flags.strict { // the rows show which jobs are missing
		more.Basis = nil
	}
	notes.Add(more)
	if s, err = s.SortBy(flags.order...); err != nil {
		return text.Errorf("--sort: %w", err)
	}
	switch {
	case flags.best != nil:
		best, err := s.BestBy(*flags.best)
		if err != nil {
			return text.Errorf("--best: %w", err)
		}
		notes.Add(best.Notes)
		if best.Ties > 0 {
			notes.Others = append(notes.Others, text.Plural(best.Ties, "more "+s.Unit())+" with the same "+
				flags.best.Column)
		}
		s = s.Only(&best)
	case len(flags.group) == 0 && !flags.all:
		over := s.Over()
		if left := s.Len() - over.Len(); left > 0 {
			notes.Basis = append(notes.Basis, text.Plural(left, "job")+
				text.Verb(left, " is not over and has no row; --all shows it",
					" are not over and have no row; --all shows them"))
		}
		s = over
	}
	return a.writeTable(s, flags, notes)
}

func (a *app) printPivot(s *results.Table, flags *resultsFlags, notes results.Notes) error {
	flags.pivotOf.MinSize, flags.pivotOf.Started = flags.minSize, !flags.all
	p, more, err := s.Pivot(*flags.pivotOf)
	if err != nil {
		return text.Errorf("--pivot: %w", err)
	}
	notes.Add(more)
	if !flags.strict || len(notes.Basis) == 0 {
		a.printNotes(p.Title())
	}
	forPrograms := flags.format != results.TableFormat && flags.format != results.MarkdownFormat
	return a.writeTable(p.Table(forPrograms), flags, notes)
}

// writeTable prints a table, and then notes about it. With --strict, it returns an error instead if
// jobs are missing.
func (a *app) writeTable(s *results.Table, flags *resultsFlags, notes results.Notes) error {
	if err := checkStrict(notes); flags.strict && err != nil {
		return err
	}
	out := newConsole(a.stdout)
	if flags.format == results.CSVFormat || flags.format == results.TSVFormat {
		notes.Others = append(notes.Others, s.FormulaWarning()...)
	}
	o := results.Options{Format: flags.format, Terminal: out.tty, Color: out.color}
	if out.tty {
		o.Width = out.Width()
	}
	err := results.Write(a.stdout, s, o)
	if err == nil {
		a.printNotes(notes.All()...)
	}
	return err
}

// paramNames returns the names of the parameters of all jobs, also of jobs without a row, so that a
// table has the same columns from the beginning of a run to its end. areNamed reports whether jobs need
// their names to be told apart: a job has no parameters, or its name holds more than these, such as the
// command of a template of several.
func paramNames(table *jobs.Table) (names []string, areNamed bool) {
	for s := range table.AllSpecs() {
		params := s.Params()
		for k, p := range params {
			usual := k < len(names) && names[k] == p.Name
			if !usual && !slices.Contains(names, p.Name) {
				names = append(names, p.Name)
			}
		}
		areNamed = areNamed || len(params) == 0 || s.Name != "" && !strings.HasPrefix(s.Name, params[0].Name+"=")
	}
	return names, areNamed
}

// hasParams reports whether a job of the run has parameters.
func hasParams(table *jobs.Table) bool {
	for s := range table.AllSpecs() {
		if len(s.Params()) > 0 {
			return true
		}
	}
	return false
}
