package results

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"dcs-tui/internal/text"
	"dcs-tui/jobs/query"
)

// PivotInput describes the input of a pivot: a metric over two columns.
type PivotInput struct {
	Down, Across string // names of the columns whose values are its rows and its columns
	Metric       string // "": the first metric, or the time if there are none
	Measure      Measure
	MinSize      int  // a cell with fewer solved jobs stays empty
	Started      bool // cells without a job that has ended stay empty
}

// Pivot shows a metric over two columns. Its names are those of the columns.
type Pivot struct {
	PivotInput
	Type          query.Type      // of the cells
	Rows, Columns []query.Value   // sorted if all are numbers, else by first job
	Cells         [][]query.Value // by row and column; nothing if no solved job has a number
	Basis         [][]Basis       // of each cell
}

// The bounds of a pivot.
const (
	maxAcross = 1000
	maxCells  = 1_000_000
)

// ParsePivot parses the names of a pivot: down, across, and a metric, which may be followed by a
// measure, as in acc:median. Without a metric, Metric is "".
func ParsePivot(words []string) (PivotInput, error) {
	if len(words) != 2 && len(words) != 3 {
		return PivotInput{}, fmt.Errorf("a pivot is of two columns and a metric, such as C gamma acc, not %s",
			text.Clean(strings.Join(words, " "), 60))
	}
	of := PivotInput{Down: words[0], Across: words[1], Measure: Mean}
	if len(words) == 2 {
		return of, nil
	}
	metric, measure, given := strings.Cut(words[2], ":")
	of.Metric = metric
	var err error
	if given {
		of.Measure, err = ParseMeasure(measure)
	}
	return of, err
}

// Pivot computes a pivot over the solved jobs that have a value in both columns.
func (s *Table) Pivot(of PivotInput) (p *Pivot, notes Notes, err error) {
	sides := make([]int, 2)
	for i, name := range []string{of.Down, of.Across} {
		if sides[i], err = s.Column(name); err != nil {
			return nil, notes, err
		}
	}
	var metrics []string
	if of.Metric != "" {
		metrics = []string{of.Metric}
	}
	found, err := s.measuredColumns(metrics)
	if err != nil {
		return nil, notes, err
	}
	down, across, metric := axis{column: sides[0]}, axis{column: sides[1]}, found[0]
	of.Down, of.Across, of.Metric = s.Columns[down.column].Name, s.Columns[across.column].Name, s.Heading(metric)
	if down.column == across.column {
		return nil, notes, fmt.Errorf("a pivot needs two different columns, not %s twice", of.Down)
	}
	kept := s.Keep(func(row int) bool {
		return s.At(row, down.column).Kind != query.Absent && s.At(row, across.column).Kind != query.Absent
	})
	groups, numUnstarted := kept.gather(sides), 0
	if of.Started {
		groups, numUnstarted = startedGroups(groups)
	}
	down.fill(kept, groups)
	across.fill(kept, groups)
	const advice = "choose other columns, or filter the jobs"
	if n := len(across.values); n > maxAcross {
		return nil, notes, fmt.Errorf("%s has %d values, more than the %d columns of a pivot: %s",
			text.Clean(of.Across, 40), n, maxAcross, advice)
	}
	if n := len(down.values) * len(across.values); n > maxCells {
		return nil, notes, fmt.Errorf("the pivot has %d cells, more than %d: %s", n, maxCells, advice)
	}
	p = &Pivot{PivotInput: of, Type: of.Measure.typeOf(&s.Columns[metric]), Rows: down.values, Columns: across.values,
		Cells: make([][]query.Value, len(down.values)),
		Basis: make([][]Basis, len(down.values))}
	for i := range p.Cells {
		p.Cells[i], p.Basis[i] = make([]query.Value, len(across.values)), make([]Basis, len(across.values))
	}
	groups, notes.Others = kept.largeEnough(groups, of.MinSize, "cell", "empty")
	var bad unusableCells
	total := Basis{}
	for _, e := range groups {
		i, k := down.at[kept.At(e.members[0], down.column).Text], across.at[kept.At(e.members[0], across.column).Text]
		stats, basis := kept.statsOf(e, metric, &bad)
		total.merge(&basis)
		p.Basis[i][k] = basis
		if stats.Stats[Count] > 0 || of.Measure == Count {
			p.Cells[i][k] = stats.Value(of.Measure)
		}
	}
	total.Missing[NotOver] += int32(s.numElsewhere + numUnstarted)
	notes.Basis = total.notes(s.Heading(metric), s.unit)
	notes.Others = append(notes.Others, s.unusableNotes(&bad, metric)...)
	return p, notes, nil
}

// axis holds the values of one side of a pivot.
type axis struct {
	column int
	values []query.Value
	at     map[string]int // position by text
}

// fill sets the values: sorted if all are numbers, else in the order of the groups.
func (a *axis) fill(s *Table, groups []*gathered) {
	a.at = map[string]int{}
	numbers := true
	for _, e := range groups {
		v := s.At(e.members[0], a.column)
		if _, ok := a.at[v.Text]; !ok {
			a.at[v.Text] = len(a.values)
			a.values = append(a.values, v)
			numbers = numbers && v.Kind == query.Number && !math.IsNaN(v.Number)
		}
	}
	if !numbers {
		return
	}
	slices.SortStableFunc(a.values, func(x, y query.Value) int { return query.Compare(x, y, false) })
	for i, v := range a.values {
		a.at[v.Text] = i
	}
}

// Table returns the pivot as a table: the values down in its first column, a column
// for each value across, named by it. If counts is set and some cells miss jobs, further columns hold
// for each value across how many jobs the cells are based on, and how many there are.
func (p *Pivot) Table(counts bool) *Table {
	columns := []Column{{Name: p.Down, Role: Param}}
	for k, v := range p.Columns {
		c := Column{Name: p.Across + "=" + v.Text, Role: Stat, Type: p.Type}
		if !counts {
			c.basis = func(row int) Basis { return p.Basis[row][k] }
		}
		columns = append(columns, c)
	}
	isComplete := func(row []Basis) bool {
		return !slices.ContainsFunc(row, func(b Basis) bool { return !b.IsComplete() })
	}
	counts = counts && slices.ContainsFunc(p.Basis, func(row []Basis) bool { return !isComplete(row) })
	if counts {
		for _, v := range p.Columns {
			for _, suffix := range []string{"_count", "_jobs"} {
				columns = append(columns, Column{Name: p.Across + "=" + v.Text + suffix, Role: Stat})
			}
		}
	}
	cells := make([][]query.Value, len(p.Rows))
	for i, v := range p.Rows {
		cells[i] = append([]query.Value{v}, p.Cells[i]...)
		for k := range p.Basis[i] {
			if b := &p.Basis[i][k]; counts {
				cells[i] = append(cells[i], query.NumberValue(float64(b.Used)), query.NumberValue(float64(b.Jobs())))
			}
		}
	}
	return computedTable("value", columns, cells)
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
	var finite []float64
	for _, v := range slices.Concat(p.Cells...) {
		if v.Kind == query.Number && !math.IsNaN(v.Number) && !math.IsInf(v.Number, 0) {
			finite = append(finite, v.Number)
		}
	}
	lowest, highest = math.NaN(), math.NaN()
	if len(finite) > 0 {
		lowest, highest = slices.Min(finite), slices.Max(finite)
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
