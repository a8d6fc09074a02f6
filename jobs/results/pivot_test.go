package results

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"dcs-tui/jobs/query"
)

// TestCellsOfAPivot checks the cells, the title, and the notes of a pivot, and that cells with too
// few jobs are left empty.
func TestCellsOfAPivot(t *testing.T) {
	s := grid()
	p, notes := pivot(t, s, PivotInput{Down: "C", Across: "gamma", Measure: Mean}) // acc is the first metric
	same(t, "the pivot", columnNames(p.Table(false))+"\n"+plainText(p.Table(false)),
		"C gamma=0 gamma=1\n0.1 0.5 0.75\n1 0.25 nan\n10 - -")
	same(t, "for programs", columnNames(p.Table(true))+"\n"+plainText(p.Table(true)),
		"C gamma=0 gamma=1 gamma=0_count gamma=0_jobs gamma=1_count gamma=1_jobs\n"+
			"0.1 0.5 0.75 1 1 1 1\n1 0.25 nan 1 1 1 1\n10 - - 0 1 0 2")
	same(t, "notes", strings.Join(notes, "|"),
		`acc is based on 4 of 7 jobs: 2 did not succeed, 1 not a number|acc of 1 job is not a number and left `+
			`out (job 5: "bad")`)
	same(t, "title", p.Title(), "acc, mean: C down, gamma across")
	level, lowest, highest := p.Heat(5)
	same(t, "heat", fmt.Sprint(level, lowest, highest), "[[2 4] [0 -1] [-1 -1]] 0.25 0.75")
	// Cells that hold the metric of several jobs, and cells with too few jobs.
	p, notes = pivot(t, s, PivotInput{Down: "host", Across: "state", Metric: "time", Measure: Max, MinSize: 3})
	same(t, "the cells", plainText(p.Table(false)), "melon1 5 -\nmelon2 - -")
	same(t, "notes", strings.Join(notes, "|"), "2 cells with fewer than 3 solved jobs left empty")
	if _, _, err := s.Pivot(PivotInput{Down: "host", Across: "host"}); err == nil {
		t.Error("a pivot of a column with itself")
	}
}

// TestSidesOfAPivotAreSorted checks that the sides of a pivot are sorted by number, or in the order
// of the jobs if they are texts. Jobs of a sample are in arbitrary order.
func TestSidesOfAPivotAreSorted(t *testing.T) {
	var in TableInput
	for i, v := range []string{"10", "9", "1e-3", "0.1", "100"} {
		in.solved(params("x", v, "y", string("cabed"[i])))
	}
	p, _ := pivot(t, NewTable(in), PivotInput{Down: "x", Across: "y", Metric: "job"})
	same(t, "the columns", columnNames(p.Table(true)), "x y=c y=a y=b y=e y=d")
	same(t, "the cells", plainText(p.Table(true)),
		"1e-3 - - 1 - -\n0.1 - - - 1 -\n9 - 1 - - -\n10 1 - - - -\n100 - - - - 1")
}

// TestPivotIsBounded checks that a pivot with more than 1,000 columns is refused.
func TestPivotIsBounded(t *testing.T) {
	var in TableInput
	for i := range 1001 {
		in.solved(params("x", fmt.Sprint(i), "y", fmt.Sprint(i)))
	}
	s := NewTable(in)
	if _, _, err := s.Pivot(PivotInput{Down: "x", Across: "y", Metric: "job"}); err == nil ||
		!strings.Contains(err.Error(), "y has 1001 values") {
		t.Error(err)
	}
	s = s.Keep(func(row int) bool { return row < 1000 })
	pivot(t, s, PivotInput{Down: "x", Across: "y", Metric: "job"})
}

// TestHeatLevels checks that the range of the finite numbers is divided evenly among the levels,
// and that an infinity has the first or the last level.
func TestHeatLevels(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	for _, c := range []struct {
		cells  []float64
		levels int
		want   string
		lo, hi float64
	}{
		{[]float64{0, 1, 2, 3, 4, 5}, 3, "[0 0 1 1 2 2]", 0, 5},
		{[]float64{7}, 5, "[2]", 7, 7},
		{[]float64{7, nan, 7}, 5, "[2 -1 2]", 7, 7},
		{[]float64{1, inf, -inf, 2}, 5, "[0 4 0 4]", 1, 2},
		{[]float64{inf, nan}, 5, "[4 -1]", nan, nan},
		{[]float64{-math.MaxFloat64, 0, math.MaxFloat64}, 5, "[0 2 4]", -math.MaxFloat64, math.MaxFloat64},
		{[]float64{5e-324, 0}, 5, "[4 0]", 0, 5e-324},
		{[]float64{1, 2}, 0, "[0 0]", 1, 2},
		{nil, 5, "[]", nan, nan},
	} {
		row := []query.Value{}
		for _, v := range c.cells {
			row = append(row, query.NumberValue(v))
		}
		level, lowest, highest := (&Pivot{Cells: [][]query.Value{row}}).Heat(c.levels)
		same := func(a, b float64) bool { return a == b || math.IsNaN(a) && math.IsNaN(b) }
		if fmt.Sprint(level[0]) != c.want || !same(lowest, c.lo) || !same(highest, c.hi) {
			t.Errorf("%v: %v from %v to %v", c.cells, level, lowest, highest)
		}
	}
}
