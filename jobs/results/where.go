package results

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"dcs-tui/internal/text"
	"dcs-tui/jobs"
	"dcs-tui/jobs/query"
)

// Where returns the rows that match all queries, and notes about values that < and > could not
// compare. Words of a search are looked for in the name, the command, and the parameters.
func (s *Table) Where(queries ...*query.Query) (matching *Table, notes []string, err error) {
	mismatches := make([]unusableCells, len(s.Columns))
	fields := query.Fields[int](func(name string) (*query.Field[int], error) {
		at, err := s.Column(name)
		if err != nil {
			return nil, err
		}
		f := s.field(at)
		f.Mismatch = func(row int, v query.Value) { mismatches[at].add(&s.Columns[at], v, s.Job(row)) }
		return f, nil
	})
	var all []func(row int) bool
	for _, q := range queries {
		match, err := query.Compile(q, fields, s.search)
		if err != nil {
			return nil, nil, err
		}
		all = append(all, match)
	}
	matching = s.Keep(func(row int) bool {
		return !slices.ContainsFunc(all, func(match func(int) bool) bool { return !match(row) })
	})
	for at := range s.Columns {
		notes = append(notes, s.unusableNotes(&mismatches[at], at)...)
	}
	if matching.Len() == 0 {
		notes = append(notes, s.missingValues(queries)...)
	}
	return matching, notes, nil
}

// missingValues returns notes about columns that queries name but for which no row has a value.
func (s *Table) missingValues(queries []*query.Query) (notes []string) {
	var told []int
	for _, q := range queries {
		for _, name := range q.Names(false) {
			at, err := s.Column(name)
			if err != nil || slices.Contains(told, at) || s.Len() == 0 {
				continue
			}
			told = append(told, at)
			if !slices.ContainsFunc(s.rows,
				func(i int32) bool { return s.Columns[at].value(int(i)).Kind != query.Absent }) {
				notes = append(notes, fmt.Sprintf("no %s has %s", s.unit, s.Columns[at].Name))
			}
		}
	}
	return notes
}

// Split divides the conditions into those about columns of s, and those that name another column,
// such as the mean of a group. All conditions must hold.
func (s *Table) Split(queries []*query.Query) (rows, others []*query.Query) {
	for _, q := range queries {
		for _, c := range q.Conditions() {
			if slices.ContainsFunc(c.Names(false),
				func(name string) bool { _, err := s.Column(name); return err != nil }) {
				others = append(others, c)
			} else {
				rows = append(rows, c)
			}
		}
	}
	return rows, others
}

// field is a column in a query.
func (s *Table) field(at int) *query.Field[int] {
	c := s.Columns[at]
	f := &query.Field[int]{Name: c.Name, Type: c.Type, Fact: c.Role == Fact || c.Role == Stat,
		Value: func(row int) query.Value { return c.value(int(s.rows[row])) }}
	switch c.fact() {
	case "state":
		f.Word = func(word string) (func(int) bool, error) {
			states, err := ParseStates(word)
			return func(row int) bool {
				text := f.Value(row).Text
				return slices.ContainsFunc(states, func(st jobs.JobState) bool { return st.String() == text })
			}, err
		}
	case "signal":
		f.Word = SignalWord(func(row int) string { return f.Value(row).Text })
	case "cause":
		f.Word = func(word string) (func(int) bool, error) {
			err := CheckFailureKind(word)
			if word == "stopped" || jobs.SignalNumber(word) != 0 || isTerminalState(word) { // as the column shows it
				err = nil
			}
			return func(row int) bool {
				return f.Value(row).Text == word || c.kind != nil && c.kind(int(s.rows[row])) == word
			}, err
		}
	case "exit":
		f.Check = CheckExit
		signal := slices.IndexFunc(s.Columns, func(c Column) bool { return c.fact() == "signal" })
		f.Value = func(row int) query.Value {
			v := c.value(int(s.rows[row]))
			if v.Kind == query.Absent && signal >= 0 { // 128 + signal, as in shells
				if n := jobs.SignalNumber(s.At(row, signal).Text); n > 0 {
					v = query.NumberValue(float64(128 + n))
				}
			}
			return v
		}
	}
	return f
}

// SignalWord returns the Word of a field that holds names of signals. Names without SIG are
// accepted, too.
func SignalWord[R any](signal func(R) string) func(word string) (func(R) bool, error) {
	return func(word string) (func(R) bool, error) {
		name := jobs.FullSignalName(word)
		if jobs.SignalNumber(name) == 0 {
			return nil, fmt.Errorf("there is no signal %s; write a name such as SIGKILL, or KILL",
				strconv.Quote(text.Clean(word, 40)))
		}
		return func(r R) bool { return signal(r) == name }, nil
	}
}

// CheckFailureKind returns an error if a word is not the kind of a failure.
func CheckFailureKind(word string) error {
	if slices.Contains(failureKinds, word) {
		return nil
	}
	return query.Unknown("cause", word, failureKinds)
}

func isTerminalState(word string) bool {
	var state jobs.JobState
	return state.UnmarshalText([]byte(word)) == nil && state.Terminal()
}

// CheckExit returns an error if a number cannot be an exit code.
func CheckExit(l query.Literal) error {
	if n := l.Value; n.Kind == query.Number && !(n.Number >= 0 && n.Number <= 255) {
		return fmt.Errorf(
			"%s is not an exit code, which is a number from 0 to 255; signal=SIGKILL finds jobs that it ended", n,
		)
	}
	return nil
}

// stateWords maps further words to states.
var stateWords = map[string][]jobs.JobState{
	"run": {jobs.Running}, "queue": {jobs.Queued}, "ok": {jobs.Succeeded}, "fail": {jobs.Failed},
	"timeout": {jobs.TimedOut},
	"cancel":  {jobs.Canceled}, "skip": {jobs.Skipped},
	"open": {jobs.Queued, jobs.Running},
	"done": {jobs.Succeeded, jobs.Failed, jobs.TimedOut, jobs.Canceled, jobs.Skipped},
	"bad":  {jobs.Failed, jobs.TimedOut, jobs.Skipped},
}

// ParseStates returns the states that a word of a query means. It is an error if there is no such
// state.
func ParseStates(word string) ([]jobs.JobState, error) {
	word = strings.ToLower(word)
	var state jobs.JobState
	if state.UnmarshalText([]byte(word)) == nil {
		return []jobs.JobState{state}, nil
	}
	if states := stateWords[word]; states != nil {
		return states, nil
	}
	names := []string{"open", "done", "bad"}
	for st := jobs.Queued; st <= jobs.Skipped; st++ {
		names = append(names, st.String())
	}
	return nil, query.Unknown("state", word, names)
}

// search finds a text in the name, the command, and the parameters of rows.
func (s *Table) search(text string) func(row int) bool {
	var in []func(row int) bool
	has := query.Contains(text)
	for _, c := range s.Columns {
		value := func(row int) string { return c.value(int(s.rows[row])).Text }
		switch name := c.fact(); {
		case c.Role == Param:
			in = append(in, func(row int) bool {
				v := value(row)
				return v != "" && has(c.Name+"="+v)
			})
		case name == "name" || name == "command":
			in = append(in, func(row int) bool { return has(value(row)) })
		}
	}
	return func(row int) bool {
		return slices.ContainsFunc(in, func(f func(int) bool) bool { return f(row) })
	}
}
