package tui

import (
	"strings"

	"github.com/charmbracelet/x/ansi"

	"dcs-tui/jobs"
)

// clean makes a text from a job, a host or a user harmless (rule 10).
func (m *model) clean(s string) string {
	if len(s) > maxShown { // no line of the screen is that long
		s = s[:maxShown]
	}
	return m.cleanWhole(s)
}

// cleanWhole is clean for a text of any length.
func (m *model) cleanWhole(s string) string {
	s = jobs.Clean(s, 0)
	if !m.opt.ASCII {
		return strings.Map(apart, s)
	}
	return strings.Map(func(r rune) rune {
		if r > '~' {
			return '?'
		}
		return r
	}, s)
}

// apart keeps characters from joining into one. Some terminals join them and others do
// not, so columns would be misaligned on one of them.
func apart(r rune) rune {
	switch {
	case r < 0x1100:
		return r
	case r >= 0x1f1e6 && r <= 0x1f1ff: // halves of flags
		return 'A' + r - 0x1f1e6
	case r == '\u200d', // the parts of an emoji are shown beside each other
		r >= 0xfe00 && r <= 0xfe0f, r >= 0xe0100 && r <= 0xe01ef, // variations
		r >= 0x1f3fb && r <= 0x1f3ff: // skin colors
		return -1
	case r >= 0x1160 && r <= 0x11ff, r >= 0xd7b0 && r <= 0xd7ff, // parts of a Hangul syllable
		r == 0x3164, r == 0xffa0, r == 0x115f: // fillers
		return '\ufffd'
	}
	return r
}

// maxShown bounds the bytes of a text that are looked at to draw it.
const maxShown = 4096

// width is how many cells a text takes, escape sequences aside, counted as most
// terminals and Bubble Tea count: character by character.
func width(s string) int { return ansi.StringWidthWc(s) }

// fit cuts or pads a text, which may hold styles, to exactly w cells.
func (m *model) fit(s string, w int) string {
	switch n := width(s); {
	case w <= 0:
		return ""
	case n > w:
		// The blanks are never seen. TruncateWc cuts nothing when joined characters would fit.
		s = ansi.TruncateWc(s+strings.Repeat(" ", n), w, m.g.cut)
		return s + strings.Repeat(" ", max(0, w-width(s))) // half of a wide character may be left
	default:
		return s + strings.Repeat(" ", w-n)
	}
}

// right pads on the left.
func (m *model) right(s string, w int) string {
	if n := width(s); n < w {
		return strings.Repeat(" ", w-n) + s
	}
	return m.fit(s, w)
}

// sides puts one text at the left and one at the right of w cells; the left one is
// cut where there is no room.
func (m *model) sides(left, right string, w int) string {
	r := width(right)
	if r+2 > w {
		return m.fit(left, w)
	}
	return m.fit(left, w-r) + right
}

// plainText takes the styles out of a text.
func plainText(s string) string { return ansi.Strip(s) }
