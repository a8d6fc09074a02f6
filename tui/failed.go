package tui

import "dcs-tui/dispatch/view"

// failedPane shows what failed, by cause (X7, rule 7).
type failedPane struct{}

func newFailedPane() *failedPane { return &failedPane{} }

func (p *failedPane) title(m *model) string                          { return "Failed" }
func (p *failedPane) draw(m *model, w, h int, focused bool) []string { return nil }
func (p *failedPane) ask(m *model, ask *view.Ask)                    { ask.Groups = true }
func (p *failedPane) keys() []binding                                { return nil }
