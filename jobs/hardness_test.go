package jobs_test

import (
	"testing"
	"time"

	"dcs-tui/jobs"
)

// TestHardnessIsCompared checks the order in which jobs of a batch run: by components, numbers
// before texts, and among equals those with more time first.
func TestHardnessIsCompared(t *testing.T) {
	parse := func(words ...string) (list []jobs.Hardness) {
		for _, w := range words {
			list = append(list, jobs.ParseHardness(w))
		}
		return list
	}
	easier := []struct {
		components []jobs.Hardness
		limit      time.Duration
	}{
		{parse("1", "9"), time.Minute},
		{parse("2", "1"), 0}, // no limit
		{parse("2", "1"), time.Hour},
		{parse("2", "1"), time.Minute},
		{parse("2", "10"), time.Hour},
		{parse("2", "x"), time.Hour},
		{parse("10", "1"), time.Hour},
	}
	for i, a := range easier {
		for k, b := range easier {
			want := 0
			if i < k {
				want = -1
			} else if i > k {
				want = 1
			}
			if got := jobs.CompareHardness(a.components, b.components, a.limit, b.limit); got != want {
				t.Errorf("%d and %d: got %d, want %d", i, k, got, want)
			}
		}
	}
	one := &jobs.Options{Queue: "q", Hardness: []string{"1", "2"}}
	other := &jobs.Options{Queue: "q", Hardness: []string{"3", "4"}}
	same(t, "the batches of the same queue", one.HardnessBatch(), other.HardnessBatch())
	other.Hardness = other.Hardness[:1]
	if one.HardnessBatch() == other.HardnessBatch() {
		t.Error("different numbers of components are compared")
	}
}
