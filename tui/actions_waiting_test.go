package tui

import (
	"strings"
	"testing"

	"dcs-tui/jobs/runview"
)

// Rule 9: a cancel that was said to cost nothing that runs asks for what still waits
// only; one that was told what is lost ends everything.
func TestACancelEndsNoMoreThanWasSaid(t *testing.T) {
	for _, c := range []struct {
		weight runview.Weight
		keys   string
		want   bool
	}{
		{runview.Weight{Queued: 1}, "c", true},
		{runview.Weight{Running: 1}, "c y", false},
	} {
		src := sample()
		src.weight = c.weight
		m, _ := screenOn(t, src, aQueued, 80, 24)
		do(t, m, strings.Fields(c.keys)...)
		if did := src.done(); len(did) != 1 || did[0].Do != runview.Cancel || did[0].Waiting != c.want {
			t.Errorf("%+v: %+v", c.weight, did)
		}
	}
}
