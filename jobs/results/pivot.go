package results

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"dcs-tui/jobs"
	"dcs-tui/jobs/query"
)

// Pivot shows a metric over two columns. The values of Down are its rows, and those of Across its
// columns.
type Pivot struct {
	Down, Across, Metric string // names of the columns
	Measure              Measure
	Type                 query.Type      // of the cells
	Rows, Columns        []query.Value   // sorted if all are numbers, else by first job
	Cells                [][]query.Value // by row and column; nothing if no solved job has a number
}

// The bounds of a pivot.
const (
	maxAcross = 1000
	maxCells  = 1_000_000
)

// PivotOf describes the input of a pivot.
type PivotOf struct {
	Down, Across, Metric int // columns
	Measure              Measure
	MinSize              int // a cell with fewer solved jobs stays empty
}

// PivotNames holds the names of the columns of a pivot.
type PivotNames struct {
	Down, Across, Metric string
	Measure              Measure
}

// ParsePivot parses the names of a pivot: down, across, and a metric, which may be followed by a
// measure, as in acc:median. Without a metric, Metric is "".
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

// PivotBy computes a pivot from names. Without a metric it uses the first metric, or the time if
// there are none.
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

// Pivot computes a pivot over the solved jobs that have a value in both columns.
func (s *Table) Pivot(of PivotOf) (p *Pivot, notes []string, err error) {
	if of.Down == of.Across {
		return nil, nil, fmt.Errorf("a pivot needs two different columns, not %s twice", s.Columns[of.Down].Name)
	}
	kept := s.Keep(func(row int) bool {
		return s.At(row, of.Down).Kind != query.Absent && s.At(row, of.Across).Kind != query.Absent
	})
	groups := kept.gather([]int{of.Down, of.Across})
	down, across := axis{at: map[string]int{}}, axis{at: map[string]int{}}
	for _, e := range groups {
		down.add(kept.At(e.first, of.Down))
		across.add(kept.At(e.first, of.Across))
	}
	const advice = "choose other columns, or fewer jobs with --where"
	if n := len(across.values); n > maxAcross {
		return nil, nil, fmt.Errorf("%s has %d values, which is too much across (at most %d): %s", jobs.Clean(s.Columns[of.Across].Name, 40), n, maxAcross, advice)
	}
	if n := len(down.values) * len(across.values); n > maxCells {
		return nil, nil, fmt.Errorf("the pivot has %d cells, which is too much (at most %d): %s", n, maxCells, advice)
	}
	down.sort()
	across.sort()
	p = &Pivot{
		Down: s.Columns[of.Down].Name, Across: s.Columns[of.Across].Name, Metric: s.Heading(of.Metric),
		Measure: of.Measure, Type: of.Measure.typeOf(&s.Columns[of.Metric]), Rows: down.values, Columns: across.values, Cells: make([][]query.Value, len(down.values)),
	}
	for i := range p.Cells {
		p.Cells[i] = make([]query.Value, len(across.values))
	}
	groups, notes = kept.enough(groups, of.MinSize, "cell", "empty")
	odd := make([]oddity, 1)
	for _, e := range groups {
		stats := kept.statsOf(e, of.Metric, &odd[0])
		if stats.N > 0 || of.Measure == Count {
			p.Cells[down.at[kept.At(e.first, of.Down).Text]][across.at[kept.At(e.first, of.Across).Text]] = stats.Value(of.Measure)
		}
	}
	return p, append(notes, s.oddNotes(odd, []int{of.Metric})...), nil
}

// axis holds the values of one side of a pivot.
type axis struct {
	values []query.Value
	at     map[string]int // position by text
}

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

// Title describes the numbers, as in "acc, mean: C down, gamma across".
func (p *Pivot) Title() string {
	return fmt.Sprintf("%s, %s: %s down, %s across", p.Metric, p.Measure, p.Down, p.Across)
}

// Heat gives each cell a level from 0 (the smallest number) to levels-1 (the largest). -1 stands
// for none. The range of the finite numbers is divided evenly among the levels. An infinity has the
// first or the last level, a single number has the middle one, and NaN has none. lowest and highest
// are the extremes of the finite numbers, or NaN if there are none.
func (p *Pivot) Heat(levels int) (level [][]int8, lowest, highest float64) {
	levels = max(1, levels)
	lowest, highest = math.NaN(), math.NaN()
	for _, row := range p.Cells {
		for _, v := range row {
			if v.Kind == query.Number && !math.IsNaN(v.Number) && !math.IsInf(v.Number, 0) {
				if !(lowest <= v.Number) { // also true while lowest is NaN
					lowest = v.Number
				}
				if !(highest >= v.Number) {
					highest = v.Number
				}
			}
		}
	}
	level = make([][]int8, len(p.Cells))
	for i, row := range p.Cells {
		level[i] = make([]int8, len(row))
		for k, v := range row {
			level[i][k] = int8(heatLevel(v, levels, lowest, highest))
		}
	}
	return level, lowest, highest
}

func heatLevel(v query.Value, levels int, lowest, highest float64) int {
	switch {
	case v.Kind != query.Number || math.IsNaN(v.Number):
		return -1
	case math.IsInf(v.Number, -1):
		return 0
	case math.IsInf(v.Number, 1):
		return levels - 1
	case lowest == highest:
		return levels / 2
	}
	// Halves, because the difference of two large numbers may overflow.
	share := (v.Number/2 - lowest/2) / (highest/2 - lowest/2)
	if math.IsNaN(share) { // the halves of very small numbers are zero
		share = (v.Number - lowest) / (highest - lowest)
	}
	return min(int(share*float64(levels)), levels-1)
}
