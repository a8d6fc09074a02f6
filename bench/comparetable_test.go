package main

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestComparisonIsATable checks that the table has a row for each program that was measured, a dash
// for what was not, no column without a figure, and a line for each program that is missing.
func TestComparisonIsATable(t *testing.T) {
	c := newComparison("slots", "jobs/s", "note", "calls/s")
	c.set("dcs-tui", "slots", "4 hosts")
	c.set("xargs 4.9", "slots", "here")
	c.set("dcs-tui", "jobs/s", "400 (390–410)")
	c.set("dcs-tui", "note", "x | y")
	c.remark("%s was left out: %v.", "Parsl", errors.New("no such module"))
	c.loads = []float64{1, 3, 2}
	want := "Measured here. Load before each cell, the comparison itself included: 1.0 to 3.0, median 2.0.\n\n" +
		"| program | slots | jobs/s | note |\n|---|---|---|---|\n" +
		"| dcs-tui | 4 hosts | 400 (390–410) | x \\| y |\n| xargs 4.9 | here | – | – |\n" +
		"\nParsl was left out: no such module.\n"
	if got := c.text("Measured here."); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestTableIsReplacedInAPage checks that a new table replaces the old one and nothing else, and
// that a page without both markers is refused.
func TestTableIsReplacedInAPage(t *testing.T) {
	page := "# Title\n\n" + tableBegins + "old\n" + tableEnds + "\ntext\n"
	got, err := replaceTable(page, "\nnew\n\n")
	if want := "# Title\n\n" + tableBegins + "new\n" + tableEnds + "\ntext\n"; err != nil || got != want {
		t.Errorf("%q, %v", got, err)
	}
	for _, page := range []string{"", tableBegins, tableEnds, tableEnds + tableBegins} {
		if got, err := replaceTable(page, "new"); err == nil {
			t.Errorf("%q was accepted: %q", page, got)
		}
	}
}

// TestSpanShowsMedianAndRange checks that a cell shows how far its repetitions differ.
func TestSpanShowsMedianAndRange(t *testing.T) {
	for want, values := range map[string][]float64{
		"":              nil,
		"12":            {12.3},
		"20 (10–31)":    {31, 10, 20},
		"10":            {10.1, 10.2, 9.9},
		"410 (400–500)": {500, 400, 410},
	} {
		if got := span("%.0f", values); got != want {
			t.Errorf("%v: %q, want %q", values, got, want)
		}
	}
}

// TestDisturbedMeasurementsAreRepeated checks that a cell is the median of three if it is short and
// steady, has more repetitions if they differ, and one if it takes long; and that an error ends it.
func TestDisturbedMeasurementsAreRepeated(t *testing.T) {
	for _, c := range []struct {
		figures []float64
		took    time.Duration
		want    int
	}{
		{[]float64{100, 101, 99, 1}, time.Second, 3},
		{[]float64{100, 50, 99, 100, 101, 100, 7}, time.Second, 6},
		{[]float64{100, 1}, longCell, 1},
	} {
		n := 0
		values, err := repeated(3, func() (float64, time.Duration, error) {
			n++
			return c.figures[n-1], c.took, nil
		})
		if err != nil || !slices.Equal(values, c.figures[:c.want]) {
			t.Errorf("%v: %v, %v", c.figures, values, err)
		}
	}
	broken := errors.New("broken")
	if _, err := repeated(3, func() (float64, time.Duration, error) { return 0, 0, broken }); err != broken {
		t.Errorf("%v", err)
	}
}

// TestJobsAreTallied checks that lost jobs, jobs that started again, and jobs that ran twice are
// told apart.
func TestJobsAreTallied(t *testing.T) {
	for _, c := range []struct{ starts, ends, want string }{
		{"1 2 3", "1 3 2", "all 3"},
		{"1 2 3 2", "1 3 2", "all 3; 1 started again"},
		{"1 2 3 1 2", "1 3 2 1 2", "all 3; 2 ran twice"},
		{"1 2", "1", "1 of 3, 2 lost"},
		{"1 2 1", "1 1", "1 of 3, 2 lost; 1 ran twice"},
	} {
		lines := func(s string) string { return strings.ReplaceAll(s, " ", "\n") + "\n" }
		if got := tallyOf(3, lines(c.starts), lines(c.ends)).String(); got != c.want {
			t.Errorf("%q, %q: %q, want %q", c.starts, c.ends, got, c.want)
		}
	}
}
