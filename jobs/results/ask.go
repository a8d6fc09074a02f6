package results

import (
	"fmt"
	"strings"

	"dcs-tui/jobs"
	"dcs-tui/jobs/query"
)

// What people ask for by the names of columns, on the command line and on the screen.

// SortBy sorts by the columns in turn: the first counts most.
func (s *Table) SortBy(orders ...Order) (*Table, error) {
	for i := range orders {
		o := orders[len(orders)-1-i]
		at, err := s.Column(o.Column)
		if err != nil {
			return s, err
		}
		s = s.Sort(at, o.Desc)
	}
	return s, nil
}

// GroupBy groups rows by columns and keeps the groups that match all queries. It
// summarizes the named columns, by default the metrics, or the time if there are none.
func (s *Table) GroupBy(by, columns []string, measures []Measure, minSize int, queries []*query.Query) (grouped *Table, notes []string, err error) {
	g := Grouping{Metrics: s.Metrics(), Measures: measures, MinSize: minSize}
	if g.By, err = s.Find(by); err != nil {
		return nil, nil, err
	}
	if len(columns) == 0 && len(g.Metrics) == 0 {
		columns = []string{"time"}
	}
	if len(columns) > 0 {
		if g.Metrics, err = s.Find(columns); err != nil {
			return nil, nil, err
		}
	}
	grouped, notes = s.Group(g)
	matching, more, err := grouped.Where(queries...)
	return matching, append(notes, more...), err
}

// BestBy returns the best row and how many other rows are as good. notes are about what
// was not a number.
func (s *Table) BestBy(o Order) (row, ties int, notes []string, err error) {
	at, err := s.Column(o.Column)
	if err != nil {
		return 0, 0, nil, err
	}
	row, ties, notes, ok := s.Best(at, o.Desc)
	if !ok {
		why := ""
		if len(notes) > 0 {
			why = ": " + notes[0]
		}
		return 0, 0, nil, fmt.Errorf("there is no best %s: no %s that succeeded has a number in %s%s", s.unit, s.unit, s.Columns[at].Name, why)
	}
	return row, ties, notes, nil
}

// PivotNames are the columns of a pivot.
type PivotNames struct {
	Down, Across, Metric string
	Measure              Measure
}

// ParsePivot reads the names of a pivot: down, across, and a metric, which may be
// followed by a measure, as in acc:median. Without a metric, Metric is "".
func ParsePivot(words []string) (PivotNames, error) {
	if len(words) != 2 && len(words) != 3 {
		return PivotNames{}, fmt.Errorf("a pivot is of two columns and a metric, such as C gamma acc, not %s", jobs.Clean(strings.Join(words, " "), 60))
	}
	p := PivotNames{Down: words[0], Across: words[1], Measure: Mean}
	if len(words) == 2 {
		return p, nil
	}
	p.Metric = words[2]
	if name, measure, ok := strings.Cut(p.Metric, ":"); ok {
		m, err := ParseMeasure(measure)
		if err != nil {
			return p, err
		}
		p.Metric, p.Measure = name, m
	}
	return p, nil
}

// PivotBy computes a pivot. Without a metric it is that of the first metric, or the time.
func (s *Table) PivotBy(names PivotNames, minSize int) (*Pivot, []string, error) {
	if own := s.Metrics(); names.Metric == "" && len(own) > 0 {
		names.Metric = s.Columns[own[0]].Name
	} else if names.Metric == "" {
		names.Metric = "time"
	}
	of := PivotOf{Measure: names.Measure, MinSize: minSize}
	var err error
	for _, c := range []struct {
		at   *int
		name string
	}{{&of.Down, names.Down}, {&of.Across, names.Across}, {&of.Metric, names.Metric}} {
		if *c.at, err = s.Column(c.name); err != nil {
			return nil, nil, err
		}
	}
	return s.Pivot(of)
}
