package results

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"dcs-tui/internal/text"
	"dcs-tui/jobs/query"
)

// Missing is the reason for which a job does not count in a number that is computed over jobs.
type Missing uint8

// The reasons.
const (
	NotOver   Missing = iota // it has not ended
	NotSolved                // it did not succeed
	NoValue                  // it has no value
	NotNumber                // its value is not a number, or not one in the unit of the others
	numMissing
)

var missingTexts = [numMissing]string{"not over", "did not succeed", "without a value", "not a number"}

// Basis holds how many jobs a number is based on, and how many are missing. The zero value is that
// of no jobs.
type Basis struct {
	Used    int32
	Missing [numMissing]int32
}

// Jobs returns the number of jobs, used and missing.
func (b Basis) Jobs() (n int) {
	for _, missing := range b.Missing {
		n += int(missing)
	}
	return n + int(b.Used)
}

// IsComplete reports whether no job is missing.
func (b Basis) IsComplete() bool { return b.Missing == [numMissing]int32{} }

func (b *Basis) merge(o *Basis) {
	b.Used += o.Used
	for i, n := range o.Missing {
		b.Missing[i] += n
	}
}

// Short returns "2/5" if jobs are missing, and "" otherwise.
func (b Basis) Short() string {
	return text.If(!b.IsComplete(), strconv.Itoa(int(b.Used))+"/"+strconv.Itoa(b.Jobs()))
}

// Text returns "12 of 20 jobs: 5 not over, 3 did not succeed", where unit is "job". It returns "" if
// no job is missing.
func (b Basis) Text(unit string) string {
	if b.IsComplete() {
		return ""
	}
	var why []string
	for i, n := range b.Missing {
		if n > 0 {
			why = append(why, text.Thousands(int(n))+" "+missingTexts[i])
		}
	}
	total := b.Jobs()
	return fmt.Sprintf("%s of %s: %s", text.Thousands(int(b.Used)), text.Plural(total, unit), strings.Join(why, ", "))
}

// Notes holds sentences about a table, not cleaned.
type Notes struct {
	Basis  []string // numbers in which jobs are missing
	Others []string
}

// Add adds other notes.
func (n *Notes) Add(o Notes) {
	n.Basis, n.Others = append(n.Basis, o.Basis...), append(n.Others, o.Others...)
}

// All returns all sentences, those about missing jobs first.
func (n Notes) All() []string { return slices.Concat(n.Basis, n.Others) }

// notes returns the sentence that something is based on only some rows, or nothing.
func (b Basis) notes(what, unit string) []string {
	if b.IsComplete() {
		return nil
	}
	return []string{what + " is based on " + b.Text(unit)}
}

// count adds a row to the basis of a number of a column, and returns whether the row has a number
// that counts. It adds cells that cannot be used to bad.
func (s *Table) count(b *Basis, row, column int, bad *unusableCells) (v query.Value, ok bool) {
	why := Missing(0)
	switch {
	case !s.isOver(row):
		why = NotOver
	case !s.Solved(row):
		why = NotSolved
	default:
		v = s.At(row, column)
		if v.Kind == query.Number {
			b.Used++
			return v, true
		}
		why = NotNumber
		if v.Kind == query.Absent {
			why = NoValue
		}
		bad.add(&s.Columns[column], v, s.Job(row))
	}
	b.Missing[why]++
	return v, false
}

// Basis returns how many rows have a value in a column. A text is a value.
func (s *Table) Basis(column int) (b Basis) {
	for row := range s.rows {
		switch {
		case !s.isOver(row):
			b.Missing[NotOver]++
		case !s.Solved(row):
			b.Missing[NotSolved]++
		case s.At(row, column).Kind == query.Absent:
			b.Missing[NoValue]++
		default:
			b.Used++
		}
	}
	b.Missing[NotOver] += int32(s.numElsewhere)
	return b
}

// CellBasis returns the jobs that a cell is based on. ok is false if the cell is not computed over
// jobs, or if other columns have the numbers.
func (s *Table) CellBasis(row, column int) (b Basis, ok bool) {
	f := s.Columns[column].basis
	if f == nil {
		return b, false
	}
	return f(int(s.rows[row])), true
}

// withBasis returns a table with two more columns: the number of rows that b is based on, and the
// number of those that are missing. If none is missing, it returns s.
func (s *Table) withBasis(b *Basis) *Table {
	if b.IsComplete() {
		return s
	}
	t := *s
	t.Columns, t.shown = slices.Clone(s.Columns), slices.Clone(s.shown)
	names := s.names()
	for _, c := range []struct {
		name string
		n    int
	}{{"best_of", int(b.Used)}, {"missing", b.Jobs() - int(b.Used)}} {
		v := query.NumberValue(float64(c.n))
		t.shown = append(t.shown, len(t.Columns))
		t.Columns = append(t.Columns, Column{Name: uniqueName(names, c.name, "dcs."), Role: Stat,
			value: func(int) query.Value { return v }})
	}
	return &t
}
