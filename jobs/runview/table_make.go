package runview

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"dcs-tui/jobs"
	"dcs-tui/jobs/query"
	"dcs-tui/jobs/results"
)

// made is a table as it was made. It does not change.
type made struct {
	table   Table // all but the window of rows
	rows    *results.Table
	cells   []int // columns that are figures
	matched int

	at               time.Time
	took             time.Duration
	current          time.Time // when it was last known to be what it would be if made anew
	read, of         int
	changes, figures int // of what it was made of
	edition          uint64
}

// make makes a table of what is known now.
func (t *tables) make(ask *TableAsk) *made {
	start := time.Now()
	f, d := t.figuresOf(ask.Figures), &t.done
	for len(f.values) < len(d.list) {
		f.values = append(f.values, nil)
	}
	if f.reader == nil { // there is nothing to read
		f.known = len(d.list)
	}
	m := &made{changes: d.changes, figures: f.changes, edition: d.edition, read: f.known, of: len(d.list)}
	m.table.Ready, m.table.Wrong, m.table.Notes = true, f.wrong, f.notes
	m.table.Read, m.table.Jobs = m.read, m.of
	s := results.NewTable(results.TableInput{Jobs: d.list, Params: d.known.params, Names: f.names, Metrics: slices.Clone(f.values)})
	if err := t.fill(m, s, ask); err != nil && m.table.Wrong == "" {
		m.table.Wrong = err.Error()
	}
	if d.left > 0 {
		m.table.Notes = append([]string{fmt.Sprintf("there is room for %d jobs: %d more that are over are not in the table; `dcs-tui results` has all", len(d.list), d.left)}, m.table.Notes...)
	}
	m.table.Notes = m.table.Notes[:min(len(m.table.Notes), MaxTableNotes)]
	m.at = time.Now()
	m.current = d.at
	m.took = m.at.Sub(start)
	return m
}

// fill makes what was asked for of a table of all jobs that are over. What is wrong
// with the ask leaves the table as it is without it.
func (t *tables) fill(m *made, s *results.Table, ask *TableAsk) error {
	m.rows, m.cells = s, s.Metrics()
	var filter, having []*query.Query // of jobs and of groups
	q, err := parseSearch(ask.Filter)
	if q != nil {
		filter = []*query.Query{q}
		_, other := t.done.known.compile(q)
		m.table.Figured = other != nil
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
		if name := ofGroups(filter, s); name != "" && len(having) == 0 {
			m.table.Page.Wrong = fmt.Sprintf("%s is of groups alone: m shows them", jobs.Clean(name, 40))
		}
		m.rows = s.Keep(func(int) bool { return false })
		return nil
	}
	s = found
	m.rows, m.matched = s, s.Len()
	noted := len(m.table.Notes) > 0
	if m.read == m.of { // else some may not be read yet
		m.table.Notes = append(odd, m.table.Notes...)
	}
	var cut []string
	m.table.Columns, cut = columnsOf(s)
	switch {
	case ask.Heat:
		return m.heat(s, ask)
	case len(ask.Group) > 0:
		return m.group(s, ask, having)
	}
	if m.read == m.of && !noted { // else that was said
		missing := s.Missing(s.Metrics())
		m.table.Notes = append(m.table.Notes, missing[:min(len(missing), 2)]...) // each takes a line of the screen
	}
	if len(cut) > 0 {
		m.table.Notes = append([]string{fmt.Sprintf("there is room for %d parameters: %d more, %s and what follows, have no column", MaxTableNames, len(cut), cut[0])}, m.table.Notes...)
	}
	all := s
	s, err = ordered(s, ask)
	m.rows = s
	row, value, ties, errBest := best(s, ask.Best)
	if row >= 0 {
		m.table.Best, m.table.Value, m.table.Ties = s.Job(row), value, ties
		order, _ := results.ParseBest(ask.Best) // which best has read
		m.table.Course = all.Course(order, courseSteps)
	}
	if err == nil {
		err = errBest
	}
	return err
}

// ofGroups returns the first column that queries name, s does not have, and groups have;
// "" if there is none.
func ofGroups(queries []*query.Query, s *results.Table) string {
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

// columnsOf are those that a person may sort and group by, shown ones first, and
// parameters that there is no room for.
func columnsOf(s *results.Table) (list []TableColumn, cut []string) {
	shown := s.Shown()
	for i := range s.Columns {
		if !slices.Contains(shown, i) {
			shown = append(shown, i)
		}
	}
	params := 0
	for _, i := range shown {
		c := TableColumn{Name: s.Heading(i), Role: s.Columns[i].Role}
		if c.Role == results.Param {
			if params++; params > MaxTableNames {
				cut = append(cut, c.Name)
				continue
			}
			c.Vary = varies(s, i)
		}
		list = append(list, c)
	}
	return list, cut
}

// varies reports whether a column has several values.
func varies(s *results.Table, column int) bool {
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

// ordered sorts rows as asked for.
func ordered(s *results.Table, ask *TableAsk) (*results.Table, error) {
	if ask.By == "" {
		if !ask.Reverse || s.Len() == 0 {
			return s, nil
		}
		if s.Unit() == "job" {
			return s.Sort(0, true), nil
		}
		return s, nil
	}
	return s.SortBy(results.Order{Column: ask.By, Desc: ask.Reverse})
}

// best finds the best row; -1: none is.
func best(s *results.Table, text string) (row int, value string, ties int, err error) {
	if text == "" {
		return -1, "", 0, nil
	}
	order, err := results.ParseBest(text)
	if err != nil {
		return -1, "", 0, err
	}
	column, err := s.Column(order.Column)
	if err != nil {
		return -1, "", 0, err
	}
	row, ties, _, err = s.BestBy(order)
	if err != nil { // there is none yet
		return -1, "", 0, nil
	}
	return row, cell(s, row, column), ties, nil
}

// courseSteps is the number of steps in which a Table has the course of the best.
const courseSteps = 24

// cell is one for people, bounded.
func cell(s *results.Table, row, column int) string {
	return person(&s.Columns[column], s.At(row, column))
}

func person(c *results.Column, v query.Value) string {
	if v.Kind != query.Number {
		return v.Text[:min(len(v.Text), MaxTableCell)]
	}
	return results.ForPeople(c, v)
}

// group makes a row a group of jobs, of the groups that match all queries.
func (m *made) group(s *results.Table, ask *TableAsk, having []*query.Query) error {
	var measured []string
	for _, i := range s.Metrics() {
		measured = append(measured, s.Columns[i].Name)
	}
	g, notes, err := s.GroupBy(ask.Group, measured[:min(len(measured), MaxTableNames)], results.AllMeasures(), ask.MinSize, having)
	var wrong *query.Error
	if errors.As(err, &wrong) {
		m.table.Page.Wrong = wrong.Error()
		if g, notes, err = s.GroupBy(ask.Group, nil, nil, 0, nil); err == nil {
			g = g.Keep(func(int) bool { return false })
		}
	}
	if err != nil {
		return err
	}
	m.table.Notes = append(slices.Clip(notes), m.table.Notes...)
	g, err = ordered(g, ask)
	out := &TableGroups{Best: -1, More: max(0, g.Len()-MaxTableGroups)}
	row, value, ties, errBest := best(g, ask.Best)
	if row >= 0 {
		m.table.Value, m.table.Ties = value, ties
		if row < MaxTableGroups {
			out.Best = row
		}
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
	if err == nil {
		err = errBest
	}
	return err
}
