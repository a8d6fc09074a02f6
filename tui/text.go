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
	s = jobs.Clean(s, 0)
	if !m.opt.ASCII {
		return s
	}
	return strings.Map(func(r rune) rune {
		if r > '~' {
			return '?'
		}
		return r
	}, s)
}

// maxShown bounds the bytes of a text that are looked at to draw it.
const maxShown = 4096

// width is how many cells a text takes, escape sequences aside.
func width(s string) int { return ansi.StringWidth(s) }

// fit cuts or pads a text, which may hold styles, to exactly w cells.
func (m *model) fit(s string, w int) string {
	switch n := width(s); {
	case w <= 0:
		return ""
	case n > w:
		s = ansi.Truncate(s, w, m.g.cut)
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
