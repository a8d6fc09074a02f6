package tui

import (
	"slices"

	tea "charm.land/bubbletea/v2"

	"dcs-tui/internal/text"
	"dcs-tui/observe/runview"
)

// viewer is a scrollable text: the help, the details of a job or a host, or an answer. Its lines
// adapt to the width.
type viewer struct {
	title  string
	text   func(m *model, w int) []string // lines of at most w cells
	events *runview.EventsWindow          // events that the text needs; nil: none
	host   string                         // host whose history the text needs; "": none

	lines  []string // lines as last drawn
	top, h int      // first visible line, and number of visible lines
}

func (v *viewer) visibleRows() int { return v.h }

func (v *viewer) scroll(_ *model, by int) { v.top = max(0, min(v.top+by, len(v.lines)-v.h)) }

func (v *viewer) draw(m *model, w, h int) []string {
	v.lines, v.h = v.text(m, w), h
	v.scroll(m, 0)
	return firstLines(v.lines[v.top:], h)
}

// textModal shows a text until a key is pressed that does not scroll it: in place of the footer or,
// if fullScreen is set, over the whole screen. The key is carried out if it changes nothing.
type textModal struct {
	viewer
	fullScreen bool
	openedBy   string // the key that opened it, which only closes it again
}

// closingKeys are the names of keys that only close a text, whatever they do without it.
var closingKeys = []string{"back", "open", "select", "leave"}

// openNote shows a text in place of the footer.
func (m *model) openNote(title, text string) {
	m.modal = &textModal{openedBy: m.pressedKey, viewer: viewer{title: title,
		text: func(m *model, w int) []string { return m.wrap(m.clean(text), w-4) }}}
}

func (p *textModal) key(m *model, msg tea.KeyPressMsg) tea.Cmd {
	key := msg.String()
	cmd, is := m.pressIn(moveKeys(p.visibleRows, p.scroll), key)
	if is {
		return cmd
	}
	m.modal = nil
	if b := m.findBinding(key); b != nil && !b.acts && key != p.openedBy && !slices.Contains(closingKeys, b.names) {
		return m.press(key)
	}
	return nil
}

func (p *textModal) draw(m *model, w, h int) []string {
	indent, hint, scrolls := "  ", "  any key closes this", "  j k scroll, any other key closes this"
	if p.fullScreen {
		indent, hint = " ", " esc closes"
	}
	out := []string{m.rule(p.title, w, true)}
	for _, l := range p.viewer.draw(m, w, max(1, h-2)) {
		out = append(out, indent+l)
	}
	if p.fullScreen {
		out = append(out, make([]string, max(0, h-1-len(out)))...)
		scrolls = hint + "; j k PgDn PgUp g G move; rows " + text.Thousands(p.top+1) + " to " +
			text.Thousands(min(len(p.lines), p.top+p.h)) + " of " + text.Thousands(len(p.lines))
	}
	if len(p.lines) > p.h {
		hint = scrolls
	}
	return append(out, styleFaint.Render(hint))
}
