package results

import (
	"fmt"
	"math"
	"strings"

	"dcs-tui/jobs"
	"dcs-tui/jobs/query"
)

// Order is a column and a direction.
type Order struct {
	Column string
	Desc   bool
}

// ParseBest reads COLUMN:max or COLUMN:min; Desc stands for max.
func ParseBest(text string) (Order, error) {
	name, way := cutLast(text)
	if way != "max" && way != "min" {
		return Order{}, fmt.Errorf("%q does not say what is best: %s:max or %s:min", jobs.Clean(text, 60), jobs.Clean(name, 40), jobs.Clean(name, 40))
	}
	return Order{name, way == "max"}, nil
}

// ParseSort reads COLUMN, COLUMN:asc or COLUMN:desc.
func ParseSort(text string) (Order, error) {
	name, way := cutLast(text)
	if way != "" && way != "asc" && way != "desc" {
		return Order{}, fmt.Errorf("%q: a column may be followed by :asc or :desc", jobs.Clean(text, 60))
	}
	return Order{name, way == "desc"}, nil
}

// cutLast cuts a text at its last colon. The word behind it is in lower case.
func cutLast(text string) (name, way string) {
	if i := strings.LastIndexByte(text, ':'); i >= 0 {
		return text[:i], strings.ToLower(text[i+1:])
	}
	return text, ""
}

// Best returns the row with the largest number in a column, or the smallest, and how
// many further rows have the same. Only solved rows count, and a NaN is never best. ok
// is false when there is none; notes says what was no number.
func (s *Table) Best(column int, largest bool) (row, ties int, notes []string, ok bool) {
	var odd oddities
	odd.merge(0, &oddity{})
	best := math.NaN()
	for r := range s.rows {
		if !s.Solved(r) {
			continue
		}
		v := s.At(r, column)
		switch {
		case v.Kind != query.Number:
			odd.of[0].add(v, s.Job(r))
		case math.IsNaN(v.Number):
		case !ok || largest && v.Number > best || !largest && v.Number < best:
			row, best, ties, ok = r, v.Number, 0, true
		case v.Number == best:
			ties++
		}
	}
	return row, ties, odd.notes(s, []int{column}), ok
}

// Course returns how the best value of a column has changed from row to row, in at most n
// steps: 1 stands for the first value, 0 for the best of all. Rows count as for Best, in the
// order of the table.
func (s *Table) Course(o Order, n int) []float64 {
	column, err := s.Column(o.Column)
	if err != nil {
		return nil
	}
	var course []float64
	for r := range s.rows {
		v := s.At(r, column)
		if !s.Solved(r) || v.Kind != query.Number || math.IsNaN(v.Number) || math.IsInf(v.Number, 0) {
			continue
		}
		value := v.Number
		if o.Desc {
			value = -value
		}
		if k := len(course); k > 0 {
			value = min(value, course[k-1])
		}
		course = append(course, value)
	}
	if len(course) == 0 {
		return nil
	}
	first, last := course[0], course[len(course)-1]
	steps := make([]float64, min(n, len(course)))
	for i := range steps {
		value := course[(i+1)*len(course)/len(steps)-1]
		if first > last {
			steps[i] = (value - last) / (first - last)
		}
	}
	return steps
}

// Missing reports for each column which solved jobs have nothing in it, a sentence each.
func (s *Table) Missing(columns []int) []string {
	var odd oddities
	for k, c := range columns {
		odd.merge(k, &oddity{})
		for row := range s.rows {
			if s.Solved(row) && s.At(row, c).Kind == query.Absent {
				odd.of[k].add(query.Value{}, s.Job(row))
			}
		}
	}
	return odd.notes(s, columns)
}
