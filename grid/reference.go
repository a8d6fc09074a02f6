package grid

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"dcs-tui/jobs"
)

// reference is a parameter named in a command: [name], or [name:form].
type reference struct {
	from, to int // position in the text, including the brackets
	slashes  int // number of backslashes before it
	name     string
	form     string // "" or what stands behind the colon
	index    bool   // it follows a word, like the index in a[1]
	array    bool   // it is in ${a[1]}
}

// formQuoted is the form of a reference whose value is quoted for the shell.
const formQuoted = "q"

// referenceForm matches [name] and [name:form].
var referenceForm = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\[(\w+)(?::(\w+))?\]`) })

// references returns the texts that may refer to parameters. `[ -f x ]`, `[a-z]`, and `[[` do not.
func references(text string) []reference {
	var all []reference
	for _, m := range referenceForm().FindAllStringSubmatchIndex(text, -1) {
		r := reference{from: m[0], to: m[1], name: text[m[2]:m[3]]}
		if !isParamName(r.name) {
			continue
		}
		if m[4] >= 0 {
			r.form = text[m[4]:m[5]]
		}
		before := strings.TrimRight(text[:r.from], `\`)
		r.slashes = r.from - len(before)
		if before != "" {
			r.index = strings.IndexByte(wordBytes+"]})", before[len(before)-1]) >= 0
			variable := strings.TrimRight(before, wordBytes)
			r.array = r.index && (strings.HasSuffix(variable, "${") || strings.HasSuffix(variable, "${#") ||
				strings.HasSuffix(variable, "${!"))
		}
		all = append(all, r)
	}
	return all
}

const wordBytes = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_"

// maxName keeps DCS_PARAM_<name> readable.
const maxName = 100

// isParamName reports whether s can be the name of a parameter: a number, or letters, digits,
// and _ that do not begin with a digit. It becomes part of the variable DCS_PARAM_<name>.
func isParamName(s string) bool {
	if s == "" || len(s) > maxName || strings.Trim(s, wordBytes) != "" {
		return false
	}
	return s[0] > '9' || allDigits(s)
}

// piece is a text and the parameter whose value follows it.
type piece struct {
	text   string
	param  int // -1: none follows
	quoted bool
}

// isReference reports whether a word is [name:form].
func isReference(word string) bool {
	refs := references(word)
	return len(refs) == 1 && refs[0].from == 0 && refs[0].to == len(word) && refs[0].form != ""
}

// isEscaped reports whether a backslash makes the reference plain text.
func (r *reference) isEscaped() bool { return r.slashes%2 == 1 }

// pieces splits a text at the references to known parameters. It removes the backslash of
// \[name] if the parameter is known, or if refused reports that [name] would be an error.
func pieces(text string, known map[string]int, refused func(reference) bool) []piece {
	var all []piece
	var plain strings.Builder
	done := 0
	for _, r := range references(text) {
		param, ok := known[r.name]
		if !ok && !(r.isEscaped() && refused(r)) {
			continue
		}
		if r.isEscaped() {
			plain.WriteString(text[done : r.from-1])
			plain.WriteString(text[r.from:r.to])
		} else {
			plain.WriteString(text[done:r.from])
			all = append(all, piece{plain.String(), param, r.form == formQuoted})
			plain.Reset()
		}
		done = r.to
	}
	plain.WriteString(text[done:])
	if plain.Len() > 0 {
		all = append(all, piece{plain.String(), -1, false})
	}
	return all
}

// paths holds send= and return= of a command if they name parameters.
type paths struct{ send, returns [][]piece }

// newPaths returns the paths of a command, or nil if they name no parameter. returns are further
// patterns, of the command line.
func (p *parser) newPaths(o *jobs.Options) *paths {
	split := func(list []string) (all [][]piece, named bool) {
		for _, text := range list {
			all = append(all, pieces(text, p.known, func(reference) bool { return false }))
			named = named || p.namesParam(references(text))
		}
		return all, named
	}
	send, sends := split(o.Send)
	returns, named := split(slices.Concat(o.Return, p.t.Returns))
	if !sends && !named {
		return nil
	}
	return &paths{send, returns}
}

// takeReturns moves the patterns that name a parameter to Template.Returns.
func (p *parser) takeReturns() {
	for _, text := range p.Return {
		if p.namesParam(references(text)) {
			p.t.Returns = append(p.t.Returns, text)
		}
	}
}

// fill returns options with the values of parameters in their paths.
func (f *paths) fill(o *jobs.Options, params []jobs.Param) *jobs.Options {
	made := *o
	made.Send, made.Return = nil, nil
	for _, parts := range f.send {
		made.Send = append(made.Send, fill(parts, params, verbatim))
	}
	for _, parts := range f.returns {
		made.Return = append(made.Return, fill(parts, params, jobs.QuotePattern))
	}
	return &made
}

// check returns an error if values lead out of the directory of the job.
func (f *paths) check(s *jobs.Spec, params []jobs.Param) error {
	for _, part := range slices.Concat(f.send...) {
		if part.param >= 0 && strings.Contains(params[part.param].Value, ":") {
			return fmt.Errorf("send: the value %s of [%s] has a colon, which ends the path",
				quoteText(params[part.param].Value), params[part.param].Name)
		}
	}
	for _, item := range s.Send {
		path, _, _ := strings.Cut(item, ":")
		if err := jobs.CheckLocal(path); err != nil {
			return fmt.Errorf("send: %w", err)
		}
	}
	if _, err := jobs.ParseReturn(s.Return); err != nil {
		return fmt.Errorf("return: %w", err)
	}
	return nil
}

func verbatim(value string) string { return value }
