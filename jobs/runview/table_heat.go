package runview

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"dcs-tui/jobs"
	"dcs-tui/jobs/query"
	"dcs-tui/jobs/results"
)

// heat makes a heat map.
func (m *made) heat(s *results.Table, ask *TableAsk) error {
	switch {
	case s.Len() > 0 || len(ask.Pivot) > 0:
	case m.of == 0:
		return errors.New("no job is over yet: there is nothing to draw")
	default:
		return errors.New("no job that is over matches the filter: there is nothing to draw")
	}
	words := ask.Pivot
	if len(words) == 0 {
		var err error
		if words, err = varying(m.table.Columns); err != nil {
			return err
		}
	}
	names, err := results.ParsePivot(words)
	if err != nil {
		return err
	}
	p, notes, err := s.PivotBy(names, ask.MinSize)
	if err != nil {
		return fmt.Errorf("%s", strings.ReplaceAll(err.Error(), "--where", "a filter"))
	}
	m.table.Notes = append(slices.Clip(notes), m.table.Notes...)
	g := p.Heat(HeatLevels)
	rows, columns := min(len(p.Rows), MaxHeat), min(len(p.Columns), MaxHeat)
	h := &Heat{Down: p.Down, Across: p.Across, Figure: p.Metric + ", " + p.Measure.String(),
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
	for _, v := range p.Columns[:columns] {
		h.Columns = append(h.Columns, person(across, v))
	}
	for i, v := range p.Rows[:rows] {
		h.Rows = append(h.Rows, person(down, v))
		texts, levels := make([]string, columns), make([]int8, columns)
		for k := range columns {
			texts[k], levels[k] = person(&unit, p.Cells[i][k]), int8(g.Level[i][k])
		}
		h.Cells, h.Levels = append(h.Cells, texts), append(h.Levels, levels)
	}
	if !math.IsNaN(g.Min) {
		h.Min, h.Max = person(&unit, query.NumberValue(g.Min)), person(&unit, query.NumberValue(g.Max))
	}
	m.table.Heat = h
	return nil
}

// repeating are the names of parameters that only repeat a job.
var repeating = []string{"seed", "rep", "repeat", "repetition", "trial", "fold", "run", "instance"}

// varying returns the two parameters that have several values, besides those that repeat
// jobs: the mean is over these.
func varying(columns []TableColumn) ([]string, error) {
	var words []string
	for _, c := range columns {
		if c.Vary {
			words = append(words, c.Name)
		}
	}
	if len(words) > 2 {
		words = slices.DeleteFunc(words, func(name string) bool { return slices.Contains(repeating, strings.ToLower(name)) })
	}
	names := jobs.Clean(strings.Join(words, ", "), 100)
	switch n := len(words); n {
	case 2:
		return words, nil
	case 0:
		names = "no parameter has several values"
	case 1:
		names = "only " + names + " has several values"
	default:
		names = fmt.Sprintf("%d parameters have several values (%s)", n, names)
	}
	return nil, fmt.Errorf("%s: :pivot C gamma acc says what goes down, what across and what is shown; over the rest is averaged", names)
}
