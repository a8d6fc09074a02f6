package tui

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"dcs-tui/jobs/results"
	"dcs-tui/jobs/runview"
)

// columns returns the columns for w cells, without the marks.
func (p *resultsPane) columns(m *model, w int) []jobColumn {
	s := &p.seen
	all := []jobColumn{{head: "ID", name: "job", sort: runview.SortID, w: s.idWidth(m), right: true, cell: idCell}}
	if p.tabular && p.best != "" {
		all = append(all, jobColumn{head: "BEST", sort: runview.Sorts, w: 4, cell: p.bestCell})
	}
	name := jobColumn{head: "NAME", name: "name", sort: runview.SortName, rank: 3, w: 12, more: 60, cell: nameCell}
	if len(s.params) > 0 {
		name.rank = luxury + 3
	}
	all = append(all, jobColumn{head: "STATE", name: "state", sort: runview.SortState, w: stateWidth, cell: stateCell})
	all = chosen(&p.choices, append(append(append(all, p.paramColumns(m)...), p.metricColumns(m)...),
		jobColumn{head: "CAUSE", name: "cause", sort: runview.Sorts, rank: 2, w: 9, more: 8, cell: endedCell},
		jobColumn{head: "TIME", name: "time", sort: runview.SortTime, rank: 1, w: timeWidth, right: true, cell: elapsed},
		jobColumn{head: "CPU", name: "cpu_seconds", sort: runview.Sorts, rank: 4, w: timeWidth, right: true, cell: cpuCell},
		jobColumn{head: "MEM", name: "max_rss_bytes", sort: runview.SortMemory, rank: 4, w: 5, right: true, cell: memoryCell},
		jobColumn{head: "HOST", name: "host", sort: runview.SortHost, rank: luxury, w: max(4, s.host), cell: hostCell},
		jobColumn{head: "TRY", name: "try", sort: runview.SortTry, rank: luxury + 2, w: max(3, s.try), cell: tryCell},
		name,
	))
	if !p.tabular {
		return fitted(&p.choices, p.arrange(m, all, w))
	}
	fixed := 0 // columns that stay when the user moves sideways
	for fixed < len(all) && slices.Contains([]string{"ID", "BEST", "STATE"}, all[fixed].head) {
		fixed++
	}
	p.markOrder(m, all)
	return fitted(&p.choices, columnsOf(&p.aside, all, fixed, w))
}

// paramColumns returns the columns of the parameters. The first ones are kept longest; those with
// only one value are dropped first.
func (p *resultsPane) paramColumns(m *model) []jobColumn {
	var all []jobColumn
	if !p.tabular {
		for i, name := range p.seen.params {
			rank := 1 + i
			if rank > maxRank {
				rank = luxury + min(i-maxRank, 1)
			}
			all = append(all, jobColumn{head: m.cut(m.cellText(name, paramWidth), paramWidth), name: name, sort: runview.Sorts, rank: rank,
				w: max(6, min(12, width(m.cellText(name, paramWidth)))), cell: paramCell(name)})
		}
		return all
	}
	some := 0 // number of parameters with several values
	for _, c := range p.columnsNow() {
		if c.Role != results.Param {
			continue
		}
		col := jobColumn{head: m.cut(m.cellText(c.Name, paramWidth), paramWidth), name: c.Name, sort: runview.Sorts, rank: luxury, w: max(3, p.widths[c.Name]), cell: paramCell(c.Name)}
		if p.varied[c.Name] || len(p.varied) == 0 {
			some++
			col.rank = min(some, maxRank)
		}
		all = append(all, col)
	}
	return all
}

// paramCell returns the cell of one parameter.
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

// endedCell describes how a job ended.
func endedCell(m *model, r *runview.Row, w int) (string, *ink) {
	if r.Cause != "" {
		return m.cellText(r.Cause, w), &phaseOf(r.Phase).style
	}
	if r.Phase == runview.Succeeded {
		return "exit 0", nil
	}
	return "-", &styleFaint
}

// The maximum widths, in cells, of a metric's column, of one if there is space, and of a
// parameter's column.
const metricWidth, wideMetric, paramWidth = 14, 24, 16

// maxRank is the highest rank of a column that is not optional.
const maxRank = 4

// measure widens the columns of parameters and metrics for their contents, and records which
// parameters have several values. Both only grow.
func (p *resultsPane) measure(m *model, rows []runview.Row) {
	wider := func(key string, most int, text string) { p.widths[key] = max(p.widths[key], m.widest(most, text)) }
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
		wider("="+name, wideMetric, name+" ")
		for _, cells := range p.cells {
			wider("="+name, wideMetric, at(cells, i))
		}
	}
}

// metricColumns returns the columns of the metrics. The first ones, and those that the user has
// added, are kept longest.
func (p *resultsPane) metricColumns(m *model) []jobColumn {
	var all []jobColumn
	if !p.tabular {
		return nil
	}
	for i, name := range p.named(results.Metric) {
		w := p.widths["="+name]
		col := jobColumn{head: m.cut(m.cellText(name, metricWidth-1), metricWidth-1), name: name, sort: runview.Sorts, rank: min(i, maxRank), w: min(w, metricWidth), more: max(0, w-metricWidth), right: true}
		if slices.ContainsFunc(p.metrics, func(f string) bool { own, _, _ := strings.Cut(f, "="); return strings.TrimSpace(own) == name }) {
			col.rank = min(col.rank, 1)
		}
		col.cell = func(m *model, r *runview.Row, w int) (string, *ink) {
			text := at(p.cells[r.ID], i)
			switch {
			case text == "":
				return "-", &styleFaint
			case r.ID == p.table.Best:
				return m.metric(text, w), &styleGood
			}
			return m.metric(text, w), nil
		}
		all = append(all, col)
	}
	return all
}

// metric returns a value in w cells. A longer number is rounded, because cutting would
// remove its exponent.
func (m *model) metric(text string, w int) string {
	text = m.cellText(text, max(w, wideMetric))
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

// markOrder marks the column that orders the rows.
func (p *resultsPane) markOrder(m *model, all []jobColumn) {
	for i := range all {
		if c := &all[i]; c.name == cmp.Or(p.by, "job") {
			c.orders(m.ascending(p.reverse))
		}
	}
}
