package tui

import (
	tea "charm.land/bubbletea/v2"
)

// clickable is a pane whose rows can be clicked: row 0 is the first of its content.
type clickable interface{ click(m *model, row int) }

// mouse gives the pane under the mouse the focus, and its cursor the row.
func (m *model) mouse(msg tea.MouseMsg) tea.Cmd {
	at := msg.Mouse()
	if m.modal != nil {
		return nil
	}
	for _, p := range m.placed {
		if at.X < p.x || at.X >= p.x+p.w || at.Y < p.y || at.Y >= p.y+p.h {
			continue
		}
		switch msg := msg.(type) {
		case tea.MouseClickMsg:
			if msg.Button != tea.MouseLeft {
				return nil
			}
			m.focusOn(p.pane)
			row := at.Y - p.y
			if p.border || p.pane != m.panes[m.tab] { // a title is above
				row--
			}
			if c, ok := p.pane.(clickable); ok && row >= 0 {
				c.click(m, row)
			}
		case tea.MouseWheelMsg:
			m.focusOn(p.pane)
			key := map[tea.MouseButton]string{tea.MouseWheelUp: "k", tea.MouseWheelDown: "j"}[msg.Button]
			if key == "" {
				return nil
			}
			for range wheelRows {
				m.press(key)
			}
		}
		return nil
	}
	return nil
}

// wheelRows is how far one notch of the wheel goes.
const wheelRows = 3

// focusOn gives a pane on the screen the focus.
func (m *model) focusOn(p pane) {
	m.onExtra = p == m.below()
	for t, x := range m.panes {
		if x == p {
			m.side = tab(t)
		}
	}
}

// click puts the cursor of a list on a row; row 0 is its heading.
func (l *list) click(_ *model, row int) {
	if pos := l.top + row - 1; row > 0 && pos < l.matched() {
		l.move(pos)
	}
}
