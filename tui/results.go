package tui

import (
	"charm.land/lipgloss/v2"

	"dcs-tui/dispatch/view"
)

// resultsPane is the table of what finished jobs gave: a column for each parameter,
// then how the job ended and what it used.
type resultsPane struct {
	list
	seen seen
	sel  *selection // that of the list of jobs
	// figures are columns of what was extracted from the jobs' output; nil: none is.
	figures func(m *model) []column
}

// resultsFilter takes the jobs that are over.
const resultsFilter = "state:done"

func newResultsPane() *resultsPane { return &resultsPane{list: list{base: resultsFilter}} }

func (p *resultsPane) title(m *model) string {
	return "Results " + thousands(p.matched()) + "  " + p.state(m)
}

func (p *resultsPane) draw(m *model, w, h int, focused bool) []string {
	p.sel = &m.jobs.sel
	return m.drawList(&p.list, p.columns(m, w-2), w, h, focused)
}

func (p *resultsPane) ask(m *model, ask *view.Ask) { ask.Jobs = p.window() }
func (p *resultsPane) keys() []binding             { return listKeys(&p.list) }

func (p *resultsPane) see(m *model) {
	if page := m.pic.Jobs; page != nil && p.fits(page) {
		p.seen.look(m, page.Rows)
		p.list.see(page)
	}
}

func (p *resultsPane) current(m *model) (view.Row, bool) { return p.list.current() }

// picked are the selected jobs.
func (p *resultsPane) picked() view.Ranges {
	if p.sel == nil {
		return nil
	}
	return p.sel.which
}

func (p *resultsPane) clear() bool { return p.sel != nil && p.list.clear(p.sel) }

func (p *resultsPane) state(m *model) string { return m.listed(&p.list) }

// columns are those of the table for w cells, marks aside.
func (p *resultsPane) columns(m *model, w int) []column {
	s := &p.seen
	all := []column{
		{head: "ID", sort: view.SortID, w: s.idWidth(m), right: true, cell: idCell},
		{head: "STATE", sort: view.SortState, w: stateWidth, cell: stateCell},
	}
	for i, name := range s.params { // the first parameters are kept longest
		all = append(all, column{head: m.cut(m.cellText(name, 16), 16), sort: view.Sorts, rank: min(1+i, 6), w: max(6, min(12, width(m.cellText(name, 16)))), cell: paramCell(name)})
	}
	if p.figures != nil {
		all = append(all, p.figures(m)...)
	}
	all = append(all,
		column{head: "ENDED", sort: view.Sorts, rank: 2, w: 9, more: 8, cell: endedCell},
		column{head: "TIME", sort: view.SortTime, rank: 1, w: timeWidth, right: true, cell: durationCell},
		column{head: "CPU", sort: view.Sorts, rank: 4, w: timeWidth, right: true, cell: cpuCell},
		column{head: "MEM", sort: view.SortMemory, rank: 4, w: 5, right: true, cell: memoryCell},
		column{head: "HOST", sort: view.SortHost, rank: 5, w: max(4, s.host), cell: hostCell},
		column{head: "TRY", sort: view.SortTry, rank: 7, w: max(3, s.try), cell: tryCell},
	)
	name := column{head: "NAME", sort: view.SortName, rank: 3, w: 12, more: 60, cell: nameCell}
	if len(s.params) > 0 {
		name.rank = 8
	}
	return p.arrange(append(all, name), w)
}

// paramCell is the value of one parameter.
func paramCell(name string) func(*model, *view.Row, int) (string, *lipgloss.Style) {
	return func(m *model, r *view.Row, w int) (string, *lipgloss.Style) {
		for i := range r.Params {
			if r.Params[i].Name == name {
				return m.cellText(r.Params[i].Value, w), nil
			}
		}
		return "-", &styleFaint
	}
}

// endedCell says how a job ended.
func endedCell(m *model, r *view.Row, w int) (string, *lipgloss.Style) {
	if r.Cause != "" {
		style := phaseStyle(r.Phase)
		return m.cellText(r.Cause, w), &style
	}
	if r.Phase == view.Succeeded {
		return "exit 0", nil
	}
	return "-", &styleFaint
}

func durationCell(m *model, r *view.Row, w int) (string, *lipgloss.Style) { return elapsed(m, r) }
