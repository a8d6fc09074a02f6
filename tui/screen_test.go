package tui

import (
	"fmt"
	"testing"
)

// TUI.md: no size may break the layout, whatever is open.
func TestEverySizeHasExactlyItsRowsAndCells(t *testing.T) {
	for _, size := range [][2]int{{10, 3}, {39, 9}, {40, 10}, {59, 14}, {60, 15}, {80, 24}, {119, 35}, {120, 36}, {160, 48}, {300, 100}} {
		m := newScreen(t, sample(), size[0], size[1])
		for v := range tabs {
			m.open(v)
			refresh(t, m)
			checkSize(t, m, fmt.Sprintf("%dx%d, %s", size[0], size[1], tabNames[v]))
		}
	}
}
