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
		job := Result{Job: jobs.ID(i + 1), State: jobs.Succeeded, Host: fmt.Sprintf("melon%d", 1+i%2), Round: 1, Command: "./train", Name: fmt.Sprint("job ", i+1),
			Params:  []jobs.Param{{Name: "C", Value: r.c}, {Name: "gamma", Value: r.gamma}},
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

// show formats a table plainly: one line per row, cells separated by blanks, and - for an empty
// cell.
func show(s *Table) string {
	var lines []string
	for row := range s.Len() {
		var cells []string
		for _, c := range s.Shown() {
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

func head(s *Table) string {
	var names []string
	for _, c := range s.Shown() {
		names = append(names, s.Columns[c].Name)
	}
	return strings.Join(names, " ")
}

func at(t *testing.T, s *Table, name string) int {
	t.Helper()
	i, err := s.Column(name)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func ids(s *Table) string {
	var list []string
	for row := range s.Len() {
		list = append(list, fmt.Sprint(s.Job(row)))
	}
	return strings.Join(list, " ")
}

// TestNew checks parameter columns and metrics, and that the original order is restored (E3).
func TestNew(t *testing.T) {
	s := grid()
	if got := head(s); got != "job C gamma acc note state elapsed_seconds host" {
		t.Error(got)
	}
	want := `1 0.1 0 0.50 a succeeded 1 melon1
2 0.1 1 0.75 b succeeded 2 melon2
3 1 0 0.25 c/d succeeded 3 melon1
4 1 1 nan - succeeded 4 melon2
5 10 0 bad e succeeded 5 melon1
6 10 1 0.9 f failed 6 melon2
7 10 1 - - skipped - -`
	if got := show(s); got != want {
		t.Error(got)
	}
	in := TableInput{Jobs: []Result{{Job: 3}, {Job: 1}, {Job: 2, Command: "x"}}}
	if s := NewTable(in); ids(s) != "1 2 3" || head(s) != "job name state elapsed_seconds host" {
		t.Errorf("%s: %s", ids(s), head(s))
	}
	if s := NewTable(TableInput{}); s.Len() != 0 {
		t.Error(s.Len())
	}
}

// TestParametersOfSeveralTemplates checks that jobs of several templates may have different
// parameters in different orders.
func TestParametersOfSeveralTemplates(t *testing.T) {
	p := func(kv ...string) (list []jobs.Param) {
		for i := 0; i < len(kv); i += 2 {
			list = append(list, jobs.Param{Name: kv[i], Value: kv[i+1]})
		}
		return list
	}
	s := NewTable(TableInput{Jobs: []Result{{Job: 1, Params: p("a", "1", "b", "2")}, {Job: 2, Params: p("b", "3", "c", "4")}, {Job: 3}}})
	if got := head(s.Show(s.Shown()[:4])) + "\n" + show(s.Show(s.Shown()[:4])); got != "job a b c\n1 1 2 -\n2 - 3 4\n3 - - -" {
		t.Error(got)
	}
}

func TestNamesAreUnique(t *testing.T) {
	s := NewTable(TableInput{Jobs: []Result{{Job: 1, State: jobs.Failed, Params: []jobs.Param{{Name: "host", Value: "h"}, {Name: "acc", Value: "p"}}}},
		Names: []string{"acc", "state", "time"}, Metrics: [][]string{{"1", "fine", "2"}}})
	if got := head(s); got != "job host acc result.acc state time dcs.state elapsed_seconds dcs.host" {
		t.Error(got)
	}
	for name, want := range map[string]string{"host": "h", "state": "fine", "dcs.state": "failed", "time": "2", "[acc]": "p"} {
		if got := s.At(0, at(t, s, name)).Text; got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

func TestColumn(t *testing.T) {
	s := grid()
	for name, want := range map[string]string{"acc": "acc", " gamma ": "gamma", "[C]": "C", "time": "elapsed_seconds"} {
		if got := s.Columns[at(t, s, name)].Name; got != want {
			t.Errorf("%s: %s", name, got)
		}
	}
	for name, want := range map[string]string{"gama": "did you mean \"gamma\"?", "zzzzzz": "there are job, ", "\x1b": "there are job", "": "no column"} {
		if _, err := s.Column(name); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\x1b") {
			t.Errorf("%q: %v", name, err)
		}
	}
	if _, err := s.Find([]string{"acc", "acc"}); err == nil || !strings.Contains(err.Error(), "twice") {
		t.Error(err)
	}
}

func TestSort(t *testing.T) {
	s := grid()
	for order, want := range map[string]string{
		"acc":      "3 1 2 6 4 5 7", // numbers, NaN, texts, nothing
		"acc:desc": "6 2 1 3 4 5 7",
		"C:desc":   "5 6 7 3 4 1 2", // equal values keep their order
		"note":     "1 2 3 5 6 4 7",
		"host:asc": "1 3 5 2 4 6 7",
		"time":     "1 2 3 4 5 6 7",
	} {
		o, err := ParseSort(order)
		if err != nil {
			t.Fatal(err)
		}
		if got := ids(s.Sort(at(t, s, o.Column), o.Desc)); got != want {
			t.Errorf("%s: %s, want %s", order, got, want)
		}
	}
	if ids(s) != "1 2 3 4 5 6 7" {
		t.Error("sorting has changed the sheet itself")
	}
	if _, err := ParseSort("acc:up"); err == nil || !strings.Contains(err.Error(), ":desc") {
		t.Error(err)
	}
}

// TestSortProperties checks that sorting by any column keeps every row, and that sorting by the
// same column again changes nothing. The rows that match a filter, and those that match its
// negation, keep their order.
func TestSortProperties(t *testing.T) {
	s := grid()
	for c := range s.Columns {
		for _, desc := range []bool{false, true} {
			once := s.Sort(c, desc)
			if twice := once.Sort(c, desc); ids(twice) != ids(once) {
				t.Errorf("%s: %s, then %s", s.Columns[c].Name, ids(once), ids(twice))
			}
			if back := once.Sort(at(t, s, "job"), false); ids(back) != ids(s) {
				t.Errorf("%s: %s of %s", s.Columns[c].Name, ids(back), ids(s))
			}
			for row := 1; row < once.Len(); row++ {
				if query.Compare(once.At(row-1, c), once.At(row, c), desc) > 0 {
					t.Errorf("%s: row %d is not in order", s.Columns[c].Name, row)
				}
			}
		}
	}
}

func TestBest(t *testing.T) {
	s := grid()
	for text, want := range map[string]jobs.ID{"acc:max": 2, "acc:min": 3, "time:max": 5, "C:min": 1} {
		o, err := ParseBest(text)
		if err != nil {
			t.Fatal(err)
		}
		row, _, _, err := s.BestBy(o)
		if err != nil || s.Job(row) != want {
			t.Errorf("%s: row %d, job %d, %v", text, row, s.Job(row), err)
		}
	}
	if _, ties, _, _ := s.BestBy(Order{"C", true}); ties != 0 {
		t.Error(ties) // job 6 failed
	}
	if _, ties, _, _ := s.BestBy(Order{"C", false}); ties != 1 {
		t.Error(ties)
	}
	_, _, _, err := s.BestBy(Order{"note", true})
	if want := `there is no best job: no job that succeeded has a number in note: note of 4 jobs is not a number and left out (job 1: "a")`; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	for _, text := range []string{"acc", "acc:best", ":", ""} {
		if _, err := ParseBest(text); err == nil || !strings.Contains(err.Error(), ":max or ") {
			t.Errorf("%q: %v", text, err)
		}
	}
	if got := s.Missing(s.Metrics()); len(got) != 1 || got[0] != "1 solved job has no note (job 4)" {
		t.Errorf("%q", got)
	}
}

// TestGroup checks groups by chosen parameters with averages over the solved jobs, without small
// groups (E3).
func TestGroup(t *testing.T) {
	s := grid()
	g, notes := s.Group(Grouping{By: []int{at(t, s, "C")}, Metrics: s.Metrics()[:1], Measures: AllMeasures()})
	want := `C jobs solved acc_count acc_mean acc_sd acc_min acc_max acc_median
0.1 2 2 2 0.625 0.1767766952966369 0.5 0.75 0.625
1 2 2 2 nan nan nan nan nan
10 3 1 0 - - - - -`
	if got := head(g) + "\n" + show(g); got != want {
		t.Error(got)
	}
	if len(notes) != 1 || notes[0] != `acc of 1 job is not a number and left out (job 5: "bad")` {
		t.Errorf("%q", notes)
	}
	g, notes = s.Group(Grouping{By: []int{at(t, s, "C"), at(t, s, "gamma")}, Metrics: []int{at(t, s, "time")}, Measures: []Measure{Mean, SD}, MinSize: 1})
	want = `C gamma jobs solved elapsed_seconds_mean elapsed_seconds_sd
0.1 0 1 1 1 -
0.1 1 1 1 2 -
1 0 1 1 3 -
1 1 1 1 4 -
10 0 1 1 5 -`
	if got := head(g) + "\n" + show(g); got != want {
		t.Error(got)
	}
	// C=10, gamma=1: failed and skipped.
	if len(notes) != 1 || notes[0] != "1 group with fewer than 1 solved jobs left out" {
		t.Errorf("%q", notes)
	}
	if row, _, _, err := g.BestBy(Order{"time", true}); err != nil || g.At(row, 0).Text != "10" || g.Job(row) != 0 {
		t.Errorf("%d %v", row, err)
	}
	if at(t, g, "elapsed_seconds") != 4 { // the mean
		t.Error("the mean of a metric is not found by the name of the metric")
	}
}

// TestGroupsAreKeptApart checks that different texts make different groups, however they are
// joined.
func TestGroupsAreKeptApart(t *testing.T) {
	p := func(a, b string) []jobs.Param { return []jobs.Param{{Name: "a", Value: a}, {Name: "b", Value: b}} }
	s := NewTable(TableInput{Jobs: []Result{{Job: 1, Params: p("x", "yz")}, {Job: 2, Params: p("xy", "z")}, {Job: 3, Params: p("", "xyz")}, {Job: 4, Params: p("x\x00", "")}, {Job: 5, Params: p("x", "\x00")}, {Job: 6, Params: p("x", "yz")}}})
	if g, _ := s.Group(Grouping{By: []int{at(t, s, "a"), at(t, s, "b")}}); g.Len() != 5 {
		t.Errorf("%d groups:\n%s", g.Len(), show(g))
	}
}

// TestCourse checks that Course returns the best value so far in the order of the jobs, scaled from
// 1 to 0. Jobs that have not succeeded or have no number do not count.
func TestCourse(t *testing.T) {
	var in TableInput
	for i, v := range []string{"8", "9", "4", "nan", "", "x", "0", "4"} {
		in.Jobs = append(in.Jobs, Result{Job: jobs.ID(i + 1), State: jobs.Succeeded})
		in.Metrics = append(in.Metrics, []string{v})
	}
	in.Names = []string{"loss"}
	in.Jobs[6].State = jobs.Failed
	s := NewTable(in)
	for _, c := range []struct {
		order Order
		n     int
		want  string
	}{
		{Order{"loss", false}, 9, "[1 1 0 0]"},
		{Order{"loss", true}, 9, "[1 0 0 0]"},
		{Order{"loss", false}, 2, "[1 0]"},
		{Order{"acc", false}, 9, "[]"},
	} {
		if got := fmt.Sprint(s.Course(c.order, c.n)); got != c.want {
			t.Errorf("the course of %+v in %d steps is %s, want %s", c.order, c.n, got, c.want)
		}
	}
}
