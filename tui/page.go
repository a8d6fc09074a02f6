package tui

import (
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
)

// page is a text over the whole screen that can be scrolled; any key that does not
// scroll closes it.
type page struct {
	lines  []string
	top, h int // the first row shown, and how many there were room for
}

func (p *page) key(m *model, k tea.KeyPressMsg) tea.Cmd {
	for _, b := range moving(func() int { return p.h }, func(_ *model, by int) { p.top = max(0, min(p.top+by, len(p.lines))) }) {
		for _, name := range b.keys {
			if name == k.String() {
				return b.do(m)
			}
		}
	}
	m.modal = nil
	return nil
}

// draw is nothing: it takes the whole screen instead.
func (p *page) draw(*model, int, int) []string { return nil }

func (p *page) full(m *model, title string, w, h int) []string {
	p.h = h - 2
	p.top = max(0, min(p.top, len(p.lines)-p.h))
	out := []string{m.rule(title, w, true)}
	for i := range p.h {
		out = append(out, " "+at(p.lines, p.top+i))
	}
	foot := " esc closes"
	if len(p.lines) > p.h {
		foot += "; j k PgDn PgUp g G move; rows " + thousands(p.top+1) + " to " + thousands(min(len(p.lines), p.top+p.h)) + " of " + thousands(len(p.lines))
	}
	return append(out, styleFaint.Render(foot))
}

// wrap breaks a text into lines of at most w cells, between words where there are any.
func (m *model) wrap(s string, w int) []string {
	return strings.Split(ansi.WrapWc(s, max(1, w), ""), "\n")
}
