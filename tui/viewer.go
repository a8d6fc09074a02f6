package tui

import (
	tea "charm.land/bubbletea/v2"

	"dcs-tui/jobs/runview"
)

// viewer is a scrollable text: the help, the details of a job or a host, or an answer. Its lines
// adapt to the width.
type viewer struct {
	title  string
	text   func(m *model, w int) []string // lines of at most w cells
	events *runview.EventsWindow          // events that the text needs; nil: none

	lines  []string // lines as last drawn
	top, h int      // first visible line, and number of visible lines
}

func (v *viewer) rows() int { return v.h }

func (v *viewer) scroll(_ *model, by int) { v.top = max(0, min(v.top+by, len(v.lines)-v.h)) }

// draw returns the visible lines.
func (v *viewer) draw(m *model, w, h int) []string {
	v.lines, v.h = v.text(m, w), h
	v.scroll(m, 0)
	return limit(v.lines[v.top:], h)
}

// key scrolls. Any key that does not scroll closes the text.
func (v *viewer) key(m *model, k tea.KeyPressMsg) tea.Cmd {
	cmd, is := m.pressIn(moving(v.rows, v.scroll), k.String())
	if !is {
		m.modal = nil
	}
	return cmd
}

// wholeText shows a text over the whole screen.
type wholeText struct{ viewer }

func (p *wholeText) ask(_ *model, ask *runview.Query) {
	if p.events != nil {
		ask.Events = p.events
	}
}

// draw returns nothing, because screen draws the text.
func (p *wholeText) draw(*model, int, int) []string { return nil }

func (p *wholeText) screen(m *model, w, h int) []string {
	out := []string{m.rule(p.title, w, true)}
	for _, l := range p.viewer.draw(m, w, h-2) {
		out = append(out, " "+l)
	}
	for len(out) < h-1 {
		out = append(out, "")
	}
	foot := " esc closes"
	if len(p.lines) > p.h {
		foot += "; j k PgDn PgUp g G move; rows " + thousands(p.top+1) + " to " + thousands(min(len(p.lines), p.top+p.h)) + " of " + thousands(len(p.lines))
	}
	return append(out, styleFaint.Render(foot))
}

// note shows a text in place of the footer.
type note struct{ viewer }

// openNote shows a text until a key is pressed.
func (m *model) openNote(title, text string) {
	m.modal = &note{viewer{title: title, text: func(m *model, w int) []string { return m.wrap(m.clean(text), w-4) }}}
}

func (p *note) draw(m *model, w, h int) []string {
	out := []string{m.rule(p.title, w, true)}
	for _, l := range p.viewer.draw(m, w, max(1, h-2)) {
		out = append(out, "  "+l)
	}
	hint := "  any key closes this"
	if len(p.lines) > p.h {
		hint = "  j k: more of it, any other key closes this"
	}
	return append(out, styleFaint.Render(hint))
}
