package cli

import (
	"context"
	"slices"
	"strings"

	"dcs-tui/internal/cli/console"
	"dcs-tui/internal/cli/exit"
	"dcs-tui/internal/cli/standing"
	"dcs-tui/jobs"
	"dcs-tui/jobs/results"
	"dcs-tui/jobs/results/column"
	"dcs-tui/jobs/results/export"
	"dcs-tui/jobs/results/outputs"
	"dcs-tui/jobs/results/sheet"
	"dcs-tui/jobs/rundir"
)

// question is what is asked of a table, read before the run is: a slip costs no time.
type question struct {
	*tableFlags
	columns  []*column.Column
	filters  []*sheet.Filter // all must hold
	having   []*sheet.Filter // of them, what names statistics of groups
	order    []sheet.Order
	best     *sheet.Order // nil: all
	measures []sheet.Measure
	measure  sheet.Measure // of the pivot
}

func (f *tableFlags) question() (*question, error) {
	q := &question{tableFlags: f, measures: sheet.AllMeasures(), measure: sheet.Mean}
	for _, text := range f.results {
		c, err := column.Parse(text)
		if err != nil {
			return nil, exit.Usagef("--result: %w", err)
		}
		if slices.ContainsFunc(q.columns, func(o *column.Column) bool { return o.Name == c.Name }) {
			return nil, exit.Usagef("--result: %s is given twice", c.Name)
		}
		q.columns = append(q.columns, c)
	}
	var err error
	if q.filters, err = parseWhere(f.where); err != nil {
		return nil, err
	}
	for _, text := range f.sort {
		o, err := sheet.ParseSort(text)
		if err != nil {
			return nil, exit.Usagef("--sort: %w", err)
		}
		q.order = append(q.order, o)
	}
	if f.best != "" {
		o, err := sheet.ParseBest(f.best)
		if err != nil {
			return nil, exit.Usagef("--best: %w", err)
		}
		q.best = &o
	}
	if len(f.stats) > 0 {
		q.measures = nil
		for _, word := range f.stats {
			m, err := sheet.ParseMeasure(word)
			if err != nil {
				return nil, exit.Usagef("--stats: %w", err)
			}
			q.measures = append(q.measures, m)
		}
	}
	if len(f.pivotOf) == 3 {
		if figure, word, ok := cutMeasure(f.pivotOf[2]); ok {
			m, err := sheet.ParseMeasure(word)
			if err != nil {
				return nil, exit.Usagef("--pivot: %w", err)
			}
			f.pivotOf[2], q.measure = figure, m
		}
	}
	return q, nil
}

func cutMeasure(word string) (figure, measure string, ok bool) {
	i := strings.LastIndexByte(word, ':')
	if i < 0 {
		return word, "", false
	}
	return word[:i], word[i+1:], true
}

// resultColumns are those that were declared when the run was made, and those asked
// for now; of two with one name the latter.
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

// runTable prints the table that was asked for. What it lacks is said on standard
// error, so that standard output is the table alone.
func (a *app) runTable(ctx context.Context, l *standing.Look, list []results.Result, columns []*column.Column, q *question) error {
	reader := outputs.New(l.Run, columns)
	reader.Remember()
	found, err := reader.Read(ctx, list, cwdsOf(l.Table, list))
	if err != nil {
		return err
	}
	whole := sheet.New(sheet.Input{Jobs: list, Params: paramNames(l.Table), Names: columnNames(columns), Figures: found.Values})
	if len(q.group) > 0 {
		q.filters, q.having = splitFilters(whole, q.filters)
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
		a.note(jobs.Plural(left, "job") + notOver(left))
	}
	return err
}

func notOver(n int) string {
	if n == 1 {
		return " is not over and has no row; --all shows it"
	}
	return " are not over and have no row; --all shows them"
}

// note says on standard error what a table lacks.
func (a *app) note(lines ...string) {
	for _, l := range lines {
		a.con.Line(a.con.Paint(console.Dim, "note: ") + console.CleanLine(l))
	}
}

// printSheet prints jobs or groups.
func (a *app) printSheet(s *sheet.Sheet, q *question, notes []string) error {
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
		} else if q.format == string(export.JSONL) { // programs want to know why, too
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
	if q.best != nil {
		if s, odd, err = best(s, *q.best); err != nil {
			return err
		}
	}
	if err := a.writeSheet(s, q); err != nil {
		return err
	}
	a.note(slices.Concat(notes, odd, q.formulas(s))...)
	return nil
}

// formulas are told of where a spreadsheet may come upon them.
func (q *question) formulas(s *sheet.Sheet) []string {
	if f := export.Format(q.format); f != export.CSV && f != export.TSV {
		return nil
	}
	return s.Formulas()
}

// group puts jobs together by --group; with no figures there is still the time.
func group(s *sheet.Sheet, q *question) (*sheet.Sheet, []string, error) {
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

// splitFilters parts what is asked of jobs from what is asked of their groups.
func splitFilters(s *sheet.Sheet, filters []*sheet.Filter) (rows, groups []*sheet.Filter) {
	for _, f := range filters {
		of, others := f.Split(s)
		if of != nil {
			rows = append(rows, of)
		}
		if others != nil {
			groups = append(groups, others)
		}
	}
	return rows, groups
}

// best keeps the best row alone.
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

func (a *app) printPivot(s *sheet.Sheet, q *question, notes []string) error {
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

func (a *app) writeSheet(s *sheet.Sheet, q *question) error {
	out := console.New(a.stdout)
	return export.Write(a.stdout, s, export.Options{Format: export.Format(q.format), Terminal: out.Live(), Color: out.Colored(), Width: terminalWidth(out)})
}

// terminalWidth is how wide a table may be; 0: as wide as it is, for what is no terminal.
func terminalWidth(out *console.Console) int {
	if !out.Live() {
		return 0
	}
	return out.Width()
}
