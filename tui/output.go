package tui

import "dcs-tui/dispatch/view"

// outputPane follows what a job prints.
type outputPane struct{}

var noOutput = &outputPane{}

// output is the pane that follows the job under the cursor.
func (p *jobsPane) output() pane { return noOutput }

func (p *outputPane) title(m *model) string                          { return "Output" }
func (p *outputPane) draw(m *model, w, h int, focused bool) []string { return nil }
func (p *outputPane) ask(m *model, ask *view.Ask)                    {}
func (p *outputPane) keys() []binding                                { return nil }
