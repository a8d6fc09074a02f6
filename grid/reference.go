package grid

import "strings"

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

// references returns the texts that may refer to parameters. `[ -f x ]`, `[a-z]`, and `[[` do not.
func references(text string) []reference {
	var all []reference
	for i := 0; i < len(text); i++ {
		if text[i] != '[' {
			continue
		}
		r := reference{from: i}
		j := i + 1
		for j < len(text) && wordByte(text[j]) {
			j++
		}
		r.name = text[i+1 : j]
		if j < len(text) && text[j] == ':' {
			k := j + 1
			for k < len(text) && wordByte(text[k]) {
				k++
			}
			r.form, j = text[j+1:k], k
			if r.form == "" {
				continue // [a:] is not a reference
			}
		}
		if j == len(text) || text[j] != ']' || !validName(r.name) {
			continue
		}
		r.to = j + 1
		before := strings.TrimRight(text[:i], `\`)
		r.slashes = i - len(before)
		if before != "" {
			last := before[len(before)-1]
			r.index = wordByte(last) || last == ']' || last == '}' || last == ')'
			variable := strings.TrimRight(before, wordBytes)
			r.array = r.index && (strings.HasSuffix(variable, "${") || strings.HasSuffix(variable, "${#") || strings.HasSuffix(variable, "${!"))
		}
		all = append(all, r)
		i = j
	}
	return all
}

const wordBytes = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_"

func wordByte(b byte) bool {
	return b == '_' || b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z'
}

// maxName keeps DCS_PARAM_<name> readable.
const maxName = 100

// validName reports whether s can be the name of a parameter: a number, or letters, digits,
// and _ that do not begin with a digit. It becomes part of the variable DCS_PARAM_<name>.
func validName(s string) bool {
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

// escaped reports whether a backslash makes the reference plain text.
func (r *reference) escaped() bool { return r.slashes%2 == 1 }

// pieces splits a text at the references to known parameters. It removes the backslash of
// \[name] if the parameter is known, or if refused reports that [name] would be an error.
func pieces(text string, known map[string]int, refused func(reference) bool) []piece {
	var all []piece
	var plain strings.Builder
	done := 0
	for _, r := range references(text) {
		param, ok := known[r.name]
		if !ok && !(r.escaped() && refused(r)) {
			continue
		}
		if r.escaped() {
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
