package tui

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"dcs-tui/jobs/results"
	"dcs-tui/observe/runview"
)

// columns returns the columns for w cells, without the marks.
func (p *resultsPane) columns(m *model, w int) []jobColumn {
	s := &p.needs
	all := []jobColumn{{heading: "ID", name: "job", sort: runview.SortID, w: s.idWidth(m), alignRight: true,
		cell: idCell}}
	if p.hasTable && p.best != "" {
		all = append(all, jobColumn{heading: "BEST", sort: runview.Sorts, w: 4, cell: p.bestCell})
	}
	name := jobColumn{heading: "NAME", name: "name", sort: runview.SortName, rank: 3, w: 12, maxExtra: 60,
		cell: nameCell}
	if len(s.params) > 0 {
		name.rank = optionalRank + 3
	}
	all = append(all, jobColumn{heading: "STATE", name: "state", sort: runview.SortState, w: stateWidth,
		cell: stateCell})
	all = applyChoices(&p.choices, append(append(append(all, p.paramColumns(m)...), p.metricColumns(m)...),
		jobColumn{heading: "CAUSE", name: "cause", sort: runview.Sorts, rank: 2, w: 9, maxExtra: 8, cell: endedCell},
		jobColumn{heading: "TIME", name: "time", sort: runview.SortTime, rank: 1, w: timeWidth, alignRight: true,
			cell: elapsedCell},
		jobColumn{heading: "CPU", name: "cpu_seconds", sort: runview.Sorts, rank: 4, w: timeWidth, alignRight: true,
			cell: cpuCell},
		jobColumn{heading: "MEM", name: "max_rss_bytes", sort: runview.SortMemory, rank: 4, w: 5, alignRight: true,
			cell: memoryCell},
		jobColumn{heading: "HOST", name: "host", sort: runview.SortHost, rank: optionalRank, w: max(4, s.host),
			cell: hostCell},
		jobColumn{heading: "TRY", name: "try", sort: runview.SortTry, rank: optionalRank + 2, w: max(3, s.try),
			cell: tryCell},
		name,
	))
	if !p.hasTable {
		return recordShown(&p.choices, p.fitSortedColumns(m, all, w))
	}
	fixed := 0 // columns that stay when the user moves sideways
	for fixed < len(all) && slices.Contains([]string{"ID", "BEST", "STATE"}, all[fixed].heading) {
		fixed++
	}
	p.markOrder(m, all)
	return recordShown(&p.choices, pageColumns(&p.columnPages, all, fixed, w))
}

// paramColumns returns the columns of the parameters. The first ones are kept longest; those with
// only one value are dropped first.
func (p *resultsPane) paramColumns(m *model) []jobColumn {
	var all []jobColumn
	some := 0 // number of parameters with several values
	for _, c := range p.tableColumns() {
		if c.Role != results.Param {
			continue
		}
		col := jobColumn{heading: m.cutCell(c.Name, paramWidth), name: c.Name, sort: runview.Sorts,
			rank: optionalRank, w: max(3, p.widths[c.Name]), cell: paramCell(c.Name)}
		if p.varied[c.Name] || len(p.varied) == 0 {
			some++
			col.rank = min(some, maxRank)
		}
		all = append(all, col)
	}
	return all
}

func paramCell(name string) func(*model, *runview.Row, int) (string, *textStyle) {
	return func(m *model, r *runview.Row, w int) (string, *textStyle) {
		for i := range r.Params {
			if r.Params[i].Name == name {
				return m.cellText(r.Params[i].Value, w), nil
			}
		}
		return "-", &styleFaint
	}
}

// endedCell describes how a job ended.
func endedCell(m *model, r *runview.Row, w int) (string, *textStyle) {
	if r.Cause != "" {
		return m.cellText(r.Cause, w), &phaseInfoOf(r.Phase).style
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

// widenColumns widens the columns of parameters and metrics for their contents, and records which
// parameters have several values. Both only grow.
func (p *resultsPane) widenColumns(m *model, rows []runview.Row) {
	wider := func(key string, most int, text string) {
		p.widths[key] = max(p.widths[key], m.maxTextWidth(most, text))
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
	for i, name := range p.columnsOfRole(results.Metric) {
		wider("="+name, wideMetric, name+" ")
		for _, cells := range p.metricCells {
			wider("="+name, wideMetric, textAt(cells, i))
		}
	}
}

// metricColumns returns the columns of the metrics. The first ones, and those that the user has
// added, are kept longest.
func (p *resultsPane) metricColumns(m *model) []jobColumn {
	var all []jobColumn
	for i, name := range p.columnsOfRole(results.Metric) {
		w := p.widths["="+name]
		col := jobColumn{heading: m.cutCell(name, metricWidth-1), name: name,
			sort: runview.Sorts, rank: min(i, maxRank), w: min(w, metricWidth), maxExtra: max(0, w-metricWidth),
			alignRight: true}
		if slices.ContainsFunc(p.metrics,
			func(f string) bool { own, _, _ := strings.Cut(f, "="); return strings.TrimSpace(own) == name }) {
			col.rank = min(col.rank, 1)
		}
		col.cell = func(m *model, r *runview.Row, w int) (string, *textStyle) {
			text := textAt(p.metricCells[r.ID], i)
			switch {
			case text == "":
				return "-", &styleFaint
			case r.ID == p.table.Best:
				return m.metricText(text, w), &styleGood
			}
			return m.metricText(text, w), nil
		}
		all = append(all, col)
	}
	return all
}

// metricText returns a value in w cells. A longer number is rounded, because cutting would
// remove its exponent.
func (m *model) metricText(text string, w int) string {
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

func (p *resultsPane) bestCell(m *model, r *runview.Row, w int) (string, *textStyle) {
	if p.table != nil && r.ID == p.table.Best {
		return "best", &styleGood
	}
	return "", nil
}

func (p *resultsPane) markOrder(m *model, all []jobColumn) {
	for i := range all {
		if c := &all[i]; c.name == cmp.Or(p.sortColumn, "job") {
			c.addArrow(m.orderArrow(p.reverse))
		}
	}
}
