package grid

import (
	"slices"
	"strings"
)

// hardness reads `@hardness variant:bnb<brute, n, m:down` and `@hardness n, m command: …`.
func (p *parser) hardness(l *line, from int) {
	if p.hard != nil {
		p.wrong.at(l, 0, "there is an @hardness in line %d already: write all its parameters in one line", p.hard.no)
		return
	}
	p.hard = l
	text, command, given := cutCommand(strings.TrimRight(l.text, blanks), from)
	words, at, err := splitWords(text, from)
	switch {
	case err != nil:
		p.wrong.at(l, at, "%v", err)
	case given:
		p.compared(l, words, command)
	case len(words) == 0:
		p.wrong.at(l, from, "@hardness needs parameters, each with a direction or an order if it needs one: @hardness variant:quick<slow, n, tolerance:down")
	default:
		p.components(l, words)
	}
}

// components reads parameters with their directions and orders.
func (p *parser) components(l *line, words []word) {
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
			p.wrong.at(l, w.offset+len(name)+1, "write %s:up, %s:down, or its values from easy to hard: %s:a<b<c", name, name, name)
			continue
		}
		p.t.Hardness = append(p.t.Hardness, h)
	}
}

// hardParam finds a parameter that is named for the first time.
func (p *parser) hardParam(l *line, name string, offset int, seen map[int]bool) (int, bool) {
	i, ok := p.paramAt(l, name, offset)
	if ok && seen[i] {
		p.wrong.at(l, offset, "%s is there twice", name)
		ok = false
	}
	seen[i] = true
	return i, ok
}

// compared reads an @hardness line whose command does the comparing.
func (p *parser) compared(l *line, words []word, command source) {
	c := &comparison{line: l, command: command}
	if command.text == "" {
		p.wrong.at(l, min(command.offset, len(l.text)), "which command compares? Write @hardness n, m command: ./compare")
		return
	}
	seen := map[int]bool{}
	for _, w := range words {
		if name, _, how := strings.Cut(w.text, ":"); how {
			p.wrong.at(l, w.offset, "the command does the comparing: name %s alone", name)
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

// cutCommand cuts `command: …` off the end of a line; head is what stands before it.
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

// order checks a component of the hardness against the values of its parameter.
func (p *parser) order(h Hardness) {
	param := p.t.Params[p.known[h.Param]]
	fail := func(format string, args ...any) { p.wrong.add(h.Line, h.Column, format, args...) }
	if h.Order == nil {
		if param.kind != number {
			fail("the value %s of %s is not a number: write the values from easy to hard, %s:a<b<c", quoteText(param.example), h.Param, h.Param)
		}
		return
	}
	left := map[string]bool{}
	for _, v := range h.Order {
		if left[v] {
			fail("%s: the value %s is there twice", h.Param, quoteText(v))
			return
		}
		left[v] = true
	}
	if param.Len() > maxLooked {
		fail("%s has too many values for an order; is it %s or %s:down?", h.Param, h.Param, h.Param)
		return
	}
	for k := range param.Len() {
		if v := param.Value(k); !slices.Contains(h.Order, v) {
			fail("the value %s of %s is missing in the order: put it between those that are easier and those that are harder, %s:easy<…<hard", quoteText(v), h.Param, h.Param)
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
