package grid

import "strings"

// resultFile is PATH of an @result line that reads file:PATH or file:PATH:HOW.
func resultFile(from string) (path string, ok bool) {
	rest, ok := strings.CutPrefix(from, "file:")
	path, _, _ = strings.Cut(rest, ":")
	return path, ok
}

// resultFileNames refuses a parameter that there is not in the name of a file, which begins
// at an offset of the line: no job would have such a file.
func (p *parser) resultFileNames(l *line, path string, offset int) {
	for _, r := range references(path) {
		if _, ok := p.known[r.name]; ok {
			continue
		}
		if !allDigits(r.name) || p.numbered() {
			p.wrong.at(l, offset+r.from, "%s", p.unknown(r.name))
		} else {
			p.doubt.at(l, offset+r.from, "%s is left as it is: there is no parameter %s", path[r.from:r.to], r.name)
		}
	}
	for i := range path {
		name, _, ok := strings.Cut(path[i+1:], "}")
		if path[i] != '{' || !ok || !validName(name) || name == "id" || name == "attempt" || name == "run" {
			continue
		}
		hint := "there are {id}, {attempt} and {run}"
		if _, ok := p.known[name]; ok {
			hint = "write [" + name + "] for the parameter"
		}
		p.doubt.at(l, offset+i, "{%s} is left as it is: %s", name, hint)
	}
}

// sharedFiles doubts a file that bears the same name for all jobs: each would have the
// figure of whoever wrote it last.
func (p *parser) sharedFiles() {
	if p.t.points*len(p.t.commands) < 2 {
		return
	}
	for _, r := range p.t.Results {
		path, ok := resultFile(r.From)
		if ok && !p.named(references(path)) && !strings.Contains(path, "{id}") && !strings.Contains(path, "{attempt}") {
			p.doubt.add(r.Line, r.Column, "%s is the same file for all jobs, so each has the figure of the last that wrote it: let its name hold a parameter, or {id} (the job sees DCS_JOB_ID)", path)
		}
	}
}
