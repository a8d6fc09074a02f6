package results

import (
	"testing"

	"dcs-tui/jobs"
)

// TestTablesAreExact checks that numbers above 2^53 are told apart when a table is sorted, grouped,
// or searched for its best row.
func TestTablesAreExact(t *testing.T) {
	in := TableInput{Names: []string{"s"}}
	for _, s := range []string{"9007199254740993", "9007199254740992", "9007199254740994", "9007199254740992.5"} {
		in.solved(params("k", "1"), s)
	}
	for i := range in.Jobs {
		in.Jobs[i].Job = jobs.ID(i + 1)
	}
	table := NewTable(in)
	sorted, err := table.SortBy(Order{"s", false})
	if err != nil {
		t.Fatal(err)
	}
	same(t, "sorted", jobIDs(sorted), "2 4 1 3")
	for desc, want := range map[bool]int{false: 1, true: 2} {
		best, err := table.BestBy(Order{"s", desc})
		if err != nil || best.Row != want || best.Ties != 0 {
			t.Errorf("best, descending %v: row %d, %d ties, %v; want row %d", desc, best.Row, best.Ties, err, want)
		}
	}
	grouped, _ := group(t, table, Grouping{By: []string{"k"}, Measures: []Measure{Min, Max}})
	same(t, "the least", grouped.At(0, columnIndex(t, grouped, "s_min")).Text, "9007199254740992")
	same(t, "the largest", grouped.At(0, columnIndex(t, grouped, "s_max")).Text, "9007199254740994")
	byValue, _ := group(t, table, Grouping{By: []string{"s"}, Measures: []Measure{Count}})
	same(t, "groups", byValue.Len(), 4)
	across, _ := pivot(t, table, PivotInput{Down: "k", Across: "s", Metric: "s", Measure: Max})
	same(t, "columns", len(across.Columns), 4)
	same(t, "the first cell", across.Cells[0][0].Text, "9007199254740992")
	same(t, "the third cell", across.Cells[0][2].Text, "9007199254740993")
}
