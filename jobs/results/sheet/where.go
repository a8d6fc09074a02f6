package sheet

import (
	"fmt"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"

	"dcs-tui/jobs"
	"dcs-tui/jobs/results/column"
)

// Where returns the rows that a filter matches. notes says where a comparison wanted
// numbers and texts stood, or the other way round: such a row does not match.
func (s *Sheet) Where(f *Filter) (matching *Sheet, notes []string, err error) {
	return s.Search(f, nil)
}

// Search is Where for a search, whose words are compiled by word.
func (s *Sheet) Search(f *Filter, word func(Word) (func(row int) bool, error)) (matching *Sheet, notes []string, err error) {
	odd := map[int]*mismatch{}
	match, err := Compile(f, Rows[int]{Word: word, Cells: func(name string) (Cells[int], error) {
		at, err := s.Column(name)
		if err != nil {
			return Cells[int]{}, err
		}
		if odd[at] == nil {
			odd[at] = &mismatch{}
		}
		return Cells[int]{Column: s.Columns[at], Value: s.getter(at), Odd: func(row int, v Value) { odd[at].add(v, s.Job(row)) }}, nil
	}})
	if err != nil {
		return nil, nil, err
	}
	matching = s.Keep(match)
	for at := range s.Columns {
		if o := odd[at]; o != nil {
			notes = append(notes, o.notes(s.Columns[at].Name, s.unit)...)
		}
	}
	if matching.Len() == 0 {
		notes = append(notes, s.lacking(f)...)
	}
	return matching, notes, nil
}

// lacking says which columns a filter compares with < or > and no row has a value of.
func (s *Sheet) lacking(f *Filter) (notes []string) {
	var said []int
	for _, name := range f.root.ordered(nil) {
		at, err := s.Column(name)
		if err != nil || slices.Contains(said, at) || s.Len() == 0 {
			continue
		}
		said = append(said, at)
		value := s.getter(at)
		some := false
		for row := 0; row < s.Len() && !some; row++ {
			some = value(row).Kind != Nothing
		}
		if !some {
			notes = append(notes, fmt.Sprintf("no %s has %s, and < and > find none without", s.unit, s.Columns[at].Name))
		}
	}
	return notes
}

// WhereAll returns the rows that every one of the filters matches; notes as Where.
func (s *Sheet) WhereAll(filters []*Filter) (matching *Sheet, notes []string, err error) {
	for _, f := range filters {
		var odd []string
		if s, odd, err = s.Where(f); err != nil {
			return nil, nil, err
		}
		notes = append(notes, odd...)
	}
	return s, notes, nil
}

// getter returns the cells of a column as filters see them: a job that a signal ended has
// no exit code, and whoever looks for 137 means one that was killed, as shells put it.
func (s *Sheet) getter(at int) func(row int) Value {
	get := func(row int) Value { return s.At(row, at) }
	isFact := func(c Column, name string) bool { return c.Role == Fact && strings.TrimPrefix(c.Name, "dcs.") == name }
	signal := slices.IndexFunc(s.Columns, func(c Column) bool { return isFact(c, "signal") })
	if !isFact(s.Columns[at], "exit") || signal < 0 {
		return get
	}
	return func(row int) Value {
		v := get(row)
		if n := jobs.SignalNumber(s.At(row, signal).Text); v.Kind == Nothing && n > 0 {
			return countValue(int64(128 + n))
		}
		return v
	}
}

// measured returns the comparison with its value converted to a number, if the value is
// a size or a duration such as 1.5G or 2h and the column holds such values.
func (c *comparison) measured(unit Unit) *comparison {
	if unit == None || c.quoted || c.numeric || c.glob != "" || c.expr != nil {
		return c
	}
	var number float64
	if size, err := jobs.ParseSize(c.value); unit == Bytes && err == nil {
		number = float64(size)
	} else if d, err := jobs.ParseDuration(c.value); unit == Seconds && err == nil {
		number = d.Seconds()
	} else {
		return c
	}
	of := *c
	of.number, of.numeric, of.value = number, true, strconv.FormatFloat(number, 'f', -1, 64)
	return &of
}

// impossible says why no job can ever be what a comparison wants of a fact, such as a
// state that there is not; "" when one can. Most such are slips.
func (c *comparison) impossible(col *Column) string {
	if col.Role != Fact || c.glob != "" || c.expr != nil || c.value == "" {
		return ""
	}
	name := strings.TrimPrefix(col.Name, "dcs.")
	n, numeric := column.Number(c.value)
	switch {
	case name == "state" && (c.op == "=" || c.op == "!="):
		var st jobs.JobState
		if st.UnmarshalText([]byte(c.value)) != nil {
			return fmt.Sprintf("no job is ever %s; the states are queued, running, succeeded, failed, timed_out, cancelled, skipped", quote(c.value))
		}
	case name == "exit" && !(numeric && n >= 0 && n <= 255):
		return fmt.Sprintf("no exit code is %s: they are numbers from 0 to 255; signal=SIGKILL is one that was killed", quote(c.value))
	case col.number && !numeric:
		return fmt.Sprintf("%s is a number, and %s is none", col.Name, quote(c.value))
	}
	return ""
}

// equal: numbers by what they are worth (NaN is like NaN here), others by their text;
// nothing is like ” alone.
func (c *comparison) equal(v Value) bool {
	switch {
	case c.glob != "":
		ok, _ := path.Match(c.glob, strings.ReplaceAll(v.Text, "/", "\x00"))
		return ok && v.Kind != Nothing
	case c.numeric && v.Kind == Number:
		return v.Number == c.number || math.IsNaN(v.Number) && math.IsNaN(c.number)
	}
	return v.Text == c.value
}

// ordered compares numbers with numbers and texts with texts; all else, nothing and
// NaN too, is false.
func (c *comparison) ordered(v Value) bool {
	less, same := false, false
	switch {
	case v.Kind == Nothing || c.numeric != (v.Kind == Number) && !c.quoted:
		return false
	case c.numeric:
		less, same = v.Number < c.number, v.Number == c.number
		if math.IsNaN(v.Number) || math.IsNaN(c.number) {
			return false
		}
	default:
		less, same = v.Text < c.value, v.Text == c.value
	}
	switch c.op {
	case "<":
		return less
	case "<=":
		return less || same
	case ">":
		return !less && !same
	}
	return !less // >=
}

func quote(s string) string { return fmt.Sprintf("%q", jobs.Clean(s, 40)) }
