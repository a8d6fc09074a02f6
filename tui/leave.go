package tui

import tea "charm.land/bubbletea/v2"

// leave ends the screen; while the run goes on it asks what is to become of it.
func (m *model) leave() tea.Cmd { return tea.Quit }
