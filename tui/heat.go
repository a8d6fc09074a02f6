package tui

import (
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"

	"dcs-tui/internal/text"
	"dcs-tui/observe/runview"
)

// heatView is the heat map of a metric over two columns. Each cell has a shade, and its number if
// there is space. The color repeats the shade (rule 8).
type heatView struct {
	isShown                  bool
	pivot                    []string  // down, across, metric; nil: the source chooses
	viewport                           // of the rows
	cursorColumn, leftColumn int       // leftColumn: the first visible one
	cursorValues             [2]string // values that the cursor stays on: down and across
	numberWidth              int       // width of the widest number in cells
}

// heatLevels are the levels of cells: that of no number, and then from the smallest number to the
// largest. The colors are those of viridis, as in the report. They become lighter from level to level,
// so the order is visible to people who cannot distinguish hues, and none of them means failure.
// With 16 colors a cell is a shade on the terminal's own background. With 256 it is filled, so that
// it looks the same on dark and light terminals, and has a mark.
var heatLevels = [1 + runview.HeatLevels]struct {
	utf8, ascii string
	style       textStyle
	mark        string
	fill        textStyle
}{
	{"--", "--", styleFaint, "--", styleFaint},
	{"··", "..", newTextStyle(lipgloss.NewStyle().Foreground(lipgloss.Magenta)), "  ", heatFill(viridis[0], true)},
	{"░░", "::", newTextStyle(lipgloss.NewStyle().Foreground(lipgloss.Blue)), " .", heatFill(viridis[1], true)},
	{"▒▒", "++", styleBusy, "..", heatFill(viridis[2], true)},
	{"▓▓", "##", styleGood, ".:", heatFill(viridis[3], false)},
	{"██", "@@", styleWarn, "::", heatFill(viridis[4], false)},
}

// viridis are the colors of the levels in the palette of 256 colors.
var viridis = [runview.HeatLevels]uint8{53, 60, 30, 77, 220}

// heatFill returns the style of a filled cell, whose mark is white on a dark color.
func heatFill(color uint8, isDark bool) textStyle {
	mark := lipgloss.ANSIColor(16)
	if isDark {
		mark = lipgloss.ANSIColor(231)
	}
	return newTextStyle(lipgloss.NewStyle().Background(lipgloss.ANSIColor(color)).Foreground(mark))
}

// shade returns the shade of a level in two cells, and its color.
func (m *model) shade(level int8) (string, textStyle) {
	if level < 0 || level >= runview.HeatLevels {
		level = -1
	}
	l := &heatLevels[1+level]
	if m.fillsCells {
		return l.mark, l.fill
	}
	return m.glyphs.choose(l.utf8, l.ascii), l.style
}

const (
	heatLabelWidth  = 20 // width of the labels at the left in cells
	heatNumberWidth = 13 // width of a number in cells: -1.23457e+300
	shadeWidth      = 2
)

func (p *resultsPane) drawHeat(m *model, w, h int, focused bool) []string {
	v, t := &p.heat, p.table
	if t == nil || t.Heat == nil || len(t.Heat.Rows) == 0 || len(t.Heat.Columns) == 0 {
		switch {
		case t != nil && t.Wrong+t.Page.Wrong != "":
			return []string{styleFaint.Render("  no heat map")}
		case t != nil && t.Heat != nil:
			return []string{styleFaint.Render("  no job that succeeded has both")}
		}
		return []string{styleFaint.Render("  computing " + m.glyphs.ellipsis)}
	}
	heat := t.Heat
	label := min(m.maxTextWidth(heatLabelWidth, append([]string{heat.Down}, heat.Rows...)...), max(4, w/4))
	number, cell := max(1, v.numberWidth), 1+shadeWidth
	// Including the cursor's end mark.
	numbered := (2+number+1+shadeWidth)*len(heat.Columns) < w-label-2
	if numbered {
		cell = 2 + number + 1 + shadeWidth
	}
	columns := max(1, min(len(heat.Columns), (w-label-3)/cell))
	v.leftColumn = firstVisible(v.leftColumn, v.cursorColumn, len(heat.Columns), columns)
	v.h = max(1, h-4)
	v.clampCursor(len(heat.Rows))

	out := append([]string{p.heatTitle(m, w), p.heatHeading(m, label, cell, columns, numbered)},
		v.drawRows(len(heat.Rows), func(i int) string {
			var b strings.Builder
			b.WriteString(glyphIf(i == v.cursorRow && focused, m.glyphs.cursor) + " " +
				m.fit(m.cellText(heat.Rows[i], label), label))
			edge := " "
			for k := v.leftColumn; k < v.leftColumn+columns; k++ {
				here := focused && i == v.cursorRow && k == v.cursorColumn
				shade, style := m.shade(heat.Levels[i][k])
				if isPartial(heat, i, k) && !numbered {
					shade = string([]rune(shade)[:1]) + partialMark
				}
				if here {
					edge = styleCursor.Render("[")
				}
				b.WriteString(edge)
				if numbered {
					ink := style
					if m.fillsCells {
						ink = textStyle{}
					}
					if here {
						ink = styleCursor
					}
					b.WriteString(ink.Render(" " + m.padLeft(p.heatCellText(m, i, k), number) +
						glyphIf(isPartial(heat, i, k), partialMark)))
				}
				// Not reversed: a full shade would look like an empty one.
				b.WriteString(style.Render(shade))
				edge = " "
				if here {
					edge = styleCursor.Render("]")
				}
			}
			return b.String() + edge
		})...)
	for len(out) < h-2 {
		out = append(out, "")
	}
	here := " " + m.cutCell(heat.Down, 30) + "=" + m.cutCell(heat.Rows[v.cursorRow], 30) + " " +
		m.cutCell(heat.Across, 30) + "=" + m.cutCell(heat.Columns[v.cursorColumn], 30) + ": " +
		styleBold.Render(p.heatCellText(m, v.cursorRow, v.cursorColumn))
	if isPartial(heat, v.cursorRow, v.cursorColumn) {
		here += " " + partialMark + " of " + heat.Basis[v.cursorRow][v.cursorColumn]
	}
	return append(out, m.cut(here, w), p.heatVisibleText(columns))
}

// partialMark marks a cell in which jobs are missing.
const partialMark = "*"

func isPartial(heat *runview.Heat, row, col int) bool {
	return row < len(heat.Basis) && col < len(heat.Basis[row]) && heat.Basis[row][col] != ""
}

func (p *resultsPane) heatCellText(m *model, row, col int) string {
	if text := p.table.Heat.Cells[row][col]; text != "" {
		return m.cutCell(text, heatNumberWidth)
	}
	return "-"
}

// update keeps the cursor on its values and measures the numbers once for all frames.
func (v *heatView) update(m *model, heat *runview.Heat) {
	row, col := slices.Index(heat.Rows, v.cursorValues[0]), slices.Index(heat.Columns, v.cursorValues[1])
	if row < 0 {
		row = v.cursorRow
	}
	if col < 0 {
		col = v.cursorColumn
	}
	v.moveTo(heat, row, col)
	v.numberWidth = max(1, m.maxTextWidth(heatNumberWidth, slices.Concat(heat.Cells...)...),
		m.maxTextWidth(heatNumberWidth, heat.Columns...)-3)
}

// moveTo moves the cursor to a cell, or to the nearest one.
func (v *heatView) moveTo(heat *runview.Heat, row, col int) {
	if heat == nil || len(heat.Rows) == 0 || len(heat.Columns) == 0 {
		return
	}
	v.cursorRow, v.cursorColumn = max(0, min(row, len(heat.Rows)-1)), max(0, min(col, len(heat.Columns)-1))
	v.cursorValues = [2]string{heat.Rows[v.cursorRow], heat.Columns[v.cursorColumn]}
}

// pivotColumns returns the columns of the heat map: the requested ones or, without a request, two
// of those by which jobs were grouped. With nil, the source chooses.
func (p *resultsPane) pivotColumns() []string {
	if p.heat.pivot == nil && p.groups.isShown && len(p.groups.by) == 2 {
		return p.groups.by
	}
	return p.heat.pivot
}

// heatTitle describes the heat map and its shades.
func (p *resultsPane) heatTitle(m *model, w int) string {
	heat := p.table.Heat
	left := " " + styleBold.Render(m.cutCell(heat.Metric, 40)) + ": " +
		m.cutCell(heat.Down, 30) + " down, " + m.cutCell(heat.Across, 30) + " across"
	for _, c := range p.table.Columns {
		left += text.If(c.Vary && c.Name != heat.Down && c.Name != heat.Across, ", over "+m.cutCell(c.Name, 30))
	}
	if slices.ContainsFunc(heat.Basis, func(row []string) bool {
		return slices.ContainsFunc(row, func(b string) bool { return b != "" })
	}) {
		left += ", " + partialMark + " jobs missing"
	}
	if heat.Min == "" {
		return m.cut(left, w)
	}
	var scale strings.Builder
	for level := range int8(runview.HeatLevels) {
		shade, style := m.shade(level)
		scale.WriteString(style.Render(shade))
	}
	return m.justify(left, "  "+m.cutCell(heat.Min, heatNumberWidth)+" "+scale.String()+" "+
		m.cutCell(heat.Max, heatNumberWidth)+" ", w)
}

// heatHeading returns the values across, each over its column. If they do not fit, it returns the
// first and the last.
func (p *resultsPane) heatHeading(m *model, label, cell, columns int, numbered bool) string {
	heat, left := p.table.Heat, p.heat.leftColumn
	head := "  " + m.fit(m.cellText(heat.Down, label), label)
	if numbered {
		for _, text := range heat.Columns[left : left+columns] {
			head += "  " + m.padLeft(m.cutCell(text, cell-2), cell-2)
		}
		return styleBold.Render(head)
	}
	w := cell*columns - 1
	first, last := m.cellText(heat.Columns[left], w), m.cellText(heat.Columns[left+columns-1], w)
	if columns == 1 {
		last = ""
	}
	return styleBold.Render(head + " " + m.justify(first, last, w))
}

// heatVisibleText describes which rows and columns are visible. It returns "" if all are.
func (p *resultsPane) heatVisibleText(columns int) string {
	heat, v := p.table.Heat, &p.heat
	var rest []string
	add := func(first, shown, here, more int, what string) {
		if shown >= here+more {
			return
		}
		s := fmt.Sprintf("%s %d to %d of %s", what, first+1, first+min(shown, here), text.Thousands(here+more))
		s += text.If(more > 0, fmt.Sprintf(" (the first %d can be shown)", here))
		rest = append(rest, s)
	}
	add(v.top, v.h, len(heat.Rows), heat.MoreRows, "rows")
	add(v.leftColumn, columns, len(heat.Columns), heat.MoreColumns, "columns")
	return text.If(len(rest) != 0, styleFaint.Render(" "+strings.Join(rest, ", ")))
}

func (p *resultsPane) heatKeys() []binding {
	v := &p.heat
	move := func(down, across int) {
		if p.table != nil {
			v.moveTo(p.table.Heat, v.cursorRow+down, v.cursorColumn+across)
		}
	}
	return append(withGroup("Heat map",
		key("open", "its jobs", "the jobs of the cell", p.showHeatJobs),
		key("heat-map", "back", "back to the jobs, or the groups", p.toggleHeat),
		key("groups", "groups", "groups with their mean and spread", p.showGroups),
		key("right", "", "to the right", screenAction(func() { move(0, 1) })),
		key("left", "", "to the left", screenAction(func() { move(0, -1) })),
		key("find", "filter", "filter the jobs while you type",
			func(m *model) tea.Cmd { return m.openFilter(&p.jobList) }),
	), moveKeys(func() int { return v.h }, func(_ *model, by int) { move(by, 0) })...)
}

// toggleHeat shows the heat map, or the previous view.
func (p *resultsPane) toggleHeat(*model) tea.Cmd {
	p.heat.isShown = !p.heat.isShown
	return nil
}

// showHeatJobs shows the jobs of the cell under the cursor.
func (p *resultsPane) showHeatJobs(m *model) tea.Cmd {
	v := &p.heat
	if p.table == nil || p.table.Heat == nil || v.cursorRow >= len(p.table.Heat.Rows) ||
		v.cursorColumn >= len(p.table.Heat.Columns) {
		return nil
	}
	heat := p.table.Heat
	return p.showJobsWith(m, []string{heat.Down, heat.Across},
		slices.Clone([]string{heat.Rows[v.cursorRow], heat.Columns[v.cursorColumn]}))
}
