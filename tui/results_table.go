package tui

import (
	"slices"
	"strings"

	"dcs-tui/jobs"
	"dcs-tui/jobs/runview"
)

// ask wants the window of rows, and what a person has chosen of the table. Until it is
// known that there is one, the list of jobs is asked for, too.
func (p *resultsPane) ask(m *model, ask *runview.Ask) {
	w := p.window()
	if !p.tabular {
		ask.Jobs = w
	}
	t := &runview.TableAsk{JobsWindow: *w, Figures: p.figures, Best: p.best, By: p.by}
	switch {
	case p.heat.on:
		t.Heat, t.Pivot, t.By, t.Best, t.Reverse = true, p.pivot(), "", "", false
	case p.groups.on:
		t.Group, t.MinSize, t.By, t.Reverse = p.groups.by, p.groups.least, p.groups.sort, p.groups.reverse
	}
	ask.Table = t
}

// see takes the newest picture in. A table that is still being made leaves the one
// before on the screen.
func (p *resultsPane) see(m *model) {
	t := m.pic.Table
	if t == nil || t.Plain {
		p.tabular = p.tabular && t == nil
		if page := m.pic.Jobs; page != nil && !p.tabular && p.fits(page) {
			p.seen.look(m, page.Rows)
			p.watch(m, page)
		}
		return
	}
	p.tabular = true
	if !t.Ready {
		return
	}
	p.table, p.read = t, [2]int{t.Read, t.Jobs}
	if p.rows() && t.Groups == nil && t.Heat == nil && p.fits(&t.Page) {
		p.seen.look(m, t.Page.Rows)
		p.watch(m, &t.Page)
		p.cells = make(map[jobs.ID][]string, len(t.Figures))
		for i := range min(len(t.Figures), len(t.Page.Rows)) {
			p.cells[t.Page.Rows[i].ID] = t.Figures[i]
		}
		p.measure(m, t.Page.Rows)
	}
	if t.Groups != nil {
		p.groups.see(m, t)
	}
	if t.Heat != nil {
		p.heat.see(m, t.Heat)
	}
}

// named are the columns of a role.
func (p *resultsPane) named(role runview.TableRole) []string {
	if p.table == nil {
		return nil
	}
	var names []string
	for _, c := range p.table.Columns {
		if c.Role == role {
			names = append(names, c.Name)
		}
	}
	return names
}

// ascending is the arrow of an order that begins with the smallest, turned round by reverse.
func (m *model) ascending(reverse bool) string {
	if reverse {
		return m.g.down
	}
	return m.g.up
}

// orders are the columns that `s` goes through.
func (p *resultsPane) orders() []string {
	names := []string{""}
	if p.table == nil {
		return names
	}
	for _, c := range p.table.Columns {
		plain := strings.TrimPrefix(c.Name, "dcs.")
		if c.Role != runview.Fact || has([]string{"state", "time", "elapsed_seconds", "cpu_seconds", "max_rss_bytes", "host"}, plain) {
			names = append(names, c.Name)
		}
	}
	return names
}

// nextOf is the word after another one, the first after the last or an unknown one.
func nextOf(words []string, now string) string {
	return words[(slices.Index(words, now)+1)%len(words)]
}

// state says how the view is filtered and sorted, and how far the outputs are read.
func (p *resultsPane) state(m *model) string {
	if !p.tabular {
		return m.listed(&p.list)
	}
	var parts []string
	if p.filter != "" {
		parts = append(parts, m.cut("/"+m.clean(p.filter), 30))
	}
	by, reverse := p.by, p.reverse
	switch {
	case p.heat.on:
		parts = append(parts, "heat map")
		return strings.Join(parts, "  ")
	case p.groups.on:
		parts = append(parts, m.cut("by "+m.clean(strings.Join(p.groups.by, ",")), 30))
		by, reverse = p.groups.sort, p.groups.reverse
	case by == "":
		by = "job"
	}
	if by != "" {
		parts = append(parts, "sort:"+m.cut(m.clean(by), 20)+" "+m.ascending(reverse))
	}
	if p.rows() && p.list.page != nil && p.list.page.Settled >= oldOrder {
		parts = append(parts, span(p.list.page.Settled)+" ago")
	}
	return strings.Join(parts, "  ")
}

// under draws the view with what is to be said of it below.
func (p *resultsPane) under(m *model, w, h int, draw func(h int) []string) []string {
	said := p.said(m, w)
	said = said[:min(len(said), max(0, min(3, h/5)))]
	out := draw(h - len(said))
	for len(out) < h-len(said) {
		out = append(out, "")
	}
	return append(out, said...)
}

// said is what is to be said of the table: what is wrong with it, how much of it has
// been read, what is best, and what the figures lack.
func (p *resultsPane) said(m *model, w int) []string {
	t := p.table
	if t == nil {
		return nil
	}
	var out []string
	wrong := t.Wrong
	if !p.rows() && t.Page.Wrong != "" { // the list of rows says it itself
		wrong = t.Page.Wrong
	}
	if wrong != "" {
		for _, l := range m.wrap(m.g.phase[runview.Failed]+" "+m.clean(wrong), w-2) {
			out = append(out, " "+styleBad.Render(l))
		}
	}
	var parts []string
	if p.read[0] < p.read[1] {
		parts = append(parts, styleWarn.Render("read "+thousands(p.read[0])+" of "+thousands(p.read[1])))
	}
	if t.Value != "" && !p.heat.on && p.best != "" {
		which := ""
		if t.Best != 0 {
			which = " " + jobName(t.Best)
		}
		text := "best " + m.clean(p.best) + ":" + which + " " + m.cut(m.clean(t.Value), 30)
		if t.Ties > 0 {
			text += ", and " + thousands(t.Ties) + " more with the same"
		}
		parts = append(parts, styleGood.Render(text))
	}
	if len(parts) > 0 {
		out = append(out, " "+strings.Join(parts, "  "))
	}
	for _, note := range t.Notes {
		out = append(out, " "+styleFaint.Render(m.cut(m.g.warn+" "+m.clean(note), w-1)))
	}
	return out
}
