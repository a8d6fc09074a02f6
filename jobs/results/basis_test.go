package results

import (
	"strings"
	"testing"

	"dcs-tui/jobs"
)

// halfDone returns a grid of two values of C and four seeds. Of C=1, one job is not over, one failed,
// and one printed no number. Of C=2, one job printed nothing. No job of C=3 has ended.
func halfDone() TableInput {
	in := TableInput{Names: []string{"acc"}}
	for i, acc := range []string{"0.5", "0.7", "bad", "0.9", "0.25", "0.5", "0.75", "", "1", "1"} {
		in.solved(params("C", string("1111222233"[i]), "seed", string("1234123412"[i])), acc)
	}
	in.Jobs[1].State, in.Jobs[3].State = jobs.Failed, jobs.Running
	in.Jobs[8].State, in.Jobs[9].State = jobs.Queued, jobs.Queued
	return in
}

const halfDoneBasis = "4 of 10 jobs: 3 not over, 1 did not succeed, 1 without a value, 1 not a number"

// TestNumbersSayWhichJobsAreMissing checks that each number that is computed over jobs says on how
// many it is based, in each format, if jobs are missing.
func TestNumbersSayWhichJobsAreMissing(t *testing.T) {
	s := NewTable(halfDone())
	g, notes, err := s.Group(Grouping{By: []string{"C"}, Measures: []Measure{Mean}, Started: true})
	if err != nil {
		t.Fatal(err)
	}
	same(t, "the groups", columnNames(g)+"\n"+plainText(g),
		"C jobs solved acc_count acc_mean\n1 4 2 1 0.5\n2 4 4 3 0.5")
	same(t, "the groups", strings.Join(notes.Basis, "|"), "acc is based on "+halfDoneBasis)

	p, notes, err := s.Pivot(PivotInput{Down: "C", Across: "seed", Metric: "acc", Measure: Mean, Started: true})
	if err != nil {
		t.Fatal(err)
	}
	same(t, "the pivot", strings.Join(notes.Basis, "|"), "acc is based on "+halfDoneBasis)
	same(t, "text", write(t, p.Table(false), Options{Format: TableFormat}), `C  seed=1   seed=2   seed=3  seed=4
1     0.5  - (0/1)  - (0/1)  -
2    0.25      0.5     0.75  - (0/1)
`)
	p, _, _ = s.Pivot(PivotInput{Down: "C", Across: "state", Metric: "acc", Measure: Mean, Started: true})
	same(t, "csv", write(t, p.Table(true), Options{Format: CSVFormat}),
		"C,state=succeeded,state=failed,state=succeeded_count,state=succeeded_jobs,"+
			"state=failed_count,state=failed_jobs\n1,0.5,,1,2,0,1\n2,0.5,,3,4,0,0\n")
	same(t, "markdown", write(t, p.Table(false), Options{Format: MarkdownFormat}),
		"| C | state=succeeded | state=failed |\n| ---: | ---: | --- |\n| 1 | 0.5 (1/2) | - (0/1) |\n"+
			"| 2 | 0.5 (3/4) |  |\n")

	best, err := s.BestBy(Order{"acc", true})
	if err != nil {
		t.Fatal(err)
	}
	same(t, "the best", strings.Join(best.Notes.Basis, "|"), "the best acc is based on "+halfDoneBasis)
	only := s.Only(&best)
	same(t, "the best", write(t, only.Show(only.ShownColumns()[len(only.ShownColumns())-2:]),
		Options{Format: JSONLFormat}), `{"v":1,"best_of":4,"missing":6}`+"\n")
	same(t, "a column", strings.Join(s.MissingValues(s.Metrics()).Basis, "|"),
		"acc is based on 5 of 10 jobs: 3 not over, 1 did not succeed, 1 without a value")
}

// TestCompleteNumbersSayNothing checks that there are no notes and no further columns if no job is
// missing, and that jobs without a row are missing.
func TestCompleteNumbersSayNothing(t *testing.T) {
	in := TableInput{Names: []string{"acc"}}
	for _, seed := range []string{"1", "2"} {
		in.solved(params("C", "1", "seed", seed), "0.5")
	}
	for _, elsewhere := range []int{0, 3} {
		in.Elsewhere = elsewhere
		s := NewTable(in)
		want := ""
		if elsewhere > 0 {
			want = "2 of 5 jobs: 3 not over"
		}
		_, g := group(t, s, Grouping{By: []string{"C"}})
		p, of := pivot(t, s, PivotInput{Down: "C", Across: "seed", Metric: "acc"})
		best, err := s.BestBy(Order{"acc", true})
		if err != nil {
			t.Fatal(err)
		}
		for what, notes := range map[string][]string{"acc": g, "acc ": of, "the best acc": best.Notes.All(),
			"acc  ": s.MissingValues(s.Metrics()).All()} {
			got := strings.Join(notes, "|")
			if got = strings.TrimPrefix(got, strings.TrimSpace(what)+" is based on "); got != want {
				t.Errorf("%s: %q, not %q", what, got, want)
			}
		}
		same(t, "columns", columnNames(p.Table(true)), "C seed=1 seed=2")
	}
}
