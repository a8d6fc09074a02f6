package tui

import (
	tea "charm.land/bubbletea/v2"
)

// modal takes all keys until it is closed: a question, a line to type, the help. It
// closes itself with m.modal = nil.
type modal interface {
	key(m *model, k tea.KeyPressMsg) tea.Cmd
	// draw returns the lines that stand in place of the footer, at most h.
	draw(m *model, w, h int) []string
}

// overlay is a modal that takes the whole screen. What it wants to see it asks for
// with a method of a pane, ask.
type overlay interface {
	modal
	screen(m *model, w, h int) []string
}
