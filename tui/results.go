package tui

import (
	"cmp"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"dcs-tui/internal/text"
	"dcs-tui/jobs"
	"dcs-tui/jobs/results"
	"dcs-tui/observe/runview"
)

// resultsPane is the table of results: parameters, metrics, and how each finished job ended and
// what it used. It can also show groups of jobs and a heat map. For a run without parameters and
// metrics, it is a list of the finished jobs.
type resultsPane struct {
	jobList
	choices columnChoices
	needs   columnNeeds

	// The newest table that is ready; nil: none yet, or the run has none.
	table       *runview.Table
	metricCells map[jobs.ID][]string // metrics of the rows of the page
	widths      map[string]int       // by parameter name, or "=" and metric name; they only grow
	varied      map[string]bool      // parameters that have had several values
	columnPages columnPages
	hasTable    bool // the run has a table

	// Settings of the user, kept until the screen closes.
	metrics    []string // columns in addition to the declared ones
	best       string
	bestSet    bool   // best was set to the goal of a search
	sortColumn string // column that orders the rows; list.reverse reverses it
	groups     groupsView
	heat       heatView
}

// resultsFilter matches the finished jobs.
const resultsFilter = "state=done"

func newResultsPane() *resultsPane {
	return &resultsPane{jobList: jobList{baseFilter: resultsFilter}, widths: map[string]int{},
		varied: map[string]bool{}}
}

func (p *resultsPane) title(m *model) string {
	n := p.numMatched()
	if p.hasTable && p.table != nil {
		n = p.table.Page.Matched
	}
	return "Results " + text.Thousands(n) + "  " + p.filterAndOrder(m)
}

func (p *resultsPane) draw(m *model, w, h int, focused bool) []string {
	notes := firstLines(p.noteLines(m, w), min(3, h/5))
	h -= len(notes)
	var out []string
	switch {
	case p.heat.isShown:
		out = p.drawHeat(m, w, h, focused)
	case p.groups.isShown:
		out = p.drawGroups(m, w, h, focused)
	default:
		out = m.drawList(&p.jobList, p.columns(m, w-2), w, h, focused)
	}
	return append(append(out, make([]string, max(0, h-len(out)))...), notes...)
}

func (p *resultsPane) keys() []binding {
	switch {
	case p.heat.isShown:
		return p.heatKeys()
	case p.groups.isShown:
		return p.groupKeys()
	}
	return p.rowKeys()
}

func (p *resultsPane) columnChoices() *columnChoices { return &p.choices }

// showsRows reports whether the view shows rows of jobs, not groups or a heat map.
func (p *resultsPane) showsRows() bool { return !p.heat.isShown && !p.groups.isShown }

func (p *resultsPane) hasJobs() bool { return p.showsRows() }

// currentJob returns no job while groups or a heat map are shown, so that no command acts on an
// invisible job.
func (p *resultsPane) currentJob(m *model) (runview.Row, bool) {
	if !p.showsRows() {
		return runview.Row{}, false
	}
	return p.cursorJob()
}

// newestSlip reports slips only of rows, because keys for groups and cells change nothing.
func (p *resultsPane) newestSlip(m *model) (*slip, string) {
	if !p.showsRows() {
		return nil, ""
	}
	return p.jobList.newestSlip(m)
}

func (p *resultsPane) selectedJobs(m *model) jobs.Ranges {
	if !p.showsRows() {
		return nil
	}
	return m.jobs.sel.which
}

// clearSelectionOrFilter returns to the rows or, if they are shown, clears the selection or the
// filter.
func (p *resultsPane) clearSelectionOrFilter(m *model) bool {
	if !p.showsRows() {
		p.heat.isShown, p.groups.isShown = false, p.groups.isShown && p.heat.isShown
		return true
	}
	return p.jobList.clearSelectionOrFilter(&m.jobs.sel)
}

func (p *resultsPane) click(m *model, row int) {
	switch {
	case p.heat.isShown:
	case p.groups.isShown:
		if row > 0 {
			p.groups.move(p.table, p.groups.top+row-1-p.groups.cursorRow)
		}
	default:
		p.jobList.click(m, row)
	}
}

// noTableText explains why a run has no table of results.
const noTableText = "there are no parameters and no metrics in this run"

// rowKeys returns the keys of the list of jobs and, if there is a table, of the table.
func (p *resultsPane) rowKeys() []binding {
	nextSort := func() {
		if p.hasTable {
			p.sortColumn, p.reverse = nextWord(p.sortColumns(), p.sortColumn), false
		} else {
			p.nextSort()
		}
	}
	selectAll := func(m *model) tea.Cmd {
		if p.hasTable && p.table != nil && p.table.NamesMetrics {
			m.showError("the filter names what only this table has, which jobs cannot be selected by; " +
				m.keyFor("select") + " selects a job")
			return nil
		}
		return p.selectAll(m)
	}
	tabular := func(*model) bool { return p.hasTable }
	table := append([]binding{
		key("groups", "groups", "groups with their mean and spread; :group chooses by what", p.showGroups).
			onlyIf(tabular).
			orSay(noTableText),
		key("heat-map", "heat map", "a heat map of a metric over two parameters; :pivot chooses which", p.toggleHeat).
			onlyIf(tabular).orSay(noTableText),
	}, p.columnPages.keys(tabular)...)
	return slices.Concat(jobListKeys(), withGroup("Results", table...), p.listKeys(selectAll, screenAction(nextSort)))
}

// addToQuery requests the window of rows, and the table with the user's settings. Until it is known
// whether there is a table, it also requests the list of jobs.
func (p *resultsPane) addToQuery(m *model, ask *runview.Query) {
	w := p.requestWindow()
	if !p.hasTable {
		ask.Jobs = w
	}
	t := &runview.TableQuery{JobsWindow: *w, Metrics: p.metrics, Best: p.best, By: p.sortColumn}
	switch {
	case p.heat.isShown:
		t.Heat, t.Pivot, t.By, t.Best, t.Reverse = true, p.pivotColumns(), "", "", false
	case p.groups.isShown:
		t.Group, t.MinSize, t.By, t.Reverse = p.groups.by, p.groups.minSize, p.groups.sort, p.groups.reverse
	}
	ask.Table = t
}

// onSnapshot handles a new snapshot. While a table is being computed, the previous one stays on the
// screen.
func (p *resultsPane) onSnapshot(m *model) {
	t := m.snap.Table
	if t == nil || t.Plain {
		p.hasTable = p.hasTable && t == nil
		if page := m.snap.Jobs; page != nil && !p.hasTable && p.isCurrentPage(page) {
			p.needs.update(m, page.Rows)
			p.setPageAndNoteSlip(m, page)
		}
		return
	}
	p.hasTable = true
	if !p.bestSet {
		p.best, p.bestSet = m.snap.Run.Best, true
	}
	if !t.Ready {
		return
	}
	p.table = t
	if p.showsRows() && t.Groups == nil && t.Heat == nil && p.isCurrentPage(&t.Page) {
		p.needs.update(m, t.Page.Rows)
		p.setPageAndNoteSlip(m, &t.Page)
		p.metricCells = make(map[jobs.ID][]string, len(t.Values))
		for i := range min(len(t.Values), len(t.Page.Rows)) {
			p.metricCells[t.Page.Rows[i].ID] = t.Values[i]
		}
		p.widenColumns(m, t.Page.Rows)
	}
	if t.Groups != nil {
		p.groups.update(m, t)
	}
	if t.Heat != nil {
		p.heat.update(m, t.Heat)
	}
}

// tableColumns returns the columns of the newest table, which can be sorted and grouped by.
func (p *resultsPane) tableColumns() []runview.TableColumn {
	if p.table == nil {
		return nil
	}
	return p.table.Columns
}

func (p *resultsPane) columnsOfRole(role results.Role) (names []string) {
	for _, c := range p.tableColumns() {
		if c.Role == role {
			names = append(names, c.Name)
		}
	}
	return names
}

// sortColumns returns the columns that `s` cycles through.
func (p *resultsPane) sortColumns() []string {
	names := []string{""}
	for _, c := range p.tableColumns() {
		plain := strings.TrimPrefix(c.Name, "dcs.")
		if c.Role != results.Fact || slices.Contains([]string{"state", "time", "elapsed_seconds", "cpu_seconds",
			"max_rss_bytes", "host"}, plain) {
			names = append(names, c.Name)
		}
	}
	return names
}

// nextWord returns the word after now, or the first word if now is the last or unknown.
func nextWord(words []string, now string) string {
	return words[(slices.Index(words, now)+1)%len(words)]
}

func (p *resultsPane) filterAndOrder(m *model) string {
	sorted := func(by string, reverse bool) string {
		return text.If(by != "", "sort:"+m.cutCell(by, 20)+" "+m.orderArrow(reverse))
	}
	switch g := &p.groups; {
	case !p.hasTable:
		return p.jobList.filterAndOrder(m)
	case p.heat.isShown:
		return m.describeList(p.filter, "heat map", nil)
	case g.isShown:
		return m.describeList(p.filter, text.Join("  ", m.cut("by "+m.clean(strings.Join(g.by, ",")), 30),
			sorted(g.sort, g.reverse)), nil)
	}
	return m.describeList(p.filter, sorted(cmp.Or(p.sortColumn, "job"), p.reverse), p.page)
}

// noteLines returns the error of the table, how much of it has been read, the best result, and the
// metrics that were not found.
func (p *resultsPane) noteLines(m *model, w int) []string {
	t := p.table
	if t == nil || p.showsRows() && !p.hasTable {
		return nil
	}
	var out []string
	wrong := t.Wrong
	if !p.showsRows() && t.Page.Wrong != "" { // the list of rows shows it itself
		wrong = t.Page.Wrong
	}
	if wrong != "" {
		out = m.errorLines(wrong, w)
	}
	var parts []string
	if t.Read < t.Jobs {
		parts = append(parts, styleWarn.Render("read "+text.Thousands(t.Read)+" of "+text.Thousands(t.Jobs)))
	}
	if t.Value != "" && !p.heat.isShown && p.best != "" {
		which := text.If(t.Best != 0, " "+jobName(t.Best))
		msg := "best " + m.clean(p.best) + ":" + which + " " + m.cutCell(t.Value, 30)
		msg += text.If(t.Ties > 0, ", and "+text.Thousands(t.Ties)+" more with the same")
		msg += text.If(t.BestOf != "", ", of "+t.BestOf)
		if len(t.Course) > 1 {
			msg += "  " + m.sparkline(t.Course, 1, len(t.Course))
		}
		parts = append(parts, styleGood.Render(msg))
	}
	if len(parts) > 0 {
		out = append(out, " "+strings.Join(parts, "  "))
	}
	for _, note := range t.Notes {
		out = append(out, " "+styleFaint.Render(m.cut(m.glyphs.warn+" "+m.clean(note), w-1)))
	}
	return out
}
