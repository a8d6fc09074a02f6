package results

import (
	"fmt"
	"math"
	"strings"

	"dcs-tui/internal/text"
	"dcs-tui/jobs/query"
)

// Order is a column and a direction.
type Order struct {
	Column string
	Desc   bool
}

// ParseBest parses COLUMN:max or COLUMN:min; Desc stands for max.
func ParseBest(msg string) (Order, error) {
	name, way := cutLast(msg)
	if way != "max" && way != "min" {
		return Order{}, fmt.Errorf("%q needs a direction: %s:max or %s:min", text.Clean(msg, 60), text.Clean(name, 40),
			text.Clean(name, 40))
	}
	return Order{name, way == "max"}, nil
}

// ParseSort parses COLUMN, COLUMN:asc, or COLUMN:desc.
func ParseSort(msg string) (Order, error) {
	name, way := cutLast(msg)
	if way != "" && way != "asc" && way != "desc" {
		return Order{}, fmt.Errorf("%q: a column may be followed by :asc or :desc", text.Clean(msg, 60))
	}
	return Order{name, way == "desc"}, nil
}

// cutLast cuts a text at its last colon, and returns the word after it in lower case.
func cutLast(text string) (name, way string) {
	if i := strings.LastIndexByte(text, ':'); i >= 0 {
		return text[:i], strings.ToLower(text[i+1:])
	}
	return text, ""
}

// Best is the best row of a table.
type Best struct {
	Row    int
	Column int // by which it is the best
	Ties   int // number of further rows with the same number
	Basis  Basis
	Notes  Notes
}

// BestBy returns the row with the largest or the smallest number in a column. Only solved rows
// count, and a NaN is never best. It is an error if no row has a number.
func (s *Table) BestBy(o Order) (b Best, err error) {
	if b.Column, err = s.Column(o.Column); err != nil {
		return b, err
	}
	var bad unusableCells
	var best query.Value
	found := false
	for r := range s.rows {
		v, ok := s.count(&b.Basis, r, b.Column, &bad)
		switch {
		case !ok || math.IsNaN(v.Number):
		case !found || query.Compare(v, best, o.Desc) < 0:
			b.Row, best, b.Ties, found = r, v, 0, true
		case query.Compare(v, best, false) == 0:
			b.Ties++
		}
	}
	b.Basis.Missing[NotOver] += int32(s.numElsewhere)
	name := s.Heading(b.Column)
	b.Notes = Notes{b.Basis.notes("the best "+name, s.unit), s.unusableNotes(&bad, b.Column)}
	if found {
		return b, nil
	}
	why := ""
	if len(b.Notes.Others) > 0 {
		why = ": " + b.Notes.Others[0]
	}
	return b, fmt.Errorf("there is no best %s: no %s that succeeded has a number in %s%s", s.unit, s.unit, name, why)
}

// BestOverTime returns how the best value of a column has changed from row to row, in at most n
// steps. The smallest of these values is 0 and the largest 1, so the course rises if the largest
// value is best, and falls otherwise. Rows count as for BestBy, in the order of the table.
func (s *Table) BestOverTime(o Order, n int) []float64 {
	column, err := s.Column(o.Column)
	if err != nil {
		return nil
	}
	better := func(a, b float64) float64 { return min(a, b) }
	if o.Desc {
		better = func(a, b float64) float64 { return max(a, b) }
	}
	var course []float64
	for r := range s.rows {
		v := s.At(r, column)
		if !s.Solved(r) || v.Kind != query.Number || math.IsNaN(v.Number) || math.IsInf(v.Number, 0) {
			continue
		}
		value := v.Number
		if k := len(course); k > 0 {
			value = better(value, course[k-1])
		}
		course = append(course, value)
	}
	if len(course) == 0 {
		return nil
	}
	lowest, highest := min(course[0], course[len(course)-1]), max(course[0], course[len(course)-1])
	steps := make([]float64, min(n, len(course)))
	for i := range steps {
		value := course[(i+1)*len(course)/len(steps)-1]
		if lowest < highest {
			steps[i] = (value - lowest) / (highest - lowest)
		}
	}
	return steps
}

// Only returns the table with only the best row. If rows are missing, it also shows how many have
// been compared.
func (s *Table) Only(b *Best) *Table {
	return s.Keep(func(r int) bool { return r == b.Row }).withBasis(&b.Basis)
}

// MissingValues returns notes about columns in which rows are missing, or have no value.
func (s *Table) MissingValues(columns []int) (notes Notes) {
	for _, c := range columns {
		var bad unusableCells
		for row := range s.rows {
			if s.Solved(row) && s.At(row, c).Kind == query.Absent {
				bad.add(&s.Columns[c], query.Value{}, s.Job(row))
			}
		}
		b := s.Basis(c)
		notes.Basis = append(notes.Basis, b.notes(s.Heading(c), s.unit)...)
		notes.Others = append(notes.Others, s.unusableNotes(&bad, c)...)
	}
	return notes
}
