package text

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Clean makes text of a job, a host, or a user safe to print as part of one terminal line, and
// keeps it readable. Control characters become their pictures (␊ for a newline, ␛ for escape). A
// tab and other blanks become a space. Invisible characters, characters that change the direction
// of writing, and bytes that are not UTF-8 become �. Characters that join the parts of an emoji are
// kept.
//
// The result has at most limit runes and ends in … if something was cut off, after a word if that
// loses little; limit <= 0 means no limit. All text from outside passes through Clean once on its way
// to a screen. Files and JSON keep the original text.
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
		if !e.isPartOfEmoji(r, next) {
			r = visible(r)
		}
		if unicode.IsMark(r) {
			marks++
			if marks > maxMarks || n == 0 {
				r = utf8.RuneError
			}
		} else {
			marks = 0
		}
		if n == limit {
			s := strings.TrimRight(b.String()[:last], joiners)
			return s[:WordEnd(s, b.String()[last:])] + "…"
		}
		last = b.Len()
		b.WriteRune(r)
		n++
	}
	return b.String()
}

// EscapeJSON returns a text of JSON in which each character that Clean would replace is escaped
// (\u009b), so that the text can be written to a terminal. Its values stay the same, except that
// bytes that are not UTF-8 become U+FFFD. Newlines, which are between values, stay. It returns text
// itself if there is nothing to escape.
//
// Unlike Clean it also escapes the invisible characters of an emoji and every blank but the space,
// because whoever reads JSON reads characters.
func EscapeJSON(text []byte) []byte {
	var b []byte
	done := 0          // bytes of text that b has
	marks := 0         // accents in a row
	hasLetter := false // the character before can have an accent; a quotation mark would be changed by it
	for i := 0; i < len(text); {
		if c := text[i]; c >= ' ' && c <= '~' || c == '\n' {
			marks, hasLetter = 0, c != '"'
			i++
			continue
		}
		r, size := utf8.DecodeRune(text[i:])
		if unicode.IsMark(r) {
			marks++
		} else {
			marks = 0
		}
		isUnsafe := visible(r) != r || r == utf8.RuneError && size == 1 || marks > maxMarks || marks > 0 && !hasLetter
		if isUnsafe {
			b = append(b, text[done:i]...)
			if r < 0x10000 {
				b = fmt.Appendf(b, `\u%04x`, r)
			} else {
				high, low := utf16.EncodeRune(r)
				b = fmt.Appendf(b, `\u%04x\u%04x`, high, low)
			}
			done = i + size
		}
		hasLetter = !isUnsafe
		i += size
	}
	if done == 0 {
		return text
	}
	return append(b, text[done:]...)
}

// maxMarks is the number of accents on a letter that a terminal gets. A few are normal text, but
// hundreds paint over other lines.
const maxMarks = 4

// joiners are the characters that may join the rune before them to the rune after them. Clean drops
// them at a cut.
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

// An emoji of several characters is joined by invisible characters: U+200D joins
// pictographs, and a variation selector chooses how the character before it is drawn.
// In an emoji they are part of the text. Anywhere else they could make two different
// texts look the same, and Clean replaces them.

const zeroWidthJoiner = '\u200d'

// maxJoins is the maximum number of joiners in one emoji. Unicode's longest emoji has
// four.
const maxJoins = 6

// emoji decides which invisible characters belong to an emoji, from the characters
// before and after them.
type emoji struct {
	base rune // the newest character that is not a joiner, selector or skin color
	// Base is a pictograph, perhaps with selector and skin color, so another may be joined.
	open   bool
	chosen bool // a selector followed base
	joins  int  // joiners in this emoji
	joined bool // the newest character is a joiner
}

// isPartOfEmoji reports whether the invisible character r, between the earlier characters and
// next, is part of an emoji. It must also be called for every other character.
func (e *emoji) isPartOfEmoji(r, next rune) bool {
	switch {
	case r == zeroWidthJoiner:
		if !e.open || e.joins == maxJoins || !isPictograph(next) {
			return e.reject()
		}
		e.open, e.joined = false, true
		e.joins++
		return true
	case unicode.Is(unicode.Variation_Selector, r):
		if e.chosen || !e.selects(r, next) {
			return e.reject()
		}
		e.chosen = true
		return true
	case r >= 0x1f3fb && r <= 0x1f3ff && e.open: // a skin color, which is visible
		return true
	}
	e.base, e.chosen, e.open = r, false, isPictograph(r)
	if !e.joined || !e.open {
		e.joins = 0
	}
	e.joined = false
	return false
}

// reject records that � replaced an invisible character and is the new base. Cleaning a cleaned
// text therefore does not change it.
func (e *emoji) reject() bool {
	*e = emoji{base: utf8.RuneError}
	return false
}

func isPictograph(r rune) bool { return unicode.Is(pictographs, r) && unicode.IsPrint(r) }

// selects reports whether a variation selector has a meaning after base.
func (e *emoji) selects(r, next rune) bool {
	switch r {
	case '\ufe0e', '\ufe0f': // draw as text, draw as a picture
		keycap := e.base >= '0' && e.base <= '9' || e.base == '#' || e.base == '*'
		return e.open || keycap && next == '\u20e3'
	}
	return unicode.Is(unicode.Han, e.base) && (r >= 0xfe00 && r <= 0xfe02 || r >= 0xe0100)
}

// pictographs holds the characters with the property Extended_Pictographic (Unicode TR
// 51), which package unicode does not have. Some of them are reserved.
var pictographs = &unicode.RangeTable{
	R16: []unicode.Range16{
		{0x00a9, 0x00ae, 5}, {0x203c, 0x2049, 13}, {0x2122, 0x2139, 23}, {0x2194, 0x2199, 1}, {0x21a9, 0x21aa, 1},
		{0x231a, 0x231b, 1}, {0x2328, 0x2388, 96}, {0x23cf, 0x23cf, 1}, {0x23e9, 0x23f3, 1}, {0x23f8, 0x23fa, 1},
		{0x24c2, 0x24c2, 1}, {0x25aa, 0x25ab, 1}, {0x25b6, 0x25c0, 10}, {0x25fb, 0x25fe, 1}, {0x2600, 0x2605, 1},
		{0x2607, 0x2612, 1}, {0x2614, 0x2685, 1}, {0x2690, 0x2705, 1}, {0x2708, 0x2712, 1}, {0x2714, 0x2716, 2},
		{0x271d, 0x2721, 4}, {0x2728, 0x2728, 1}, {0x2733, 0x2734, 1}, {0x2744, 0x2747, 3}, {0x274c, 0x274e, 2},
		{0x2753, 0x2755, 1}, {0x2757, 0x2757, 1}, {0x2763, 0x2767, 1}, {0x2795, 0x2797, 1}, {0x27a1, 0x27b0, 15},
		{0x27bf, 0x27bf, 1}, {0x2934, 0x2935, 1}, {0x2b05, 0x2b07, 1}, {0x2b1b, 0x2b1c, 1}, {0x2b50, 0x2b55, 5},
		{0x3030, 0x303d, 13}, {0x3297, 0x3299, 2},
	},
	R32: []unicode.Range32{
		{0x1f000, 0x1f0ff, 1}, {0x1f10d, 0x1f10f, 1}, {0x1f12f, 0x1f12f, 1}, {0x1f16c, 0x1f171, 1}, {0x1f17e, 0x1f17f,
			1},
		{0x1f18e, 0x1f18e, 1}, {0x1f191, 0x1f19a, 1}, {0x1f1ad, 0x1f1e5, 1}, {0x1f201, 0x1f20f, 1}, {0x1f21a, 0x1f21a,
			1},
		{0x1f22f, 0x1f22f, 1}, {0x1f232, 0x1f23a, 1}, {0x1f23c, 0x1f23f, 1}, {0x1f249, 0x1f3fa, 1}, {0x1f400, 0x1f53d,
			1},
		{0x1f546, 0x1f64f, 1}, {0x1f680, 0x1f6ff, 1}, {0x1f774, 0x1f77f, 1}, {0x1f7d5, 0x1f7ff, 1}, {0x1f80c, 0x1f80f,
			1},
		{0x1f848, 0x1f84f, 1}, {0x1f85a, 0x1f85f, 1}, {0x1f888, 0x1f88f, 1}, {0x1f8ae, 0x1f8ff, 1}, {0x1f90c, 0x1f93a,
			1},
		{0x1f93c, 0x1f945, 1}, {0x1f947, 0x1faff, 1}, {0x1fc00, 0x1fffd, 1},
	},
	LatinOffset: 1,
}
