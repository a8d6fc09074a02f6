package results

import (
	"fmt"
	"math"
	"slices"

	"dcs-tui/jobs"
	"dcs-tui/jobs/query"
)

// Pivot is a metric over two columns: a value of the one down, of the other across.
type Pivot struct {
	Down, Across, Metric string // names of the columns
	Measure              Measure
	Type                 query.Type      // of the cells
	Rows, Columns        []query.Value   // in order: numbers by size if all are, else by their first job
	Cells                [][]query.Value // by row and column; nothing where no solved job has a number
}

// The bounds of a pivot: a larger one helps nobody.
const (
	maxAcross = 1000
	maxCells  = 1_000_000
)

// PivotOf describes what a Pivot is made of.
type PivotOf struct {
	Down, Across, Metric int // columns
	Measure              Measure
	MinSize              int // a cell with fewer solved jobs stays empty
}

// Pivot computes one, over the solved jobs that have a value in both columns.
func (s *Table) Pivot(of PivotOf) (p *Pivot, notes []string, err error) {
	if of.Down == of.Across {
		return nil, nil, fmt.Errorf("a pivot needs two different columns, not %s twice", s.Columns[of.Down].Name)
	}
	kept := s.Keep(func(row int) bool {
		return s.At(row, of.Down).Kind != query.Absent && s.At(row, of.Across).Kind != query.Absent
	})
	groups := kept.gather([]int{of.Down, of.Across}, []int{of.Metric})
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
		Down: s.Columns[of.Down].Name, Across: s.Columns[of.Across].Name, Metric: s.Heading(of.Metric),
		Measure: of.Measure, Type: s.Columns[of.Metric].Type, Rows: down.values, Columns: across.values, Cells: make([][]query.Value, len(down.values)),
	}
	if of.Measure == Count {
		p.Type = query.NumberType
	}
	for i := range p.Cells {
		p.Cells[i] = make([]query.Value, len(across.values))
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
	return p, append(notes, odd.notes(s, []int{of.Metric})...), nil
}

// axis are the values of one side.
type axis struct {
	values []query.Value
	at     map[string]int // position by text
}

func newAxis() *axis { return &axis{at: map[string]int{}} }

func (a *axis) add(v query.Value) {
	if _, ok := a.at[v.Text]; !ok {
		a.at[v.Text] = len(a.values)
		a.values = append(a.values, v)
	}
}

func (a *axis) sort() {
	for _, v := range a.values {
		if v.Kind != query.Number || math.IsNaN(v.Number) {
			return
		}
	}
	slices.SortStableFunc(a.values, func(x, y query.Value) int { return query.Compare(x, y, false) })
	for i, v := range a.values {
		a.at[v.Text] = i
	}
}

// Table returns the pivot as a table: the values down in its first column, a column
// for each value across, named by it.
func (p *Pivot) Table() *Table {
	columns := []Column{{Name: p.Down, Role: Param}}
	for _, v := range p.Columns {
		columns = append(columns, Column{Name: p.Across + "=" + v.Text, Role: Stat, Type: p.Type})
	}
	cells := make([][]query.Value, len(p.Rows))
	for i, v := range p.Rows {
		cells[i] = append([]query.Value{v}, p.Cells[i]...)
	}
	return literal("value", columns, cells)
}

// Title describes what the numbers are: "acc, mean: C down, gamma across".
func (p *Pivot) Title() string {
	return fmt.Sprintf("%s, %s: %s down, %s across", p.Metric, p.Measure, p.Down, p.Across)
}

// HeatMap is a pivot as a heat map.
type HeatMap struct {
	*Pivot
	Levels   int
	Level    [][]int // of each cell 0 (the smallest) to Levels-1 (the largest), -1 for none
	Min, Max float64 // of the finite numbers; NaN when there are none
}

// Heat gives each cell a level. The finite numbers share the levels evenly, an
// infinity has the first or the last; one number alone has the middle; NaN has none.
func (p *Pivot) Heat(levels int) *HeatMap {
	levels = max(1, levels)
	g := &HeatMap{Pivot: p, Levels: levels, Level: make([][]int, len(p.Cells)), Min: math.NaN(), Max: math.NaN()}
	for _, row := range p.Cells {
		for _, v := range row {
			if v.Kind == query.Number && !math.IsNaN(v.Number) && !math.IsInf(v.Number, 0) {
				if !(g.Min <= v.Number) { // or there is none yet
					g.Min = v.Number
				}
				if !(g.Max >= v.Number) {
					g.Max = v.Number
				}
			}
		}
	}
	for i, row := range p.Cells {
		g.Level[i] = make([]int, len(row))
		for k, v := range row {
			g.Level[i][k] = g.level(v)
		}
	}
	return g
}

func (g *HeatMap) level(v query.Value) int {
	switch {
	case v.Kind != query.Number || math.IsNaN(v.Number):
		return -1
	case math.IsInf(v.Number, -1):
		return 0
	case math.IsInf(v.Number, 1):
		return g.Levels - 1
	case g.Min == g.Max:
		return g.Levels / 2
	}
	// Halves, because the distance of two large numbers may be none.
	share := (v.Number/2 - g.Min/2) / (g.Max/2 - g.Min/2)
	if math.IsNaN(share) { // numbers that have no halves
		share = (v.Number - g.Min) / (g.Max - g.Min)
	}
	return min(int(share*float64(g.Levels)), g.Levels-1)
}
