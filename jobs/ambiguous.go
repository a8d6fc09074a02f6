package jobs

import (
	"fmt"
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
			if why := describeAmbiguous(r, quote != 0); why != "" {
				return i, why
			}
		}
		last = r
	}
	return 0, ""
}

func describeAmbiguous(r rune, quoted bool) string {
	named := func(name, instead string) string {
		return fmt.Sprintf("the character U+%04X is %s: write %s", r, name, instead)
	}
	switch r {
	case '\u00a0', '\u202f', '\u2007':
		return named("a no-break space", "a plain space")
	case '\u200d', '\ufe0e', '\ufe0f':
		if quoted { // in emojis
			return ""
		}
		return named("invisible", "nothing")
	case '\u200b', '\u2060', '\ufeff', '\u00ad':
		return named("invisible", "nothing")
	}
	switch {
	case unicode.Is(unicode.Bidi_Control, r):
		return named("invisible, and changes the direction of writing", "nothing")
	case r == utf8.RuneError || quoted:
		return ""
	case unicode.Is(unicode.Zs, r):
		return named("no plain space", "one")
	}
	const quoteIt = "; if it is meant, put the text in ' or \""
	switch r {
	case '“', '”', '„', '‟':
		return named("a typographic quote", `"`+quoteIt)
	case '‘', '’', '‚', '‛':
		return named("a typographic quote", "'"+quoteIt)
	case '−', '–', '—', '‐', '‑', '‒':
		return named("a dash that is no minus sign", "-"+quoteIt)
	case '…':
		return named("an ellipsis, not dots", ".. or ..."+quoteIt)
	}
	return ""
}
