package results

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"dcs-tui/jobs"
	"dcs-tui/jobs/query"
)

func TestPivot(t *testing.T) {
	s := grid()
	of := PivotOf{Down: at(t, s, "C"), Across: at(t, s, "gamma"), Metric: at(t, s, "acc"), Measure: Mean}
	p, notes, err := s.Pivot(of)
	if err != nil {
		t.Fatal(err)
	}
	if got := head(p.Table()) + "\n" + show(p.Table()); got != "C gamma=0 gamma=1\n0.1 0.5 0.75\n1 0.25 nan\n10 - -" {
		t.Error(got)
	}
	if len(notes) != 1 || p.Title() != "acc, mean: C down, gamma across" {
		t.Errorf("%q %q", notes, p.Title())
	}
	level, lowest, highest := p.Heat(5)
	if lowest != 0.25 || highest != 0.75 || fmt.Sprint(level) != "[[2 4] [0 -1] [-1 -1]]" {
		t.Errorf("%v from %v to %v", level, lowest, highest)
	}
	// Cells that hold the metric of several jobs, and cells with too few jobs.
	of = PivotOf{Down: at(t, s, "host"), Across: at(t, s, "state"), Metric: at(t, s, "time"), Measure: Max, MinSize: 3}
	p, notes, err = s.Pivot(of)
	if err != nil || show(p.Table()) != "melon1 5 -\nmelon2 - -" || len(notes) != 1 || notes[0] != "2 cells with fewer than 3 solved jobs left empty" {
		t.Errorf("%v %q\n%s", err, notes, show(p.Table()))
	}
	if of.Across = of.Down; true {
		if _, _, err := s.Pivot(of); err == nil {
			t.Error("a pivot of a column with itself")
		}
	}
}

// TestPivotOrder checks that the sides of a pivot are sorted by number, or in the order of the jobs
// if they are texts. Jobs of a sample are in arbitrary order.
func TestPivotOrder(t *testing.T) {
	var in TableInput
	for i, v := range []string{"10", "9", "1e-3", "0.1", "100"} {
		in.Jobs = append(in.Jobs, Result{Job: jobs.ID(i + 1), State: jobs.Succeeded, Params: []jobs.Param{{Name: "x", Value: v}, {Name: "y", Value: string("cabed"[i])}}})
	}
	s := NewTable(in)
	p, _, err := s.Pivot(PivotOf{Down: at(t, s, "x"), Across: at(t, s, "y"), Metric: at(t, s, "job")})
	if err != nil {
		t.Fatal(err)
	}
	if got := head(p.Table()); got != "x y=c y=a y=b y=e y=d" {
		t.Error(got)
	}
	if got := show(p.Table()); got != "1e-3 - - 1 - -\n0.1 - - - 1 -\n9 - 1 - - -\n10 1 - - - -\n100 - - - - 1" {
		t.Error(got)
	}
}

func TestPivotIsBounded(t *testing.T) {
	var in TableInput
	for i := range 1001 {
		in.Jobs = append(in.Jobs, Result{Job: jobs.ID(i + 1), Params: []jobs.Param{{Name: "x", Value: fmt.Sprint(i)}, {Name: "y", Value: fmt.Sprint(i)}}})
	}
	s := NewTable(in)
	if _, _, err := s.Pivot(PivotOf{Down: at(t, s, "x"), Across: at(t, s, "y"), Metric: 0}); err == nil || !strings.Contains(err.Error(), "y has 1001 values") {
		t.Error(err)
	}
	s = s.Keep(func(row int) bool { return row < 1000 })
	if _, _, err := s.Pivot(PivotOf{Down: at(t, s, "x"), Across: at(t, s, "y"), Metric: 0}); err != nil {
		t.Error(err)
	}
}

func TestHeat(t *testing.T) {
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
