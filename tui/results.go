package tui

import (
	"dcs-tui/jobs"
	"dcs-tui/jobs/runview"
)

// resultsPane is the table of what finished jobs gave: parameters, figures, how the job
// ended and what it used; its groups; a heat map (X5, E3). Of a run that has neither
// parameters nor figures it is a list of the jobs that are over.
type resultsPane struct {
	list
	seen seen
	sel  *selection // that of the list of jobs

	table   *runview.Table       // the newest that is ready; nil: none yet, or the run has none
	read    [2]int               // jobs whose figures are known, of how many, as of the newest
	cells   map[jobs.ID][]string // figures of the rows of the page
	widths  map[string]int       // of parameters, and with = before it of figures; they only grow
	varied  map[string]bool      // parameters that have had several values
	aside   sideways
	tabular bool // the run has a table

	// What a person has asked for, until the screen ends.
	figures []string // columns, beside the declared ones
	best    string
	by      string // the column that orders rows; list.reverse turns it round
	groups  groupsView
	heat    heatView
}

// resultsFilter takes the jobs that are over.
const resultsFilter = "state=done"

func newResultsPane() *resultsPane {
	return &resultsPane{list: list{base: resultsFilter}, widths: map[string]int{}, varied: map[string]bool{}}
}

func (p *resultsPane) title(m *model) string {
	n := p.matched()
	if p.tabular && p.table != nil {
		n = p.table.Page.Matched
	}
	return "Results " + thousands(n) + "  " + p.state(m)
}

func (p *resultsPane) draw(m *model, w, h int, focused bool) []string {
	p.sel = &m.jobs.sel
	switch {
	case p.heat.on:
		return p.under(m, w, h, func(h int) []string { return p.drawHeat(m, w, h, focused) })
	case p.groups.on:
		return p.under(m, w, h, func(h int) []string { return p.drawGroups(m, w, h, focused) })
	case p.tabular:
		return p.under(m, w, h, func(h int) []string { return m.drawList(&p.list, p.columns(m, w-2), w, h, focused) })
	}
	return m.drawList(&p.list, p.columns(m, w-2), w, h, focused)
}

func (p *resultsPane) keys() []binding {
	switch {
	case p.heat.on:
		return p.heatKeys()
	case p.groups.on:
		return p.groupKeys()
	}
	return p.rowKeys()
}

// rows says that the view shows rows of jobs, and keys on jobs mean something.
func (p *resultsPane) rows() bool { return !p.heat.on && !p.groups.on }

func (p *resultsPane) current(m *model) (runview.Row, bool) {
	if !p.rows() {
		return runview.Row{}, false
	}
	return p.list.current()
}

// slipped is about rows alone: keys on groups and cells change nothing.
func (p *resultsPane) slipped(m *model) (*slip, string) {
	if !p.rows() {
		return &slip{}, ""
	}
	return p.list.slipped(m)
}

// picked are the selected jobs.
func (p *resultsPane) picked() jobs.Ranges {
	if p.sel == nil || !p.rows() {
		return nil
	}
	return p.sel.which
}

// clear goes back to the rows, or empties selection or filter; false: there was nothing.
func (p *resultsPane) clear() bool {
	if !p.rows() {
		p.heat.on, p.groups.on = false, p.groups.on && p.heat.on
		return true
	}
	return p.sel != nil && p.list.clear(p.sel)
}

// click puts the cursor on a row.
func (p *resultsPane) click(m *model, row int) {
	switch {
	case p.heat.on:
	case p.groups.on:
		if row > 0 {
			p.groups.put(p.table, p.groups.top+row-1)
		}
	default:
		p.list.click(m, row)
	}
}
