package runview

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"dcs-tui/jobs"
)

// TestFailuresAreGroupedByCause checks failures by cause (X7).
func TestFailuresAreGroupedByCause(t *testing.T) {
	x := newTab()
	for i := range 60 {
		switch {
		case i%2 == 0:
			x.add(jobs.Spec{Command: "c"}, jobs.Failed,
				withEnded(fmt.Sprintf("ws%02d", i%7), jobs.Outcome{Exit: 1, LastLine: "no file"}, time.Second))
		case i%3 == 0:
			x.add(jobs.Spec{Command: "c"}, jobs.TimedOut,
				withEnded("ws09", jobs.Outcome{TimedOut: true, Signal: "SIGTERM"}, time.Second))
		default:
			x.add(jobs.Spec{Command: "c"}, jobs.Queued,
				withEnded("ws09", jobs.Outcome{TimedOut: true, Signal: "SIGTERM"}, time.Second))
		}
	}
	b := boardOf(t, x)
	g := lookAt(t, b, Query{Groups: true}).Groups
	if len(g) != 2 || g[0].Cause != "exit 1" || g[0].Last != "no file" || g[0].Count != 30 || len(g[0].Hosts) != 5 ||
		len(g[0].Jobs) != MaxGroupRows || g[0].Which.Count() != 30 || g[0].Jobs[0].ID != 59 || g[1].Count != 10 ||
		g[1].Tries != 20 {
		t.Errorf("groups: got %+v, want 30 failed jobs with the first cause and 10 with the second", g)
	}
	k := b
	for id := jobs.ID(1); id <= 60; id++ { // all are run again
		j := x.Job(id)
		j.State, j.Round, j.Failures = jobs.Queued, 2, 0
		k.remakeRow(id)
	}
	b.groups.took = 0 // rebuild the groups at once
	if g := b.groups.top(&b.list); len(g) != 0 {
		t.Errorf("%d groups are left", len(g))
	}
	for id := jobs.ID(1); id <= 60; id++ {
		j := x.Job(id)
		j.State = jobs.Failed
		withEnded("h", jobs.Outcome{Exit: 2, LastLine: strings.Repeat("no ", int(id%3))}, time.Second)(j)
		k.remakeRow(id)
	}
	b.groups.took = 0
	sum := 0
	for _, x := range b.groups.top(&b.list) {
		v := x.view(b.names.Values)
		sum += v.Which.Count()
		if v.Count != 20 || v.Which.Count() != 20 {
			t.Errorf("got group %+v, want 20 jobs", v)
		}
	}
	if sum != 60 {
		t.Errorf("%d of 60 are in a group", sum)
	}
}

// TestCausesAreBounded checks that many causes do not make a snapshot grow without bound.
func TestCausesAreBounded(t *testing.T) {
	x := newTab()
	for i := range 3000 {
		x.add(jobs.Spec{Command: "c"}, jobs.Failed,
			withEnded("h", jobs.Outcome{Exit: 1, LastLine: strings.Repeat("x", i)}, time.Second))
	}
	b := boardOf(t, x)
	g := lookAt(t, b, Query{Groups: true}).Groups
	sum := 0
	for _, x := range g {
		sum += x.Count
		if x.Which.Count() != x.Count {
			t.Errorf("%s: %d of %d are named", x.Last, x.Which.Count(), x.Count)
		}
	}
	if len(g) != MaxGroups || sum != 3000 {
		t.Errorf("%d groups of %d jobs", len(g), sum)
	}
}
