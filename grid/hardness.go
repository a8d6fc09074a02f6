package grid

import (
	"fmt"
	"hash/fnv"
	"io"
	"slices"
	"strconv"
	"strings"

	"dcs-tui/jobs"
)

// tuples computes the hardness of jobs from their parameters. Jobs of a command that are equally
// hard share their options. It is not safe for concurrent use.
type tuples struct {
	t      *Template
	params []int  // the parameters that determine the hardness
	name   string // name of the order; the last component
	// The options of each setting of params so far; nil: no setting occurs twice, so a million
	// options need not be kept.
	shared map[tupleKey]*jobs.Options
}

type tupleKey struct {
	c  *command
	at string
}

func newTuples(t *Template) *tuples {
	h := &tuples{t: t}
	var order []string
	for _, part := range t.Hardness {
		h.params = append(h.params, slices.IndexFunc(t.Params, func(p *Param) bool { return p.Name == part.Param }))
		order = append(append(order, part.Param, strconv.FormatBool(part.Down)), part.Order...)
	}
	h.name = nameOf(order...)
	if t.comparison != nil {
		h.params = t.comparison.params
	}
	for axis, n := range t.axes {
		if n > 1 && !slices.ContainsFunc(h.params, func(i int) bool { return t.Params[i].axis == axis }) {
			h.shared = map[tupleKey]*jobs.Options{}
		}
	}
	return h
}

// nameOf returns a name for an order. It is a text component of the tuples, so that jobs of
// different orders are not comparable.
func nameOf(order ...string) string {
	sum := fnv.New32a()
	for _, s := range order {
		io.WriteString(sum, s+"\n")
	}
	return fmt.Sprintf("o%x", sum.Sum32())
}

// options returns the options of a command for a point.
func (h *tuples) options(c *command, params []jobs.Param) *jobs.Options {
	o := c.options
	if len(h.params) > 0 {
		o = h.withHardness(c, params)
	}
	if c.paths != nil {
		o = c.paths.fill(o, params)
	}
	return o
}

func (h *tuples) withHardness(c *command, params []jobs.Param) *jobs.Options {
	k := tupleKey{c, settingKey(params, h.params)}
	o := h.shared[k]
	if o == nil {
		made := *c.options
		made.Hardness = h.hardness(k.at, params)
		o = &made
		if h.shared != nil {
			h.shared[k] = o
		}
	}
	return o
}

// settingKey joins the values of some parameters.
func settingKey(params []jobs.Param, which []int) string {
	var key []byte
	for _, i := range which {
		key = append(append(key, params[i].Value...), 0) // no value holds a NUL
	}
	return string(key)
}

func (h *tuples) hardness(key string, params []jobs.Param) []string {
	if c := h.t.comparison; c != nil {
		return c.tuples[key]
	}
	var tuple []string
	for n, i := range h.params {
		tuple = append(tuple, h.t.Hardness[n].component(params[i].Value))
	}
	return append(tuple, h.name)
}

// component returns a value as a number that grows with the hardness: the value, its
// negative, or its index in the order.
func (h *Hardness) component(value string) string {
	switch {
	case h.Order != nil:
		return strconv.Itoa(slices.Index(h.Order, value))
	case !h.Down:
		return value
	case value[0] == '-':
		return value[1:]
	case value[0] == '+':
		return "-" + value[1:]
	}
	return "-" + value
}

// parseHardness parses `@hardness variant:bnb<brute, n, m:down` and `@hardness n, m command: …`.
func (p *parser) parseHardness(l *line, from int) {
	if p.hard != nil {
		p.wrong.at(l, 0, "there is an @hardness in line %d already: write all its parameters in one line", p.hard.no)
		return
	}
	p.hard = l
	text, command, given := cutCommand(strings.TrimRight(l.text, blanks), from)
	words, ok := p.words(l, text, from)
	switch {
	case !ok:
	case given:
		p.parseCompared(l, words, command)
	case len(words) == 0:
		p.wrong.at(l, from, "@hardness needs parameters, each with a direction or an order if it needs one: "+
			"@hardness variant:quick<slow, n, tolerance:down")
	default:
		p.parseComponents(l, words)
	}
}

// parseComponents parses parameters with their directions and orders.
func (p *parser) parseComponents(l *line, words []word) {
	seen := map[int]bool{}
	for _, w := range words {
		name, how, given := strings.Cut(w.text, ":")
		i, ok := p.hardParam(l, name, w.offset, seen)
		if !ok {
			continue
		}
		h := Hardness{Param: p.t.Params[i].Name}
		h.Line, h.Column = l.place(w.offset)
		switch {
		case !given || how == "up":
		case how == "down":
			h.Down = true
		case strings.Contains(how, "<"):
			h.Order = strings.Split(how, "<")
		default:
			p.wrong.at(l, w.offset+len(name)+1, "write %s:up, %s:down, or its values from easy to hard: %s:a<b<c", name,
				name, name)
			continue
		}
		p.t.Hardness = append(p.t.Hardness, h)
	}
}

// hardParam returns the index of a parameter. The parameter must not be in seen, and is added to
// it.
func (p *parser) hardParam(l *line, name string, offset int, seen map[int]bool) (int, bool) {
	i, ok := p.paramAt(l, name, offset)
	if ok && seen[i] {
		p.wrong.at(l, offset, "%s is given twice", name)
		ok = false
	}
	seen[i] = true
	return i, ok
}

// parseCompared parses an @hardness line whose command compares settings.
func (p *parser) parseCompared(l *line, words []word, command source) {
	c := &comparison{line: l, command: command}
	if command.text == "" {
		p.wrong.at(l, min(command.offset, len(l.text)),
			"the command that compares is missing: write @hardness n, m command: ./compare")
		return
	}
	seen := map[int]bool{}
	for _, w := range words {
		if name, _, how := strings.Cut(w.text, ":"); how {
			p.wrong.at(l, w.offset, "the command compares: name only %s", name)
		} else if i, ok := p.hardParam(l, name, w.offset, seen); ok {
			c.params = append(c.params, i)
		}
	}
	for i := range p.t.Params {
		if len(words) == 0 {
			c.params = append(c.params, i)
		}
	}
	p.t.comparison = c
}

// cutCommand cuts `command: …` off the end of a line. head is the text before it.
func cutCommand(text string, from int) (head string, command source, ok bool) {
	for at := from; at < len(text); at++ {
		if at > 0 && strings.IndexByte(blanks+",", text[at-1]) < 0 {
			continue
		}
		if s, ok := cutSource(text, at); ok && s.kind == fromCommand {
			return text[:at], s, true
		}
	}
	return text, source{}, false
}

// checkOrder checks a component of the hardness against the values of its parameter.
func (p *parser) checkOrder(h Hardness) {
	param := p.t.Params[p.known[h.Param]]
	fail := func(format string, args ...any) { p.wrong.add(h.Line, h.Column, format, args...) }
	if h.Order == nil {
		for v := range param.values.written() {
			if !isNumber(v) {
				fail("the value %s of %s is not a number: write the values from easy to hard, %s:a<b<c", quoteText(v),
					h.Param, h.Param)
				return
			}
		}
		return
	}
	left := map[string]bool{}
	for _, v := range h.Order {
		if left[v] {
			fail("%s: the value %s is given twice", h.Param, quoteText(v))
			return
		}
		left[v] = true
	}
	if param.Len() > maxCheckedValues {
		fail("%s has too many values to be listed in order: write %s or %s:down", h.Param, h.Param, h.Param)
		return
	}
	for k := range param.Len() {
		if v := param.Value(k); !slices.Contains(h.Order, v) {
			fail("the value %s of %s is missing in the order: put it between those that are easier and those that "+
				"are harder, %s:easy<…<hard", quoteText(v), h.Param, h.Param)
			return
		}
		delete(left, param.Value(k))
	}
	for _, v := range h.Order {
		if left[v] {
			fail("%s has no value %s", h.Param, quoteText(v))
			return
		}
	}
}
