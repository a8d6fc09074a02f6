package tui

import tea "charm.land/bubbletea/v2"

// question puts the dispatcher's question to the person, once (view.Question).
func (m *model) question() tea.Cmd { return nil }
