//go:build linux

package remote

import (
	"slices"
	"testing"

	"dcs-tui/hosts"
)

// E7: a fence shuts out all that are older, though only the newest mark is kept.
func TestFenceMarks(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		epoch, by int
		marks     []int
	}{
		{1, 0, []int{1}}, {1, 0, []int{1}}, {2, 0, []int{2}}, {3, 0, []int{3}}, {1, 3, []int{3}}, {2, 3, []int{3}}, {7, 0, []int{7}}, {3, 7, []int{7}},
	} {
		by, err := passFence(dir, &hosts.Open{Run: "r", Host: "h", Epoch: c.epoch})
		if err != nil || by != c.by {
			t.Errorf("epoch %d: fenced by %d, %v; want %d", c.epoch, by, err, c.by)
		}
		marks, err := epochs(dir)
		slices.Sort(marks)
		if err != nil || !slices.Equal(marks, c.marks) {
			t.Errorf("after epoch %d: %v, %v; want %v", c.epoch, marks, err, c.marks)
		}
	}
}
