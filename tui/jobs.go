package tui

import (
	"dcs-tui/jobs"
	"dcs-tui/jobs/runview"
)

// jobsPane is the list of jobs.
type jobsPane struct {
	list
	sel  selection
	seen seen
	told told

	edits, filters, commands history
}

func newJobsPane() *jobsPane { return &jobsPane{} }

func (p *jobsPane) title(m *model) string {
	s := "Jobs " + thousands(p.matched())
	if st := p.state(m); st != "" {
		s += "  " + st
	}
	return s
}

func (p *jobsPane) draw(m *model, w, h int, focused bool) []string {
	return m.drawList(&p.list, p.columns(m, w-2), w, h, focused)
}

func (p *jobsPane) ask(m *model, ask *runview.Ask) { ask.Jobs = p.window() }

func (p *jobsPane) keys() []binding { return listKeys(&p.list) }

// see takes the newest picture in.
func (p *jobsPane) see(m *model) {
	if page := m.pic.Jobs; page != nil && p.fits(page) {
		p.seen.look(m, page.Rows)
		p.told.keep(page.Rows)
		p.watch(m, page)
	}
}

func (p *jobsPane) current(m *model) (runview.Row, bool) { return p.list.current() }

// picked are the selected jobs.
func (p *jobsPane) picked() jobs.Ranges { return p.sel.which }

// clear empties the selection, or else the filter; false: both are empty.
func (p *jobsPane) clear() bool { return p.list.clear(&p.sel) }

func (p *jobsPane) state(m *model) string { return m.listed(&p.list) }
