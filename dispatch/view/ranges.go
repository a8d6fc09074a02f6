package view

import "dcs-tui/jobs"

// Range is jobs First to Last, both of them included.
type Range struct{ First, Last jobs.ID }

// Ranges are jobs in ascending order without repeats.
type Ranges []Range

// One is a single job.
func One(id jobs.ID) Ranges { return Ranges{{id, id}} }

// Len counts the jobs.
func (r Ranges) Len() int {
	n := 0
	for _, x := range r {
		n += int(x.Last-x.First) + 1
	}
	return n
}

// Add appends a job that is higher than all before it.
func (r *Ranges) Add(id jobs.ID) {
	if n := len(*r); n > 0 && (*r)[n-1].Last == id-1 {
		(*r)[n-1].Last = id
		return
	}
	*r = append(*r, Range{id, id})
}

// IDs lists them, those up to last.
func (r Ranges) IDs(last jobs.ID) []jobs.ID {
	var ids []jobs.ID
	for _, x := range r {
		for id := max(1, x.First); id <= min(x.Last, last); id++ {
			ids = append(ids, id)
		}
	}
	return ids
}
