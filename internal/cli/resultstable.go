package cli

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"dcs-tui/internal/cli/console"
	"dcs-tui/internal/cli/exit"
	"dcs-tui/jobs"
	"dcs-tui/jobs/results"
	"dcs-tui/jobs/results/column"
	"dcs-tui/jobs/results/export"
	"dcs-tui/jobs/results/outputs"
	"dcs-tui/jobs/results/sheet"
	"dcs-tui/jobs/rundir"
)

// query is a table that the flags ask for. It is read before the run is, so that an error
// costs no time.
type query struct {
	*tableFlags
	columns  []*column.Column
	filters  []*sheet.Filter // all must hold
	having   []*sheet.Filter // those of filters that name statistics of groups
	order    []sheet.Order
	best     []sheet.Order // at most one
	measures []sheet.Measure
	measure  sheet.Measure // of the pivot
}

func (f *tableFlags) query() (*query, error) {
	q := &query{tableFlags: f, measure: sheet.Mean}
	var errs [5]error
	q.columns, errs[0] = parseEach("result", f.results, column.Parse)
	q.filters, errs[1] = parseEach("where", f.where, sheet.ParseFilter)
	q.order, errs[2] = parseEach("sort", f.sort, sheet.ParseSort)
	if f.best != "" {
		q.best, errs[3] = parseEach("best", []string{f.best}, sheet.ParseBest)
	}
	if q.measures, errs[4] = parseEach("stats", f.stats, sheet.ParseMeasure); len(q.measures) == 0 {
		q.measures = sheet.AllMeasures()
	}
	if err := cmp.Or(errs[:]...); err != nil {
		return nil, err
	}
	for i, c := range q.columns {
		if slices.ContainsFunc(q.columns[:i], func(o *column.Column) bool { return o.Name == c.Name }) {
			return nil, exit.Usagef("--result: %s is given twice", c.Name)
		}
	}
	if len(f.pivotOf) == 3 {
		if i := strings.LastIndexByte(f.pivotOf[2], ':'); i >= 0 {
			m, err := sheet.ParseMeasure(f.pivotOf[2][i+1:])
			if err != nil {
				return nil, exit.Usagef("--pivot: %w", err)
			}
			f.pivotOf[2], q.measure = f.pivotOf[2][:i], m
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
func (a *app) resultColumns(run *rundir.Run, asked []*column.Column) []*column.Column {
	columns, err := outputs.Declared(run.Asked)
	if err != nil {
		a.warn("%v", err)
	}
	for _, c := range asked {
		if i := slices.IndexFunc(columns, func(o *column.Column) bool { return o.Name == c.Name }); i >= 0 {
			columns[i] = c
		} else {
			columns = append(columns, c)
		}
	}
	return columns
}

// runTable prints the table. Notes about it go to standard error.
func (a *app) runTable(ctx context.Context, l *look, list []results.Result, columns []*column.Column, q *query) error {
	reader := outputs.New(l.Run, columns)
	reader.Remember()
	found, err := reader.Read(ctx, list, cwdsOf(l.Table, list))
	if err != nil {
		return err
	}
	whole := sheet.New(sheet.Input{Jobs: list, Params: paramNames(l.Table), Names: columnNames(columns), Figures: found.Values})
	if len(q.group) > 0 {
		filters := q.filters
		q.filters = nil
		for _, f := range filters {
			jobs, groups := f.Split(whole)
			if jobs != nil {
				q.filters = append(q.filters, jobs)
			}
			if groups != nil {
				q.having = append(q.having, groups)
			}
		}
	}
	s, odd, err := whole.WhereAll(q.filters)
	if err != nil {
		return exit.Usagef("--where: %w", err)
	}
	notes := slices.Concat(found.Notes, reader.Hints(list, found.Values), odd)
	if len(q.pivotOf) > 0 {
		err = a.printPivot(s, q, notes)
	} else {
		err = a.printSheet(s, q, notes)
	}
	if left := l.Table.Unfinished(); err == nil && left > 0 && !q.all {
		a.note(jobs.Plural(left, "job") + jobs.Verb(left, " is not over and has no row; --all shows it", " are not over and have no row; --all shows them"))
	}
	return err
}

// note prints notes about a table on standard error.
func (a *app) note(lines ...string) {
	for _, l := range lines {
		a.con.Line(a.con.Paint(console.Dim, "note: ") + console.CleanLine(l))
	}
}

// printSheet prints jobs or groups.
func (a *app) printSheet(s *sheet.Sheet, q *query, notes []string) error {
	var odd []string
	var err error
	if len(q.group) > 0 {
		if s, odd, err = group(s, q); err != nil {
			return err
		}
	} else {
		if len(q.tableFlags.columns) > 0 {
			shown, err := s.Find(q.tableFlags.columns)
			if err != nil {
				return exit.Usagef("--columns: %w", err)
			}
			s = s.Show(shown)
		} else if q.format == string(export.JSONL) { // for programs
			s = s.AlsoShow("exit", "signal", "reason")
		}
		odd = s.Missing(s.Figures())
	}
	for _, o := range slices.Backward(q.order) {
		at, err := s.Column(o.Column)
		if err != nil {
			return exit.Usagef("--sort: %w", err)
		}
		s = s.Sort(at, o.Desc)
	}
	if len(q.best) > 0 {
		if s, odd, err = best(s, q.best[0]); err != nil {
			return err
		}
	}
	if err := a.writeSheet(s, q); err != nil {
		return err
	}
	a.note(slices.Concat(notes, odd, q.formulas(s))...)
	return nil
}

// formulas returns notes about values that a spreadsheet would take for formulas.
func (q *query) formulas(s *sheet.Sheet) []string {
	if f := export.Format(q.format); f != export.CSV && f != export.TSV {
		return nil
	}
	return s.Formulas()
}

// group groups jobs by --group. Without figures it groups their run times.
func group(s *sheet.Sheet, q *query) (*sheet.Sheet, []string, error) {
	by, err := s.Find(q.group)
	if err != nil {
		return nil, nil, exit.Usagef("--group: %w", err)
	}
	figures := s.Figures()
	if len(q.tableFlags.columns) > 0 || len(figures) == 0 {
		names := q.tableFlags.columns
		if len(names) == 0 {
			names = []string{"time"}
		}
		if figures, err = s.Find(names); err != nil {
			return nil, nil, exit.Usagef("--columns: %w", err)
		}
	}
	grouped, notes := s.Group(sheet.Grouping{By: by, Figures: figures, Measures: q.measures, MinSize: q.minSize})
	grouped, odd, err := grouped.WhereAll(q.having)
	if err != nil {
		return nil, nil, exit.Usagef("--where: %w", err)
	}
	return grouped, append(notes, odd...), nil
}

// best keeps only the best row.
func best(s *sheet.Sheet, o sheet.Order) (*sheet.Sheet, []string, error) {
	at, err := s.Column(o.Column)
	if err != nil {
		return nil, nil, exit.Usagef("--best: %w", err)
	}
	row, ties, notes, ok := s.Best(at, o.Desc)
	if !ok {
		why := ""
		if len(notes) > 0 {
			why = ": " + notes[0]
		}
		return nil, nil, exit.Usagef("there is no best %s: no %s that succeeded has a number in %s%s", s.Unit(), s.Unit(), s.Columns[at].Name, why)
	}
	if ties > 0 {
		notes = append(notes, jobs.Plural(ties, "more "+s.Unit())+" with the same "+s.Columns[at].Name)
	}
	return s.Keep(func(r int) bool { return r == row }), notes, nil
}

func (a *app) printPivot(s *sheet.Sheet, q *query, notes []string) error {
	at, err := s.Find(q.pivotOf)
	if err != nil {
		return exit.Usagef("--pivot: %w", err)
	}
	p, odd, err := s.Pivot(sheet.PivotOf{Down: at[0], Across: at[1], Figure: at[2], Measure: q.measure, MinSize: q.minSize})
	if err != nil {
		return exit.Usagef("--pivot: %w", err)
	}
	if q.heat {
		out := console.New(a.stdout)
		err = export.Heat(a.stdout, p.Heat(export.HeatLevels), export.HeatOptions{Color: out.Colored(), ASCII: out.OnlyASCII(), Width: terminalWidth(out)})
	} else {
		a.note(p.Title())
		t := p.Sheet()
		err = a.writeSheet(t, q)
		odd = append(odd, q.formulas(t)...)
	}
	if err == nil {
		a.note(append(notes, odd...)...)
	}
	return err
}

func (a *app) writeSheet(s *sheet.Sheet, q *query) error {
	out := console.New(a.stdout)
	return export.Write(a.stdout, s, export.Options{Format: export.Format(q.format), Terminal: out.Live(), Color: out.Colored(), Width: terminalWidth(out)})
}

// terminalWidth is the maximum width of a table; 0, which means no limit, if out is not a terminal.
func terminalWidth(out *console.Console) int {
	if !out.Live() {
		return 0
	}
	return out.Width()
}

func columnNames(columns []*column.Column) []string {
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

// cwdsOf returns a function for outputs.Reader: the directory of a job that has its own.
func cwdsOf(t *jobs.Table, list []results.Result) func(i int) string {
	return func(i int) string {
		if s := t.Job(list[i].Job).Spec; s.Options != nil {
			return s.Cwd
		}
		return ""
	}
}
