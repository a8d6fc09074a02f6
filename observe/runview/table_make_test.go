package runview

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"dcs-tui/jobs"
	"dcs-tui/jobs/metrics"
	"dcs-tui/jobs/rundir"
)

// metricOptions returns the options of a View that finds metrics in a run directory.
func metricOptions(t testing.TB, dir string, columns ...string) Options {
	o := Options{}
	for _, text := range columns {
		c, err := metrics.Parse(text)
		must(t, err)
		o.Metrics = append(o.Metrics, c)
	}
	run := &rundir.Run{Dir: dir, Disk: rundir.OS, Settings: &rundir.Settings{Cwd: dir}}
	o.Outputs = func(columns []*metrics.Metric) *metrics.Reader { return metrics.NewReader(run, columns) }
	return o
}

// write writes the output of an attempt.
func write(t testing.TB, dir string, id jobs.AttemptID, text string) {
	t.Helper()
	path := jobs.AttemptFile(dir, id, jobs.FileOut)
	must(t, os.MkdirAll(filepath.Dir(path), 0o700))
	must(t, os.WriteFile(path, []byte(text), 0o600))
}

// gridRun returns a grid of C, gamma, and seed. The output of each job has acc and loss.
func gridRun(t testing.TB, cs, gammas, seeds int) (tab, string, func(c, g, s int) float64) {
	x, dir := newTab(), t.TempDir()
	acc := func(c, g, s int) float64 { return math.Round(1000*math.Sin(float64(1+c*7+g*13+s*29))) / 1000 }
	for c := range cs {
		for g := range gammas {
			for s := range seeds {
				x.add(jobs.Spec{Command: "train",
					Labels: jobs.NewLabels("",
						[]jobs.Param{{Name: "C", Value: fmt.Sprint(c)}, {Name: "gamma", Value: fmt.Sprint(g)},
							{Name: "seed", Value: fmt.Sprint(s)}})},
					jobs.Succeeded, withEnded("ws01", jobs.Outcome{}, time.Duration(1+s)*time.Second))
				write(t, dir, jobs.AttemptID{Job: jobs.ID(len(x.Jobs)), N: 1},
					fmt.Sprintf("epoch 1\nacc=%g\nloss: %d\n", acc(c, g, s), c))
			}
		}
	}
	return x, dir, acc
}

func gridBoard(t testing.TB, x tab, dir string, columns ...string) *View {
	b := FromTable(runAt(dir), x.Table, metricOptions(t, dir, columns...))
	t.Cleanup(b.Close)
	return b
}

// tableOf looks until the table is complete.
func tableOf(t testing.TB, b *View, ask TableQuery) *Table {
	t.Helper()
	a := Query{Table: &ask}
	for range 1000 {
		p, err := b.Snapshot(t.Context(), a)
		must(t, err)
		if p.Table.Plain || p.Table.Ready && p.Table.Read == p.Table.Jobs {
			return p.Table
		}
		a.After, a.Wait = p.Version, time.Minute
	}
	t.Fatal("the table never came")
	return nil
}

func rowsOf(tb *Table) (ids []int) {
	for _, r := range tb.Page.Rows {
		ids = append(ids, int(r.ID))
	}
	return ids
}

// TestRowsHaveTheirMetrics checks that rows have their metrics, in the requested order, with the
// best marked (E3, X5). The filter is that of the list of jobs, and may also use metrics.
func TestRowsHaveTheirMetrics(t *testing.T) {
	x, dir, acc := gridRun(t, 4, 3, 2)
	x.add(jobs.Spec{Command: "train", Labels: jobs.NewLabels("", param("C", "9"))}, jobs.Failed,
		withEnded("ws02", jobs.Outcome{Exit: 1}, time.Second))
	x.add(jobs.Spec{Command: "train", Labels: jobs.NewLabels("", param("C", "9"))}, jobs.Queued)
	b := gridBoard(t, x, dir, "acc")
	rows := JobsWindow{Rows: 100}
	tb := tableOf(t, b, TableQuery{JobsWindow: rows, Best: "acc:max"})
	if tb.Plain || tb.Wrong != "" || tb.Jobs != 25 || tb.Page.Matched != 25 || len(tb.Page.Rows) != 25 ||
		len(tb.Values) != 25 {
		t.Fatalf("the table: got %+v, want 25 jobs with values", tb)
	}
	best, most := 0, -2.0
	for i := range 24 {
		v := acc(i/6, i/2%3, i%2)
		if got := strings.Join(tb.Values[i], ","); got != fmt.Sprint(v) {
			t.Errorf("job %d has %s, want %g", i+1, got, v)
		}
		if v > most {
			best, most = i+1, v
		}
	}
	if int(tb.Best) != best || tb.Value != fmt.Sprint(most) || tb.Ties != 0 {
		t.Errorf("best: job %d %s, want %d %g", tb.Best, tb.Value, best, most)
	}
	if r := tb.Page.Rows[24]; r.Phase != Failed || r.Cause != "exit 1" {
		t.Errorf("the last row: got %+v, want the failed job with its cause", r)
	}
	var names []string
	for _, c := range tb.Columns[:8] {
		names = append(names, fmt.Sprintf("%s %d %v", c.Name, c.Role, c.Vary))
	}
	if got := strings.Join(names, ", "); got != "job 0 false, C 1 true, gamma 1 true, seed 1 true, acc 2 false, "+
		"state 0 false, time 0 false, host 0 false" {
		t.Errorf("got columns %q", got)
	}

	tb = tableOf(t, b, TableQuery{JobsWindow: JobsWindow{Rows: 4, Reverse: true}, By: "acc"})
	if int(tb.Page.Rows[0].ID) != best {
		t.Errorf("sorted by acc, the first is job %d", tb.Page.Rows[0].ID)
	}
	tb = tableOf(t, b, TableQuery{JobsWindow: JobsWindow{Filter: "state=done acc>=0.5 C=1", Rows: 100}})
	n := 0
	for i := 6; i < 12; i++ {
		if acc(1, i/2%3, i%2) >= 0.5 {
			n++
		}
	}
	if tb.Page.Matched != n || n == 0 || !tb.NamesMetrics {
		t.Errorf("%d match, want %d; names metrics %v", tb.Page.Matched, n, tb.NamesMetrics)
	}
	tb = tableOf(t, b, TableQuery{JobsWindow: JobsWindow{Filter: "host=ws02", Rows: 9}})
	if got := rowsOf(tb); len(got) != 1 || got[0] != 25 || tb.NamesMetrics {
		t.Errorf("got rows %v, want job 25 alone", got)
	}
	tb = tableOf(t, b, TableQuery{JobsWindow: JobsWindow{Rows: 5, Cursor: 12, Above: 2}})
	if tb.Page.First != 9 || tb.Page.Cursor != 12 || fmt.Sprint(rowsOf(tb)) != "[10 11 12 13 14]" {
		t.Errorf("first %d, cursor %d: %v", tb.Page.First, tb.Page.Cursor, rowsOf(tb))
	}
	tb = tableOf(t, b, TableQuery{JobsWindow: rows, Metrics: []string{"l=key:loss", "acc=key:loss"}})
	if got := strings.Join(tb.Values[23], ","); got != "3,3" {
		t.Errorf("columns added on the screen: %s", got)
	}
}

// TestGroupsAgreeWithAComputation checks groups against an independent computation (E3).
func TestGroupsAgreeWithAComputation(t *testing.T) {
	x, dir, acc := gridRun(t, 3, 2, 5)
	b := gridBoard(t, x, dir, "acc")
	tb := tableOf(t, b, TableQuery{Group: []string{"C", "gamma"}, Best: "acc:min"})
	g := tb.Groups
	if g == nil || len(g.Rows) != 6 || g.More != 0 || tb.Wrong != "" {
		t.Fatalf("the groups: got %+v, want 6", tb)
	}
	var heads []string
	for _, c := range g.Columns {
		heads = append(heads, c.Name)
	}
	if got := strings.Join(heads, " "); got != "C gamma jobs solved acc_count acc_mean acc_sd acc_min "+
		"acc_max acc_median" {
		t.Fatalf("got columns %q", got)
	}
	least, at := 2.0, 0
	for i, row := range g.Rows {
		var sum, squares float64
		for s := range 5 {
			sum += acc(i/2, i%2, s)
		}
		mean := sum / 5
		for s := range 5 {
			squares += math.Pow(acc(i/2, i%2, s)-mean, 2)
		}
		if mean < least {
			least, at = mean, i
		}
		near := func(text string, want float64) bool {
			var v float64
			fmt.Sscan(text, &v)
			return math.Abs(v-want) < 1e-5
		}
		if row[2] != "5" || row[3] != "5" || row[4] != "5" || !near(row[5], mean) ||
			!near(row[6], math.Sqrt(squares/4)) {
			t.Errorf("%v: mean %g, deviation %g", row, mean, math.Sqrt(squares/4))
		}
	}
	if g.Best != at {
		t.Errorf("the best is %d, want %d", g.Best, at)
	}
	tb = tableOf(t, b, TableQuery{Group: []string{"C", "gamma"}, By: "acc_mean"})
	if tb.Groups.Rows[0][0] != fmt.Sprint(at/2) || tb.Groups.Rows[0][1] != fmt.Sprint(at%2) {
		t.Errorf("the best group: got %v, want the parameters of the best mean", tb.Groups.Rows[0])
	}
	// A filter of groups applies conditions on statistics to the groups, and all other conditions
	// to the jobs.
	tb = tableOf(t, b, TableQuery{JobsWindow: JobsWindow{Filter: fmt.Sprintf("state=done (C>=1 or gamma=1) acc_mean>%g",
		least)}, Group: []string{"C", "gamma"}})
	for _, row := range tb.Groups.Rows {
		if row[0] == "0" && row[1] == "0" || row[0] == fmt.Sprint(at/2) && row[1] == fmt.Sprint(at%2) {
			t.Errorf("the filter leaves %v", row)
		}
	}
	if len(tb.Groups.Rows) < 4 || tb.Page.Wrong != "" || tb.Page.Matched != 25 {
		t.Errorf("got %+v, want at least 4 groups and 25 matching jobs", tb)
	}
	tb = tableOf(t, b, TableQuery{JobsWindow: JobsWindow{Filter: "state=done acc_means>1"}, Group: []string{"C"}})
	if len(tb.Groups.Rows) != 0 || !strings.Contains(tb.Page.Wrong, `did you mean "acc_mean"?`) {
		t.Errorf("wrong %q, groups %+v; want a suggestion and no groups", tb.Page.Wrong, tb.Groups)
	}
	for filter, want := range map[string]string{"acc_mean>1": "acc_mean exists only for groups: m shows them",
		"solved>1 C=1": "solved exists only for groups", "C_maen>1": "there is no column"} {
		t.Run(filter, func(t *testing.T) {
			if tb = tableOf(t, b, TableQuery{JobsWindow: JobsWindow{Filter: filter,
				Rows: 9}}); !strings.Contains(tb.Page.Wrong, want) || len(tb.Page.Rows) > 0 {
				t.Errorf("%s: %q", filter, tb.Page.Wrong)
			}
		})
	}
	if tb = tableOf(t, b, TableQuery{Group: []string{"C"}, MinSize: 11}); len(tb.Groups.Rows) != 0 ||
		len(tb.Notes) == 0 {
		t.Errorf("groups of at least 11 jobs: got %+v, want none and a note", tb)
	}
}

// TestHeatMapOfTwoParameters checks the heat map of the two parameters that vary, or of the chosen
// ones (X5).
func TestHeatMapOfTwoParameters(t *testing.T) {
	x, dir, acc := gridRun(t, 4, 3, 2)
	b := gridBoard(t, x, dir, "acc", "loss")
	tb := tableOf(t, b, TableQuery{Heat: true})
	if h := tb.Heat; h == nil || h.Down != "C" || h.Across != "gamma" || h.Metric != "acc, mean" {
		t.Errorf("seeds are averaged over: %+v", tb)
	}
	y, other := newTab(), t.TempDir()
	for i := range 8 {
		y.add(jobs.Spec{Command: "train",
			Labels: jobs.NewLabels("", []jobs.Param{{Name: "C", Value: fmt.Sprint(i / 4)},
				{Name: "gamma", Value: fmt.Sprint(i / 2 % 2)}, {Name: "degree", Value: fmt.Sprint(i % 2)}})},
			jobs.Succeeded, withEnded("ws01", jobs.Outcome{}, time.Second))
	}
	tb = tableOf(t, gridBoard(t, y, other), TableQuery{Heat: true})
	if tb.Heat != nil || !strings.Contains(tb.Wrong, "3 parameters have several values (C, gamma, degree)") {
		t.Errorf("a heat map of 3 parameters: got %+v, want none and the reason", tb)
	}
	tb = tableOf(t, b, TableQuery{Heat: true, Pivot: []string{"C", "gamma", "acc:max"}})
	h := tb.Heat
	if h == nil || len(h.Rows) != 4 || len(h.Columns) != 3 || h.Metric != "acc, max" {
		t.Fatalf("the heat map: got %+v, want 4 rows and 3 columns of the maximal acc", tb)
	}
	for c := range 4 {
		for g := range 3 {
			if want := fmt.Sprint(max(acc(c, g, 0), acc(c, g, 1))); h.Cells[c][g] != want {
				t.Errorf("C=%d gamma=%d: %s, want %s", c, g, h.Cells[c][g], want)
			}
			if l := h.Levels[c][g]; l < 0 || l >= HeatLevels {
				t.Errorf("level %d", l)
			}
		}
	}
	tb = tableOf(t, b, TableQuery{JobsWindow: JobsWindow{Filter: "seed=1"}, Heat: true})
	if tb.Heat == nil || tb.Heat.Down != "C" || tb.Heat.Across != "gamma" ||
		tb.Heat.Cells[1][2] != fmt.Sprint(acc(1, 2, 1)) {
		t.Errorf("two parameters vary, the first metric is shown: %+v", tb)
	}
}

// TestTableSaysWhatIsMissing checks that a metric that jobs have not printed is reported as in
// `results`.
func TestTableSaysWhatIsMissing(t *testing.T) {
	x, dir, _ := gridRun(t, 2, 2, 1)
	b := gridBoard(t, x, dir, "acc", "none")
	tb := tableOf(t, b, TableQuery{JobsWindow: JobsWindow{Rows: 9}})
	if len(tb.Notes) != 1 || tb.Notes[0] != "4 solved jobs have no none (such as job 1)" {
		t.Errorf("notes: got %q, want one about the metric none", tb.Notes)
	}
}

// TestTableOfAWrongQuery checks that an invalid part of a request is reported and that the valid
// parts are shown.
func TestTableOfAWrongQuery(t *testing.T) {
	x, dir, _ := gridRun(t, 2, 2, 1)
	b := gridBoard(t, x, dir, "acc")
	for _, c := range []struct {
		ask  TableQuery
		want string
	}{
		{TableQuery{By: "nonsense"}, "there is no column"},
		{TableQuery{Best: "acc"}, "acc:max or acc:min"},
		{TableQuery{Best: "ac:max"}, `did you mean "acc"`},
		{TableQuery{Group: []string{"D"}}, "there is no column"},
		{TableQuery{Metrics: []string{"x=re:("}}, "the result column x"},
		{TableQuery{Heat: true, JobsWindow: JobsWindow{Filter: "C=7"}}, "no job that is over matches the filter"},
		{TableQuery{Heat: true, Pivot: []string{"C"}}, "two columns and a metric"},
		{TableQuery{Heat: true, Pivot: []string{"C", "C", "acc"}}, "two different columns"},
		{TableQuery{Heat: true, Pivot: []string{"C", "gamma", "acc:most"}}, "there is no measure"},
	} {
		t.Run(c.want, func(t *testing.T) {
			c.ask.Rows = 10
			tb := tableOf(t, b, c.ask)
			if !strings.Contains(tb.Wrong, c.want) {
				t.Errorf("%+v: %q", c.ask, tb.Wrong)
			}
			if !c.ask.Heat && len(tb.Page.Rows) != 4 {
				t.Errorf("%+v: %d rows", c.ask, len(tb.Page.Rows))
			}
		})
	}
	if tb := tableOf(t, b, TableQuery{JobsWindow: JobsWindow{Filter: "C>=x", Rows: 9}}); tb.Page.Matched != 0 ||
		len(tb.Notes) != 1 || !strings.HasPrefix(tb.Notes[0], "C of 4 jobs is a number and left out") {
		t.Errorf("C>=x: got notes %q, page %+v; want a note and no rows", tb.Notes, tb.Page)
	}
	if tb := tableOf(t, b, TableQuery{JobsWindow: JobsWindow{Filter: "state=nonsense",
		Rows: 9}}); tb.Page.Wrong == "" || tb.Page.Matched != 0 {
		t.Errorf("an impossible filter: got %+v, want no rows and the reason", tb.Page)
	}
}

// TestPlainRunHasNoTable checks that a run with neither parameters nor metrics has no table until a
// metric is requested.
func TestPlainRunHasNoTable(t *testing.T) {
	x, dir := newTab(), t.TempDir()
	x.add(jobs.Spec{Command: "c"}, jobs.Succeeded, withEnded("ws01", jobs.Outcome{}, time.Second))
	write(t, dir, jobs.AttemptID{Job: 1, N: 1}, "acc=1\n")
	b := gridBoard(t, x, dir)
	if tb := tableOf(t, b, TableQuery{JobsWindow: JobsWindow{Rows: 9}}); !tb.Plain {
		t.Errorf("without metrics: got %+v, want a plain table", tb)
	}
	if tb := tableOf(t, b, TableQuery{JobsWindow: JobsWindow{Rows: 9}, Metrics: []string{"acc"}}); tb.Plain ||
		tb.Values[0][0] != "1" {
		t.Errorf("with the metric acc: got %+v, want its value 1", tb)
	}
}
