package sheet

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"dcs-tui/jobs"
)

// Word is a word of a search that is no comparison: a text to look for, or what whoever
// compiles the search knows by it, such as state:bad.
type Word struct {
	Text   string
	Quoted bool // it is a text, whatever it looks like
}

// ParseSearch reads what a person types to look for jobs: the language of ParseFilter,
// and beside comparisons words. A word reaches to the next blank, and "two words" in
// quotes are one, in which \" is a quote; before a word or a comparison - means not, as
// ! does. A search that is empty is nil.
func ParseSearch(text string) (*Filter, error) { return parse(text, true) }

// blank is what unicode.IsSpace says of a character: pasted texts have other blanks.
const blank = `\s\v\x{85}\p{Z}`

// compares finds a comparison where a word of a search begins. A name with a colon, or
// with a dash before it as options of commands have, is taken for one in brackets alone.
var compares = regexp.MustCompile(`^(?:\[[^\]]*\]|"[^"]*"|'[^']*'|[^` + blank + `=<>~!"'(),&|:-][^` + blank + `=<>~!"'(),&|:]*)[` + blank + `]*(?:[=<>~]|!=|!~)`)

// joins finds a word that joins conditions.
var joins = regexp.MustCompile(`(?i)^(and|or|not)(?:[` + blank + `(!]|$)`)

// nextOfSearch reads the next word where none is an operator's right side.
func (l *lexer) nextOfSearch() error {
	l.skip(len(l.rest) - len(strings.TrimLeftFunc(l.rest, unicode.IsSpace)))
	l.tok = token{at: l.at + 1, rest: l.rest}
	take := func(n int, kind tokenKind) error {
		l.tok.text, l.tok.kind = l.rest[:n], kind
		l.skip(n)
		return nil
	}
	rest := l.rest
	after, _ := utf8.DecodeRuneInString(rest[min(1, len(rest)):])
	switch {
	case rest == "":
		return nil
	case rest[0] == '(':
		l.open++
		return take(1, openToken)
	case rest[0] == ')' && l.open > 0:
		l.open--
		return take(1, closeToken)
	case rest[0] == ',':
		return take(1, andToken)
	case strings.HasPrefix(rest, "&&"):
		return take(2, andToken)
	case strings.HasPrefix(rest, "||"):
		return take(2, orToken)
	case rest[0] == '!' && begins(strings.TrimLeftFunc(rest[1:], unicode.IsSpace)), rest[0] == '-' && after != '-' && begins(rest[1:]):
		return take(1, notToken)
	case compares.MatchString(rest), joins.MatchString(rest):
		return l.next(false)
	}
	return l.searchWord()
}

// searchWord reads a word that is no comparison.
func (l *lexer) searchWord() error {
	t, rest := &l.tok, l.rest
	t.kind, t.search, t.quoted = wordToken, true, rest[0] == '"'
	var b strings.Builder
	inside, i, deep := false, 0, 0
	for ; i < len(rest); i++ {
		c := rest[i]
		if !inside {
			r, _ := utf8.DecodeRuneInString(rest[i:])
			if unicode.IsSpace(r) || c == ')' && deep == 0 && l.open > 0 || c == ',' && ends(rest[i+1:]) {
				break
			}
			deep += strings.Count(rest[i:i+1], "(") - strings.Count(rest[i:i+1], ")")
		}
		switch {
		case c == '"':
			inside = !inside
		case inside && c == '\\' && i+1 < len(rest) && (rest[i+1] == '"' || rest[i+1] == '\\'):
			i++
			b.WriteByte(rest[i])
		default:
			b.WriteByte(c)
		}
	}
	if inside {
		return l.errorf("a quote is open: %s", quote(rest))
	}
	t.text = b.String()
	l.skip(i)
	return nil
}

// begins says that something stands in rest that not may be said of.
func begins(rest string) bool { return !ends(rest) && rest[0] != ')' }

// ends says that a word ends before rest.
func ends(rest string) bool {
	r, _ := utf8.DecodeRuneInString(rest)
	return rest == "" || unicode.IsSpace(r)
}

// statesOf are the words of the screen for states, as --where has them.
var statesOf = map[string]string{
	"run": "running", "away": "running", "handed": "running", "ending": "running",
	"retry": "queued", "queue": "queued", "waits": "queued",
	"fail": "failed", "timeout": "timed_out", "ok": "succeeded", "cancel": "cancelled", "skip": "skipped",
	"open": "queued or state=running",
	"done": "succeeded or state=failed or state=timed_out or state=cancelled or state=skipped",
	"bad":  "failed or state=timed_out or state=skipped",
}

// instead says what to type for a word of a search where comparisons alone are; "" if it
// is a text.
func instead(t *token) string {
	word := t.rest
	if i := strings.IndexFunc(word, unicode.IsSpace); i >= 0 {
		word = word[:i]
	}
	const form = " is how the screen's filter has it; here it is "
	if t.text == "straggler" {
		return quote(word) + " is only for the screen's filter: nothing tells it of a job that is over"
	}
	key, value, is := strings.Cut(word, ":")
	if !is || t.quoted {
		return ""
	}
	number := func(name string) string {
		if value != "" && strings.IndexByte("<>=!", value[0]) >= 0 {
			return name + strings.Replace(value, "!", "!=", strings.Count(value, "!")-strings.Count(value, "!="))
		}
		return name + "=" + value
	}
	here := key + "=" + value
	switch key {
	case "tag", "prio":
		return quote(word) + " is only for the screen's filter: no column here has it"
	case "state":
		var parts []string
		for s := range strings.SplitSeq(value, ",") {
			if full := statesOf[s]; full != "" {
				s = full
			}
			parts = append(parts, "state="+s)
		}
		here = strings.Join(parts, " or ")
	case "exit":
		if here = number("exit"); strings.ContainsAny(value, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") {
			here = strings.Replace(number("signal"), "=SIG", "=", 1)
			here = strings.Replace(here, "=", "=SIG", 1)
		}
	case "try":
		if here = number("try"); value == "retried" {
			here = "try>1"
		}
	case "id":
		var parts []string
		for s := range strings.SplitSeq(value, ",") {
			if a, b, ranged := strings.Cut(s, "-"); ranged {
				parts = append(parts, "job>="+a+" and job<="+b)
			} else {
				parts = append(parts, "job="+s)
			}
		}
		here = strings.Join(parts, " or ")
	}
	return quote(word) + form + "\"" + jobs.Clean(here, 200) + "\""
}
