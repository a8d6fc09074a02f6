package tui

import (
	"slices"
	"strconv"
	"strings"

	"dcs-tui/jobs/results"
	"dcs-tui/jobs/runview"
)

// columns are those of the table for w cells, marks aside.
func (p *resultsPane) columns(m *model, w int) []column {
	s := &p.seen
	all := []column{{head: "ID", sort: runview.SortID, w: s.idWidth(m), right: true, cell: idCell}}
	if p.tabular && p.best != "" {
		all = append(all, column{head: "BEST", sort: runview.Sorts, w: 4, cell: p.bestCell})
	}
	all = append(all, column{head: "STATE", sort: runview.SortState, w: stateWidth, cell: stateCell})
	fixed := 0 // columns that stay when others are moved to
	all = append(append(append(all, p.paramColumns(m)...), p.figureColumns(m)...),
		column{head: "CAUSE", sort: runview.Sorts, rank: 2, w: 9, more: 8, cell: endedCell},
		column{head: "TIME", sort: runview.SortTime, rank: 1, w: timeWidth, right: true, cell: elapsed},
		column{head: "CPU", sort: runview.Sorts, rank: 4, w: timeWidth, right: true, cell: cpuCell},
		column{head: "MEM", sort: runview.SortMemory, rank: 4, w: 5, right: true, cell: memoryCell},
		column{head: "HOST", sort: runview.SortHost, rank: 5, w: max(4, s.host), cell: hostCell},
		column{head: "TRY", sort: runview.SortTry, rank: 7, w: max(3, s.try), cell: tryCell},
	)
	name := column{head: "NAME", sort: runview.SortName, rank: 3, w: 12, more: 60, cell: nameCell}
	if len(s.params) > 0 {
		name.rank = 8
	}
	all = p.choices.columns(append(all, name))
	for fixed = 0; fixed < len(all) && slices.Contains([]string{"ID", "BEST", "STATE"}, all[fixed].head); {
		fixed++
	}
	if p.tabular {
		p.markOrder(m, all)
		return p.choices.fitted(p.aside.fit(all, fixed, w))
	}
	return p.choices.fitted(p.arrange(all, w))
}

// paramColumns are those of the parameters: the first are kept longest, those that have
// one value only go first.
func (p *resultsPane) paramColumns(m *model) []column {
	var all []column
	if !p.tabular {
		for i, name := range p.seen.params {
			all = append(all, column{head: m.cut(m.cellText(name, paramWidth), paramWidth), name: name, sort: runview.Sorts, rank: min(1+i, 6),
				w: max(6, min(12, width(m.cellText(name, paramWidth)))), cell: paramCell(name)})
		}
		return all
	}
	if p.table == nil { // it is being made
		return nil
	}
	some := 0 // parameters with several values
	for _, c := range p.table.Columns {
		if c.Role != results.Param {
			continue
		}
		col := column{head: m.cut(m.cellText(c.Name, paramWidth), paramWidth), name: c.Name, sort: runview.Sorts, rank: luxury, w: max(3, p.widths[c.Name]), cell: paramCell(c.Name)}
		if p.varied[c.Name] || len(p.varied) == 0 {
			some++
			col.rank = min(some, luxury-1)
		}
		all = append(all, col)
	}
	return all
}

// paramCell is the value of one parameter.
func paramCell(name string) func(*model, *runview.Row, int) (string, *ink) {
	return func(m *model, r *runview.Row, w int) (string, *ink) {
		for i := range r.Params {
			if r.Params[i].Name == name {
				return m.cellText(r.Params[i].Value, w), nil
			}
		}
		return "-", &styleFaint
	}
}

// endedCell says how a job ended.
func endedCell(m *model, r *runview.Row, w int) (string, *ink) {
	if r.Cause != "" {
		style := phaseStyle(r.Phase)
		return m.cellText(r.Cause, w), &style
	}
	if r.Phase == runview.Succeeded {
		return "exit 0", nil
	}
	return "-", &styleFaint
}

// The most that a column of figures takes, with room to spare, and one of a parameter.
const figureWidth, wideFigure, paramWidth = 14, 24, 16

// measure widens the columns of parameters and figures for what is in them, and notes
// which parameters have several values. Both only grow.
func (p *resultsPane) measure(m *model, rows []runview.Row) {
	wider := func(key string, most int, texts ...string) {
		for _, text := range texts {
			p.widths[key] = max(p.widths[key], min(most, width(m.cellText(text, most))))
		}
	}
	for _, c := range p.table.Columns {
		if c.Vary {
			p.varied[c.Name] = true
		}
		if c.Role == results.Param {
			wider(c.Name, paramWidth, c.Name+" ") // and an arrow
		}
	}
	for i := range rows {
		for _, param := range rows[i].Params {
			if _, shown := p.widths[param.Name]; shown {
				wider(param.Name, paramWidth, param.Value)
			}
		}
	}
	for i, name := range p.named(results.Metric) {
		wider("="+name, wideFigure, name+" ")
		for _, cells := range p.cells {
			wider("="+name, wideFigure, at(cells, i))
		}
	}
}

// figureColumns are those of what was found in the outputs: the first are kept longest,
// with those that a person has asked for here.
func (p *resultsPane) figureColumns(m *model) []column {
	var all []column
	if !p.tabular {
		return nil
	}
	for i, name := range p.named(results.Metric) {
		w := p.widths["="+name]
		col := column{head: m.cut(m.cellText(name, figureWidth-1), figureWidth-1), name: name, sort: runview.Sorts, rank: min(i, luxury-1), w: min(w, figureWidth), more: max(0, w-figureWidth), right: true}
		if slices.ContainsFunc(p.figures, func(f string) bool { own, _, _ := strings.Cut(f, "="); return strings.TrimSpace(own) == name }) {
			col.rank = min(col.rank, 1)
		}
		col.cell = func(m *model, r *runview.Row, w int) (string, *ink) {
			text := at(p.cells[r.ID], i)
			switch {
			case text == "":
				return "-", &styleFaint
			case r.ID == p.table.Best:
				return m.figure(text, w), &styleGood
			}
			return m.figure(text, w), nil
		}
		all = append(all, col)
	}
	return all
}

// figure is a figure in w cells. A number that is longer is rounded: cut, it would lose
// its exponent.
func (m *model) figure(text string, w int) string {
	text = m.cellText(text, max(w, wideFigure))
	if width(text) > w {
		if v, err := strconv.ParseFloat(text, 64); err == nil {
			for digits := w; digits > 0; digits-- {
				if short := strconv.FormatFloat(v, 'g', digits, 64); len(short) <= w {
					return short
				}
			}
		}
	}
	return m.cut(text, w)
}

// bestCell marks the best row.
func (p *resultsPane) bestCell(m *model, r *runview.Row, w int) (string, *ink) {
	if p.table != nil && r.ID == p.table.Best {
		return "best", &styleGood
	}
	return "", nil
}

// factColumns are the names of the sheet for the columns that the screen always has.
var factColumns = map[string]string{"ID": "job", "STATE": "state", "TIME": "time", "CPU": "cpu_seconds", "MEM": "max_rss_bytes", "HOST": "host",
	"TRY": "try", "NAME": "name", "CAUSE": "cause"}

// markOrder gives the column that orders the rows an arrow, and keeps it.
func (p *resultsPane) markOrder(m *model, all []column) {
	for i := range all {
		c := &all[i]
		c.sort = runview.Sorts
		name := c.name
		if name == "" {
			name = factColumns[c.head]
		}
		if by := p.by; name != "" && (by == name || by == "" && name == "job") {
			c.head = m.cut(c.head, max(1, c.w-1)) + m.ascending(p.reverse)
			c.rank = min(c.rank, 1)
		}
	}
}
