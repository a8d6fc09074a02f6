package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"dcs-tui/internal/cli/console"
	"dcs-tui/internal/cli/exit"
	"dcs-tui/jobs"
	"dcs-tui/jobs/metrics"
	"dcs-tui/jobs/query"
	"dcs-tui/jobs/results"
	"dcs-tui/jobs/rundir"
)

// tableAsk is a table that the flags ask for. It is read before the run is, so that an error
// costs no time.
type tableAsk struct {
	*tableFlags
	columns  []*metrics.Metric
	filters  []*query.Query // all must hold
	order    []results.Order
	best     []results.Order // at most one
	measures []results.Measure
	pivot    results.PivotNames
}

func (f *tableFlags) ask() (*tableAsk, error) {
	q := &tableAsk{tableFlags: f}
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
			errs[5] = exit.Usagef("--pivot: %w", err)
		}
	}
	if err := cmp.Or(errs[:]...); err != nil {
		return nil, err
	}
	for i, c := range q.columns {
		if slices.ContainsFunc(q.columns[:i], func(o *metrics.Metric) bool { return o.Name == c.Name }) {
			return nil, exit.Usagef("--result: %s is given twice", c.Name)
		}
	}
	return q, nil
}

// parseEach parses the values of a flag.
func parseEach[T any](flag string, texts []string, parse func(string) (T, error)) ([]T, error) {
	var list []T
	for _, text := range texts {
		t, err := parse(text)
		if err != nil {
			return nil, exit.Usagef("--%s: %w", flag, err)
		}
		list = append(list, t)
	}
	return list, nil
}

// resultColumns returns the columns that the run declares and those asked for, which
// replace declared ones of the same name.
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
func (a *app) runTable(ctx context.Context, l *look, list []results.Result, columns []*metrics.Metric, q *tableAsk) error {
	whole, notes, err := a.resultTable(ctx, l, list, columns)
	if err != nil {
		return err
	}
	filters, having := q.filters, []*query.Query(nil)
	if len(q.group) > 0 {
		filters, having = whole.Split(filters)
	}
	s, odd, err := whole.Where(filters...)
	if err != nil {
		return exit.Usagef("--where: %w", err)
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
// could not be read.
func (a *app) resultTable(ctx context.Context, l *look, list []results.Result, columns []*metrics.Metric) (*results.Table, []string, error) {
	reader := metrics.NewReader(l.Run, columns)
	reader.Remember()
	found, err := reader.Read(ctx, list, cwdsOf(l.Table, list))
	if err != nil {
		return nil, nil, err
	}
	return results.NewTable(results.TableInput{Jobs: list, Params: paramNames(l.Table), Names: columnNames(columns), Metrics: found.Values}), found.Notes, nil
}

// courseWidth is the number of steps in which the course of a search is shown.
const courseWidth = 24

// printCourse prints the best job of a search and how the best has changed over the trials.
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
	a.con.Line(a.con.Paint(console.Bold, "best: ") + console.CleanLine(fmt.Sprintf("%s=%s (job %d)", order.Column, s.At(row, column).Text, s.Job(row))) + " " + course)
}

// note prints notes about a table on standard error.
func (a *app) note(lines ...string) {
	for _, l := range lines {
		a.con.Line(a.con.Paint(console.Dim, "note: ") + console.CleanLine(l))
	}
}

// printRows prints jobs or groups.
func (a *app) printRows(s *results.Table, q *tableAsk, having []*query.Query, notes []string) error {
	var odd []string
	var err error
	switch {
	case len(q.group) > 0:
		if s, odd, err = s.GroupBy(q.group, q.tableFlags.columns, q.measures, q.minSize, having); err != nil {
			return exit.Usagef("--group: %w", err)
		}
	case len(q.tableFlags.columns) > 0:
		shown, err := s.Find(q.tableFlags.columns)
		if err != nil {
			return exit.Usagef("--columns: %w", err)
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
		return exit.Usagef("--sort: %w", err)
	}
	if len(q.best) > 0 {
		row, ties, more, err := s.BestBy(q.best[0])
		if err != nil {
			return exit.Usagef("--best: %w", err)
		}
		if odd = more; ties > 0 {
			odd = append(odd, jobs.Plural(ties, "more "+s.Unit())+" with the same "+q.best[0].Column)
		}
		s = s.Keep(func(r int) bool { return r == row })
	}
	return a.writeTable(s, q, append(notes, odd...))
}

func (a *app) printPivot(s *results.Table, q *tableAsk, notes []string) error {
	p, odd, err := s.PivotBy(q.pivot, q.minSize)
	if err != nil {
		return exit.Usagef("--pivot: %w", err)
	}
	a.note(p.Title())
	return a.writeTable(p.Table(), q, append(notes, odd...))
}

// writeTable prints a table, and then notes about it.
func (a *app) writeTable(s *results.Table, q *tableAsk, notes []string) error {
	out := console.New(a.stdout)
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
func terminalWidth(out *console.Console) int {
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

// paramNames returns the parameters of all jobs, also of those without a row, so that a
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
