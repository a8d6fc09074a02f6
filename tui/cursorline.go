package tui

import (
	"strings"
)

// cursorLine builds a row of a list piece by piece. Under the cursor its texts are reversed,
// and what is drawn with blocks is not: a full bar would look empty, and an empty one full.
type cursorLine struct {
	here bool // it is the row under the cursor
	b    strings.Builder
}

// text adds a text; nil is the terminal's own style.
func (l *cursorLine) text(s string, style *ink) {
	switch {
	case s == "":
	case l.here:
		l.b.WriteString(styleHere.Render(plainText(s)))
	case style == nil:
		l.b.WriteString(s)
	default:
		l.b.WriteString(style.Render(s))
	}
}

// mark adds a glyph, or a blank where it does not stand: blanks have no style.
func (l *cursorLine) mark(is bool, glyph string, style *ink) {
	if !is {
		style = nil
	}
	l.text(mark(is, glyph), style)
}

// drawn adds a bar or a line of small bars, and what follows it as text.
func (l *cursorLine) drawn(s string, style *ink, rest string) {
	if style != nil {
		s, rest = style.Render(s), style.Render(rest)
	}
	l.b.WriteString(s)
	l.text(rest, nil)
}

func (l *cursorLine) String() string { return l.b.String() }

// isDrawn says that a text begins with a bar.
func (m *model) isDrawn(s string) bool {
	for _, glyph := range m.g.bar {
		if strings.HasPrefix(s, glyph) {
			return true
		}
	}
	return false
}
