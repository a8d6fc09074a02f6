package grid

import (
	"regexp"
	"strings"
	"sync"
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
