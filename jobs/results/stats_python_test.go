package results

import (
	"math"
	"testing"

	"dcs-tui/jobs"
	"dcs-tui/jobs/query"
)

// TestGroupsAgainstPython checks groups and pivots (E3) against numbers that Python 3.11 computed
//
//	import statistics as st
//	print(st.fmean(v), st.stdev(v), min(v), max(v), st.median(v))
//
// for the lists below. st.stdev is the standard deviation of a sample (n - 1).
func TestGroupsAgainstPython(t *testing.T) {
	groups := []struct {
		c       string
		accs    []string
		measure [5]float64 // mean, sd, min, max, median
	}{
		{"0.1", []string{"0.8019", "0.8006", "0.7909", "0.8554", "0.8421", "0.8348"}, [5]float64{0.82095, 0.026480086857863596, 0.7909, 0.8554, 0.8183499999999999}},
		{"1", []string{"0.8423", "0.8418", "0.8416"}, [5]float64{0.8419, 0.0003605551275464208, 0.8416, 0.8423, 0.8418}},
		{"10", []string{"-0.5", "1e-3", "91.3%", "7e5"}, [5]float64{175022.70025, 349984.86916090845, -0.5, 700000.0, 45.6505}},
		{"100", []string{"0.25"}, [5]float64{0.25, math.NaN(), 0.25, 0.25, 0.25}},
	}
	in := TableInput{Names: []string{"acc"}}
	for _, g := range groups {
		for i, acc := range append(g.accs, "0.999") { // the last one has failed
			job := Result{Job: jobs.ID(len(in.Jobs) + 1), State: jobs.Succeeded,
				Params: []jobs.Param{{Name: "C", Value: g.c}, {Name: "kernel", Value: "rbf"}}}
			if i == len(g.accs) {
				job.State = jobs.Failed
			}
			in.Jobs, in.Metrics = append(in.Jobs, job), append(in.Metrics, []string{acc})
		}
	}
	s := NewTable(in)
	same := func(v query.Value, want float64) bool {
		if math.IsNaN(want) {
			return v.Kind == query.Absent
		}
		return v.Kind == query.Number && math.Abs(v.Number-want) <= 1e-13*math.Abs(want)
	}
	grouped, _ := s.Group(Grouping{By: []int{at(t, s, "C")}, Metrics: []int{at(t, s, "acc")}, Measures: AllMeasures()})
	for row, g := range groups {
		cell := func(name string) query.Value { return grouped.At(row, at(t, grouped, name)) }
		if n := float64(len(g.accs)); cell("C").Text != g.c || cell("jobs").Number != n+1 || cell("solved").Number != n || cell("acc_count").Number != n {
			t.Errorf("C=%s: %s", g.c, show(grouped))
		}
		for i, name := range []string{"mean", "sd", "min", "max", "median"} {
			if v := cell("acc_" + name); !same(v, g.measure[i]) {
				t.Errorf("C=%s: %s is %s, Python has %v", g.c, name, v.Text, g.measure[i])
			}
		}
	}
	for i, m := range []Measure{Mean, SD, Min, Max, Median} {
		p, _, err := s.Pivot(PivotOf{Down: at(t, s, "C"), Across: at(t, s, "kernel"), Metric: at(t, s, "acc"), Measure: m})
		if err != nil {
			t.Fatal(err)
		}
		for row, g := range groups {
			if v := p.Cells[row][0]; !same(v, g.measure[i]) {
				t.Errorf("the pivot's %s of C=%s is %s, Python has %v", m, g.c, v.Text, g.measure[i])
			}
		}
	}
	// A group is kept if it has at least this number of solved members (E3).
	for size, want := range map[int]int{0: 4, 1: 4, 2: 3, 4: 2, 7: 0} {
		if g, _ := s.Group(Grouping{By: []int{at(t, s, "C")}, MinSize: size}); g.Len() != want {
			t.Errorf("%d groups with at least %d solved jobs, want %d", g.Len(), size, want)
		}
	}
}

// TestFormulas checks that texts that a spreadsheet would execute are reported, and that numbers
// are not (X9).
func TestFormulas(t *testing.T) {
	of := func(values ...string) []string {
		in := TableInput{Names: []string{"x"}}
		for i, v := range values {
			in.Jobs, in.Metrics = append(in.Jobs, Result{Job: jobs.ID(i + 1), State: jobs.Succeeded}), append(in.Metrics, []string{v})
		}
		s := NewTable(in)
		return s.Show([]int{at(t, s, "x")}).Formulas()
	}
	if got := of("-0.5", "+1e3", "-inf", "a=b", "", "-3%"); got != nil {
		t.Errorf("%q", got)
	}
	if got := of("ok", "=1+1", "@x", "-2+3", "\t=1", "+cmd"); len(got) != 1 || got[0] != `5 texts begin like a formula, which a spreadsheet may execute: import the file as text (job 2: "=1+1")` {
		t.Errorf("%q", got)
	}
}
