package tui

import tea "charm.land/bubbletea/v2"

// helpModal shows the keys that work now.
type helpModal struct{}

func newHelp(*model) modal { return &helpModal{} }

func (h *helpModal) key(m *model, k tea.KeyPressMsg) tea.Cmd { m.modal = nil; return nil }
func (h *helpModal) draw(m *model, w, rows int) []string     { return nil }
