package runview

import (
	"context"
	"time"

	"dcs-tui/jobs"
	"dcs-tui/jobs/results/sheet"
)

// table shows the newest table of an ask, the rows in its window as they are now. It
// has the turn.
func (b *Board) table(ctx context.Context, ask *TableAsk) (*Table, error) {
	t := &b.tables
	if t.plain(ask) {
		return &Table{Plain: true}, nil
	}
	w := t.want(ask)
	t.mu.Lock()
	m, broken := w.made, t.broken
	t.mu.Unlock()
	page := Page{Filter: ask.Filter, Sort: ask.Sort, Reverse: ask.Reverse, Cursor: -1}
	if m == nil {
		return &Table{Page: page, Wrong: broken}, nil
	}
	out := m.table
	if broken != "" {
		out.Wrong = broken
	}
	page.Wrong, page.Matched = m.table.Page.Wrong, m.matched
	if m.edition != b.edition {
		page.Settled = time.Since(m.current)
	}
	out.Page = page
	if out.Groups != nil || out.Heat != nil {
		return &out, nil
	}
	first, n, cursor := tableWindow(m.sheet, &ask.JobsWindow)
	out.Page.First, out.Page.Cursor = first, cursor
	ids := make([]jobs.ID, n)
	out.Figures = make([][]string, n)
	for i := range n {
		ids[i] = m.sheet.Job(first + i)
		for _, c := range m.cells {
			out.Figures[i] = append(out.Figures[i], cell(m.sheet, first+i, c))
		}
	}
	answer := make(chan []Row, 1)
	if err := b.from.visit(ctx, func(k *desk) {
		rows := make([]Row, len(ids))
		for i, id := range ids {
			rows[i] = k.row(id)
		}
		answer <- rows
	}); err != nil {
		return nil, err
	}
	out.Page.Rows = <-answer
	return &out, nil
}

// tableWindow is window of a sheet.
func tableWindow(s *sheet.Sheet, w *JobsWindow) (first, rows, cursor int) {
	cursor = -1
	for row := 0; w.Cursor > 0 && row < s.Len() && cursor < 0; row++ {
		if s.Job(row) == w.Cursor {
			cursor = row
		}
	}
	first, rows = placeWindow(s.Len(), cursor, w)
	return first, rows, cursor
}
