package jobs

import (
	"iter"
	"slices"
	"strings"
)

// Condition is how a job must end before a dependent job may run.
type Condition uint8

// The conditions. The zero value requires success.
const (
	AfterSuccess Condition = iota
	AfterEnd               // it ends in any way
	AfterFailure           // it fails or times out
)

var conditionNames = [...]string{"ok", "any", "failed"}

// String returns the word in a jobs file.
func (c Condition) String() string { return nameOf(conditionNames[:], int(c)) }

// MarshalText writes the word.
func (c Condition) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText reads the word.
func (c *Condition) UnmarshalText(b []byte) error {
	return parseWord(c, conditionNames[:], b, "condition")
}

// IsMet reports whether a job in state s lets its dependent jobs run.
func (c Condition) IsMet(s JobState) bool {
	switch c {
	case AfterEnd:
		return s.Terminal()
	case AfterFailure:
		return s == Failed || s == TimedOut
	}
	return s == Succeeded
}

// Dependency is a range of jobs that a job depends on.
type Dependency struct {
	Range
	On Condition
}

// Dependencies are the jobs that a job depends on, in the order in which it names them. A job may
// depend on a million others, so consecutive ones are one element.
type Dependencies []Dependency

// Add appends a dependency. It may change the last element.
func (d *Dependencies) Add(id ID, on Condition) {
	if n := len(*d); n > 0 && (*d)[n-1].On == on && (*d)[n-1].Last+1 == id {
		(*d)[n-1].Last = id
		return
	}
	*d = append(*d, Dependency{Range{id, id}, on})
}

// All returns each job that the job depends on, and how it must end.
func (d Dependencies) All() iter.Seq2[ID, Condition] {
	return func(yield func(ID, Condition) bool) {
		for _, r := range d {
			for i := range r.Last - r.First + 1 {
				if !yield(r.First+i, r.On) {
					return
				}
			}
		}
	}
}

// Map returns the dependencies with the numbers that number returns for the jobs.
func (d Dependencies) Map(number func(ID) ID) (mapped Dependencies) {
	for id, on := range d.All() {
		mapped.Add(number(id), on)
	}
	return mapped
}

// Shift returns the dependencies on jobs whose numbers are higher by n.
func (d Dependencies) Shift(n ID) Dependencies {
	shifted := slices.Clone(d)
	for i := range shifted {
		shifted[i].First += n
		shifted[i].Last += n
	}
	return shifted
}

// NeedSuccess reports whether all of the jobs must succeed.
func (d Dependencies) NeedSuccess() bool {
	for _, r := range d {
		if r.On != AfterSuccess {
			return false
		}
	}
	return true
}

// String returns the dependencies in the form of a jobs file.
func (d Dependencies) String() string {
	var items []string
	for _, r := range d {
		item := Ranges{r.Range}.String()
		if r.On != AfterSuccess {
			item = r.On.String() + ":" + item
		}
		items = append(items, item)
	}
	return strings.Join(items, ",")
}
