package cli

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
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

// resultsFlags holds the flags of results.
type resultsFlags struct {
	json, failed bool
	table        tableFlags
}

// tableFlags holds the flags of the table of results.
type tableFlags struct {
	results []string // NAME or NAME=HOW
	where   []string
	columns []string
	sort    []string
	best    string
	group   []string
	stats   []string
	minSize int
	pivot   pivotValue
	pivotOf []string // the three names of pivot; nil: no pivot table
	format  string
	all     bool
}

func (a *app) resultsCmd() *cobra.Command {
	f := &resultsFlags{table: tableFlags{format: string(results.TableFormat)}}
	cmd := &cobra.Command{
		Use:     "results [flags] [RUN]",
		GroupID: groupLook,
		Short:   "Print the results of the jobs of a run",
		Long: `Print one line per finished job, in the order of the jobs file. If the run has parameters, or with any flag other
than --json and --failed, print a table of parameters, metrics, state, time, and host instead. docs/results.md
explains metrics and groups. ` + runHelp,
		Example: `dcs-tui results --failed
dcs-tui results sweep-20260314-1502 --json | jq -r 'select(.exit == 3) | .stderr'
dcs-tui results --result acc --sort acc:desc
dcs-tui results --result 'acc=re:Accuracy: ([0-9.]+)' --group C,gamma --min-group-size 3
dcs-tui results --result acc=json:test.accuracy --pivot C gamma acc
dcs-tui results --result acc --where 'C>=0.1 and host=ws*' --format csv`,
		Args: func(_ *cobra.Command, args []string) error {
			_, rest, err := f.table.pivot.split(args)
			if err == nil && len(rest) > 1 {
				err = text.Errorf("only one RUN is allowed, not %s", text.Shorten(strings.Join(rest, " ")))
			}
			return err
		},
		ValidArgsFunction: completeRuns,
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if f.table.pivotOf, args, err = f.table.pivot.split(args); err != nil {
				return err
			}
			return a.runResults(cmd, args, f)
		},
	}
	fs := cmd.Flags()
	fs.BoolVar(&f.failed, "failed", false, "only jobs that failed or timed out")
	fs.StringArrayVar(&f.table.where, "where", nil, "only jobs that match `QUERY`, such as 'C>=0.1 and state=succeeded'; may be given several times; docs/query.md explains queries")
	fs.BoolVar(&f.table.all, "all", false, "also unfinished jobs")
	endGroup(fs, titleWhich)
	f.table.add(cmd)
	fs.BoolVar(&f.json, "json", false, "print one JSON object per job")
	endGroup(fs, titleOutput)
	return cmd
}

const resultHelp = "show `METRIC`: NAME, NAME=json:PATH, NAME=re:EXPR, NAME=key:OTHER, or NAME=file:PATH:HOW; may be given several times"

func (f *tableFlags) add(cmd *cobra.Command) {
	fs := cmd.Flags()
	f.pivot.flags = fs
	fs.StringArrayVar(&f.results, "result", nil, resultHelp)
	fs.StringSliceVar(&f.columns, "columns", nil, "show these `COLUMNS`; with --group: summarize these metrics")
	fs.StringSliceVar(&f.sort, "sort", nil, "sort by `COLUMN`, or by COLUMN:desc in descending order")
	fs.StringVar(&f.best, "best", "", "show only the best job or group: `COLUMN:max` or COLUMN:min")
	endGroup(fs, "Columns and order")
	fs.StringSliceVar(&f.group, "group", nil, "show one row for all jobs with the same values in `COLUMNS`, with measures of each metric")
	fs.StringSliceVar(&f.stats, "stats", nil, "show these `MEASURES` of groups: count,mean,sd,min,max,median (default: all)")
	fs.Var(&f.pivot, "pivot", "show a metric over two columns: ROWS COLUMNS METRIC, or ROWS,COLUMNS,METRIC:MEASURE (default mean)")
	fs.IntVar(&f.minSize, "min-group-size", 0, "leave out groups with fewer than `N` jobs that succeeded")
	endGroup(fs, "Groups and pivot tables")
	fs.Var(newChoice(&f.format, results.Formats...), "format", "`FORMAT` of the table: "+strings.Join(results.Formats, ", "))
	for _, name := range []string{"result", "columns", "sort", "best", "group", "min-group-size"} {
		cmd.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions)
	}
}

// given returns the first given flag of the table, or "".
func (f *tableFlags) given(fs *pflag.FlagSet) (name string) {
	fs.Visit(func(g *pflag.Flag) {
		if name == "" && g.Name != "json" && g.Name != "failed" {
			name = g.Name
		}
	})
	return name
}

// check refuses flags that cannot be combined.
func (f *tableFlags) check(fs *pflag.FlagSet) error {
	has := fs.Changed
	for _, pair := range [][2]string{{"pivot", "group"}, {"pivot", "sort"}, {"pivot", "best"}, {"pivot", "stats"}, {"pivot", "columns"}, {"best", "sort"}} {
		if has(pair[0]) && has(pair[1]) {
			return text.Errorf("--%s and --%s cannot be combined", pair[0], pair[1])
		}
	}
	switch {
	case has("stats") && !has("group"):
		return text.Errorf("--stats needs --group")
	case has("min-group-size") && !has("group") && !has("pivot"):
		return text.Errorf("--min-group-size needs --group or --pivot")
	case f.minSize < 0:
		return text.Errorf("--min-group-size %d is negative", f.minSize)
	}
	return nil
}

func (a *app) runResults(cmd *cobra.Command, args []string, f *resultsFlags) error {
	wants := f.table.given(cmd.Flags())
	if f.json && wants != "" {
		return text.Errorf("--json prints whole results and cannot be combined with --%s, which asks for a table; --format jsonl prints the table as JSON", wants)
	}
	if err := f.table.check(cmd.Flags()); err != nil {
		return err
	}
	q, err := f.table.ask()
	if err != nil {
		return err
	}
	l, err := a.look(args)
	if err != nil {
		return err
	}
	at := metrics.Locations(l.Run)
	list := at.Finished(l.Table)
	if f.table.all {
		list = append(list, at.Unfinished(l.Table)...)
	}
	if f.failed {
		list = slices.DeleteFunc(list, func(r results.Result) bool { return r.State != jobs.Failed && r.State != jobs.TimedOut })
	}
	if f.json { // by end; otherwise by job number
		slices.SortStableFunc(list, func(a, b results.Result) int { return cmp.Compare(a.Seq, b.Seq) })
	}
	columns := a.resultColumns(l.Run, q.columns)
	params := slices.ContainsFunc(l.Table.Jobs, func(j jobs.Job) bool { return len(j.Spec.Params) > 0 })
	if wants != "" || !f.json && !f.failed && (params || len(columns) > 0) {
		err = a.runTable(cmd.Context(), l, list, columns, q)
	} else {
		err = a.writeResults(list, f.json)
	}
	if errors.Is(err, syscall.EPIPE) {
		return nil
	}
	return err
}

func (a *app) writeResults(list []results.Result, asJSON bool) error {
	w := bufio.NewWriterSize(a.stdout, 64<<10)
	style := newConsole(a.stdout)
	var buf []byte
	for i := range list {
		buf = buf[:0]
		if asJSON {
			buf = list[i].AppendJSON(buf)
		} else {
			buf = append(append(buf, style.JobLine(&list[i])...), '\n')
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

// split returns the three names, and the arguments that are not part of the flag.
func (v *pivotValue) split(args []string) (names, rest []string, err error) {
	switch {
	case len(v.names) != 1:
		return v.names, args, nil
	case len(args) < v.at+2:
		return nil, nil, text.Errorf("--pivot needs rows, columns, and a metric, such as --pivot C gamma acc")
	}
	return append(v.names[:1:1], args[v.at:v.at+2]...), slices.Concat(args[:v.at], args[v.at+2:]), nil
}

// tableQuery has the parsed flags of the table. They are parsed before the run is read, so that an
// error is reported at once.
type tableQuery struct {
	*tableFlags
	columns  []*metrics.Metric
	filters  []*query.Query // all must hold
	order    []results.Order
	best     []results.Order // at most one
	measures []results.Measure
	pivot    results.PivotNames
}

func (f *tableFlags) ask() (*tableQuery, error) {
	q := &tableQuery{tableFlags: f}
	var errs [6]error
	q.columns, errs[0] = parseEach("result", f.results, metrics.Parse)
	q.filters, errs[1] = parseEach("where", f.where, query.Parse)
	q.order, errs[2] = parseEach("sort", f.sort, results.ParseSort)
	if f.best != "" {
		q.best, errs[3] = parseEach("best", []string{f.best}, results.ParseBest)
	}
	if q.measures, errs[4] = parseEach("stats", f.stats, results.ParseMeasure); len(q.measures) == 0 {
		q.measures = results.AllMeasures()
	}
	if len(f.pivotOf) > 0 {
		var err error
		if q.pivot, err = results.ParsePivot(f.pivotOf); err != nil {
			errs[5] = text.Errorf("--pivot: %w", err)
		}
	}
	if err := cmp.Or(errs[:]...); err != nil {
		return nil, err
	}
	for i, c := range q.columns {
		if slices.ContainsFunc(q.columns[:i], func(o *metrics.Metric) bool { return o.Name == c.Name }) {
			return nil, text.Errorf("--result: %s is given twice", c.Name)
		}
	}
	return q, nil
}

// parseEach parses the values of a flag.
func parseEach[T any](flag string, texts []string, parse func(string) (T, error)) ([]T, error) {
	var list []T
	for _, word := range texts {
		t, err := parse(word)
		if err != nil {
			return nil, text.Errorf("--%s: %w", flag, err)
		}
		list = append(list, t)
	}
	return list, nil
}

// resultColumns returns the columns that the run declares and those of the flags, which replace
// declared ones of the same name.
func (a *app) resultColumns(run *rundir.Run, asked []*metrics.Metric) []*metrics.Metric {
	columns, err := metrics.Declared(run.Asked)
	if err != nil {
		a.warn("%v", err)
	}
	for _, c := range asked {
		if i := slices.IndexFunc(columns, func(o *metrics.Metric) bool { return o.Name == c.Name }); i >= 0 {
			columns[i] = c
		} else {
			columns = append(columns, c)
		}
	}
	return columns
}

// runTable prints the table. Notes about it go to standard error.
func (a *app) runTable(ctx context.Context, l *look, list []results.Result, columns []*metrics.Metric, q *tableQuery) error {
	whole, notes, err := resultTable(ctx, l.Run, l.Table, list, columns, nil)
	if err != nil {
		return err
	}
	filters, having := q.filters, []*query.Query(nil)
	if len(q.group) > 0 {
		filters, having = whole.Split(filters)
	}
	s, odd, err := whole.Where(filters...)
	if err != nil {
		return text.Errorf("--where: %w", err)
	}
	notes = slices.Concat(notes, odd)
	if len(q.pivotOf) > 0 {
		err = a.printPivot(s, q, notes)
	} else {
		err = a.printRows(s, q, having, notes)
	}
	if order, wrong := results.ParseBest(metrics.Best(l.Run.Asked)); wrong == nil {
		a.printCourse(whole, order)
	}
	if left := l.Table.Unfinished(); err == nil && left > 0 && !q.all {
		a.note(jobs.Plural(left, "job") + jobs.Verb(left, " is not over and has no row; --all shows it", " are not over and have no row; --all shows them"))
	}
	return err
}

// resultTable reads the metrics of jobs and returns the table of them, with notes about what
// could not be read. The columns of others have no values.
func resultTable(ctx context.Context, run *rundir.Run, t *jobs.Table, list []results.Result, columns, others []*metrics.Metric) (*results.Table, []string, error) {
	reader := metrics.NewReader(run, columns)
	reader.Cache()
	found, err := reader.Read(ctx, list, cwdsOf(t, list))
	if err != nil {
		return nil, nil, err
	}
	names := columnNames(slices.Concat(columns, others))
	return results.NewTable(results.TableInput{Jobs: list, Params: paramNames(t), Names: names, Metrics: found.Values}), found.Notes, nil
}

// courseWidth is the number of steps of the course of a search that are shown.
const courseWidth = 24

// printCourse prints the best job of a search, and a graph of the best value over the trials.
func (a *app) printCourse(s *results.Table, order results.Order) {
	row, _, _, err := s.BestBy(order)
	if err != nil {
		return // there is none yet
	}
	column, _ := s.Column(order.Column)
	course, levels := "", []rune(a.con.Glyph("▁▂▃▄▅▆▇█", "_.-=#"))
	for _, v := range s.Course(order, courseWidth) {
		course += string(levels[int(v*float64(len(levels)-1)+0.5)])
	}
	a.con.Line(a.con.Paint(bold, "best: ") + text.Line(fmt.Sprintf("%s=%s (job %d)", order.Column, s.At(row, column).Text, s.Job(row))) + " " + course)
}

// note prints notes about a table on standard error.
func (a *app) note(lines ...string) {
	for _, l := range lines {
		a.con.Line(a.con.Paint(dim, "note: ") + text.Line(l))
	}
}

// printRows prints jobs or groups.
func (a *app) printRows(s *results.Table, q *tableQuery, having []*query.Query, notes []string) error {
	var odd []string
	var err error
	switch {
	case len(q.group) > 0:
		if s, odd, err = s.GroupBy(q.group, q.tableFlags.columns, q.measures, q.minSize, having); err != nil {
			return text.Errorf("--group: %w", err)
		}
	case len(q.tableFlags.columns) > 0:
		shown, err := s.Find(q.tableFlags.columns)
		if err != nil {
			return text.Errorf("--columns: %w", err)
		}
		s = s.Show(shown)
		odd = s.Missing(s.Metrics())
	default:
		if q.format == string(results.JSONLFormat) { // for programs
			s = s.AlsoShow("exit", "signal", "reason")
		}
		odd = s.Missing(s.Metrics())
	}
	if s, err = s.SortBy(q.order...); err != nil {
		return text.Errorf("--sort: %w", err)
	}
	if len(q.best) > 0 {
		row, ties, more, err := s.BestBy(q.best[0])
		if err != nil {
			return text.Errorf("--best: %w", err)
		}
		if odd = more; ties > 0 {
			odd = append(odd, jobs.Plural(ties, "more "+s.Unit())+" with the same "+q.best[0].Column)
		}
		s = s.Keep(func(r int) bool { return r == row })
	}
	return a.writeTable(s, q, append(notes, odd...))
}

func (a *app) printPivot(s *results.Table, q *tableQuery, notes []string) error {
	p, odd, err := s.PivotBy(q.pivot, q.minSize)
	if err != nil {
		return text.Errorf("--pivot: %w", err)
	}
	a.note(p.Title())
	return a.writeTable(p.Table(), q, append(notes, odd...))
}

// writeTable prints a table, and then notes about it.
func (a *app) writeTable(s *results.Table, q *tableQuery, notes []string) error {
	out := newConsole(a.stdout)
	format := results.Format(q.format)
	if format == results.CSVFormat || format == results.TSVFormat {
		notes = append(notes, s.Formulas()...)
	}
	err := results.Write(a.stdout, s, results.Options{Format: format, Terminal: out.Live(), Color: out.Colored(), Width: terminalWidth(out)})
	if err == nil {
		a.note(notes...)
	}
	return err
}

// terminalWidth is the maximum width of a table; 0, which means no limit, if out is not a terminal.
func terminalWidth(out *console) int {
	if !out.Live() {
		return 0
	}
	return out.Width()
}

func columnNames(columns []*metrics.Metric) []string {
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = c.Name
	}
	return names
}

// paramNames returns the names of the parameters of all jobs, also of jobs without a row, so that a
// table has the same columns from the beginning of a run to its end.
func paramNames(t *jobs.Table) []string {
	var names []string
	had := map[string]bool{}
	for i := range t.Jobs {
		for k, p := range t.Jobs[i].Spec.Params {
			if k < len(names) && names[k] == p.Name || had[p.Name] {
				continue // the usual case
			}
			had[p.Name] = true
			names = append(names, p.Name)
		}
	}
	return names
}

// cwdsOf returns a function for metrics.Reader: the directory of a job that has its own.
func cwdsOf(t *jobs.Table, list []results.Result) func(i int) string {
	return func(i int) string {
		if s := t.Job(list[i].Job).Spec; s.Options != nil {
			return s.Cwd
		}
		return ""
	}
}
