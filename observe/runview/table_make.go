package runview

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"dcs-tui/internal/text"
	"dcs-tui/jobs/query"
	"dcs-tui/jobs/results"
)

// madeTable is a computed table. It does not change.
type madeTable struct {
	table Table // everything except the window of rows
	rows  *results.Table
	cells []int // indexes of the columns that are metrics

	at      time.Time
	took    time.Duration
	current time.Time // last time at which it was known to be current
	changes int       // value of tables.changes when it was made
	edition uint64    // edition of the View's list
}

// make computes a table of what is known now. unread is the number of jobs whose metrics are not
// known yet.
func (t *tables) make(ask *TableQuery, unread int) *madeTable {
	start := time.Now()
	f, d := t.metrics, &t.done
	m := &madeTable{changes: t.changes, edition: d.edition, current: d.madeAt}
	m.table = Table{Ready: true, Wrong: f.wrong, Notes: f.notes, Read: len(d.list) - unread, Jobs: len(d.list)}
	if len(ask.Group) > 0 || ask.Heat { // jobs that are not over are missing in each group
		t.updateOpen()
	} else {
		t.open = openJobs{}
	}
	s := results.NewTable(results.TableInput{Rows: results.RowsOfBoth(d.list, t.open.list),
		Params: d.known.params.Values, Names: f.names, Metrics: slices.Clone(d.values),
		Elsewhere: d.numOpen - len(t.open.list)})
	if err := t.fill(m, s, ask); err != nil && m.table.Wrong == "" {
		m.table.Wrong = err.Error()
	}
	if d.left > 0 {
		m.note(fmt.Sprintf("there is room for %d jobs: %d more finished jobs are not in the table; "+
			"`dcs-tui results` prints all", len(d.list), d.left))
	}
	m.table.Notes = m.table.Notes[:min(len(m.table.Notes), MaxTableNotes)]
	m.at = time.Now()
	m.took = m.at.Sub(start)
	return m
}

// note inserts notes before the existing ones.
func (m *madeTable) note(notes ...string) { m.table.Notes = slices.Concat(notes, m.table.Notes) }

// fill computes the requested parts of a table from s, the table of all finished jobs. If the query
// has an error, the table stays as it is without the query.
func (t *tables) fill(m *madeTable, s *results.Table, ask *TableQuery) error {
	m.rows, m.cells = s, s.Metrics()
	var filter, having []*query.Query // queries over jobs and over groups
	q, err := parseSearch(ask.Filter)
	if q != nil {
		filter = []*query.Query{q}
		_, other := t.done.known.compile(q)
		m.table.NamesMetrics = other != nil
	}
	if len(ask.Group) > 0 && !ask.Heat {
		filter, having = s.Split(filter)
	}
	found, odd := s, []string(nil)
	if err == nil {
		found, odd, err = s.Where(filter...)
	}
	if err != nil {
		m.table.Page.Wrong = err.Error()
		if name := groupOnlyColumn(filter, s); name != "" && len(having) == 0 {
			m.table.Page.Wrong = fmt.Sprintf("%s exists only for groups: m shows them", text.Clean(name, 40))
		}
		m.rows = s.Keep(func(int) bool { return false })
		return nil
	}
	s = found
	m.rows, m.table.Page.Matched = s, s.Over().Len()
	noted := len(m.table.Notes) > 0
	read := m.table.Read == m.table.Jobs
	if read { // otherwise some metrics may not be read yet
		m.note(odd...)
	}
	var cut []string
	m.table.Columns, cut = columnsOf(s)
	switch {
	case ask.Heat:
		return m.heat(s, ask)
	case len(ask.Group) > 0:
		return m.group(s, ask, having)
	}
	if read && !noted { // otherwise a note has reported that
		missing := s.MissingValues(s.Metrics()).Others
		// Each takes a line of the screen.
		m.table.Notes = append(m.table.Notes, missing[:min(len(missing), 2)]...)
	}
	if len(cut) > 0 {
		m.note(fmt.Sprintf("there is room for %d parameters: %d more, %s and what follows, have no column",
			MaxTableNames, len(cut), cut[0]))
	}
	all := s
	s, err = sortRows(s, ask)
	m.rows = s
	row, errBest := m.best(s, ask.Best)
	if row >= 0 {
		m.table.Best = s.Job(row)
		order, _ := results.ParseBest(ask.Best) // best has checked it
		m.table.Course = all.BestOverTime(order, courseSteps)
	}
	return cmp.Or(err, errBest)
}

// groupOnlyColumn returns the first column that queries name and that groups have but s does not,
// or "" if there is none.
func groupOnlyColumn(queries []*query.Query, s *results.Table) string {
	_, others := s.Split(queries)
	for _, q := range others {
		for _, name := range q.Names(false) {
			of := name
			for _, m := range results.AllMeasures() {
				of = strings.TrimSuffix(of, "_"+m.String())
			}
			if _, err := s.Column(of); err == nil && of != name || name == "jobs" || name == "solved" {
				return name
			}
		}
	}
	return ""
}

// columnsOf returns the columns that a person can sort and group by, shown ones first, and the
// names of parameters that exceed the limit.
func columnsOf(s *results.Table) (list []TableColumn, cut []string) {
	shown := s.ShownColumns()
	for i := range s.Columns {
		if !slices.Contains(shown, i) {
			shown = append(shown, i)
		}
	}
	params := 0
	for _, i := range shown {
		c := TableColumn{Name: s.Heading(i), Role: s.Columns[i].Role}
		if c.Role == results.Param {
			params++
			if params > MaxTableNames {
				cut = append(cut, c.Name)
				continue
			}
			c.Vary = isVarying(s, i)
		}
		list = append(list, c)
	}
	return list, cut
}

// isVarying reports whether a column has several values.
func isVarying(s *results.Table, column int) bool {
	first := query.Value{}
	for row := range s.Len() {
		switch v := s.At(row, column); {
		case v.Kind == query.Absent:
		case first.Kind == query.Absent:
			first = v
		case v.Text != first.Text:
			return true
		}
	}
	return false
}

func sortRows(s *results.Table, ask *TableQuery) (*results.Table, error) {
	switch {
	case ask.By != "":
		return s.SortBy(results.Order{Column: ask.By, Desc: ask.Reverse})
	case ask.Reverse && s.Unit() == "job":
		return s.Sort(0, true), nil
	}
	return s, nil
}

// best finds the best row and sets the fields of the table that describe it. It returns -1 if there
// is none.
func (m *madeTable) best(s *results.Table, text string) (row int, err error) {
	if text == "" {
		return -1, nil
	}
	order, err := results.ParseBest(text)
	if err != nil {
		return -1, err
	}
	if _, err := s.Column(order.Column); err != nil {
		return -1, err
	}
	best, err := s.BestBy(order)
	if err != nil { // no job has a value yet
		return -1, nil
	}
	m.table.Value, m.table.Ties, m.table.BestOf = cell(s, best.Row, best.Column), best.Ties, best.Basis.Text(s.Unit())
	return best.Row, nil
}

// courseSteps is the number of steps of Table.Course.
const courseSteps = 24

// cell formats a cell for people, with a limited length.
func cell(s *results.Table, row, column int) string {
	return formatForPeople(&s.Columns[column], s.At(row, column))
}

func formatForPeople(c *results.Column, v query.Value) string {
	if v.Kind != query.Number {
		return v.Text[:min(len(v.Text), MaxTableCell)]
	}
	return results.FormatForPeople(c, v)
}

// group computes one row for each group of jobs that matches all queries.
func (m *madeTable) group(s *results.Table, ask *TableQuery, having []*query.Query) error {
	measured := text.Each(s.Metrics(), func(column int) string { return s.Columns[column].Name })
	g, notes, err := s.Group(results.Grouping{By: ask.Group, Metrics: measured[:min(len(measured), MaxTableNames)],
		Measures: results.AllMeasures(),
		MinSize:  ask.MinSize, Where: having, Started: true})
	if wrong, ok := errors.AsType[*query.Error](err); ok {
		m.table.Page.Wrong = wrong.Error()
		if g, notes, err = s.Group(results.Grouping{By: ask.Group}); err == nil {
			g = g.Keep(func(int) bool { return false })
		}
	}
	if err != nil {
		return err
	}
	m.note(notes.All()...)
	g, err = sortRows(g, ask)
	out := &TableGroups{Best: -1, Partial: len(notes.Basis) > 0, More: max(0, g.Len()-MaxTableGroups)}
	row, errBest := m.best(g, ask.Best)
	if row < MaxTableGroups {
		out.Best = row
	}
	for i, c := range g.Columns {
		out.Columns = append(out.Columns, TableColumn{Name: g.Heading(i), Role: c.Role})
	}
	for row := range min(g.Len(), MaxTableGroups) {
		line := make([]string, len(g.Columns))
		for i := range g.Columns {
			line[i] = cell(g, row, i)
		}
		out.Rows = append(out.Rows, line)
	}
	m.table.Groups = out
	return cmp.Or(err, errBest)
}

// heat computes a heat map.
func (m *madeTable) heat(s *results.Table, ask *TableQuery) error {
	switch {
	case m.table.Page.Matched > 0 || len(ask.Pivot) > 0:
	case m.table.Jobs == 0:
		return errors.New("no job is over yet: there is nothing to draw")
	default:
		return errors.New("no job that is over matches the filter: there is nothing to draw")
	}
	words := ask.Pivot
	if len(words) == 0 {
		var err error
		if words, err = varyingParams(m.table.Columns); err != nil {
			return err
		}
	}
	of, err := results.ParsePivot(words)
	if err != nil {
		return err
	}
	of.MinSize, of.Started = ask.MinSize, true
	p, notes, err := s.Pivot(of)
	if err != nil {
		return err
	}
	m.note(notes.All()...)
	level, lowest, highest := p.Heat(HeatLevels)
	rows, columns := min(len(p.Rows), MaxHeat), min(len(p.Columns), MaxHeat)
	h := &Heat{Down: p.Down, Across: p.Across, Metric: p.Metric + ", " + p.Measure.String(),
		MoreRows: len(p.Rows) - rows, MoreColumns: len(p.Columns) - columns}
	unit := results.Column{Role: results.Stat, Type: p.Type}
	side := func(name string) *results.Column {
		at, err := s.Column(name)
		if err != nil {
			return &results.Column{}
		}
		return &s.Columns[at]
	}
	down, across := side(p.Down), side(p.Across)
	h.Columns = text.Each(p.Columns[:columns], func(v query.Value) string { return formatForPeople(across, v) })
	for i, v := range p.Rows[:rows] {
		h.Rows = append(h.Rows, formatForPeople(down, v))
		texts, levels, basis := make([]string, columns), make([]int8, columns), make([]string, columns)
		for k := range columns {
			texts[k], levels[k], basis[k] = formatForPeople(&unit,
				p.Cells[i][k]), level[i][k], p.Basis[i][k].Text("job")
		}
		h.Cells, h.Levels, h.Basis = append(h.Cells, texts), append(h.Levels, levels), append(h.Basis, basis)
	}
	if !math.IsNaN(lowest) {
		h.Min, h.Max = formatForPeople(&unit, query.NumberValue(lowest)), formatForPeople(&unit,
			query.NumberValue(highest))
	}
	m.table.Heat = h
	return nil
}

// IsRepetition reports whether a parameter with this name only distinguishes repetitions of a job.
func IsRepetition(name string) bool {
	switch strings.ToLower(name) {
	case "seed", "rep", "repeat", "repetition", "trial", "fold", "run", "instance":
		return true
	}
	return false
}

// varyingParams returns the two parameters that have several values, without those that only
// distinguish repetitions, over which the mean is taken. Those count only if the run has fewer than
// two other parameters. It does not matter how many values the others have so far.
func varyingParams(columns []TableColumn) ([]string, error) {
	var words []string
	others := 0 // parameters that do not distinguish repetitions
	for _, c := range columns {
		if c.Vary {
			words = append(words, c.Name)
		}
		if c.Role == results.Param && !IsRepetition(c.Name) {
			others++
		}
	}
	if others >= 2 {
		words = slices.DeleteFunc(words, IsRepetition)
	}
	names := text.Clean(strings.Join(words, ", "), 100)
	switch n := len(words); n {
	case 2:
		return words, nil
	case 0:
		names = "no parameter has several values yet"
	case 1:
		names = "only " + names + " has several values so far"
	default:
		names = fmt.Sprintf("%d parameters have several values (%s)", n, names)
	}
	return nil, fmt.Errorf("%s: :pivot C gamma acc chooses the rows, the columns, and the metric, "+
		"which is averaged over everything else", names)
}
