package tui

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	tea "charm.land/bubbletea/v2"

	"dcs-tui/internal/text"
	"dcs-tui/jobs/query"
	"dcs-tui/jobs/results"
	"dcs-tui/observe/runview"
)

// groupsView shows groups of jobs, one row each, with statistics of their metrics. The keys of the
// rows are the values that the jobs of a group have in common.
type groupsView struct {
	table[string]
	isShown bool
	by      []string // columns
	minSize int      // groups with fewer solved jobs are hidden
	sort    string
	reverse bool

	widths      []int // of the columns of the newest table
	columnPages columnPages
	pinned      bool // the cursor stays on its group, because the user has moved it there
}

// defaultGroup returns the initial columns to group by: the parameters that vary, except one that
// only distinguishes repetitions. If there is no such parameter, it leaves out the last one.
func (p *resultsPane) defaultGroup() []string {
	var by []string
	repeats := -1
	for _, c := range p.tableColumns() {
		if c.Vary {
			if runview.IsRepetition(c.Name) {
				repeats = len(by)
			}
			by = append(by, c.Name)
		}
	}
	if repeats < 0 {
		repeats = len(by) - 1
	}
	if len(by) > 1 {
		by = slices.Delete(by, repeats, repeats+1)
	}
	return by
}

// commonValues returns the common values of each group as one text.
func (g *groupsView) commonValues(t *runview.Table) []string {
	if t == nil || t.Groups == nil {
		return nil
	}
	return text.Each(t.Groups.Rows, func(row []string) string {
		return strings.Join(row[:min(len(g.by), len(row))], "\x00")
	})
}

// update measures the columns once for all frames, and keeps the cursor on its group.
func (g *groupsView) update(m *model, t *runview.Table) {
	g.widths = make([]int, len(t.Groups.Columns))
	for i := range g.widths {
		g.widths[i] = m.maxTextWidth(16,
			text.Each(t.Groups.Rows, func(row []string) string { return textAt(row, i) })...)
	}
	keys := g.commonValues(t)
	if g.pinned && g.moveToKey(keys) {
		return
	}
	g.moveTo(keys, g.cursorRow)
	g.pinned = g.cursorRow > 0
}

func (g *groupsView) move(t *runview.Table, by int) {
	g.moveTo(g.commonValues(t), g.cursorRow+by)
	g.pinned = true
}

// statRanks are the ranks of the statistics. Those of a high rank are dropped first.
var statRanks = []struct {
	suffix string
	rank   int
}{{"_count", 4}, {"_min", 3}, {"_max", 3}, {"_median", 4}, {"_sd", 2}, {"_mean", 1}}

func (p *resultsPane) drawGroups(m *model, w, h int, focused bool) []string {
	g, t := &p.groups, p.table
	g.h = max(0, h-1)
	if t == nil || t.Groups == nil {
		if t != nil && t.Wrong+t.Page.Wrong != "" {
			return []string{styleFaint.Render("  no groups")}
		}
		return []string{styleFaint.Render("  computing " + m.glyphs.ellipsis)}
	}
	if len(t.Groups.Rows) == 0 {
		return []string{styleFaint.Render("  no group")}
	}
	g.clampCursor(len(t.Groups.Rows))
	cols := p.groupColumns(m, w-2)
	out := append([]string{heading(m, cols, 2, w)}, g.drawRows(len(t.Groups.Rows), func(i int) string {
		return rowLine(m, cols, i, i == g.cursorRow, false, focused, w)
	})...)
	if t.Groups.More > 0 && len(out) <= g.h {
		out = append(out, styleFaint.Render("  and "+text.Plural(t.Groups.More, "group")+
			" more: a filter, or min N, leaves fewer"))
	}
	return out
}

// groupColumns returns the columns for w cells. Their rows are positions of groups.
func (p *resultsPane) groupColumns(m *model, w int) []column[int] {
	g, t := &p.groups, p.table.Groups
	var all []column[int]
	stay, used := 0, 0 // number and width of the columns that stay when the user moves sideways
	if t.Best >= 0 {
		all = append(all, column[int]{heading: "BEST", w: 4, cell: func(_ *model, row, _ int) (string, *textStyle) {
			if row == t.Best {
				return "best", &styleGood
			}
			return "", nil
		}})
	}
	for i, c := range t.Columns {
		head := m.cutCell(c.Name, 20)
		col := column[int]{heading: head, alignRight: i >= len(g.by), w: width(head),
			cell: func(m *model, row, w int) (string, *textStyle) {
				var style *textStyle
				if row == t.Best {
					style = &styleGood
				}
				if text := t.Rows[row][i]; text != "" {
					return m.metricText(text, w), style
				}
				return "-", &styleFaint
			}}
		if i < len(g.widths) {
			col.w = max(col.w, g.widths[i])
		}
		if i >= len(g.by) {
			col.rank = 1
			for _, s := range statRanks {
				if strings.HasSuffix(c.Name, s.suffix) {
					col.rank = s.rank
				}
				if t.Partial && strings.HasSuffix(c.Name, "_count") { // it shows in which groups jobs are missing
					col.rank = 2
				}
			}
			if c.Name == "jobs" {
				col.rank = 4
				if t.Partial {
					col.rank = 2
				}
			}
			if i >= len(g.by)+2 { // the first metric is kept longest
				col.rank += (i - len(g.by) - 2) / 6
			}
			col.rank = min(col.rank, maxRank) // groups have no names that need space
		}
		if i < len(g.by) && used+col.w <= w/2 {
			used += col.w + 1
			stay = len(all) + 1
		} else {
			col.rank = max(col.rank, 1)
		}
		if g.sort == c.Name {
			col.addArrow(m.orderArrow(g.reverse))
		}
		all = append(all, col)
	}
	return pageColumns(&g.columnPages, all, stay, w)
}

func (p *resultsPane) groupKeys() []binding {
	g := &p.groups
	return append(withGroup("Groups", slices.Concat([]binding{
		key("open", "its jobs", "the jobs of the group", p.showGroupJobs),
		key("groups", "jobs", "back to the jobs", screenAction(func() { g.isShown = false })),
		key("heat-map", "heat map", "a heat map: colors and shades for the metric over two parameters", p.toggleHeat),
	}, g.columnPages.keys(func(*model) bool { return true }), []binding{
		key("sort", "", "sort by the next column",
			screenAction(func() { g.sort, g.reverse = nextWord(p.groupSortColumns(), g.sort), false })),
		key("reverse", "", "in reverse order", screenAction(func() { g.reverse = !g.reverse })),
		key("find", "filter", "filter the jobs while you type",
			func(m *model) tea.Cmd { return m.openFilter(&p.jobList) }),
	})...), moveKeys(func() int { return g.h }, func(_ *model, by int) { g.move(p.table, by) })...)
}

func (p *resultsPane) groupSortColumns() []string {
	names := []string{""}
	if p.table != nil && p.table.Groups != nil {
		names = append(names, columnNames(p.table.Groups.Columns)...)
	}
	return names
}

func (p *resultsPane) showGroups(m *model) tea.Cmd {
	if len(p.groups.by) == 0 {
		p.groups.by = p.defaultGroup()
	}
	if len(p.groups.by) == 0 {
		m.showError("no parameter has several values: :group COLUMN chooses what to group by")
		return nil
	}
	p.groups.isShown, p.heat.isShown = true, false
	return nil
}

// showGroupJobs shows the jobs of the group under the cursor.
func (p *resultsPane) showGroupJobs(m *model) tea.Cmd {
	g, t := &p.groups, p.table
	if t == nil || t.Groups == nil || g.cursorRow >= len(t.Groups.Rows) {
		return nil
	}
	return p.showJobsWith(m, g.by, t.Groups.Rows[g.cursorRow][:min(len(g.by), len(t.Groups.Rows[g.cursorRow]))])
}

// quoteExact quotes a value so that a filter matches no other: 0.1 would also match 0.10, which is
// another group.
func quoteExact(value string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(value) + `"`
}

// filterableFacts are the facts that a filter can compare with the values in the table.
var filterableFacts = []string{"state", "host", "queue", "name", "signal", "cause", "exit"}

// showJobsWith shows the jobs that have these values, if a filter can express that.
func (p *resultsPane) showJobsWith(m *model, names, values []string) tea.Cmd {
	var words []string
	if q, err := query.ParseSearch(p.filter); err == nil && q != nil {
		conditions := q.Conditions()
		for _, c := range conditions {
			if p.groups.isShown && p.table != nil && p.table.Groups != nil && namesGroupStat(p.table.Groups, c) {
				continue // a condition on groups does not apply to jobs
			}
			text := c.String()
			if len(conditions) == 1 {
				text = parenthesize(text)
			}
			words = append(words, text)
		}
	}
	for i, name := range names {
		known := slices.Contains(p.columnsOfRole(results.Param), name) ||
			slices.Contains(p.columnsOfRole(results.Metric), name) || slices.Contains(filterableFacts, name)
		value := textAt(values, i)
		if !known || i >= len(values) || strings.ContainsAny(name, " ]") ||
			strings.ContainsFunc(name+value, unicode.IsControl) {
			m.showError("a filter cannot say " + m.clean(name) + "=" + m.clean(value) + "; / narrows the jobs down")
			return nil
		}
		if strings.ContainsAny(name, `"'=<>!~:(),&|[-`) {
			name = "[" + name + "]"
		}
		words = append(slices.DeleteFunc(words, func(w string) bool { return strings.HasPrefix(w, name+"=") }),
			name+"="+quoteExact(value))
	}
	groups, heat, before := p.groups.isShown, p.heat.isShown, p.filter
	p.groups.isShown, p.heat.isShown = false, false
	p.narrowDown(strings.Join(words, " "), func() {
		p.groups.isShown, p.heat.isShown = groups, heat
		p.setFilter(before)
	})
	return nil
}

// namesGroupStat reports whether a query names a statistic of groups.
func namesGroupStat(g *runview.TableGroups, q *query.Query) bool {
	return slices.ContainsFunc(g.Columns, func(c runview.TableColumn) bool {
		return c.Role == results.Stat && slices.Contains(q.Names(false), c.Name)
	})
}

// resultCommands returns the commands of the table of results. Each shows the view.
func resultCommands() []command {
	names := func(m *model) []string { return columnNames(m.results.tableColumns()) }
	shown := func(do func(*resultsPane, *model, string) error) func(*model, string) (tea.Cmd, error) {
		return func(m *model, arg string) (tea.Cmd, error) {
			if err := do(m.results, m, arg); err != nil {
				return nil, err
			}
			m.openView(tabResults)
			return nil, nil
		}
	}
	return []command{
		{name: "result", args: "NAME[=HOW]",
			help: "a column of what jobs printed: acc, acc=json:test.accuracy, acc=re:(..), " +
				"acc=file:PATH; -acc removes it", do: shown((*resultsPane).commandResult)},
		{name: "group", args: "[COLUMNS [min N]]",
			help: "results by group: C,gamma min 3 leaves out groups with fewer than 3 jobs that succeeded; " +
				"alone: jobs again", words: names, do: shown((*resultsPane).commandGroup)},
		{name: "best", args: "[COLUMN:max]", help: "mark the best result: acc:max, loss:min; alone: none",
			words: (*model).bestWords, do: shown((*resultsPane).commandBest)},
		{name: "pivot", args: "[ROWS COLUMNS [METRIC]]",
			help: "a heat map: C gamma acc, or acc:max, sd, min, median, count; alone: what the run has", words: names,
			do: shown((*resultsPane).commandPivot)},
	}
}

func columnNames(columns []runview.TableColumn) []string {
	return text.Each(columns, func(c runview.TableColumn) string { return c.Name })
}

func (m *model) bestWords() []string {
	var words []string
	for _, name := range append(m.results.columnsOfRole(results.Metric), "time") {
		words = append(words, name+":max", name+":min")
	}
	return words
}

func (p *resultsPane) commandResult(_ *model, arg string) error {
	name, _, _ := strings.Cut(strings.TrimPrefix(arg, "-"), "=")
	name = strings.TrimSpace(name)
	if name == "" {
		return errors.New("which metric? acc, acc=json:accuracy, acc=re:Accuracy: ([0-9.]+)")
	}
	had := len(p.metrics)
	p.metrics = slices.DeleteFunc(slices.Clone(p.metrics), func(f string) bool {
		other, _, _ := strings.Cut(f, "=")
		return strings.TrimSpace(other) == name
	})
	if strings.HasPrefix(arg, "-") {
		if len(p.metrics) == had {
			return fmt.Errorf("%s was not added here", quoted(name))
		}
		return nil
	}
	if len(p.metrics) == runview.MaxTableNames {
		return fmt.Errorf("a table has at most %d columns", runview.MaxTableNames)
	}
	p.metrics = append(p.metrics, arg)
	return nil
}

func (p *resultsPane) commandGroup(_ *model, arg string) error {
	g := &p.groups
	words := splitWords(arg)
	least := 0
	if n := len(words); n >= 2 && words[n-2] == "min" {
		var err error
		if least, err = strconv.Atoi(words[n-1]); err != nil || least < 0 {
			return fmt.Errorf("%s is not a number of jobs; write for example min 3", quoted(words[n-1]))
		}
		words = words[:n-2]
	}
	if len(words) == 0 && arg != "" {
		words = p.defaultGroup()
	}
	if err := p.checkColumns(words...); err != nil {
		return err
	}
	g.isShown, p.heat.isShown = len(words) > 0, false
	if g.isShown {
		g.by, g.minSize, g.sort, g.pinned, g.cursorRow = words, least, "", false, 0
	}
	return nil
}

func (p *resultsPane) commandBest(_ *model, arg string) error {
	if way := arg[strings.LastIndexByte(arg, ':')+1:]; arg != "" && (way == arg || way != "max" && way != "min") {
		name := strings.TrimSuffix(arg, ":"+way)
		return fmt.Errorf("%s needs a direction: %s:max or %s:min", quoted(arg), name, name)
	}
	p.best, p.heat.isShown = arg, false // jobs and groups are marked
	return nil
}

func (p *resultsPane) commandPivot(_ *model, arg string) error {
	words := splitWords(arg)
	if n := len(words); n != 0 && n != 2 && n != 3 {
		return errors.New("rows, columns, and a metric: C gamma acc")
	}
	if len(words) > 1 {
		if err := p.checkColumns(words[:2]...); err != nil {
			return err
		}
	}
	p.heat = heatView{isShown: true, pivot: words, numberWidth: p.heat.numberWidth}
	return nil
}

// checkColumns returns an error for a name that is not a column of the table. Before the table has
// arrived, it returns nil.
func (p *resultsPane) checkColumns(names ...string) error {
	have := columnNames(p.tableColumns())
	for _, n := range names {
		if len(have) > 0 && !slices.Contains(have, n) && !slices.Contains(have, strings.Trim(n, "[]")) &&
			n != "elapsed_seconds" {
			return query.Unknown("column", n, have)
		}
	}
	return nil
}

// commandSort sorts the table by one of its columns.
func (p *resultsPane) commandSort(name string, desc bool) error {
	if p.groups.isShown {
		have := p.groupSortColumns()
		if !slices.Contains(have, name) && !slices.Contains(have, name+"_mean") {
			return query.Unknown("column", name, have[1:])
		}
		p.groups.sort, p.groups.reverse = name, desc
		return nil
	}
	if name == "id" {
		name = "job"
	}
	if err := p.checkColumns(name); err != nil {
		return err
	}
	p.sortColumn, p.reverse = name, desc
	return nil
}
