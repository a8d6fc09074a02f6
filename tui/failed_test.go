package tui

import (
	"strings"
	"testing"

	"dcs-tui/jobs/runview"
)

// Rule 7: a cause without a last line of stderr (no host can run the job, say) is read
// whole where there is room; beside a last line it keeps its column.
func TestFailedCauses(t *testing.T) {
	const why = "no host has 10000 GiB of memory"
	m := newScreen(t, sample(), 80, 24)
	p := newFailedPane()
	for _, c := range []struct {
		name  string
		group runview.Group
		w     int
		want  string
	}{
		{"nothing ran", runview.Group{Cause: why, Count: 1}, 78, "1  " + why},
		{"nothing ran, few columns", runview.Group{Cause: why, Count: 1}, 30, "1  no host has 100…"},
		{"something ran", runview.Group{Cause: "exit 137", Last: "out of memory", Count: 2}, 78, "2  exit 137     out of memory"},
		{"a long cause of what ran", runview.Group{Cause: "exit 126 or so", Last: "x", Count: 2}, 78, "2  exit 126 or… x"},
	} {
		got := plainText(p.text(m, failedLine{group: &c.group}, c.w))
		if width(got) > c.w || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q in it", c.name, got, c.want)
		}
	}
}
