package runview

import (
	"time"

	"dcs-tui/jobs"
	"dcs-tui/jobs/results"
)

// tableOf shows the newest table of an ask, the rows in its window as they are now. mu is
// held.
func (v *View) tableOf(ask *TableAsk) *Table {
	t := &v.tables
	if t.plain(ask) {
		return &Table{Plain: true}
	}
	w := t.want(ask)
	t.mu.Lock()
	m, broken := w.made, t.broken
	t.mu.Unlock()
	page := Page{Filter: ask.Filter, Sort: ask.Sort, Reverse: ask.Reverse, Cursor: -1}
	if m == nil {
		return &Table{Page: page, Wrong: broken}
	}
	out := m.table
	if broken != "" {
		out.Wrong = broken
	}
	page.Wrong, page.Matched = m.table.Page.Wrong, m.matched
	if m.edition != v.edition {
		page.Settled = time.Since(m.current)
	}
	out.Page = page
	if out.Groups != nil || out.Heat != nil {
		return &out
	}
	first, n, cursor := tableWindow(m.rows, &ask.JobsWindow)
	out.Page.First, out.Page.Cursor = first, cursor
	ids := make([]jobs.ID, n)
	out.Figures = make([][]string, n)
	for i := range n {
		ids[i] = m.rows.Job(first + i)
		for _, c := range m.cells {
			out.Figures[i] = append(out.Figures[i], cell(m.rows, first+i, c))
		}
	}
	for _, id := range ids {
		out.Page.Rows = append(out.Page.Rows, v.row(id))
	}
	return &out
}

// tableWindow is window of a table.
func tableWindow(s *results.Table, w *JobsWindow) (first, rows, cursor int) {
	cursor = -1
	for row := 0; w.Cursor > 0 && row < s.Len() && cursor < 0; row++ {
		if s.Job(row) == w.Cursor {
			cursor = row
		}
	}
	first, rows = placeWindow(s.Len(), cursor, w)
	return first, rows, cursor
}
