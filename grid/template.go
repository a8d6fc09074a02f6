package grid

import (
	"iter"
	"path/filepath"
	"strconv"
	"strings"

	"dcs-tui/jobs"
)

// Template is a template that was read. It does not change; its methods may be
// called from any goroutine.
//
// Its points are the combinations of its parameters' values; each gives one job for
// each of its command lines.
type Template struct {
	File     string
	Params   []*Param   // in the order of their lines
	Results  []Result   // @result
	Hardness []Hardness // @hardness
	Warnings []*Fault   // what is doubtful, in the order of the lines

	commands []*command
	axes     []int // how many steps each axis of the product has; the last runs fastest
	filter   [][]*node
	sample   *sample
	points   int
	text     string
}

// Param is a parameter and its values.
type Param struct {
	Name         string
	Line, Column int

	values  values
	axis    int // zipped parameters share one
	example string
	kind    what
	known   []operand // of a list of bounded length, for filters
}

// Len is how many values there are, at least 1.
func (p *Param) Len() int { return p.values.count() }

// Value is the value number k, from 0.
func (p *Param) Value(k int) string { return p.values.at(k) }

// maxKnown bounds the values that are kept as numbers beside the texts.
const maxKnown = 1 << 16

// look finds out which values are numbers.
func (p *Param) look() {
	some, all := false, true
	for _, part := range p.values.parts {
		list, ok := part.(texts)
		if !ok {
			some = true // ranges have nothing but numbers
			continue
		}
		for _, v := range list {
			if isNumber(v) {
				some = true
			} else if all {
				all, p.example = false, v
			}
		}
	}
	switch {
	case all:
		p.kind = number
	case some:
		p.kind = mixed
	default:
		p.kind = text
	}
	if p.Len() <= maxKnown {
		known := make([]operand, p.Len())
		for k := range known {
			known[k] = newOperand(p.Value(k))
		}
		p.known = known
	}
}

func newOperand(s string) operand {
	if isNumber(s) {
		return operand{num: written(s), isNum: true}
	}
	return operand{text: s}
}

func (p *Param) operand(k int) operand {
	if p.known != nil {
		return p.known[k]
	}
	if s, ok := p.values.parts[0].(steps); ok && len(p.values.parts) == 1 {
		return operand{num: s.number(k), isNum: true} // of a long range, without its text
	}
	return newOperand(p.Value(k))
}

func toFloat(s string) float64 {
	f, _ := strconv.ParseFloat(s, 64) // of a text that isNumber; beyond the range it is infinite
	return f
}

// command is a command line.
type command struct {
	line    int
	text    []piece
	name    []piece // of name=; nil: made of the parameters
	label   string  // before them, where there are several command lines
	options *jobs.Options
}

// Result is an @result line: a column of the table of results.
type Result struct {
	Name         string
	From         string // "json:accuracy", "re:…", "file:…"; "": name=value in the output
	Line, Column int
}

// Hardness is one component of an @hardness line.
type Hardness struct {
	Param        string
	Down         bool     // smaller is harder
	Order        []string // the values from easy to hard; nil: by number
	Line, Column int
}

// Text is the template as it was read, with the values that files and commands gave
// written into it: read again it gives the same jobs, on any machine.
func (t *Template) Text() string { return t.text }

// Points is how many points the product has, before filter and sample.
func (t *Template) Points() int { return t.points }

// Commands is how many command lines there are: so many jobs has each point.
func (t *Template) Commands() int { return len(t.commands) }

// Filtered says that a filter decides which points are kept, so that Count has to
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

// Jobs gives the jobs in order, numbered from 1, each when it is asked for: the last
// parameter runs fastest, and the commands of a point follow one another. An error
// ends them. Equal options are one shared value.
func (t *Template) Jobs() iter.Seq2[*jobs.Spec, error] {
	return func(yield func(*jobs.Spec, error) bool) {
		id := jobs.ID(1)
		for ix, err := range t.kept() {
			if err != nil {
				yield(nil, err)
				return
			}
			params := t.params(ix)
			for _, c := range t.commands {
				if !yield(t.spec(c, id, params), nil) {
					return
				}
				id++
			}
		}
	}
}

// Job is the job k of the whole product, from 0, before filter and sample.
func (t *Template) Job(k int) *jobs.Spec {
	params := t.params(t.point(k / len(t.commands)))
	return t.spec(t.commands[k%len(t.commands)], jobs.ID(k+1), params)
}

// Point is the point k of the whole product, from 0.
func (t *Template) Point(k int) []jobs.Param { return t.params(t.point(k)) }

// Keeps says whether the filter keeps the point k.
func (t *Template) Keeps(k int) bool { return t.keeps(t.point(k)) }

func (t *Template) point(k int) []int {
	ix := make([]int, len(t.axes))
	t.place(k, ix)
	return ix
}

// place writes down where on each axis the point k is.
func (t *Template) place(k int, ix []int) {
	for a := len(t.axes) - 1; a >= 0; a-- {
		ix[a] = k % t.axes[a]
		k /= t.axes[a]
	}
}

func (t *Template) keeps(ix []int) bool {
	for _, conditions := range t.filter {
		for _, n := range conditions {
			if !n.holds(t, ix) {
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
			for _, n := range t.filter[axis] {
				if !n.holds(t, ix) {
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

func (t *Template) params(ix []int) []jobs.Param {
	if len(t.Params) == 0 {
		return nil
	}
	params := make([]jobs.Param, len(t.Params))
	for i, p := range t.Params {
		params[i] = jobs.Param{Name: p.Name, Value: p.Value(ix[p.axis])}
	}
	return params
}

func (t *Template) spec(c *command, id jobs.ID, params []jobs.Param) *jobs.Spec {
	return &jobs.Spec{ID: id, Line: c.line, Command: fill(c.text, params), Name: c.title(params), Params: params, Options: c.options}
}

// fill replaces the references by values.
func fill(text []piece, params []jobs.Param) string {
	if len(text) == 1 && text[0].param < 0 {
		return text[0].text
	}
	var b strings.Builder
	n := 0
	for _, p := range text {
		if n += len(p.text); p.param >= 0 {
			n += len(params[p.param].Value)
		}
	}
	b.Grow(n)
	for _, p := range text {
		b.WriteString(p.text)
		switch {
		case p.param < 0:
		case p.quoted:
			b.WriteString(quoteForShell(params[p.param].Value))
		default:
			b.WriteString(params[p.param].Value)
		}
	}
	return b.String()
}

// maxTitle bounds a job's name, in characters; maxShown a value in it.
const (
	maxTitle = 120
	maxShown = 40
)

// title is the name of a job: its own, or C=0.1 gamma=0.25.
func (c *command) title(params []jobs.Param) string {
	if c.name != nil {
		return jobs.Clean(fill(c.name, params), maxTitle)
	}
	if len(params) == 0 {
		return ""
	}
	b := make([]byte, 0, 64)
	b = append(b, c.label...)
	for _, p := range params {
		if len(b) > 0 {
			b = append(b, ' ')
		}
		b = append(append(append(b, p.Name...), '='), jobs.Clean(p.Value, maxShown)...)
	}
	return jobs.Clean(string(b), maxTitle)
}

// label makes titles of several command lines differ: by the programs they call, or
// else by their numbers.
func label(commands []*command) {
	if len(commands) < 2 {
		return
	}
	seen := map[string]bool{}
	for _, c := range commands {
		first := ""
		if len(c.text) > 0 {
			first, _, _ = strings.Cut(c.text[0].text, " ")
		}
		c.label = jobs.Clean(filepath.Base(first), maxShown)
		if first == "" || seen[c.label] || strings.ContainsAny(first, "='\"$") {
			for i, c := range commands {
				c.label = "#" + strconv.Itoa(i+1)
			}
			return
		}
		seen[c.label] = true
	}
}
