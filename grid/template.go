package grid

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"strings"
	"unicode/utf8"

	"dcs-tui/grid/search"
	"dcs-tui/jobs"
)

// Template is a parsed template. It is immutable and safe for concurrent use.
//
// Its points are the combinations of the values of its parameters. Each point gives one job
// for each command line.
type Template struct {
	File     string
	Params   []*Param           // in the order of their lines
	Results  []Result           // @result
	Hardness []Hardness         // @hardness, unless a command compares
	Search   *Search            // @search, or nil
	Space    []search.Param     // space of the search
	Returns  []string           // patterns of Config.Return that are options of the jobs now
	Warnings []*jobs.ParseError // in the order of the lines

	commands   []*command
	comparison *comparison // comparison of an @hardness line with a command
	// Number of values of each axis; sampled axes come first, and the last one changes fastest.
	axes   []int
	filter [][]condition // indexed by the fastest axis that a condition needs
	sample *sample
	points int
	text   func() string

	checkCommand func(command string) error // Config.CheckCommand
}

// Result is an @result line: a column of the table of results.
type Result struct {
	Name         string
	From         string // "json:accuracy", "re:…", "file:…"; "": name=value in the output
	Line, Column int
}

// Hardness is a component of an @hardness line. In jobs.Options.Hardness it is a number that
// grows with the hardness.
type Hardness struct {
	Param        string
	Down         bool     // smaller is harder
	Order        []string // values from easy to hard; nil: in the order of numbers
	Line, Column int
}

// Text returns the text of the template, with the values of files and commands in place of
// their sources. Parsed again, it gives the same jobs on any machine, unless HasComparison.
func (t *Template) Text() string { return t.text() }

// HasComparison reports whether a command compares the jobs (@hardness). Only the jobs hold its
// answers.
func (t *Template) HasComparison() bool { return t.comparison != nil }

// Points returns the number of points of the product, before filter and sample, or of trials of
// a search.
func (t *Template) Points() int { return t.points }

// HasFilter reports whether there is a filter, so that Count must iterate over the points.
func (t *Template) HasFilter() bool { return len(t.filter) > 0 }

// Count returns the number of jobs. With a filter it iterates over the points.
func (t *Template) Count() (int, error) {
	if !t.HasFilter() && t.sample == nil {
		return t.points * len(t.commands), nil
	}
	n := 0
	for _, err := range t.keptPoints() {
		if err != nil {
			return 0, err
		}
		n += len(t.commands)
	}
	return n, nil
}

// MaxJobs returns an upper bound of the number of jobs, without iterating over the points.
func (t *Template) MaxJobs() int {
	if s := t.sample; s != nil {
		return s.n * (t.points / s.points) * len(t.commands)
	}
	return t.points * len(t.commands)
}

// Jobs yields the jobs in order, numbered from 1. The last parameter changes fastest, and the
// commands of a point follow one another. If there is an error, it is the last element. Jobs with
// equal options share them.
func (t *Template) Jobs() iter.Seq2[*jobs.Spec, error] {
	if t.Search != nil {
		return t.yieldTrials
	}
	return func(yield func(*jobs.Spec, error) bool) {
		id, hard := jobs.ID(1), newTuples(t)
		for ix, err := range t.keptPoints() {
			if err != nil {
				yield(nil, err)
				return
			}
			params, first := t.params(ix), id
			for _, c := range t.commands {
				s := t.spec(c, first, id, params, hard)
				var err error
				if c.paths != nil {
					err = c.paths.check(s, params)
				}
				if err == nil && t.checkCommand != nil {
					err = t.checkCommand(s.Command)
				}
				if err != nil {
					yield(nil, &jobs.ParseError{File: t.File, Line: c.line, Err: fmt.Errorf("job %d: %w", id, err)})
					return
				}
				if !yield(s, nil) {
					return
				}
				id++
			}
		}
	}
}

// place stores the index of point k on each axis in ix.
func (t *Template) place(k int, ix []int) {
	for a := len(t.axes) - 1; a >= 0; a-- {
		ix[a] = k % t.axes[a]
		k /= t.axes[a]
	}
}

// passesFilter reports whether the conditions that need only the first axes hold.
func (t *Template) passesFilter(ix []int, axes int) bool {
	for _, conditions := range t.filter[:min(axes, len(t.filter))] {
		for _, holds := range conditions {
			if !holds(ix) {
				return false
			}
		}
	}
	return true
}

// keptPoints yields the points that pass the filter and the sample, each as an index for each axis.
// The slice is valid until the next point.
func (t *Template) keptPoints() iter.Seq2[[]int, error] {
	if t.sample != nil {
		return t.sampledPoints()
	}
	return func(yield func([]int, error) bool) {
		t.walk(make([]int, len(t.axes)), 0, yield)
	}
}

// walk yields all points that begin with the indexes of ix up to axis and pass the filter. If a
// condition on slower axes fails, it skips all points with these indexes at once.
func (t *Template) walk(ix []int, axis int, yield func([]int, error) bool) bool {
	if axis == len(t.axes) {
		return yield(ix, nil)
	}
next:
	for k := range t.axes[axis] {
		ix[axis] = k
		if t.HasFilter() {
			for _, holds := range t.filter[axis] {
				if !holds(ix) {
					continue next
				}
			}
		}
		if !t.walk(ix, axis+1, yield) {
			return false
		}
	}
	return true
}

// Pull returns a function that yields the jobs of a template, and then io.EOF.
func (t *Template) Pull() func() (*jobs.Spec, error) {
	next, _ := iter.Pull2(t.Jobs()) // not stopped if the run ends first
	return func() (*jobs.Spec, error) {
		s, err, ok := next()
		if !ok {
			return nil, io.EOF
		}
		return s, err
	}
}

// storedTemplate is a template in run.toml (rundir.OptionSource). It includes the values
// that files and commands gave, so that resume makes the same jobs on any machine, and
// the @result and @hardness lines.
type storedTemplate struct {
	V     int    `json:"v"`
	File  string `json:"file"`
	Limit int    `json:"limit"`
	Text  string `json:"text,omitempty"`
	Bytes []byte `json:"bytes,omitempty"` // instead of Text if that is not UTF-8
	// Patterns of the command line that are options of the jobs.
	Returns []string `json:"returns,omitempty"`
}

// Source returns a template as run.toml keeps it (rundir.OptionSource). limit is that of its
// Config.
func (t *Template) Source(limit int) string {
	k := storedTemplate{V: jobs.FormatTemplate.Version, File: t.File, Limit: limit, Text: t.Text(), Returns: t.Returns}
	if !utf8.ValidString(k.Text) {
		k.Text, k.Bytes = "", []byte(t.Text())
	}
	b, _ := json.Marshal(k) // texts and numbers: cannot fail
	return string(b)
}

// ReadSource parses the result of Source.
func ReadSource(source string) (*Template, error) {
	var k storedTemplate
	if err := json.Unmarshal([]byte(source), &k); err != nil {
		return nil, fmt.Errorf("the template in run.toml is damaged: %w", err)
	}
	if err := jobs.FormatTemplate.Check(k.V); err != nil {
		return nil, err
	}
	if k.Bytes != nil {
		k.Text = string(k.Bytes)
	}
	return Config{Limit: k.Limit, Again: true, Return: k.Returns}.Parse(context.Background(),
		strings.NewReader(k.Text), k.File)
}

// RemainingJobs returns a function that yields the jobs of a source, without the first have ones,
// and then io.EOF.
func RemainingJobs(source string, have int) (func() (*jobs.Spec, error), error) {
	t, err := ReadSource(source)
	if err != nil {
		return nil, err
	}
	next := t.Pull()
	return func() (*jobs.Spec, error) {
		for ; have > 0; have-- {
			if _, err := next(); err != nil {
				return nil, err
			}
		}
		return next()
	}, nil
}
