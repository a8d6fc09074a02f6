package tui

import (
	"dcs-tui/dispatch/view"
)

// jobsPane is the list of jobs.
type jobsPane struct{ h int }

func newJobsPane() *jobsPane { return &jobsPane{} }

func (p *jobsPane) title(m *model) string { return "Jobs" }

func (p *jobsPane) draw(m *model, w, h int, focused bool) []string {
	p.h = h
	if m.pic == nil || m.pic.Jobs == nil {
		return []string{"waiting for the dispatcher"}
	}
	var out []string
	for _, r := range m.pic.Jobs.Rows {
		out = append(out, m.clean(r.Title))
	}
	return out
}

func (p *jobsPane) ask(m *model, ask *view.Ask) { ask.Jobs = &view.JobsWindow{Rows: p.h} }
func (p *jobsPane) keys() []binding             { return nil }

func (p *jobsPane) current(m *model) (view.Row, bool) { return view.Row{}, false }
func (p *jobsPane) picked() view.Ranges               { return nil }
func (p *jobsPane) clear() bool                       { return false }
