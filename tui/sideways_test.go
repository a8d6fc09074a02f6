package tui

import (
	"fmt"
	"strings"
	"testing"

	"dcs-tui/jobs"
	"dcs-tui/jobs/runview"
)

// TUI.md, view 4: every column of a table that is wider than the screen can be moved to,
// the first ones stay, and the footer says that there are more.
func TestSideways(t *testing.T) {
	const params, figures = 40, 20
	var rows [][]jobs.Param
	for i := range 6 {
		var row []jobs.Param
		for k := range params {
			row = append(row, jobs.Param{Name: fmt.Sprintf("p%02d", k), Value: fmt.Sprint(i * (k % 2))})
		}
		rows = append(rows, row)
	}
	var names []string
	var text strings.Builder
	for k := range figures {
		names = append(names, fmt.Sprintf("fig%02d", k))
		fmt.Fprintf(&text, "fig%02d=%d\n", k, k)
	}
	src := gridSource(t, rows, func(int) string { return text.String() }, names...)
	all := append([]string{"CAUSE", "TIME", "CPU", "MEM", "HOST", "TRY", "NAME"}, names...)
	for k := range params {
		all = append(all, fmt.Sprintf("p%02d", k))
	}
	for _, size := range [][2]int{{40, 10}, {80, 24}, {160, 48}} {
		m := newResults(t, src, size[0], size[1], false)
		m.folded = true
		heading := func() string {
			for line := range strings.SplitSeq(plain(m), "\n") {
				if strings.Contains(line, " ID") || strings.Contains(line, " p01 ") {
					line, _, _ = strings.Cut(line, "┃│") // beside it are the hosts
					return line
				}
			}
			t.Fatalf("no heading:\n%s", plain(m))
			return ""
		}
		through := func(turns *sideways, stays string, columns []string) {
			t.Helper()
			first, seen := heading(), ""
			if strings.Contains(first, "p00") {
				t.Errorf("%v: a parameter that has one value takes the room of one that has several: %s", size, first)
			}
			if foot := plain(m); size[0] == 80 && !strings.Contains(foot, "→ columns") {
				t.Errorf("the footer does not say that there are more:\n%s", foot)
			}
			pages := 1
			for ; ; pages++ {
				if !strings.Contains(heading(), stays) {
					t.Fatalf("%v: %s does not stay: %s", size, stays, heading())
				}
				if seen += heading() + " "; turns.more == 0 {
					break
				}
				do(t, m, "right")
			}
			for _, c := range columns {
				if n := strings.Count(seen, c); n != 1 {
					t.Errorf("%v: %s is on %d pages", size, c, n)
				}
			}
			for range pages - 1 {
				do(t, m, "left")
			}
			if heading() != first {
				t.Errorf("%v: back at the first columns it is\n%s\nand was\n%s", size, heading(), first)
			}
		}
		through(&m.result.aside, "ID", all)
		if err := typed(t, m, "result last=key:fig19"); err != nil || size[0] >= 80 && !strings.Contains(heading(), " last") {
			t.Errorf("%v: a column that was just asked for is not on the first page: %v, %s", size, err, heading())
		}
		if err := typed(t, m, "group p01"); err != nil {
			t.Fatal(err)
		}
		through(&m.result.groups.aside, "p01", []string{"jobs", "solved", "fig00_mean", "fig19_median", "fig07_sd"})
	}
}

// A number that does not fit is rounded: cut, it would lose its exponent or its size. The
// numbers of groups and heat maps always fit.
func TestFigures(t *testing.T) {
	m := newScreen(t, sample(), 80, 24)
	for _, c := range []struct {
		text string
		w    int
		want string
	}{
		{"0.913", 14, "0.913"},
		{"0.9133333333333333", 14, "0.913333333333"},
		{"0.123456789012345678e-10", 14, "1.23456789e-11"},
		{"-12345678901234567890", 14, "-1.2345679e+19"},
		{"99999999999999999999999999999999999999", 14, "1e+38"},
		{"-0.000012345678", 10, "-1.235e-05"},
		{"nan", 3, "nan"},
		{"日本語日本語日本語", 14, "日本語日本語…"},
		{"a long text of no number", 14, "a long text o…"},
	} {
		if got := strings.TrimSpace(m.figure(c.text, c.w)); got != c.want || width(got) > c.w {
			t.Errorf("%s in %d cells is %q, not %q", c.text, c.w, got, c.want)
		}
	}
}

// Rule 4: the cursor of a heat map sticks to its values while others come.
func TestTheCursorOfAHeatMapSticks(t *testing.T) {
	m := newResults(t, sweep(t), 80, 24, false)
	if err := typed(t, m, "pivot C gamma acc"); err != nil {
		t.Fatal(err)
	}
	do(t, m, "j", "right")
	shows(t, m, "C=0.1 gamma=0.5: 0.2955")
	x := *m.result.table.Heat
	x.Rows, x.Columns = append([]string{"0.001"}, x.Rows...), append([]string{"0"}, x.Columns...)
	empty := make([]string, len(x.Columns))
	x.Cells, x.Levels = [][]string{empty}, [][]int8{make([]int8, len(x.Columns))}
	for _, row := range m.result.table.Heat.Cells {
		x.Cells, x.Levels = append(x.Cells, append([]string{""}, row...)), append(x.Levels, make([]int8, len(x.Columns)))
	}
	p := *m.pic
	p.Table = &runview.Table{Ready: true, Heat: &x, Columns: m.result.table.Columns}
	m.take(looked{pic: &p, at: noon})
	m.frame = ""
	shows(t, m, "C=0.1 gamma=0.5: 0.2955")
}
