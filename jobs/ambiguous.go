package jobs

import (
	"fmt"
	"regexp"
	"sync"
	"unicode"
	"unicode/utf8"
)

// Ambiguous returns the offset of the first character that is not what it looks like, and describes
// it: an invisible one, or one that an editor or a web page puts in place of a quote, a minus sign,
// or dots. The text describes what to write instead. why is "" if there is none. Inside of ' or ",
// a character that can be seen is meant.
func Ambiguous(s string) (offset int, why string) {
	ascii := 0
	for ascii < len(s) && s[ascii] < utf8.RuneSelf {
		ascii++
	}
	if ascii == len(s) {
		return 0, "" // the usual case
	}
	var quote, last rune
	for i, r := range s {
		switch {
		case quote == 0 && (r == '\'' || r == '"') && last != '\\':
			quote = r
		case r == quote && (r == '\'' || last != '\\'):
			quote = 0
		case r >= utf8.RuneSelf:
			why, seen := describeAmbiguous(r)
			switch {
			case quote != 0 && seen:
			case seen:
				return i, why + "; if that is intended, put the text in ' or \""
			case why != "" && (quote == 0 || !isInEmoji(r)):
				return i, why
			}
		}
		last = r
	}
	return 0, ""
}

// Invisible describes the first character of a text that cannot be seen, or not be told from
// another one, or returns "". The text was in quotes, so that the others are meant.
func Invisible(s string) (why string) {
	for _, r := range s {
		if why, seen := describeAmbiguous(r); why != "" && !seen && !isInEmoji(r) {
			return why
		}
	}
	return ""
}

// AmbiguousWord describes the first character of a text that is not what it looks like, or returns
// "". Quotes mean nothing in the text.
func AmbiguousWord(s string) string {
	for _, r := range s {
		if why, _ := describeAmbiguous(r); why != "" {
			return why
		}
	}
	return ""
}

// decimalComma matches a number with a decimal comma, and a unit.
var decimalComma = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^([+-]?[0-9]+),([0-9]+[a-zA-Z%]*)$`)
})

// hint describes what is wrong with a text that was meant as a number, a time, or a size, as the
// end of an error. It returns "" if nothing is known.
func hint(s string) string {
	if why := ambiguity(s); why != "" {
		return why
	}
	if m := decimalComma().FindStringSubmatch(s); m != nil {
		return fmt.Sprintf("; a decimal comma is written as a point: %s.%s", m[1], m[2])
	}
	return ""
}

// ambiguity is the part of hint that concerns characters. A whole number needs no other: 1,000 has no
// decimal comma.
func ambiguity(s string) string {
	if why := AmbiguousWord(s); why != "" {
		return "; " + why
	}
	return ""
}

// isInEmoji reports whether an invisible character is a part of emojis.
func isInEmoji(r rune) bool { return r == '\u200d' || r == '\ufe0e' || r == '\ufe0f' }

// describeAmbiguous describes a character that is not what it looks like, and what to write instead.
// It returns "" for others. seen reports whether it can be told from the character that it looks
// like.
func describeAmbiguous(r rune) (why string, seen bool) {
	named := func(name, instead string) string {
		return fmt.Sprintf("the character U+%04X is %s: %s", r, name, instead)
	}
	switch r {
	case '\u00a0', '\u202f', '\u2007':
		return named("a no-break space", "write a plain space"), false
	case '\u200d', '\ufe0e', '\ufe0f', '\u200b', '\u2060', '\ufeff', '\u00ad':
		return named("invisible", "remove it"), false
	case '“', '”', '„', '‟':
		return named("a typographic quote", `write a plain " instead`), true
	case '‘', '’', '‚', '‛':
		return named("a typographic quote", "write a plain ' instead"), true
	case '−', '–', '—', '‐', '‑', '‒':
		return named("a dash that is no minus sign", "write - instead"), true
	case '…':
		return named("an ellipsis, not dots", "write .. or ... instead"), true
	}
	switch {
	case r < utf8.RuneSelf || r == utf8.RuneError:
	case unicode.Is(unicode.Bidi_Control, r):
		return named("invisible, and changes the direction of writing", "remove it"), false
	case unicode.Is(unicode.Zs, r):
		return named("no plain space", "write one"), false
	}
	return "", false
}
