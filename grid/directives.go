package grid

import (
	"fmt"
	"slices"
	"strings"

	"dcs-tui/internal/text"
)

// directives holds the words that may follow @, and the methods that parse such a line from an
// offset.
var directives = []struct {
	name  string
	parse func(p *parser, l *line, from int)
}{
	{"where", (*parser).parseWhere}, {"sample", (*parser).parseSample}, {"zip", (*parser).parseZip},
	{"result", (*parser).parseResult}, {"hardness", (*parser).parseHardness}, {"search", (*parser).parseSearch},
}

// parseDirectives parses the lines that begin with @. The names of the parameters are known.
func (p *parser) parseDirectives() {
	for _, l := range p.at {
		name, _ := cutAny(l.text[1:], blanks)
		var names []string
		known := false
		for _, d := range directives {
			names = append(names, d.name)
			if d.name == name {
				d.parse(p, l, 1+len(name))
				known = true
			}
		}
		if known {
			continue
		}
		hint := "the words are @" + strings.Join(names, ", @")
		if near := text.Nearest(name, names); near != "" {
			hint = "did you mean @" + near + "?"
		}
		p.wrong.at(l, 0, "there is no @%s: %s (put a command that begins with @ in quotes)", name, hint)
	}
}

// words splits the list that begins at an offset of a line. It returns false after an error.
func (p *parser) words(l *line, text string, from int) ([]word, bool) {
	words, at, err := splitWords(text, from)
	if err != nil {
		p.wrong.at(l, at, "%v", err)
	}
	return words, err == nil
}

// paramAt returns the parameter that a word names, with or without brackets.
func (p *parser) paramAt(l *line, name string, offset int) (int, bool) {
	if n := len(name); n > 2 && name[0] == '[' && name[n-1] == ']' {
		name = name[1 : n-1]
	}
	i, ok := p.known[name]
	if !ok {
		p.wrong.at(l, offset, "%s", p.unknownParamText(name))
	}
	return i, ok
}

// unknownParamText returns the text of the error for an unknown parameter.
func (p *parser) unknownParamText(name string) string {
	if near := text.Nearest(name, p.names); near != "" {
		return fmt.Sprintf("there is no parameter %s: did you mean %s?", name, near)
	}
	if len(p.names) > 0 && len(p.names) < 10 {
		return fmt.Sprintf("there is no parameter %s: the parameters are %s; a line [%s] 1, 2, 3 would add it", name,
			strings.Join(p.names, ", "), name)
	}
	return fmt.Sprintf("there is no parameter %s: a line [%s] 1, 2, 3 gives it values", name, name)
}

// parseZip parses `@zip a, b`.
func (p *parser) parseZip(l *line, from int) {
	words, ok := p.words(l, l.text, from)
	if !ok {
		return
	}
	if len(words) < 2 {
		p.wrong.at(l, from,
			"@zip ties parameters together, the first value of one to the first of the other: @zip width, height")
		return
	}
	var group []int
	for _, w := range words {
		i, ok := p.paramAt(l, w.text, w.offset)
		if !ok {
			continue
		}
		if before := p.zipped[i]; before != nil {
			p.wrong.at(l, w.offset, "%s is zipped already, in line %d", w.text, before.no)
			continue
		}
		p.zipped[i] = l
		group = append(group, i)
	}
	p.zips = append(p.zips, group)
}

// parseResult parses `@result acc` and `@result acc json:accuracy`. There may be an = between the
// two.
func (p *parser) parseResult(l *line, from int) {
	rest := strings.TrimLeft(l.text[from:], blanks)
	at := len(l.text) - len(rest)
	name, how := cutAny(rest, blanks+"=")
	howAt := len(l.text) - len(strings.TrimLeft(how, blanks))
	r := Result{Name: name, From: strings.Trim(how, blanks)}
	r.Line, r.Column = l.place(at)
	_, isParam := p.known[name]
	switch {
	case name == "":
		p.wrong.at(l, at, "the name of the result is missing: write @result acc, or @result acc json:accuracy")
		return
	case isParam:
		p.wrong.at(l, at, "%s is a parameter already: choose another name for the result", name)
		return
	case slices.ContainsFunc(p.t.Results, func(o Result) bool { return o.Name == name }):
		p.wrong.at(l, at, "the result %s is given twice", name)
		return
	}
	check := p.CheckResult
	if check == nil {
		check = checkResult
	}
	if err := check(r.Name, r.From); err != nil {
		p.wrong.at(l, howAt, "%v", err)
		return
	}
	if path, ok := resultFile(r.From); ok && !p.Again {
		p.resultFileNames(l, path, howAt+len("file:"))
	}
	p.t.Results = append(p.t.Results, r)
}

// checkResult checks only the kind of a result.
func checkResult(name, from string) error {
	kind, arg, _ := strings.Cut(from, ":")
	if from != "" && (arg == "" || !slices.Contains([]string{"json", "re", "key", "file"}, kind)) {
		return fmt.Errorf("the source of %s is missing: write json:FIELD, re:EXPRESSION, key:NAME or file:PATH, "+
			"or nothing for lines %s=value", name, name)
	}
	return nil
}

// resultFile returns PATH of an @result line that reads file:PATH or file:PATH:HOW.
func resultFile(from string) (path string, ok bool) {
	rest, ok := strings.CutPrefix(from, "file:")
	path, _, _ = strings.Cut(rest, ":")
	return path, ok
}

// resultFileNames checks the parameters in the path of a file, which is at an offset of the
// line.
func (p *parser) resultFileNames(l *line, path string, offset int) {
	for _, r := range references(path) {
		if _, ok := p.known[r.name]; ok {
			continue
		}
		if !allDigits(r.name) || p.hasNumberedParams() {
			p.wrong.at(l, offset+r.from, "%s", p.unknownParamText(r.name))
		} else {
			p.doubt.at(l, offset+r.from, "%s is left as it is: there is no parameter %s", path[r.from:r.to], r.name)
		}
	}
	for i := range path {
		name, _, ok := strings.Cut(path[i+1:], "}")
		if path[i] != '{' || !ok || !isParamName(name) || name == "id" || name == "attempt" || name == "run" {
			continue
		}
		hint := "there are {id}, {attempt} and {run}"
		if _, ok := p.known[name]; ok {
			hint = "write [" + name + "] for the parameter"
		}
		p.doubt.at(l, offset+i, "{%s} is left as it is: %s", name, hint)
	}
}

// warnSharedFiles adds a warning for a result file that is the same for all jobs, because each job
// would have the metric of the job that wrote it last.
func (p *parser) warnSharedFiles() {
	if p.t.points*len(p.t.commands) < 2 {
		return
	}
	for _, r := range p.t.Results {
		path, ok := resultFile(r.From)
		if ok && !p.namesParam(references(path)) && !strings.Contains(path, "{id}") &&
			!strings.Contains(path, "{attempt}") {
			p.doubt.add(r.Line, r.Column,
				"%s is the same file for all jobs, so each shows the metric of the last job that wrote it: "+
					"put a parameter or {id} into its name (the job sees DCS_JOB_ID)", path)
		}
	}
}
