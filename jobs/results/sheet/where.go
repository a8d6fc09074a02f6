package sheet

import (
	"fmt"
	"math"
	"path"
	"slices"
	"strings"

	"dcs-tui/jobs"
	"dcs-tui/jobs/results/column"
)

// Where returns the rows that a filter matches. notes says where a number was wanted
// and a text stood: such a row does not match.
func (s *Sheet) Where(f *Filter) (matching *Sheet, notes []string, err error) {
	odd := map[int]*oddity{}
	match, err := s.compile(f.root, odd)
	if err != nil {
		return nil, nil, err
	}
	matching = s.Keep(match)
	for c := range s.Columns {
		if e := odd[c]; e != nil {
			notes = append(notes, (&oddities{[]oddity{*e}}).notes(s, []int{c})...)
		}
	}
	return matching, notes, nil
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

// compile turns a condition into a function of the row.
func (s *Sheet) compile(n *node, odd map[int]*oddity) (func(row int) bool, error) {
	if n.kind == opToken {
		return s.comparison(n.cmp, odd)
	}
	left, err := s.compile(n.left, odd)
	if err != nil {
		return nil, err
	}
	if n.kind == notToken {
		return func(row int) bool { return !left(row) }, nil
	}
	right, err := s.compile(n.right, odd)
	if err != nil {
		return nil, err
	}
	if n.kind == andToken {
		return func(row int) bool { return left(row) && right(row) }, nil
	}
	return func(row int) bool { return left(row) || right(row) }, nil
}

func (s *Sheet) comparison(c *comparison, odd map[int]*oddity) (func(row int) bool, error) {
	at, err := s.Column(c.column)
	if err != nil {
		return nil, fmt.Errorf("the filter, character %d: %w", c.at, err)
	}
	if why := c.impossible(&s.Columns[at]); why != "" {
		return nil, fmt.Errorf("the filter, character %d: %s", c.at, why)
	}
	value := s.getter(at)
	switch c.op {
	case "=":
		return func(row int) bool { return c.equal(value(row)) }, nil
	case "!=":
		return func(row int) bool { return !c.equal(value(row)) }, nil
	case "~":
		return func(row int) bool { return c.expr.MatchString(value(row).Text) }, nil
	case "!~":
		return func(row int) bool { return !c.expr.MatchString(value(row).Text) }, nil
	}
	return func(row int) bool {
		v := value(row)
		if v.Kind == Text && c.numeric {
			if odd[at] == nil {
				odd[at] = &oddity{}
			}
			odd[at].add(v, s.Job(row))
		}
		return c.ordered(v)
	}, nil
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
