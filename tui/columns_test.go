package tui

import (
	"slices"
	"strings"
	"testing"

	"dcs-tui/jobs/runview"
)

// TUI.md: columns by importance, from 40 to 300 cells, never wider than the room.
func TestColumnsFit(t *testing.T) {
	m := newScreen(t, sample(), 80, 24)
	has := func(cols []column, head string) bool {
		return slices.ContainsFunc(cols, func(c column) bool { return strings.HasPrefix(c.head, head) })
	}
	for _, pane := range []interface{ columns(*model, int) []column }{m.jobs, m.result} {
		m.result.seen = m.jobs.seen
		before := 0
		for w := 38; w <= 300; w++ {
			cols := pane.columns(m, w)
			sum := -1
			for _, c := range cols {
				sum += c.w + 1
			}
			if sum > w || w > 60 && sum != w {
				t.Errorf("%T: at %d cells the columns take %d", pane, w, sum)
			}
			for _, head := range []string{"ID", "STATE", "TIME"} {
				if !has(cols, head) {
					t.Errorf("%T: at %d there is no %s", pane, w, head)
				}
			}
			if w >= 78 && pane == interface{ columns(*model, int) []column }(m.jobs) {
				for _, head := range []string{"HOST", "TRY", "PROGRESS", "NAME"} {
					if !has(cols, head) {
						t.Errorf("at %d there is no %s", w, head)
					}
				}
			}
			if len(cols) < before-1 {
				t.Errorf("%T: at %d columns are lost: %d, before %d", pane, w, len(cols), before)
			}
			before = len(cols)
		}
	}
	m.jobs.sort = runview.SortMemory
	if cols := m.jobs.columns(m, 60); !has(cols, "MEM") {
		t.Error("the column that orders the list is not shown")
	}
}
