package tui

import "dcs-tui/dispatch/view"

// resultsPane is the table of what finished jobs gave.
type resultsPane struct{}

func newResultsPane() *resultsPane { return &resultsPane{} }

func (p *resultsPane) title(m *model) string                          { return "Results" }
func (p *resultsPane) draw(m *model, w, h int, focused bool) []string { return nil }
func (p *resultsPane) ask(m *model, ask *view.Ask)                    {}
func (p *resultsPane) keys() []binding                                { return nil }
