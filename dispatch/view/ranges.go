package view

import (
	"encoding/binary"
	"errors"

	"dcs-tui/jobs"
)

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

// GobEncode packs ranges as the gaps between them and their lengths: of half a million
// single jobs gob alone would make a message that takes a second.
func (r Ranges) GobEncode() ([]byte, error) {
	b := make([]byte, 0, 2*len(r))
	var last jobs.ID
	for _, x := range r {
		b = binary.AppendVarint(b, int64(x.First-last))
		b = binary.AppendVarint(b, int64(x.Last-x.First))
		last = x.Last
	}
	return b, nil
}

var errRanges = errors.New("the jobs are cut off")

// GobDecode unpacks them; any ranges are possible that GobEncode takes.
func (r *Ranges) GobDecode(b []byte) error {
	list := make(Ranges, 0, len(b)/2)
	var last jobs.ID
	for len(b) > 0 {
		gap, n := binary.Varint(b)
		length, m := binary.Varint(b[max(0, n):])
		if n <= 0 || m <= 0 {
			return errRanges
		}
		first := last + jobs.ID(gap)
		last = first + jobs.ID(length)
		list = append(list, Range{first, last})
		b = b[n+m:]
	}
	*r = list
	return nil
}
