package grid

import (
	"errors"
	"slices"
	"strings"

	"dcs-tui/internal/text"
	"dcs-tui/jobs"
	"dcs-tui/jobs/shell"
)

// parseCommands parses the command lines and their options. Package jobs parses them like a jobs
// file: it gets the template with all other lines blank.
func (p *parser) parseCommands() {
	if len(p.calls) == 0 {
		first := min(len(p.all), 1) // 0: the file is empty
		p.wrong.add(first, first,
			"there is no command in this template: write one such as svm -C [C], and a line [C] 0.1, 1, 10")
		return
	}
	var specs []*jobs.Spec
	var err error
	if text := strings.NewReader(p.onlyJobs()); p.Again {
		specs, err = jobs.ParseAgain(text, p.t.File, 1)
	} else {
		specs, err = jobs.Parse(text, p.t.File, false, 1)
	}
	if err != nil {
		p.addJobFaults(err)
	}
	p.unnamed = !slices.ContainsFunc(p.calls, func(l *line) bool { return p.namesParam(references(l.text)) })
	used := make([]bool, len(p.t.Params))
	for _, l := range p.calls {
		p.check(l, used)
	}
	for i, ok := range used {
		if param := p.t.Params[i]; !ok && p.t.Search == nil {
			p.doubt.add(param.Line, param.Column,
				"[%s] stands in no command: each job is repeated for its values, which it sees in $DCS_PARAM_%s",
				param.Name,
				param.Name)
		}
	}
	if err != nil {
		return
	}
	p.takeReturns()
	for i, spec := range specs {
		names := p.namesParam(references(spec.Command))
		c := &command{line: spec.Line, options: spec.Options, after: spec.After()}
		c.text = pieces(spec.Command, p.known, func(r reference) bool { return p.isRefused(r, names) })
		if spec.Name != "" {
			c.name = pieces(spec.Name, p.known, func(reference) bool { return false })
		}
		p.checkOptions(p.calls[i], spec)
		c.paths = p.newPaths(spec.Options)
		p.t.commands = append(p.t.commands, c)
	}
	setLabels(p.t.commands)
}

// onlyJobs returns the text of the template without the lines that a jobs file cannot have.
func (p *parser) onlyJobs() string {
	var b strings.Builder
	call := 0
	for _, l := range p.all {
		keep := l.text == "" || l.text[0] == '#'
		if call < len(p.calls) && p.calls[call] == l {
			keep = true
			call++
		}
		for _, raw := range l.raw {
			if !keep {
				raw = ""
			}
			writeLine(&b, raw)
		}
	}
	return b.String()
}

// addJobFaults adds the errors of package jobs, which begin with the key of the option that is
// wrong.
func (p *parser) addJobFaults(err error) {
	list := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		list = joined.Unwrap()
	}
	for _, err := range list {
		fault, ok := errors.AsType[*jobs.ParseError](err)
		if !ok {
			if len(list) == 1 { // otherwise it reports that there may be more
				p.wrong.add(0, 0, "%s", strings.TrimPrefix(err.Error(), p.t.File+": "))
			}
			continue
		}
		text, column := fault.Text(), fault.Column
		if column == 0 {
			column = p.columnOf(fault.Line, text)
		}
		switch {
		case strings.HasPrefix(text, "after:"):
			text += ": in a template, after= names an earlier command by its name="
		case fault.Column == 0 && p.namesParam(references(text)):
			text += " (of the options, only name=, send=, and return= may hold parameters)"
		}
		p.wrong.add(fault.Line, column, "%s", text)
	}
}

// columnOf returns the column of the option with which an error begins, or that it quotes.
func (p *parser) columnOf(no int, text string) int {
	key, _, _ := strings.Cut(text, ":")
	if _, quoted, ok := strings.Cut(key, `"`); ok {
		key, _, _ = strings.Cut(quoted, `"`)
	} else if word, _, ok := strings.Cut(key, " is given twice"); ok {
		key = word
	}
	for _, l := range p.all {
		if no < l.no || no >= l.no+len(l.raw) {
			continue
		}
		at := strings.Index(l.text, " "+key+"=") + 1
		if at == 0 {
			at = strings.LastIndex(l.text, key)
		}
		if at > 0 && key != "" {
			if line, column := l.place(at); line == no {
				return column
			}
		}
	}
	return 1
}

// checkOptions adds warnings for references in options that are the same for all jobs of a command.
func (p *parser) checkOptions(l *line, spec *jobs.Spec) {
	texts := append(text.Each(spec.Env, func(e jobs.EnvVar) string { return e.Value }),
		spec.Cwd, spec.Setup, spec.Queue)
	for _, text := range texts {
		for _, r := range references(text) {
			if _, ok := p.known[r.name]; ok {
				p.doubt.add(l.no, 0, "%s is not replaced in options other than name=, send=, and return=; "+
					"the job sees the value in $DCS_PARAM_%s", text[r.from:r.to], r.name)
			}
		}
	}
}

// check checks the references of a command, and sets used for its parameters.
func (p *parser) check(l *line, used []bool) {
	refs := references(l.text)
	spans := make([][]int, len(refs))
	for i, r := range refs {
		spans[i] = []int{r.from, r.to}
	}
	around := shell.Enclosures("", l.text, spans)
	names := p.namesParam(refs)
	for _, r := range refs {
		if i, ok := p.known[r.name]; ok && !r.isEscaped() {
			used[i] = true
		}
	}
	if strings.Contains(l.text, "DCS_PARAM_") {
		for i, param := range p.t.Params {
			used[i] = used[i] || strings.Contains(l.text, "DCS_PARAM_"+param.Name)
		}
	}
	for i, r := range refs {
		if r.isEscaped() {
			continue
		}
		written := l.text[r.from:r.to]
		if _, ok := p.known[r.name]; !ok {
			p.handleUnknownReference(l, r, names)
			continue
		}
		switch {
		case r.form != "" && r.form != formQuoted:
			p.wrong.at(l, r.from, "%s: there is no form :%s; [%s] is the value as text, [%s:q] quoted for the shell",
				written, r.form, r.name, r.name)
		case r.form != "" && around[i].IsQuoted():
			p.doubt.at(l, r.from, "%s adds its own quotes: remove the quotes around it, or write [%s]", written, r.name)
		case r.array:
			p.doubt.at(l, r.from, "%s is replaced by the value of the parameter; "+
				"write \\%s if it is an index of the shell", written, written)
		}
	}
}

// handleUnknownReference handles [name] if there is no such parameter. It is left as it is if it
// may be syntax of the shell. names reports that the command refers to parameters.
func (p *parser) handleUnknownReference(l *line, r reference, names bool) {
	written := l.text[r.from:r.to]
	switch {
	// isParam has reported it.
	case r.from == 0 && len(l.text) > r.to && strings.IndexByte(":=", l.text[r.to]) >= 0:
	case p.isRefused(r, names):
		hint := ""
		if no, _ := l.place(r.from); no > l.no && strings.TrimLeft(l.raw[no-l.no], blanks)[0] == '[' {
			hint = `; the line before this one ends in \, so that this one belongs to it`
		} else if r.from == 0 {
			hint = "; if this line is to give its values, a space must follow " + written
		}
		p.wrong.at(l, r.from, "%s%s (\\%s is text that stays as it is)", p.unknownParamText(r.name), hint, written)
	case r.array || r.index && !names || r.form != "" && r.form != formQuoted:
	default:
		p.doubt.at(l, r.from, "%s is left as it is: there is no parameter %s", written, r.name)
	}
}

// isRefused reports whether a reference to an unknown parameter is an error. An index, such as
// a[1], is not. In a command that names no parameter, a reference is an error only if it begins the
// command, if it is similar to the name of a parameter, or if no command names any.
func (p *parser) isRefused(r reference, names bool) bool {
	if r.index || r.form != "" && r.form != formQuoted {
		return false
	}
	return names || p.unnamed || r.from == 0 || allDigits(r.name) && p.hasNumberedParams() ||
		text.Nearest(r.name, p.names) != ""
}

// hasNumberedParams reports whether there are parameters whose names are numbers.
func (p *parser) hasNumberedParams() bool {
	return slices.ContainsFunc(p.names, func(n string) bool { return n[0] <= '9' })
}

// namesParam reports whether one of the references names a parameter.
func (p *parser) namesParam(refs []reference) bool {
	return slices.ContainsFunc(refs, func(r reference) bool {
		_, ok := p.known[r.name]
		return ok
	})
}

// needsQuoting reports whether a shell would not read a text as one plain word.
func needsQuoting(s string) bool {
	return s == "" || strings.ContainsAny(s, " \t*?[]~#&|;<>()$`\"'\\!{}")
}
