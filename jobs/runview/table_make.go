package runview

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"dcs-tui/jobs"
	"dcs-tui/jobs/results/export"
	"dcs-tui/jobs/results/sheet"
)

// made is a table as it was made. It does not change.
type made struct {
	table   Table // all but the window of rows
	sheet   *sheet.Sheet
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
	f, d := t.figures(ask.Figures), &t.done
	for len(f.values) < len(d.list) {
		f.values = append(f.values, nil)
	}
	if f.reader == nil { // there is nothing to read
		f.known = len(d.list)
	}
	m := &made{changes: d.changes, figures: f.changes, edition: d.edition, read: f.known, of: len(d.list)}
	m.table.Ready, m.table.Wrong, m.table.Notes = true, f.wrong, f.notes
	m.table.Read, m.table.Jobs = m.read, m.of
	var hints []string
	if m.read == m.of { // else they may come
		hints = f.hint(d)
	}
	s := sheet.New(sheet.Input{Jobs: d.list, Params: d.known.params, Names: f.names, Figures: slices.Clone(f.values)})
	if err := t.fill(m, s, ask); err != nil && m.table.Wrong == "" {
		m.table.Wrong = err.Error()
	}
	m.table.Notes = slices.Concat(hints, m.table.Notes)
	if d.left > 0 {
		m.table.Notes = append([]string{fmt.Sprintf("there is room for %d jobs: %d more that are over are not in the table; `dcs-tui results` has all", len(d.list), d.left)}, m.table.Notes...)
	}
	m.table.Notes = m.table.Notes[:min(len(m.table.Notes), MaxTableNotes)]
	m.at = time.Now()
	m.current = d.at
	m.took = m.at.Sub(start)
	return m
}

// fill makes what was asked for of a sheet of all jobs that are over. What is wrong
// with the ask leaves the table as it is without it.
func (t *tables) fill(m *made, s *sheet.Sheet, ask *TableAsk) error {
	m.sheet, m.cells = s, s.Figures()
	f, err := parseSearch(ask.Filter)
	var odd []string
	var having *sheet.Filter // of groups
	if len(ask.Group) > 0 && !ask.Heat {
		f, having = f.Split(s)
	}
	if err == nil && f != nil {
		var found *sheet.Sheet
		if found, odd, err = s.Search(f, t.done.fitting(s)); err == nil {
			s = found
			_, other := t.done.known.compile(f)
			m.table.Figured = other != nil
		}
	}
	if err != nil {
		m.table.Page.Wrong = err.Error()
		if name := ofGroups(f, s); name != "" && having == nil {
			m.table.Page.Wrong = fmt.Sprintf("%s is of groups alone: m shows them", jobs.Clean(name, 40))
		}
		m.sheet = s.Keep(func(int) bool { return false })
		return nil
	}
	m.sheet, m.matched = s, s.Len()
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
		missing := s.Missing(s.Figures())
		m.table.Notes = append(m.table.Notes, missing[:min(len(missing), 2)]...) // each takes a line of the screen
	}
	if len(cut) > 0 {
		m.table.Notes = append([]string{fmt.Sprintf("there is room for %d parameters: %d more, %s and what follows, have no column", MaxTableNames, len(cut), cut[0])}, m.table.Notes...)
	}
	s, err = ordered(s, ask)
	m.sheet = s
	row, value, ties, errBest := best(s, ask.Best)
	if row >= 0 {
		m.table.Best, m.table.Value, m.table.Ties = s.Job(row), value, ties
	}
	if err == nil {
		err = errBest
	}
	return err
}

// ofGroups is the first column of a filter that s has not and groups have; "" if there is none.
func ofGroups(f *sheet.Filter, s *sheet.Sheet) string {
	_, others := f.Split(s)
	if others == nil {
		return ""
	}
	for _, name := range others.Columns() {
		of := name
		for _, m := range sheet.AllMeasures() {
			of = strings.TrimSuffix(of, "_"+m.String())
		}
		if _, err := s.Column(of); err == nil && of != name || name == "jobs" || name == "solved" {
			return name
		}
	}
	return ""
}

// columnsOf are those that a person may sort and group by, shown ones first, and
// parameters that there is no room for.
func columnsOf(s *sheet.Sheet) (list []TableColumn, cut []string) {
	shown := s.Shown()
	for i := range s.Columns {
		if !slices.Contains(shown, i) {
			shown = append(shown, i)
		}
	}
	params := 0
	for _, i := range shown {
		c := TableColumn{Name: s.Heading(i), Role: TableRole(s.Columns[i].Role)}
		if c.Role == Param {
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

// varies says that a column has several values.
func varies(s *sheet.Sheet, column int) bool {
	first := sheet.Value{}
	for row := range s.Len() {
		switch v := s.At(row, column); {
		case v.Kind == sheet.Nothing:
		case first.Kind == sheet.Nothing:
			first = v
		case v.Text != first.Text:
			return true
		}
	}
	return false
}

// ordered sorts rows as asked for.
func ordered(s *sheet.Sheet, ask *TableAsk) (*sheet.Sheet, error) {
	if ask.By == "" {
		if !ask.Reverse || s.Len() == 0 {
			return s, nil
		}
		if s.Unit() == "job" {
			return s.Sort(0, true), nil
		}
		return s, nil
	}
	column, err := s.Column(ask.By)
	if err != nil {
		return s, err
	}
	return s.Sort(column, ask.Reverse), nil
}

// best finds the best row; -1: none is.
func best(s *sheet.Sheet, text string) (row int, value string, ties int, err error) {
	if text == "" {
		return -1, "", 0, nil
	}
	order, err := sheet.ParseBest(text)
	if err != nil {
		return -1, "", 0, err
	}
	column, err := s.Column(order.Column)
	if err != nil {
		return -1, "", 0, err
	}
	row, ties, _, ok := s.Best(column, order.Desc)
	if !ok {
		return -1, "", 0, nil
	}
	return row, cell(s, row, column), ties, nil
}

// cell is one for people, bounded.
func cell(s *sheet.Sheet, row, column int) string {
	return person(&s.Columns[column], s.At(row, column))
}

func person(c *sheet.Column, v sheet.Value) string {
	if v.Kind != sheet.Number {
		return v.Text[:min(len(v.Text), MaxTableCell)]
	}
	return export.ForPeople(c, v)
}

// group makes a row a group of jobs, of groups for which having holds; nil: of all.
func (m *made) group(s *sheet.Sheet, ask *TableAsk, having *sheet.Filter) error {
	by, err := s.Find(ask.Group)
	if err != nil {
		return err
	}
	measured := s.Figures()
	if len(measured) == 0 {
		if at, err := s.Column("time"); err == nil {
			measured = []int{at}
		}
	}
	measured = measured[:min(len(measured), MaxTableNames)]
	g, notes := s.Group(sheet.Grouping{By: by, Figures: measured, Measures: sheet.AllMeasures(), MinSize: ask.MinSize})
	m.table.Notes = append(slices.Clip(notes), m.table.Notes...)
	if having != nil {
		found, odd, err := g.Where(having)
		if err != nil {
			m.table.Page.Wrong, found = err.Error(), g.Keep(func(int) bool { return false })
		}
		m.table.Notes, g = append(odd, m.table.Notes...), found
	}
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
		out.Columns = append(out.Columns, TableColumn{Name: g.Heading(i), Role: TableRole(c.Role)})
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
