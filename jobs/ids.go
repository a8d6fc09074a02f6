package jobs

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// ID is a job's number within its run: 1, 2, 3, … in file order.
type ID int

// AttemptID names one execution of a job. Job 17, N 2 is written "17.2". N counts all attempts of
// the job, across all its rounds, from 1.
type AttemptID struct {
	Job ID
	N   int
}

// String returns the form used in file names, the journal, and messages: "17.2".
func (a AttemptID) String() string {
	return string(a.Append(make([]byte, 0, 24)))
}

// Compare orders attempts by job and number.
func (a AttemptID) Compare(b AttemptID) int {
	return cmp.Or(cmp.Compare(a.Job, b.Job), cmp.Compare(a.N, b.N))
}

// Append appends the text form to b and returns it.
func (a AttemptID) Append(b []byte) []byte {
	b = strconv.AppendInt(b, int64(a.Job), 10)
	b = append(b, '.')
	return strconv.AppendInt(b, int64(a.N), 10)
}

// MarshalText writes "17.2".
func (a AttemptID) MarshalText() ([]byte, error) { return a.Append(nil), nil }

// UnmarshalText reads "17.2".
func (a *AttemptID) UnmarshalText(b []byte) error {
	id, err := ParseAttemptID(string(b))
	if err == nil {
		*a = id
	}
	return err
}

// ParseAttemptID parses "17.2". Both numbers are positive and have no leading zeros, so that an
// attempt has only one name.
func ParseAttemptID(s string) (AttemptID, error) {
	job, n, ok := strings.Cut(s, ".")
	j, err1 := strconv.Atoi(job)
	k, err2 := strconv.Atoi(n)
	id := AttemptID{ID(j), k}
	if !ok || err1 != nil || err2 != nil || j < 1 || k < 1 || id.String() != s {
		return AttemptID{}, fmt.Errorf("%q is not an attempt id such as 17.2", s)
	}
	return id, nil
}

// Ranges are job numbers in ascending order without duplicates: "3-17,20".
type Ranges []Range

// Range is the jobs from First to Last, inclusive.
type Range struct{ First, Last ID }

// ParseRanges parses job numbers and ranges, in any order and separated by commas: "3", "3-17",
// "9,3-5".
func ParseRanges(s string) (Ranges, error) {
	var list Ranges
	for part := range strings.SplitSeq(s, ",") {
		first, last, isRange := strings.Cut(strings.TrimSpace(part), "-")
		if !isRange {
			last = first
		}
		a, err1 := jobNumber(first)
		b, err2 := jobNumber(last)
		if err1 != nil || err2 != nil || b < a {
			return nil, fmt.Errorf("%.100q is not a job number such as 3, a range such as 5-9, "+
				"or several of them with commas between%s", part, hint(part))
		}
		list = append(list, Range{a, b})
	}
	return list.sorted(), nil
}

func jobNumber(s string) (ID, error) {
	n, err := strconv.ParseUint(s, 10, 31)
	if err == nil && n == 0 {
		err = strconv.ErrRange
	}
	return ID(n), err
}

// One returns the ranges that contain a single job.
func One(id ID) Ranges { return Ranges{{id, id}} }

// Add appends a job that is higher than all in the ranges.
func (l *Ranges) Add(id ID) {
	if n := len(*l); n > 0 && (*l)[n-1].Last == id-1 {
		(*l)[n-1].Last = id
		return
	}
	*l = append(*l, Range{id, id})
}

// RangesOf returns the ranges of job numbers.
func RangesOf(ids []ID) Ranges {
	list := make(Ranges, 0, 16)
	for _, id := range ids {
		list.Add(id)
	}
	return list.sorted()
}

// sorted sorts ranges and merges adjacent ones.
func (l Ranges) sorted() Ranges {
	slices.SortFunc(l, func(a, b Range) int { return cmp.Compare(a.First, b.First) })
	kept := l[:0]
	for _, r := range l {
		if n := len(kept); n > 0 && r.First <= kept[n-1].Last+1 {
			kept[n-1].Last = max(kept[n-1].Last, r.Last)
			continue
		}
		kept = append(kept, r)
	}
	return kept
}

// Union returns the jobs of a and b.
func Union(a, b Ranges) Ranges { return slices.Concat(a, b).sorted() }

// Count returns the number of jobs.
func (l Ranges) Count() int {
	n := 0
	for _, r := range l {
		n += int(r.Last-r.First) + 1
	}
	return n
}

// Last returns the highest number, or 0 if there is none.
func (l Ranges) Last() ID {
	if len(l) == 0 {
		return 0
	}
	return l[len(l)-1].Last
}

// Has reports whether the job is in the ranges.
func (l Ranges) Has(id ID) bool {
	i, found := slices.BinarySearchFunc(l, id, func(r Range, id ID) int { return cmp.Compare(r.First, id) })
	return found || i > 0 && id <= l[i-1].Last
}

// Overlaps reports whether any job from first to last is in the ranges.
func (l Ranges) Overlaps(first, last ID) bool {
	i, _ := slices.BinarySearchFunc(l, first, func(r Range, id ID) int { return cmp.Compare(r.Last, id) })
	return i < len(l) && l[i].First <= last
}

// IDs returns the individual jobs up to most. The limit keeps a range that somebody wrote by hand
// from filling the memory.
func (l Ranges) IDs(most ID) []ID {
	ids := []ID{}
	for _, r := range l {
		for id := r.First; id <= min(r.Last, most); id++ {
			ids = append(ids, id)
		}
	}
	return ids
}

// String returns the form that ParseRanges reads.
func (l Ranges) String() string {
	b := make([]byte, 0, 8*len(l))
	for i, r := range l {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(r.First), 10)
		if r.Last > r.First {
			b = strconv.AppendInt(append(b, '-'), int64(r.Last), 10)
		}
	}
	return string(b)
}

// MarshalText writes "3-17,20".
func (l Ranges) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// UnmarshalText parses it.
func (l *Ranges) UnmarshalText(b []byte) error {
	list, err := ParseRanges(string(b))
	if err == nil {
		*l = list
	}
	return err
}

// File is the kind of a file of an attempt. An attempt has at most three.
type File string

// The files of an attempt.
const (
	FileStatus File = "status" // its claim and, once it has ended, its sentinel: package attempts
	FileOut    File = "out"
	FileErr    File = "err"
)

// ShardSize is the number of jobs whose files are in one directory.
const ShardSize = 1000

// ShardDir returns the directory under attempts/ that holds the files of a job: "000" for jobs 1 to
// 999, "001" from 1000 on.
func ShardDir(id ID) string { return fmt.Sprintf("%03d", int(id)/ShardSize) }

// AttemptFile returns the path of one file of an attempt. dir is the directory that contains
// attempts/. An example is dir/attempts/000/17.2.status.
func AttemptFile(dir string, id AttemptID, f File) string {
	return filepath.Join(dir, "attempts", ShardDir(id.Job), id.String()+"."+string(f))
}
