package runview

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"dcs-tui/jobs"
	"dcs-tui/jobs/metrics"
)

// TestTableIsBounded checks that a table is bounded, whatever is requested (rule 3).
func TestTableIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, dir, _ := gridRun(t, 400, 1, 1)
		long := strings.Repeat("x", 10_000)
		write(t, dir, jobs.AttemptID{Job: 1, N: 1}, "word="+long[:900]+"\n")
		b := gridBoard(t, x, dir, "word", "loss")
		var many []string
		for i := range 500 {
			many = append(many, fmt.Sprintf("f%d", i))
		}
		tb := tableOf(t, b, TableQuery{JobsWindow: JobsWindow{Rows: 1e9}, Metrics: many, Group: many, Pivot: many})
		if len(tb.Page.Rows) > MaxRows || len(tb.Values) > MaxRows || len(tb.Columns) > 200 {
			t.Errorf("%d rows, %d columns", len(tb.Page.Rows), len(tb.Columns))
		}
		tb = tableOf(t, b, TableQuery{JobsWindow: JobsWindow{Rows: 1}})
		if n := len(tb.Values[0][0]); n != MaxTableCell {
			t.Errorf("a cell of %d bytes", n)
		}
		if tb = tableOf(t, b, TableQuery{Group: []string{"C"}}); len(tb.Groups.Rows) != MaxTableGroups ||
			tb.Groups.More != 100 {
			t.Errorf("%d groups and %d more", len(tb.Groups.Rows), tb.Groups.More)
		}
		tb = tableOf(t, b, TableQuery{Heat: true, Pivot: []string{"C", "job", "loss"}})
		if h := tb.Heat; h == nil || len(h.Rows) != MaxHeat || len(h.Columns) != MaxHeat || h.MoreRows != 400-MaxHeat ||
			h.MoreColumns != 400-MaxHeat {
			t.Errorf("the heat map is not bounded by MaxHeat; Wrong: %q", tb.Wrong)
		}
	})
}

// TestTableHasRoomForSome checks that a table has a maximum number of jobs and reports when it is
// reached.
func TestTableHasRoomForSome(t *testing.T) {
	maxFinished = 10
	t.Cleanup(func() { maxFinished = 250_000 })
	x, dir, _ := gridRun(t, 12, 1, 1)
	tb := tableOf(t, gridBoard(t, x, dir, "acc"), TableQuery{JobsWindow: JobsWindow{Rows: 50}})
	if len(tb.Page.Rows) != 10 || len(tb.Notes) != 1 || !strings.Contains(tb.Notes[0], "2 more") {
		t.Errorf("%d rows, %q", len(tb.Page.Rows), tb.Notes)
	}
}

// TestPanicInATableEndsNothing checks that a panic in a table is reported and ends neither the
// dispatcher nor the View.
func TestPanicInATableEndsNothing(t *testing.T) {
	x, dir, _ := gridRun(t, 2, 2, 1)
	o := metricOptions(t, dir, "acc")
	o.Outputs = func([]*metrics.Metric) *metrics.Reader { panic("a test") }
	b := FromTable(runAt(dir), x.Table, o)
	t.Cleanup(b.Close)
	for a := (Query{Jobs: windowOf(9), Table: &TableQuery{}}); ; {
		p, err := b.Snapshot(t.Context(), a)
		if err != nil || len(p.Jobs.Rows) != 4 {
			t.Fatal(p, err)
		}
		if strings.Contains(p.Table.Wrong, "a test") {
			return
		}
		a.After, a.Wait = p.Version, time.Minute
	}
}

// BenchmarkTable measures a table of 100,000 finished jobs: the time until it is complete, and the
// maximum time that a Snapshot waits meanwhile.
func BenchmarkTable(b *testing.B) {
	x, dir, _ := gridRun(b, 100, 100, 10)
	for b.Loop() {
		board := FromTable(runAt(dir), x.Table, metricOptions(b, dir, "acc", "loss"))
		ask := Query{Jobs: windowOf(50), Table: &TableQuery{JobsWindow: JobsWindow{Rows: 200}, Best: "acc:max",
			Group: []string{"C"}}}
		start, worst := time.Now(), time.Duration(0)
		if _, err := board.Snapshot(b.Context(), Query{Jobs: windowOf(50)}); err != nil {
			b.Fatal(err)
		}
		filled := time.Since(start)
		for {
			asked := time.Now()
			p, err := board.Snapshot(b.Context(), ask)
			must(b, err)
			worst = max(worst, time.Since(asked))
			if p.Table.Ready && p.Table.Read == p.Table.Jobs {
				break
			}
			next := ask // return at the next change, or after a short wait
			next.After, next.Wait = p.Version, 50*time.Millisecond
			if _, err := board.Snapshot(b.Context(), next); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(time.Since(start).Seconds(), "whole-s")
		b.ReportMetric(filled.Seconds(), "list-s")
		b.ReportMetric(float64(worst.Microseconds())/1000, "look-worst-ms")
		sorted := time.Now()
		ask.Table.Group, ask.Table.By = nil, "acc"
		if p, err := board.Snapshot(b.Context(), ask); err != nil || p.Table == nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(time.Since(sorted).Microseconds())/1000, "look-sorted-ms")
		board.Close()
	}
}

// TestLastOfManyParametersAreOmitted checks that of many parameters the last ones are omitted with
// a note, and that the results of the jobs are still shown (X5).
func TestLastOfManyParametersAreOmitted(t *testing.T) {
	x, dir := newTab(), t.TempDir()
	var params []jobs.Param
	for i := range MaxTableNames + 10 {
		params = append(params, jobs.Param{Name: fmt.Sprintf("p%d", i), Value: "1"})
	}
	x.add(jobs.Spec{Command: "train", Labels: jobs.NewLabels("", params)}, jobs.Succeeded,
		withEnded("ws01", jobs.Outcome{}, time.Second))
	write(t, dir, jobs.AttemptID{Job: 1, N: 1}, "acc=1\n")
	tb := tableOf(t, gridBoard(t, x, dir, "acc"), TableQuery{JobsWindow: JobsWindow{Rows: 9}})
	has := map[string]bool{}
	for _, c := range tb.Columns {
		has[c.Name] = true
	}
	if !has["acc"] || !has["time"] || !has["p49"] || has["p50"] || len(tb.Notes) != 1 ||
		tb.Notes[0] != "there is room for 50 parameters: 10 more, p50 and what follows, have no column" {
		t.Errorf("columns: got %v, notes %q; want 50 parameters and a note", tb.Columns, tb.Notes)
	}
}
