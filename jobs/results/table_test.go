package results

import (
	"fmt"
	"strings"
	"testing"

	"dcs-tui/jobs"
	"dcs-tui/jobs/query"
)

// grid returns a small table with C and gamma, and acc and note of each job.
//
//	job C   gamma acc  note
//	1   0.1 0     0.50 a       melon1
//	2   0.1 1     0.75 b       melon2
//	3   1   0     0.25 c/d     melon1
//	4   1   1     nan  -       melon2
//	5   10  0     bad  e       melon1
//	6   10  1     0.9  f       failed, melon2
//	7   10  1     -    -       skipped
func grid() *Table {
	rows := []struct{ c, gamma, acc, note string }{
		{"0.1", "0", "0.50", "a"}, {"0.1", "1", "0.75", "b"}, {"1", "0", "0.25", "c/d"}, {"1", "1", "nan", ""},
		{"10", "0", "bad", "e"}, {"10", "1", "0.9", "f"}, {"10", "1", "", ""},
	}
	in := TableInput{Names: []string{"acc", "note"}}
	for i, r := range rows {
		job := Result{Job: jobs.ID(i + 1), State: jobs.Succeeded, Host: fmt.Sprintf("melon%d", 1+i%2), Round: 1,
			Command: "./train", Name: fmt.Sprint("job ", i+1),
			Params:  params("C", r.c, "gamma", r.gamma),
			Outcome: &jobs.Outcome{Started: 1e9, Ended: jobs.Stamp((i + 2) * 1e9)}}
		metrics := []string{r.acc, r.note}
		switch i {
		case 5:
			job.State, job.Outcome.Exit = jobs.Failed, 3
		case 6:
			job.State, job.Outcome, job.Host, metrics = jobs.Skipped, nil, "", nil
		}
		in.Jobs, in.Metrics = append(in.Jobs, job), append(in.Metrics, metrics)
	}
	return NewTable(in)
}

// params makes parameters of names and values in turn.
func params(kv ...string) (list []jobs.Param) {
	for i := 0; i < len(kv); i += 2 {
		list = append(list, jobs.Param{Name: kv[i], Value: kv[i+1]})
	}
	return list
}

// solved adds a job that succeeded, with the given metrics.
func (in *TableInput) solved(params []jobs.Param, metrics ...string) {
	in.Jobs = append(in.Jobs, Result{Job: jobs.ID(len(in.Jobs) + 1), State: jobs.Succeeded, Params: params})
	in.Metrics = append(in.Metrics, metrics)
}

// same checks that two values are equal.
func same[T comparable](t *testing.T, what any, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%v: got %v, want %v", what, got, want)
	}
}

func group(t *testing.T, s *Table, of Grouping) (*Table, []string) {
	t.Helper()
	g, notes, err := s.Group(of)
	if err != nil {
		t.Fatal(err)
	}
	return g, notes.All()
}

func pivot(t *testing.T, s *Table, of PivotInput) (*Pivot, []string) {
	t.Helper()
	p, notes, err := s.Pivot(of)
	if err != nil {
		t.Fatal(err)
	}
	return p, notes.All()
}

// plainText formats a table plainly: one line per row, cells separated by blanks, and - for an
// empty cell.
func plainText(s *Table) string {
	var lines []string
	for row := range s.Len() {
		var cells []string
		for _, c := range s.ShownColumns() {
			text := s.At(row, c).Text
			if text == "" {
				text = "-"
			}
			cells = append(cells, text)
		}
		lines = append(lines, strings.Join(cells, " "))
	}
	return strings.Join(lines, "\n")
}

// columnNames returns the names of the columns that are shown.
func columnNames(s *Table) string {
	var names []string
	for _, c := range s.ShownColumns() {
		names = append(names, s.Columns[c].Name)
	}
	return strings.Join(names, " ")
}

// columnIndex returns the index of a column that a table must have.
func columnIndex(t *testing.T, s *Table, name string) int {
	t.Helper()
	i, err := s.Column(name)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// jobIDs returns the jobs of all rows, in order.
func jobIDs(s *Table) string {
	var list []string
	for row := range s.Len() {
		list = append(list, fmt.Sprint(s.Job(row)))
	}
	return strings.Join(list, " ")
}

// TestTableHasParametersAndMetrics checks parameter columns and metrics, and that the original
// order is restored (E3).
func TestTableHasParametersAndMetrics(t *testing.T) {
	s := grid()
	same(t, "the columns", columnNames(s), "job C gamma acc note state elapsed_seconds host")
	want := `1 0.1 0 0.50 a succeeded 1 melon1
2 0.1 1 0.75 b succeeded 2 melon2
3 1 0 0.25 c/d succeeded 3 melon1
4 1 1 nan - succeeded 4 melon2
5 10 0 bad e succeeded 5 melon1
6 10 1 0.9 f failed 6 melon2
7 10 1 - - skipped - -`
	same(t, "the rows", plainText(s), want)
	in := TableInput{Jobs: []Result{{Job: 3}, {Job: 1}, {Job: 2, Command: "x"}}}
	same(t, "without parameters", jobIDs(NewTable(in))+": "+columnNames(NewTable(in)),
		"1 2 3: job name state elapsed_seconds host")
	same(t, "an empty table", NewTable(TableInput{}).Len(), 0)
}

// TestTemplatesMayHaveDifferentParameters checks that jobs of several templates may have different
// parameters in different orders.
func TestTemplatesMayHaveDifferentParameters(t *testing.T) {
	s := NewTable(TableInput{Jobs: []Result{{Job: 1, Params: params("a", "1", "b", "2")},
		{Job: 2, Params: params("b", "3", "c", "4")}, {Job: 3}}})
	same(t, "the table", columnNames(s.Show(s.ShownColumns()[:4]))+"\n"+plainText(s.Show(s.ShownColumns()[:4])),
		"job a b c\n1 1 2 -\n2 - 3 4\n3 - - -")
}

// TestColumnNamesAreUnique checks that columns of the program get another name if a parameter or a
// metric has theirs.
func TestColumnNamesAreUnique(t *testing.T) {
	s := NewTable(TableInput{Jobs: []Result{{Job: 1, State: jobs.Failed, Params: params("host", "h", "acc", "p")}},
		Names: []string{"acc", "state", "time"}, Metrics: [][]string{{"1", "fine", "2"}}})
	same(t, "the columns", columnNames(s), "job host acc result.acc state time dcs.state elapsed_seconds dcs.host")
	for name, want := range map[string]string{"host": "h", "state": "fine", "dcs.state": "failed", "time": "2",
		"[acc]": "p"} {
		t.Run(name, func(t *testing.T) {
			same(t, name, s.At(0, columnIndex(t, s, name)).Text, want)
		})
	}
}

// TestColumnIsFoundByName checks that a column is found by the names that users know, and that the
// error of an unknown name helps.
func TestColumnIsFoundByName(t *testing.T) {
	s := grid()
	for name, want := range map[string]string{"acc": "acc", " gamma ": "gamma", "[C]": "C", "time": "elapsed_seconds"} {
		t.Run(name, func(t *testing.T) {
			same(t, name, s.Columns[columnIndex(t, s, name)].Name, want)
		})
	}
	for name, want := range map[string]string{"gama": "did you mean \"gamma\"?", "zzzzzz": "there are job, ",
		"\x1b": "there are job", "": "no column"} {
		t.Run(name, func(t *testing.T) {
			if _, err := s.Column(name); err == nil || !strings.Contains(err.Error(), want) ||
				strings.Contains(err.Error(), "\x1b") {
				t.Errorf("%q: %v", name, err)
			}
		})
	}
	if _, err := s.FindColumns([]string{"acc", "acc"}); err == nil || !strings.Contains(err.Error(), "twice") {
		t.Error(err)
	}
}

// TestOrderOfSortedRows checks that numbers are sorted before NaN, texts, and missing values, and
// that equal rows keep their order.
func TestOrderOfSortedRows(t *testing.T) {
	s := grid()
	for order, want := range map[string]string{
		"acc":      "3 1 2 6 4 5 7", // numbers, NaN, texts, nothing
		"acc:desc": "6 2 1 3 4 5 7",
		"C:desc":   "5 6 7 3 4 1 2", // equal values keep their order
		"note":     "1 2 3 5 6 4 7",
		"host:asc": "1 3 5 2 4 6 7",
		"time":     "1 2 3 4 5 6 7",
	} {
		t.Run(order, func(t *testing.T) {
			o, err := ParseSort(order)
			if err != nil {
				t.Fatal(err)
			}
			same(t, order, jobIDs(s.Sort(columnIndex(t, s, o.Column), o.Desc)), want)
		})
	}
	same(t, "the table that was sorted", jobIDs(s), "1 2 3 4 5 6 7")
	if _, err := ParseSort("acc:up"); err == nil || !strings.Contains(err.Error(), ":desc") {
		t.Error(err)
	}
}

// TestSortKeepsEveryRow checks that sorting by any column keeps every row, and that sorting by the
// same column again changes nothing. The rows that match a filter, and those that match its
// negation, keep their order.
func TestSortKeepsEveryRow(t *testing.T) {
	s := grid()
	for c := range s.Columns {
		for _, desc := range []bool{false, true} {
			once := s.Sort(c, desc)
			if twice := once.Sort(c, desc); jobIDs(twice) != jobIDs(once) {
				t.Errorf("%s: %s, then %s", s.Columns[c].Name, jobIDs(once), jobIDs(twice))
			}
			if back := once.Sort(columnIndex(t, s, "job"), false); jobIDs(back) != jobIDs(s) {
				t.Errorf("%s: %s of %s", s.Columns[c].Name, jobIDs(back), jobIDs(s))
			}
			for row := 1; row < once.Len(); row++ {
				if query.Compare(once.At(row-1, c), once.At(row, c), desc) > 0 {
					t.Errorf("%s: row %d is not in order", s.Columns[c].Name, row)
				}
			}
		}
	}
}

// TestBestRowIsFound checks that the best of the solved jobs is found, and the number of jobs that
// are as good.
func TestBestRowIsFound(t *testing.T) {
	s := grid()
	for text, want := range map[string]jobs.ID{"acc:max": 2, "acc:min": 3, "time:max": 5, "C:min": 1} {
		t.Run(text, func(t *testing.T) {
			o, err := ParseBest(text)
			if err != nil {
				t.Fatal(err)
			}
			best, err := s.BestBy(o)
			if err != nil || s.Job(best.Row) != want {
				t.Errorf("%s: row %d, job %d, %v", text, best.Row, s.Job(best.Row), err)
			}
		})
	}
	for desc, want := range map[bool]int{true: 0, false: 1} { // job 6 failed
		best, _ := s.BestBy(Order{"C", desc})
		same(t, desc, best.Ties, want)
	}
	_, err := s.BestBy(Order{"note", true})
	if want := `there is no best job: no job that succeeded has a number in note: note of 4 jobs is not a number ` +
		`and left out (such as job 1: "a")`; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	for _, text := range []string{"acc", "acc:best", ":", ""} {
		t.Run(text, func(t *testing.T) {
			if _, err := ParseBest(text); err == nil || !strings.Contains(err.Error(), ":max or ") {
				t.Errorf("%q: %v", text, err)
			}
		})
	}
	same(t, "what is missing", strings.Join(s.MissingValues(s.Metrics()).All(), "|"),
		"acc is based on 5 of 7 jobs: 2 did not succeed|note is based on 4 of 7 jobs: 2 did not succeed, "+
			"1 without a value|1 solved job has no note (job 4)")
}

// TestGroupsAverageSolvedJobs checks groups by chosen parameters with averages over the solved
// jobs, without small groups (E3).
func TestGroupsAverageSolvedJobs(t *testing.T) {
	s := grid()
	g, notes := group(t, s, Grouping{By: []string{"C"}, Metrics: []string{"acc"}, Measures: AllMeasures()})
	want := `C jobs solved acc_count acc_mean acc_sd acc_min acc_max acc_median
0.1 2 2 2 0.625 0.1767766952966369 0.5 0.75 0.625
1 2 2 2 nan nan nan nan nan
10 3 1 0 - - - - -`
	same(t, "the groups", columnNames(g)+"\n"+plainText(g), want)
	same(t, "notes", strings.Join(notes, "|"),
		`acc is based on 4 of 7 jobs: 2 did not succeed, 1 not a number|acc of 1 job is not a number and left `+
			`out (job 5: "bad")`)
	g, notes = group(t, s, Grouping{By: []string{"C", "gamma"}, Metrics: []string{"time"},
		Measures: []Measure{Mean, SD}, MinSize: 1})
	want = `C gamma jobs solved elapsed_seconds_count elapsed_seconds_mean elapsed_seconds_sd
0.1 0 1 1 1 1 -
0.1 1 1 1 1 2 -
1 0 1 1 1 3 -
1 1 1 1 1 4 -
10 0 1 1 1 5 -`
	same(t, "the groups", columnNames(g)+"\n"+plainText(g), want)
	// C=10, gamma=1: failed and skipped.
	same(t, "notes", strings.Join(notes, "|"), "1 group with fewer than 1 solved jobs left out")
	if best, err := g.BestBy(Order{"time", true}); err != nil || g.At(best.Row, 0).Text != "10" ||
		g.Job(best.Row) != 0 || !best.Basis.IsComplete() {
		t.Errorf("BestBy: got %+v, %v; want the group with time 10", best, err)
	}
	same(t, "the mean by the name of the metric", columnIndex(t, g, "elapsed_seconds"), 5)
}

// TestJobsOfSmallGroupsAreLeftOut checks that KeepGroups shows all jobs of a group with enough solved
// jobs, also those that failed, and no job of another group.
func TestJobsOfSmallGroupsAreLeftOut(t *testing.T) {
	var in TableInput
	for i, c := range []string{"1", "2", "1", "2", "1", "3"} {
		in.solved(params("C", c))
		if i == 1 || i == 4 {
			in.Jobs[i].State = jobs.Failed
		}
	}
	kept, notes, err := NewTable(in).KeepGroups([]string{"c"}, 2)
	if err != nil || kept.Len() != 3 {
		t.Fatalf("KeepGroups: %v, %v", kept, err)
	}
	for row, want := range []jobs.ID{1, 3, 5} {
		same(t, fmt.Sprintf("row %d", row), kept.Job(row), want)
	}
	same(t, "notes", strings.Join(notes, "|"), "2 groups with fewer than 2 solved jobs left out")
	if _, _, err := NewTable(in).KeepGroups([]string{"x"}, 2); err == nil {
		t.Error("an unknown column is accepted")
	}
}

// TestGroupsAreKeptApart checks that different texts make different groups, however they are
// joined.
func TestGroupsAreKeptApart(t *testing.T) {
	var in TableInput
	for _, v := range [][2]string{{"x", "yz"}, {"xy", "z"}, {"", "xyz"}, {"x\x00", ""}, {"x", "\x00"}, {"x", "yz"}} {
		in.solved(params("a", v[0], "b", v[1]))
	}
	s := NewTable(in)
	g, _ := group(t, s, Grouping{By: []string{"a", "b"}})
	same(t, plainText(g), g.Len(), 5)
}

// TestBestOverTime checks that BestOverTime returns the best value so far in the order of the jobs,
// between 0 and 1, and that it rises if the largest value is best. Jobs that have not succeeded or
// have no number do not count.
func TestBestOverTime(t *testing.T) {
	in := TableInput{Names: []string{"loss"}}
	for _, v := range []string{"8", "9", "4", "nan", "", "x", "0", "4"} {
		in.solved(nil, v)
	}
	in.Jobs[6].State = jobs.Failed
	s := NewTable(in)
	for _, c := range []struct {
		order Order
		n     int
		want  string
	}{
		{Order{"loss", false}, 9, "[1 1 0 0]"},
		{Order{"loss", true}, 9, "[0 1 1 1]"},
		{Order{"loss", false}, 2, "[1 0]"},
		{Order{"acc", false}, 9, "[]"},
	} {
		t.Run(c.want, func(t *testing.T) {
			same(t, c.order, fmt.Sprint(s.BestOverTime(c.order, c.n)), c.want)
		})
	}
}
