package tui

import (
	"dcs-tui/jobs/runview"
)

// drawList draws the heading and the rows of a list: only those on the screen.
func (m *model) drawList(l *list, cols []column, w, h int, focused bool) []string {
	l.resize(max(0, h-1))
	count := ""
	if n := m.jobs.sel.n; n > 0 {
		count = "  " + stylePick.Render(thousands(n)+" selected")
	}
	head := m.heading(cols, l.sort, l.reverse, w-width(count)) + count
	out := append(make([]string, 0, h), head)
	if l.page == nil {
		return append(out, styleFaint.Render("  waiting for the dispatcher"))
	}
	wrong := ""
	if line, typing := m.modal.(*input); l.fits(l.page) {
		wrong = l.page.Wrong
	} else if !typing || line.filters != l {
		wrong = l.wrongNow()
	}
	if wrong != "" {
		return append(out, "  "+styleBad.Render(m.g.phase[runview.Failed]+" "+m.clean(wrong)), "  esc clears the filter")
	}
	if l.page.Matched == 0 {
		return append(out, styleFaint.Render("  "+m.empty(l)))
	}
	m.alike = l.alike()
	for i := range min(l.h, l.page.Matched-l.top) {
		pos := l.top + i
		r, ok := l.row(pos)
		if !ok {
			out = append(out, mark(pos == l.at, m.g.cursor)+styleFaint.Render(" "+m.g.cut))
			continue
		}
		out = append(out, m.rowLine(cols, r, pos == l.at, m.jobs.sel.has(r.ID), focused, w))
	}
	return out
}

// alike is how the names of the rows on the screen begin, all of them.
func (l *list) alike() string {
	common, n := "", 0
	for i := range l.h {
		r, ok := l.row(l.top + i)
		if !ok {
			continue
		}
		title := r.Title[:min(len(r.Title), maxShown)]
		if n++; n == 1 {
			common = title
		}
		k := 0
		for k < len(common) && k < len(title) && common[k] == title[k] {
			k++
		}
		common = common[:k]
	}
	if n < 2 {
		return ""
	}
	return common
}

// empty says why a list has no rows.
func (m *model) empty(l *list) string {
	switch {
	case l.filter != "":
		return "no job matches " + m.clean(l.filter) + "; esc clears the filter"
	case l.base != "":
		return "nothing has finished yet"
	case m.pic != nil && m.pic.More:
		return "no jobs yet, more may come"
	}
	return "no jobs"
}
