package tui

import (
	"fmt"
	"testing"

	"dcs-tui/jobs"
)

func TestSelection(t *testing.T) {
	var s selection
	want := map[jobs.ID]bool{}
	seed := uint32(7)
	for range 3000 {
		seed = seed*1664525 + 1013904223
		id := jobs.ID(seed>>16)%200 + 1
		if seed%7 == 0 {
			last := id + jobs.ID(seed%13)
			s.add(jobs.Ranges{{First: id, Last: last}, {First: last + 2, Last: last + 3}})
			for x := id; x <= last+3; x++ {
				want[x] = want[x] || x != last+1
			}
		} else {
			s.toggle(id)
			want[id] = !want[id]
		}
	}
	n := 0
	for id := jobs.ID(0); id < 230; id++ {
		if s.has(id) != want[id] {
			t.Errorf("%d: %v", id, s.has(id))
		}
		if want[id] {
			n++
		}
	}
	if s.n != n || s.which.Count() != n {
		t.Errorf("%d, %d selected, not %d", s.n, s.which.Count(), n)
	}
	for i := 1; i < len(s.which); i++ {
		if s.which[i].First <= s.which[i-1].Last+1 {
			t.Errorf("ranges touch: %v", s.which)
		}
	}
}

// An action that is under way keeps its jobs whatever is selected meanwhile.
func TestSelectionsAreNotChangedInPlace(t *testing.T) {
	var s selection
	s.add(jobs.Ranges{{First: 1, Last: 9}, {First: 20, Last: 20}})
	held, before := s.which, fmt.Sprint(s.which)
	s.toggle(5)
	s.toggle(20)
	s.toggle(12)
	if fmt.Sprint(held) != before {
		t.Errorf("%v has become %v", before, held)
	}
}
