package runview

import (
	"fmt"
	"testing"

	"dcs-tui/jobs"
)

// BenchmarkTableQuery measures the table of each query over 100,000 jobs with parameters, half of
// which have finished, when their results are known.
func BenchmarkTableQuery(b *testing.B) {
	t := millionJobs()
	const n = 100_000
	t.Specs, t.Jobs = t.Specs[:n], t.Jobs[:n]
	for i, s := range t.Specs {
		s.Labels = jobs.NewLabels("", []jobs.Param{{Name: "C", Value: fmt.Sprint(i / 1000)},
			{Name: "gamma", Value: fmt.Sprint(i / 10 % 100)}, {Name: "seed", Value: fmt.Sprint(i % 10)}})
	}
	x := FromTable(runAt(b.TempDir()), t.Table, Options{})
	defer x.Close()
	rows := JobsWindow{Rows: 50}
	for _, c := range []struct {
		name string
		ask  TableQuery
	}{
		{"jobs", TableQuery{JobsWindow: rows}},
		{"sorted", TableQuery{JobsWindow: rows, By: "time"}},
		{"groups", TableQuery{JobsWindow: rows, Group: []string{"C"}}},
		{"heat", TableQuery{Heat: true, Pivot: []string{"C", "gamma", "time"}}},
	} {
		b.Run(c.name, func(b *testing.B) {
			for p := new(Table); !p.Ready || p.Jobs == 0; p = look(b, x, Query{Table: &c.ask}).Table {
				if p.Wrong != "" {
					b.Fatal(p.Wrong)
				}
			}
			defer cpu(b)()
			for b.Loop() {
				x.tables.make(&c.ask, 0)
			}
		})
	}
}
