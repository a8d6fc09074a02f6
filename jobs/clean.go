package jobs

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Clean makes text of a job, a host or a user safe to print as a part of one
// terminal line, and keeps it readable. Control characters become their
// pictures (␊ for a newline, ␛ for escape). A tab and other blanks become a
// space. Invisible characters, characters that change the direction of writing,
// and bytes that are not UTF-8 become �. Characters that join the parts of an
// emoji stay.
//
// The result has at most limit runes and ends in … if something was cut off;
// limit <= 0 means no limit. All text from outside passes through Clean once,
// on its way to a screen. Files and JSON keep the text itself.
func Clean(s string, limit int) string {
	if limit <= 0 {
		limit = len(s)
	}
	if len(s) <= limit && plainASCII(s) {
		return s
	}
	var b strings.Builder
	var e emoji
	n, marks, last := 0, 0, 0 // last: length before the newest rune
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		i += size
		next, _ := utf8.DecodeRuneInString(s[i:])
		if !e.keeps(r, next) {
			r = visible(r)
		}
		if unicode.IsMark(r) {
			// A few accents on a letter are writing, hundreds paint over other lines.
			if marks++; marks > 4 || n == 0 {
				r = utf8.RuneError
			}
		} else {
			marks = 0
		}
		if n == limit {
			return strings.TrimRight(b.String()[:last], joiners) + "…"
		}
		last = b.Len()
		b.WriteRune(r)
		n++
	}
	return b.String()
}

// joiners say something about the rune that follows, or may do so.
const joiners = "\u200d\ufe0e\ufe0f"

// visible replaces a rune that must not reach a terminal.
func visible(r rune) rune {
	switch {
	case r == '\t' || unicode.Is(unicode.Zs, r):
		return ' '
	case r < ' ':
		return '␀' + r
	case r == 0x7f:
		return '␡'
	case unicode.IsPrint(r) && !unicode.In(r, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point):
		return r
	}
	return utf8.RuneError // C1, format characters (bidi, zero width), line separators, fillers, private, unassigned
}

func plainASCII(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}
