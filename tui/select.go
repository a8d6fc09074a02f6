package tui

import (
	"slices"

	"dcs-tui/jobs"
)

// selection is a set of jobs, kept as ranges: "all that match" may be a million, and
// no frame walks them.
type selection struct {
	which jobs.Ranges
	n     int // how many
}

// find returns the place of the first range that ends at id or later.
func (s *selection) find(id jobs.ID) int {
	i, _ := slices.BinarySearchFunc(s.which, id, func(r jobs.Range, id jobs.ID) int { return int(r.Last) - int(id) })
	return i
}

func (s *selection) has(id jobs.ID) bool {
	i := s.find(id)
	return i < len(s.which) && s.which[i].First <= id
}

// toggle takes a job in, or out.
func (s *selection) toggle(id jobs.ID) {
	i := s.find(id)
	if i == len(s.which) || s.which[i].First > id {
		s.add(jobs.One(id))
		return
	}
	r := s.which[i]
	var rest []jobs.Range
	if r.First < id {
		rest = append(rest, jobs.Range{First: r.First, Last: id - 1})
	}
	if r.Last > id {
		rest = append(rest, jobs.Range{First: id + 1, Last: r.Last})
	}
	s.set(slices.Concat(s.which[:i], rest, s.which[i+1:])) // a new slice: an action may hold the old one
}

// add takes more jobs in.
func (s *selection) add(more jobs.Ranges) { s.set(union(s.which, more)) }

func (s *selection) set(which jobs.Ranges) { s.which, s.n = which, which.Count() }

// union merges two ordered lists of ranges.
func union(a, b jobs.Ranges) jobs.Ranges {
	out := make(jobs.Ranges, 0, len(a)+len(b))
	for len(a) > 0 || len(b) > 0 {
		var r jobs.Range
		if len(b) == 0 || len(a) > 0 && a[0].First <= b[0].First {
			r, a = a[0], a[1:]
		} else {
			r, b = b[0], b[1:]
		}
		if n := len(out); n > 0 && out[n-1].Last >= r.First-1 {
			out[n-1].Last = max(out[n-1].Last, r.Last)
		} else {
			out = append(out, r)
		}
	}
	return out
}

// equal says whether two lists are the same jobs.
func equal(a, b jobs.Ranges) bool { return slices.Equal(a, b) }
