package sheet

import (
	"fmt"
	"math"
	"slices"

	"dcs-tui/jobs"
)

// Pivot is a figure over two columns: a value of the one down, of the other across.
type Pivot struct {
	Down, Across, Figure string // names of the columns
	Measure              Measure
	Unit                 Unit      // of the cells
	Rows, Columns        []Value   // in order: numbers by size if all are, else by their first job
	Cells                [][]Value // by row and column; nothing where no solved job has a number
}

// The bounds of a pivot: a larger one helps nobody.
const (
	maxAcross = 1000
	maxCells  = 1_000_000
)

// PivotOf says what a Pivot is made of.
type PivotOf struct {
	Down, Across, Figure int // columns
	Measure              Measure
	MinSize              int // a cell with fewer solved jobs stays empty
}

// Pivot computes one, over the solved jobs that have a value in both columns.
func (s *Sheet) Pivot(of PivotOf) (p *Pivot, notes []string, err error) {
	if of.Down == of.Across {
		return nil, nil, fmt.Errorf("a pivot needs two different columns, not %s twice", s.Columns[of.Down].Name)
	}
	kept := s.Keep(func(row int) bool {
		return s.At(row, of.Down).Kind != Nothing && s.At(row, of.Across).Kind != Nothing
	})
	groups := kept.gather([]int{of.Down, of.Across}, []int{of.Figure})
	down, across := newAxis(), newAxis()
	for _, e := range groups {
		down.add(kept.At(e.first, of.Down))
		across.add(kept.At(e.first, of.Across))
	}
	for _, a := range []struct {
		n, most int
		name    string
	}{{len(across.values), maxAcross, s.Columns[of.Across].Name}, {len(down.values) * len(across.values), maxCells, "the pivot"}} {
		if a.n > a.most {
			what := "values, which is too much across"
			if a.name == "the pivot" {
				what = "cells, which is too much"
			}
			return nil, nil, fmt.Errorf("%s has %d %s (at most %d): choose other columns, or fewer jobs with --where", jobs.Clean(a.name, 40), a.n, what, a.most)
		}
	}
	down.sort()
	across.sort()
	p = &Pivot{
		Down: s.Columns[of.Down].Name, Across: s.Columns[of.Across].Name, Figure: s.Heading(of.Figure),
		Measure: of.Measure, Unit: s.Columns[of.Figure].Unit, Rows: down.values, Columns: across.values, Cells: make([][]Value, len(down.values)),
	}
	if of.Measure == Count {
		p.Unit = None
	}
	for i := range p.Cells {
		p.Cells[i] = make([]Value, len(across.values))
	}
	var odd oddities
	small := 0
	for _, e := range groups {
		if e.solved < of.MinSize {
			small++
			continue
		}
		odd.merge(0, &e.odd[0])
		stats := StatsOf(e.numbers[0])
		if stats.N == 0 && of.Measure != Count {
			continue
		}
		p.Cells[down.at[kept.At(e.first, of.Down).Text]][across.at[kept.At(e.first, of.Across).Text]] = stats.Value(of.Measure)
	}
	if len(groups) > 0 && !slices.ContainsFunc(groups, func(e *gathered) bool { return e.solved > 0 }) {
		notes = append(notes, noneSolved)
	}
	if small > 0 {
		notes = append(notes, fmt.Sprintf("%s with fewer than %d solved jobs left empty", jobs.Plural(small, "cell"), of.MinSize))
	}
	return p, append(notes, odd.notes(s, []int{of.Figure})...), nil
}

// axis are the values of one side.
type axis struct {
	values []Value
	at     map[string]int // position by text
}

func newAxis() *axis { return &axis{at: map[string]int{}} }

func (a *axis) add(v Value) {
	if _, ok := a.at[v.Text]; !ok {
		a.at[v.Text] = len(a.values)
		a.values = append(a.values, v)
	}
}

func (a *axis) sort() {
	for _, v := range a.values {
		if v.Kind != Number || math.IsNaN(v.Number) {
			return
		}
	}
	slices.SortStableFunc(a.values, func(x, y Value) int { return compareValues(x, y, false) })
	for i, v := range a.values {
		a.at[v.Text] = i
	}
}

// Sheet returns the pivot as a table: the values down in its first column, a column
// for each value across, named by it.
func (p *Pivot) Sheet() *Sheet {
	columns := []Column{{Name: p.Down, Role: Param}}
	for _, v := range p.Columns {
		columns = append(columns, Column{Name: p.Across + "=" + v.Text, Role: Stat, Unit: p.Unit})
	}
	cells := make([][]Value, len(p.Rows))
	for i, v := range p.Rows {
		cells[i] = append([]Value{v}, p.Cells[i]...)
	}
	return literal("value", columns, cells)
}

// Title says what the numbers are: "acc, mean: C down, gamma across".
func (p *Pivot) Title() string {
	return fmt.Sprintf("%s, %s: %s down, %s across", p.Figure, p.Measure, p.Down, p.Across)
}
