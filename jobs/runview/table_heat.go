package runview

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"dcs-tui/jobs"
	"dcs-tui/jobs/results/sheet"
)

// heat makes a heat map.
func (m *made) heat(s *sheet.Sheet, ask *TableAsk) error {
	switch {
	case s.Len() > 0 || len(ask.Pivot) > 0:
	case m.of == 0:
		return errors.New("no job is over yet: there is nothing to draw")
	default:
		return errors.New("no job that is over matches the filter: there is nothing to draw")
	}
	of, err := pivotOf(s, ask, m.table.Columns)
	if err != nil {
		return err
	}
	of.MinSize = ask.MinSize
	p, notes, err := s.Pivot(of)
	if err != nil {
		return fmt.Errorf("%s", strings.ReplaceAll(err.Error(), "--where", "a filter"))
	}
	m.table.Notes = append(slices.Clip(notes), m.table.Notes...)
	g := p.Heat(HeatLevels)
	rows, columns := min(len(p.Rows), MaxHeat), min(len(p.Columns), MaxHeat)
	h := &Heat{Down: p.Down, Across: p.Across, Figure: p.Figure + ", " + p.Measure.String(),
		MoreRows: len(p.Rows) - rows, MoreColumns: len(p.Columns) - columns}
	unit := sheet.Column{Role: sheet.Stat, Unit: s.Columns[of.Figure].Unit}
	if of.Measure == sheet.Count {
		unit.Unit = sheet.None
	}
	for _, v := range p.Columns[:columns] {
		h.Columns = append(h.Columns, person(&s.Columns[of.Across], v))
	}
	for i, v := range p.Rows[:rows] {
		h.Rows = append(h.Rows, person(&s.Columns[of.Down], v))
		texts, levels := make([]string, columns), make([]int8, columns)
		for k := range columns {
			texts[k], levels[k] = person(&unit, p.Cells[i][k]), int8(g.Level[i][k])
		}
		h.Cells, h.Levels = append(h.Cells, texts), append(h.Levels, levels)
	}
	if !math.IsNaN(g.Min) {
		h.Min, h.Max = person(&unit, sheet.NumberValue(g.Min)), person(&unit, sheet.NumberValue(g.Max))
	}
	m.table.Heat = h
	return nil
}

// repeating are the names of parameters that only repeat a job.
var repeating = []string{"seed", "rep", "repeat", "repetition", "trial", "fold", "run", "instance"}

// pivotOf says what a heat map is of: what was asked for, else the two parameters that
// vary, beside those that repeat, and the first figure, or the time when there is none.
func pivotOf(s *sheet.Sheet, ask *TableAsk, columns []TableColumn) (of sheet.PivotOf, err error) {
	of.Measure = sheet.Mean
	words := slices.Clone(ask.Pivot)
	if len(words) != 0 && len(words) != 2 && len(words) != 3 {
		return of, fmt.Errorf("a heat map is of two columns and a figure, such as :pivot C gamma acc")
	}
	if len(words) == 0 {
		for _, c := range columns {
			if c.Vary {
				words = append(words, c.Name)
			}
		}
		if len(words) > 2 { // seeds are what is averaged over
			words = slices.DeleteFunc(words, func(name string) bool { return slices.Contains(repeating, strings.ToLower(name)) })
		}
		if n := len(words); n != 2 {
			names := jobs.Clean(strings.Join(words, ", "), 100)
			switch n {
			case 0:
				names = "no parameter has several values"
			case 1:
				names = "only " + names + " has several values"
			default:
				names = fmt.Sprintf("%d parameters have several values (%s)", n, names)
			}
			return of, fmt.Errorf("%s: :pivot C gamma acc says what goes down, what across and what is shown; over the rest is averaged", names)
		}
	}
	if of.Down, err = s.Column(words[0]); err != nil {
		return of, err
	}
	if of.Across, err = s.Column(words[1]); err != nil {
		return of, err
	}
	figure := "time"
	if len(words) == 3 {
		figure = words[2]
	} else if own := s.Figures(); len(own) > 0 {
		of.Figure = own[0]
		return of, nil
	}
	if name, word, is := strings.Cut(figure, ":"); is {
		if of.Measure, err = sheet.ParseMeasure(word); err != nil {
			return of, err
		}
		figure = name
	}
	of.Figure, err = s.Column(figure)
	return of, err
}
