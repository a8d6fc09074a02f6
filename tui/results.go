package tui

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"

	"dcs-tui/jobs"
	"dcs-tui/jobs/results"
	"dcs-tui/jobs/runview"
)

// resultsPane is the table of results: parameters, metrics, and how each finished job ended and
// what it used. It can also show groups of jobs and a heat map. For a run without parameters and
// metrics, it is a list of the finished jobs.
type resultsPane struct {
	list
	choices choices
	seen    seen
	sel     *selection // the selection of the list of jobs

	// The newest table that is ready; nil: none yet, or the run has none.
	table *runview.Table
	// Number of jobs whose metrics are known, and of all jobs, in the newest table.
	read    [2]int
	cells   map[jobs.ID][]string // metrics of the rows of the page
	widths  map[string]int       // by parameter name, or "=" and metric name; they only grow
	varied  map[string]bool      // parameters that have had several values
	aside   sideways
	tabular bool // the run has a table

	// Settings of the user, kept until the screen closes.
	metrics []string // columns in addition to the declared ones
	best    string
	bestSet bool   // best was set to the goal of a search
	by      string // column that orders the rows; list.reverse reverses it
	groups  groupsView
	heat    heatView
}

// resultsFilter matches the finished jobs.
const resultsFilter = "state=done"

func newResultsPane() *resultsPane {
	return &resultsPane{list: list{base: resultsFilter}, widths: map[string]int{}, varied: map[string]bool{}}
}

func (p *resultsPane) title(m *model) string {
	n := p.matched()
	if p.tabular && p.table != nil {
		n = p.table.Page.Matched
	}
	return "Results " + jobs.Thousands(n) + "  " + p.state(m)
}

func (p *resultsPane) draw(m *model, w, h int, focused bool) []string {
	p.sel = &m.jobs.sel
	notes := limit(p.notes(m, w), min(3, h/5))
	h -= len(notes)
	var out []string
	switch {
	case p.heat.on:
		out = p.drawHeat(m, w, h, focused)
	case p.groups.on:
		out = p.drawGroups(m, w, h, focused)
	default:
		out = m.drawList(&p.list, p.columns(m, w-2), w, h, focused)
	}
	return append(append(out, make([]string, max(0, h-len(out)))...), notes...)
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

func (p *resultsPane) choose() *choices { return &p.choices }

// showsRows reports whether the view shows rows of jobs, not groups or a heat map.
func (p *resultsPane) showsRows() bool { return !p.heat.on && !p.groups.on }

func (p *resultsPane) hasJobs() bool { return p.showsRows() }

// current returns no job while groups or a heat map are shown, so that no command acts on an
// invisible job.
func (p *resultsPane) current(m *model) (runview.Row, bool) {
	if !p.showsRows() {
		return runview.Row{}, false
	}
	return p.job()
}

// slipped reports slips only of rows, because keys for groups and cells change nothing.
func (p *resultsPane) slipped(m *model) (*slip, string) {
	if !p.showsRows() {
		return nil, ""
	}
	return p.list.slipped(m)
}

func (p *resultsPane) picked() jobs.Ranges {
	if p.sel == nil || !p.showsRows() {
		return nil
	}
	return p.sel.which
}

// clear returns to the rows or, if they are shown, clears the selection or the filter.
func (p *resultsPane) clear() bool {
	if !p.showsRows() {
		p.heat.on, p.groups.on = false, p.groups.on && p.heat.on
		return true
	}
	return p.sel != nil && p.empty(p.sel)
}

func (p *resultsPane) click(m *model, row int) {
	switch {
	case p.heat.on:
	case p.groups.on:
		if row > 0 {
			p.groups.move(p.table, p.groups.top+row-1-p.groups.at)
		}
	default:
		p.list.click(m, row)
	}
}

// rowKeys returns the keys of the list of jobs and, if there is a table, of the table.
func (p *resultsPane) rowKeys() []binding {
	nextSort := func() {
		if p.tabular {
			p.by, p.reverse = nextOf(p.orders(), p.by), false
		} else {
			p.nextSort()
		}
	}
	selectAll := func(m *model) tea.Cmd {
		if p.tabular && p.table != nil && p.table.NamesMetrics {
			m.complain("the filter names what only this table has, which jobs cannot be selected by; space selects a job")
			return nil
		}
		return p.selectAll(m)
	}
	tabular := func(*model) bool { return p.tabular }
	table := append([]binding{
		key("m", "means", "groups with their mean and spread; :group says by what", p.showGroups).when(tabular),
		key("h", "heat map", "a heat map of a metric over two parameters; :pivot says which", p.toggleHeat).when(tabular),
	}, p.aside.keys(tabular)...)
	return slices.Concat(jobListKeys(), grouped("Results", table...), p.listKeys(selectAll, quietly(nextSort)))
}

// ask requests the window of rows, and the table with the user's settings. Until it is known
// whether there is a table, it also requests the list of jobs.
func (p *resultsPane) ask(m *model, ask *runview.Query) {
	w := p.request()
	if !p.tabular {
		ask.Jobs = w
	}
	t := &runview.TableQuery{JobsWindow: *w, Metrics: p.metrics, Best: p.best, By: p.by}
	switch {
	case p.heat.on:
		t.Heat, t.Pivot, t.By, t.Best, t.Reverse = true, p.pivot(), "", "", false
	case p.groups.on:
		t.Group, t.MinSize, t.By, t.Reverse = p.groups.by, p.groups.least, p.groups.sort, p.groups.reverse
	}
	ask.Table = t
}

// see handles a new snapshot. While a table is being computed, the previous one stays on the
// screen.
func (p *resultsPane) see(m *model) {
	t := m.snap.Table
	if t == nil || t.Plain {
		p.tabular = p.tabular && t == nil
		if page := m.snap.Jobs; page != nil && !p.tabular && p.fits(page) {
			p.seen.look(m, page.Rows)
			p.watch(m, page)
		}
		return
	}
	p.tabular = true
	if !p.bestSet {
		p.best, p.bestSet = m.snap.Run.Best, true
	}
	if !t.Ready {
		return
	}
	p.table, p.read = t, [2]int{t.Read, t.Jobs}
	if p.showsRows() && t.Groups == nil && t.Heat == nil && p.fits(&t.Page) {
		p.seen.look(m, t.Page.Rows)
		p.watch(m, &t.Page)
		p.cells = make(map[jobs.ID][]string, len(t.Values))
		for i := range min(len(t.Values), len(t.Page.Rows)) {
			p.cells[t.Page.Rows[i].ID] = t.Values[i]
		}
		p.measure(m, t.Page.Rows)
	}
	if t.Groups != nil {
		p.groups.take(m, t)
	}
	if t.Heat != nil {
		p.heat.take(m, t.Heat)
	}
}

// columnsNow returns the columns of the newest table, which can be sorted and grouped by.
func (p *resultsPane) columnsNow() []runview.TableColumn {
	if p.table == nil {
		return nil
	}
	return p.table.Columns
}

// named returns the columns of a role.
func (p *resultsPane) named(role results.Role) (names []string) {
	for _, c := range p.columnsNow() {
		if c.Role == role {
			names = append(names, c.Name)
		}
	}
	return names
}

// ascending returns the arrow of an order that begins with the smallest value unless it is
// reversed.
func (m *model) ascending(reverse bool) string {
	if reverse {
		return m.g.down
	}
	return m.g.up
}

// orders returns the columns that `s` cycles through.
func (p *resultsPane) orders() []string {
	names := []string{""}
	for _, c := range p.columnsNow() {
		plain := strings.TrimPrefix(c.Name, "dcs.")
		if c.Role != results.Fact || slices.Contains([]string{"state", "time", "elapsed_seconds", "cpu_seconds", "max_rss_bytes", "host"}, plain) {
			names = append(names, c.Name)
		}
	}
	return names
}

// nextOf returns the word after now, or the first word if now is the last or unknown.
func nextOf(words []string, now string) string {
	return words[(slices.Index(words, now)+1)%len(words)]
}

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
	if p.showsRows() && p.list.page != nil && p.list.page.Settled >= oldOrder {
		parts = append(parts, span(p.list.page.Settled)+" ago")
	}
	return strings.Join(parts, "  ")
}

// notes returns the error of the table, how much of it has been read, the best result, and the
// metrics that were not found.
func (p *resultsPane) notes(m *model, w int) []string {
	t := p.table
	if t == nil || p.showsRows() && !p.tabular {
		return nil
	}
	var out []string
	wrong := t.Wrong
	if !p.showsRows() && t.Page.Wrong != "" { // the list of rows shows it itself
		wrong = t.Page.Wrong
	}
	if wrong != "" {
		out = m.wrong(wrong, w)
	}
	var parts []string
	if p.read[0] < p.read[1] {
		parts = append(parts, styleWarn.Render("read "+jobs.Thousands(p.read[0])+" of "+jobs.Thousands(p.read[1])))
	}
	if t.Value != "" && !p.heat.on && p.best != "" {
		which := ""
		if t.Best != 0 {
			which = " " + jobName(t.Best)
		}
		text := "best " + m.clean(p.best) + ":" + which + " " + m.cut(m.clean(t.Value), 30)
		if t.Ties > 0 {
			text += ", and " + jobs.Thousands(t.Ties) + " more with the same"
		}
		if len(t.Course) > 1 {
			text += "  " + m.spark(t.Course, 1, len(t.Course))
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
