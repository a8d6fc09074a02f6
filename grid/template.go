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

// Template is a template that was read. It does not change; its methods may be
// called from any goroutine.
//
// Its points are the combinations of its parameters' values; each gives one job for
// each of its command lines.
type Template struct {
	File     string
	Params   []*Param       // in the order of their lines
	Results  []Result       // @result
	Hardness []Hardness     // @hardness, unless a command compares
	Search   *Search        // @search, or nil
	Space    []search.Param // of the search
	Warnings []*Fault       // what is doubtful, in the order of the lines

	commands   []*command
	comparison *comparison   // of an @hardness line with a command
	axes       []int         // how many steps each axis of the product has, those of a sample first; the last runs fastest
	filter     [][]condition // by the fastest axis that each needs
	sample     *sample
	points     int
	text       func() string
}

// Result is an @result line: a column of the table of results.
type Result struct {
	Name         string
	From         string // "json:accuracy", "re:…", "file:…"; "": name=value in the output
	Line, Column int
}

// Hardness is one component of an @hardness line: jobs get it as jobs.Options.Hardness, as
// numbers that are the larger the harder.
type Hardness struct {
	Param        string
	Down         bool     // smaller is harder
	Order        []string // the values from easy to hard; nil: by number
	Line, Column int
}

// Text is the template as it was read, with the values that files and commands gave
// written into it: read again it gives the same jobs, on any machine, unless it is Compared.
func (t *Template) Text() string { return t.text() }

// Compared reports whether a command compares the jobs (@hardness); only the jobs keep its answers.
func (t *Template) Compared() bool { return t.comparison != nil }

// Points is how many points the product has, before filter and sample, or a search trials.
func (t *Template) Points() int { return t.points }

// Filtered reports whether a filter decides which points are kept, so that Count has to
// look at them.
func (t *Template) Filtered() bool { return len(t.filter) > 0 }

// Count is the number of jobs. With a filter it goes through the points.
func (t *Template) Count() (int, error) {
	if !t.Filtered() && t.sample == nil {
		return t.points * len(t.commands), nil
	}
	n := 0
	for _, err := range t.kept() {
		if err != nil {
			return 0, err
		}
		n += len(t.commands)
	}
	return n, nil
}

// Most is a number of jobs that there are at most, known without looking at points.
func (t *Template) Most() int {
	if s := t.sample; s != nil {
		return s.n * (t.points / s.points) * len(t.commands)
	}
	return t.points * len(t.commands)
}

// Jobs gives the jobs in order, numbered from 1, each when it is requested: the last
// parameter runs fastest, and the commands of a point follow one another. An error
// ends them. Equal options are one shared value.
func (t *Template) Jobs() iter.Seq2[*jobs.Spec, error] {
	if t.Search != nil {
		return t.trials
	}
	return func(yield func(*jobs.Spec, error) bool) {
		id, hard := jobs.ID(1), newTuples(t)
		for ix, err := range t.kept() {
			if err != nil {
				yield(nil, err)
				return
			}
			params := t.params(ix)
			for _, c := range t.commands {
				if !yield(t.spec(c, id, params, hard), nil) {
					return
				}
				id++
			}
		}
	}
}

// place writes down where on each axis the point k is.
func (t *Template) place(k int, ix []int) {
	for a := len(t.axes) - 1; a >= 0; a-- {
		ix[a] = k % t.axes[a]
		k /= t.axes[a]
	}
}

// keeps reports whether the conditions hold that the first axes decide.
func (t *Template) keeps(ix []int, axes int) bool {
	for _, conditions := range t.filter[:min(axes, len(t.filter))] {
		for _, holds := range conditions {
			if !holds(ix) {
				return false
			}
		}
	}
	return true
}

// kept gives the points that filter and sample leave, as places on the axes; the
// slice is used again for the next.
func (t *Template) kept() iter.Seq2[[]int, error] {
	if t.sample != nil {
		return t.sampled()
	}
	return func(yield func([]int, error) bool) {
		t.walk(make([]int, len(t.axes)), 0, yield)
	}
}

// walk goes through all points that begin as ix does. What is filtered out by the
// slower axes alone is passed over whole.
func (t *Template) walk(ix []int, axis int, yield func([]int, error) bool) bool {
	if axis == len(t.axes) {
		return yield(ix, nil)
	}
next:
	for k := range t.axes[axis] {
		ix[axis] = k
		if t.Filtered() {
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
	next, _ := iter.Pull2(t.Jobs()) // not stopped when the run ends before it
	return func() (*jobs.Spec, error) {
		s, err, ok := next()
		if !ok {
			return nil, io.EOF
		}
		return s, err
	}
}

// keptTemplate is a template in run.toml (rundir.OptionSource). It includes the values
// that files and commands gave, so that resume makes the same jobs on any machine, and
// the @result and @hardness lines.
type keptTemplate struct {
	V     int    `json:"v"`
	File  string `json:"file"`
	Limit int    `json:"limit"`
	Text  string `json:"text,omitempty"`
	Bytes []byte `json:"bytes,omitempty"` // in the place of Text if that is not UTF-8
}

// Source returns a template as run.toml keeps it (rundir.OptionSource). limit is that of its
// Config.
func (t *Template) Source(limit int) string {
	k := keptTemplate{V: 1, File: t.File, Limit: limit, Text: t.Text()}
	if !utf8.ValidString(k.Text) {
		k.Text, k.Bytes = "", []byte(t.Text())
	}
	b, _ := json.Marshal(k) // texts and numbers: it cannot fail
	return string(b)
}

// ReadSource reads what Source has returned.
func ReadSource(source string) (*Template, error) {
	var k keptTemplate
	if err := json.Unmarshal([]byte(source), &k); err != nil || k.V != 1 {
		return nil, fmt.Errorf("run.toml holds no template that this version of dcs-tui reads")
	}
	if k.Bytes != nil {
		k.Text = string(k.Bytes)
	}
	// The shell is not known here, so its quotes are not checked again.
	return Config{Limit: k.Limit, OtherShell: true, Again: true}.Parse(context.Background(), strings.NewReader(k.Text), k.File)
}

// Rest returns a function that yields the jobs of a source, without the first have ones, and
// then io.EOF.
func Rest(source string, have int) (func() (*jobs.Spec, error), error) {
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
