package results

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"dcs-tui/jobs"
)

// wide returns a grid of 3 x 40 with a long mean in each cell, and its pivot.
func wide(t *testing.T) *Pivot {
	t.Helper()
	in := TableInput{Names: []string{"acc"}}
	for i := range 120 {
		in.Jobs = append(in.Jobs, Result{Job: jobs.ID(i + 1), State: jobs.Succeeded,
			Params: []jobs.Param{{Name: "C", Value: fmt.Sprint(i / 40)}, {Name: "gamma", Value: fmt.Sprint(i % 40)}}})
		in.Metrics = append(in.Metrics, []string{fmt.Sprint(1 / float64(i+3))})
	}
	s := NewTable(in)
	p, _, err := s.Pivot(PivotOf{Down: column(t, s, "C"), Across: column(t, s, "gamma"), Metric: column(t, s, "acc"), Measure: Mean})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestWidePivotsFitTheTerminal checks that a pivot that is wider than the terminal is printed with
// fewer digits and in pages of columns, each with the names of the rows. Elsewhere it is printed in
// full (X5, E3).
func TestWidePivotsFitTheTerminal(t *testing.T) {
	g := wide(t)
	pivot := func(width int) string { return write(t, g.Table(), Options{Format: TableFormat, Width: width}) }
	for name, draw := range map[string]func(int) string{"pivot": pivot} {
		whole := draw(0)
		if !strings.Contains(whole, "0.333333") || strings.Contains(whole, "\n\n") {
			t.Errorf("%s: what is no terminal lacks digits, or has pages:\n%s", name, whole)
		}
		for _, width := range []int{40, 80, 132} {
			text := draw(width)
			// Once, in the legend.
			if !strings.Contains(text, "0.333 ") && !strings.Contains(text, "0.333\n") || strings.Count(text, "0.333333") > 1 {
				t.Errorf("%s of %d: digits are as many as before\n%s", name, width, text)
			}
			seen := map[string]bool{}
			for _, page := range strings.Split(text, "\n\n") {
				lines := strings.Split(strings.TrimRight(page, "\n"), "\n")
				for _, line := range lines {
					if n := utf8.RuneCountInString(line); n > width {
						t.Errorf("%s: %d cells in a line of %d: %s", name, n, width, line)
					}
				}
				head := lines[max(0, len(lines)-4)]
				if !strings.HasPrefix(head, "C") || len(lines) < 4 {
					t.Errorf("%s: a page has no names:\n%s", name, page)
				}
				for _, word := range strings.Fields(head)[1:] {
					seen[word] = true
				}
			}
			for i := range 40 {
				if word := fmt.Sprint(i); !seen[word] && !seen["gamma="+word] {
					t.Errorf("%s of %d lacks the column %d: %v", name, width, i, seen)
				}
			}
		}
	}
}

// TestPages checks that every column is on one page and fixed columns are on each. A page is wider
// than the limit only if a single column is.
func TestPages(t *testing.T) {
	for _, c := range []struct {
		widths     []int
		stay, room int
		want       [][]int
	}{
		{[]int{1, 2, 3}, 1, 0, [][]int{{0, 1, 2}}},
		{[]int{1, 2, 3}, 1, 10, [][]int{{0, 1, 2}}},
		{[]int{1, 2, 3}, 1, 9, [][]int{{0, 1}, {0, 2}}},
		{[]int{1, 2, 3, 4}, 2, 9, [][]int{{0, 1, 2}, {0, 1, 3}}},
		{[]int{50, 60, 70}, 1, 9, [][]int{{0, 1}, {0, 2}}},
		{[]int{5}, 1, 2, [][]int{{0}}},
		{nil, 1, 2, nil},
	} {
		if got := pages(c.widths, c.stay, c.room); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%v: %v, want %v", c, got, c.want)
		}
	}
}
