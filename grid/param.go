package grid

import (
	"context"
	"slices"
	"strings"

	"dcs-tui/jobs/query"
)

// Param is a parameter and its values.
type Param struct {
	Name         string
	Line, Column int

	line    *line
	source  *source // file or command that gives the values; nil: the line does
	values  values
	axis    int    // number of its axis, which zipped parameters share
	example string // a value that is not a number for a filter
	kind    valueKind
	known   []query.Value // the values, if a filter uses the parameter and there are not too many
}

// valueKind tells which values of a parameter are numbers for a filter.
type valueKind byte

const (
	allNumbers valueKind = iota
	allTexts
	someNumbers
)

// Len returns the number of values, at least 1.
func (p *Param) Len() int { return p.values.count() }

// Value returns value k, from 0.
func (p *Param) Value(k int) string { return p.values.at(k) }

// maxCachedValues is the maximum number of values of a parameter that are cached.
const maxCachedValues = 1 << 16

// duplicate returns a value that occurs more than once. A range has no duplicates.
func (p *Param) duplicate() (string, bool) {
	parts := p.values.parts
	if len(parts) == 1 && isRange(parts[0]) {
		return "", false
	}
	seen := make(map[string]bool, min(p.Len(), maxCachedValues))
	for _, part := range parts {
		if isRange(part) && part.count() > maxCachedValues {
			continue
		}
		for k := range part.count() {
			v := part.at(k)
			if seen[v] {
				return v, true
			}
			seen[v] = true
		}
	}
	return "", false
}

// classify sets the kind of the values.
func (p *Param) classify() {
	// All values of a range are numbers.
	some, all := slices.ContainsFunc(p.values.parts, isRange), true
	for v := range p.values.written() {
		if _, ok := query.ParseNumber(v); ok {
			some = true
		} else if all {
			all, p.example = false, v
		}
	}
	switch {
	case all:
		p.kind = allNumbers
	case some:
		p.kind = someNumbers
	default:
		p.kind = allTexts
	}
}

// cacheValues keeps the values for filters, unless there are too many.
func (p *Param) cacheValues() {
	if p.known != nil || p.Len() > maxCachedValues {
		return
	}
	known := make([]query.Value, p.Len())
	for k := range known {
		known[k] = query.ValueOf(p.Value(k))
	}
	p.known = known
}

// value returns value k for a filter. A number of a long range has no text.
func (p *Param) value(k int) query.Value {
	if p.known != nil {
		return p.known[k]
	}
	if s, ok := p.values.parts[0].(steps); ok && s.small && len(p.values.parts) == 1 {
		return query.NumberValue(float64(s.smallAt(k)))
	}
	return query.ValueOf(p.Value(k))
}

// isParam reports whether a line holds the values of a parameter: [name] followed by a blank. It
// adds an error for a line that was probably meant to.
func (p *parser) isParam(l *line) bool {
	if l.text[0] != '[' || strings.HasPrefix(l.text, "[[") {
		return false
	}
	first, _ := cutAny(l.text, blanks)
	if first == "[" {
		return false // the command test
	}
	end := strings.IndexByte(first, ']')
	name := first[1:max(end, 1)]
	behind := first[max(end, 0):]
	switch {
	case end < 0:
		p.wrong.at(l, 0, "a parameter's line begins with its name in brackets, [name], but the ] is missing; "+
			"a name has no spaces or commas, @zip a, b ties two together")
	case (behind == "]:" || behind == "]=") && isParamName(name):
		p.wrong.at(l, end+1, "a space must follow [%s], not %s: write [%s] and then the values", name, behind[1:], name)
	case behind != "]" || isReference(first):
		return false // a command that begins with a parameter: [prog]/bin/run
	case !isParamName(name):
		p.wrong.at(l, 0, "%q cannot be the name of a parameter: write a number, or letters, digits and _ "+
			"(the job sees it as DCS_PARAM_<name>)", name)
	default:
		return true
	}
	return false
}

func (p *parser) parseParam(l *line) {
	end := strings.IndexByte(l.text, ']')
	name := l.text[1:end]
	no, column := l.place(0)
	if i, ok := p.known[name]; ok {
		p.wrong.at(l, 0, "[%s] has values already, in line %d; a command that begins with it is written [%s:q] …", name,
			p.t.Params[i].Line, name)
		return
	}
	if len(p.t.Params) == maxParams {
		p.wrong.at(l, 0, "there are more than %d parameters", maxParams)
		return
	}
	param := &Param{Name: name, Line: no, Column: column, line: l}
	p.known[name] = len(p.t.Params)
	p.names = append(p.names, name)
	p.t.Params = append(p.t.Params, param)
	if s, ok := cutSource(l.text, len(l.text)-len(strings.TrimLeft(l.text[end+1:], blanks))); ok {
		if s.text == "" {
			p.wrong.at(l, min(s.offset, len(l.text)),
				"the source of the values of [%s] is missing: write [%s] file: PATH or [%s] command: ls *.csv",
				name,
				name,
				name)
		}
		param.source = &s
		return
	}
	words, at, err := splitWords(l.text, end+1)
	if err == nil {
		doubt := func(w word, format string, args ...any) { p.doubt.at(l, w.offset, format, args...) }
		refuse := func(w word, format string, args ...any) { p.wrong.at(l, w.offset, format, args...) }
		if p.Again {
			refuse = doubt
		}
		param.values, at, err = readValues(words, p.continuous, doubt, refuse)
	}
	switch {
	case err != nil:
		p.wrong.at(l, at, "%v", err)
	case len(words) == 0:
		p.wrong.at(l, end+1, "[%s] has no values: write them behind it, [%s] 0.1, 1, 10", name, name)
	default:
		p.checkValues(param)
	}
}

// maxParams bounds the number of parameters of a template.
const maxParams = 1000

// maxValue keeps NAME=value below the limit of Linux for an argument, 128 KiB.
const maxValue = 127 << 10

func (p *parser) checkValues(param *Param) {
	for v := range param.values.written() {
		if len(v) > maxValue {
			p.wrong.at(param.line, 0, "a value of [%s] is longer than %d KiB, more than Linux hands to a program",
				param.Name, maxValue>>10)
			return
		}
	}
	if v, ok := param.duplicate(); ok {
		p.doubt.at(param.line, 0, "[%s] has the value %s more than once; its jobs will run as often", param.Name,
			quoteText(v))
	}
	param.classify()
}

// fetchValues reads the values that come from files and commands.
func (p *parser) fetchValues(ctx context.Context) {
	for _, param := range p.t.Params {
		if param.source == nil {
			continue
		}
		list, err := p.read(*param.source, ctx, p.Config)
		if err != nil {
			p.wrong.at(param.line, param.source.offset, "[%s] %v", param.Name, err)
			continue
		}
		param.values.add(list)
		p.checkValues(param)
		p.warnUnquoted(param, list)
	}
}

// resolvedText returns the text of the template in which the values from files and commands replace
// their sources. Parsing it again gives the same jobs.
func (p *parser) resolvedText() string {
	fetched := map[*line]*Param{}
	for _, param := range p.t.Params {
		if param.source != nil {
			fetched[param.line] = param
		}
	}
	var b strings.Builder
	for _, l := range p.all {
		param := fetched[l]
		if param != nil {
			b.WriteString("[" + param.Name + "]")
			for k := range param.Len() {
				b.WriteString(" " + quoteValue(param.Value(k)))
			}
		}
		for _, raw := range l.raw {
			if param != nil {
				raw = ""
			}
			writeLine(&b, raw)
		}
	}
	return b.String()
}

// warnUnquoted adds a warning if a value from a file or a command has special characters of the
// shell and is used without quotes.
func (p *parser) warnUnquoted(param *Param, list texts) {
	n := slices.IndexFunc(list, needsQuoting)
	if n < 0 {
		return
	}
	for _, l := range p.calls {
		for _, r := range references(l.text) {
			if r.name == param.Name && r.form == "" && !r.isEscaped() {
				p.doubt.at(l, r.from, "the value %s of [%s] means something to the shell: "+
					"write [%s:q] to have it quoted", quoteText(list[n]), r.name, r.name)
				return
			}
		}
	}
}
