package tui

import (
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"dcs-tui/internal/text"
	"dcs-tui/jobs"
	"dcs-tui/observe/runview"
)

// viewport is the visible part of a list.
type viewport struct {
	cursorRow int // position of the row with the cursor
	top       int // first visible row
	h         int // number of visible rows
}

// clampCursor keeps the cursor within n rows and on the screen.
func (v *viewport) clampCursor(n int) {
	v.cursorRow = max(0, min(v.cursorRow, n-1))
	v.top = firstVisible(v.top, v.cursorRow, n, v.h)
}

// firstVisible returns the first of n rows to show in h rows, so that row at is visible and the
// distance to top, the previous first row, is minimal.
func firstVisible(top, at, n, h int) int {
	h = max(1, h)
	top = min(top, at)
	top = max(top, at-h+1)
	return max(0, min(top, n-h))
}

func (v *viewport) drawRows(n int, draw func(i int) string) []string {
	var out []string
	for i := v.top; i < min(n, v.top+v.h); i++ {
		out = append(out, draw(i))
	}
	return out
}

// table is a list whose rows have keys. Its cursor stays on a key, not on a row (rule 4).
type table[K comparable] struct {
	viewport
	key  K    // of the row with the cursor
	slip slip // newest move that the user did not request
}

// moveToKey moves the cursor to the row of its key. It returns false if no row has it; the
// cursor then stays where it is.
func (t *table[K]) moveToKey(keys []K) bool {
	i := slices.Index(keys, t.key)
	if i >= 0 {
		t.cursorRow = i
	}
	t.clampCursor(len(keys))
	return i >= 0
}

// moveTo moves the cursor to a row, or to the nearest one.
func (t *table[K]) moveTo(keys []K, at int) {
	if len(keys) > 0 {
		t.cursorRow = max(0, min(at, len(keys)-1))
		t.key = keys[t.cursorRow]
		t.clampCursor(len(keys))
	}
}

// move moves the cursor by some rows.
func (t *table[K]) move(m *model, keys []K, by int) {
	if !t.slip.hasStepped(m, by) {
		t.moveTo(keys, t.cursorRow+by)
	}
}

// click moves the cursor to a row of the screen. Row 0 is the heading.
func (t *table[K]) click(keys []K, row int) {
	if row > 0 {
		t.moveTo(keys, t.top+row-1)
	}
}

// column is a column of a list with rows of type R. Columns of a low rank are kept longest if space
// is short.
type column[R any] struct {
	heading    string
	name       string       // name in the table of results; "": it is not in that table
	sort       runview.Sort // order by this column; Sorts: none
	arrow      string       // arrow of the column that orders the rows
	rank       int          // 0: always shown
	w          int          // cells that the column needs
	maxExtra   int          // cells beyond w that it can use
	nameCells  int          // cells that must be left for names to show a column of optionalRank
	alignRight bool
	isEmpty    bool // the column is empty, so it is shown only if the user chooses it
	hasBar     bool // cells may contain a bar
	cell       func(m *model, r R, w int) (string, *textStyle)
}

// Columns of at least optionalRank are shown only if at least minNameCells are left for names.
const (
	optionalRank = 20
	minNameCells = 20
)

// addArrow adds the arrow to the column that orders the rows, and keeps the column on the screen.
func (c *column[R]) addArrow(arrow string) {
	c.arrow = arrow
	c.rank = min(c.rank, 1)
	c.w = max(c.w, width(c.heading)+width(arrow))
}

// fitColumns chooses the columns that fit into w cells, and widens them. With gaps, a narrower
// column of a higher rank may replace a column that does not fit.
func fitColumns[R any](all []column[R], w int, gaps bool) []column[R] {
	keep, room := columnsThatFit(all, w, gaps)
	var cols []column[R]
	worst := 0
	for i, c := range all {
		if keep[i] {
			cols, worst = append(cols, c), max(worst, c.rank)
		}
	}
	for rank := 0; rank <= worst && room > 0; rank++ {
		for i := range cols {
			if c := &cols[i]; c.rank == rank && room > 0 {
				more := min(c.maxExtra, room)
				c.w += more
				room -= more
			}
		}
	}
	for i := len(cols) - 1; i >= 0; i-- { // texts get the remaining space
		if c := &cols[i]; c.maxExtra > 0 && !c.alignRight {
			c.w += max(0, room)
			break
		}
	}
	return cols
}

// columnsThatFit reports which columns fit into w cells, and how many cells are left. One cell
// separates two columns.
func columnsThatFit[R any](all []column[R], w int, gaps bool) (keep []bool, room int) {
	worst, spare := 0, minNameCells
	for _, c := range all {
		worst, spare = max(worst, c.rank), max(spare, c.nameCells)
	}
	keep, room = make([]bool, len(all)), w+1
	for rank, full := 0, false; rank <= worst && !full; rank++ {
		for i, c := range all {
			switch left := room - c.w - 1; {
			case c.rank != rank:
			case rank > 0 && left < 0, rank >= optionalRank && left < spare:
				full = !gaps
			default:
				keep[i], room = true, left
			}
		}
	}
	return keep, room
}

// columnPages selects the page of a table that has more columns than fit the screen. The first page
// has the most important columns. Each further page has the next ones.
type columnPages struct {
	page    int
	numMore int // number of columns on the following pages
}

// pageColumns returns the columns of the current page for w cells. The first stay columns are on
// every page.
func pageColumns[R any](s *columnPages, all []column[R], stay, w int) []column[R] {
	first := all[:stay:stay]
	rest := slices.Clone(all[stay:])
	for page := 0; ; page++ {
		if page > 0 {
			rest[0].rank = 0 // each page has at least one
		}
		keep, _ := columnsThatFit(slices.Concat(first, rest), w, false)
		var here, after []column[R]
		for i, c := range rest {
			if keep[stay+i] {
				here = append(here, c)
			} else {
				after = append(after, c)
			}
		}
		s.numMore = len(after)
		if page == s.page || s.numMore == 0 {
			s.page = page
			return fitColumns(slices.Concat(first, here), w, false)
		}
		rest = after
	}
}

func (s *columnPages) keys(is func(*model) bool) []binding {
	turn := func(by int) func(*model) tea.Cmd { return screenAction(func() { s.page += by }) }
	return []binding{
		key("right", "columns", text.Plural(s.numMore, "more column")+", for which there is no room",
			turn(1)).onlyIf(func(m *model) bool { return s.numMore > 0 && is(m) }),
		key("left", "back", "the columns before", turn(-1)).onlyIf(func(m *model) bool { return s.page > 0 && is(m) }),
	}
}

// heading returns the line over the rows, after marks of the given number of cells.
func heading[R any](m *model, cols []column[R], marks, w int) string {
	heads := make([]string, len(cols))
	for i, c := range cols {
		head := c.heading
		if c.arrow != "" {
			head = m.fit(head, min(width(head), c.w-width(c.arrow))) + c.arrow
		}
		heads[i] = c.align(m, head)
	}
	line := strings.Repeat(" ", marks) + strings.Join(heads, " ")
	return styleBold.Render(m.fit(strings.TrimRight(line, " "), w))
}

// rowLine draws one row: marks for cursor and selection, then its cells.
func rowLine[R any](m *model, cols []column[R], r R, cursor, picked, focused bool, w int) string {
	l := rowBuilder{isCursor: cursor && focused}
	l.addMark(cursor, m.glyphs.cursor, &styleBold)
	l.addMark(picked, m.glyphs.selected, &styleSelected)
	used := 2
	for i, c := range cols {
		if i > 0 {
			l.addText(" ", nil)
			used++
		}
		text, style := c.cell(m, r, c.w)
		text = c.align(m, text)
		if c.hasBar && m.beginsWithBar(text) {
			bar, _, _ := strings.Cut(text, " ")
			l.addBar(bar, style, text[len(bar):])
		} else {
			l.addText(text, style)
		}
		used += c.w
	}
	if l.isCursor {
		l.addText(strings.Repeat(" ", max(0, w-used)), nil)
	}
	return l.String()
}

func (c *column[R]) align(m *model, text string) string {
	if c.alignRight {
		return m.padLeft(text, c.w)
	}
	return m.fit(text, c.w)
}

// rowBuilder builds a row of a list piece by piece. Under the cursor, its texts are reversed, but
// block graphics are not: a full bar would look empty, and an empty one full.
type rowBuilder struct {
	isCursor bool // this is the row under the cursor
	strings.Builder
}

// addText adds a text; with a nil style, it has the terminal's own style.
func (b *rowBuilder) addText(s string, style *textStyle) {
	switch {
	case s == "":
	case b.isCursor:
		b.WriteString(styleCursor.Render(plainText(s)))
	case style == nil:
		b.WriteString(s)
	default:
		b.WriteString(style.Render(s))
	}
}

// addMark adds a glyph, or an unstyled blank in its place.
func (b *rowBuilder) addMark(is bool, glyph string, style *textStyle) {
	if !is {
		style = nil
	}
	b.addText(glyphIf(is, glyph), style)
}

func glyphIf(is bool, glyph string) string {
	if is {
		return glyph
	}
	return " "
}

// addBar adds a bar or a sparkline, and then rest as text.
func (b *rowBuilder) addBar(s string, style *textStyle, rest string) {
	if style != nil {
		s, rest = style.Render(s), style.Render(rest)
	}
	b.WriteString(s)
	b.addText(rest, nil)
}

// lineWithCursor returns a line of text, with the cursor if here is set.
func (m *model) lineWithCursor(text string, here, focused bool, w int) string {
	if here && focused {
		return styleCursor.Render(m.fit(m.glyphs.cursor+plainText(text), w))
	}
	return glyphIf(here, m.glyphs.cursor) + text
}

// beginsWithBar reports whether a text begins with a bar.
func (m *model) beginsWithBar(s string) bool {
	return slices.ContainsFunc(m.glyphs.bar, func(glyph string) bool { return strings.HasPrefix(s, glyph) })
}

// columnChoices records which columns of a list the user has chosen (true) or hidden (false), by
// their headings.
type columnChoices struct {
	chosen   map[string]bool
	only     []string        // the others are hidden unless they are chosen; nil: none is
	headings []string        // of all columns, in the newest frame
	shown    map[string]bool // the visible columns
}

// applyChoices applies the user's choices to the columns of a list.
func applyChoices[R any](c *columnChoices, all []column[R]) []column[R] {
	c.headings = nil
	var keep []column[R]
	for _, col := range all {
		c.headings = append(c.headings, col.heading)
		shown, is := c.chosen[col.heading]
		if !is && c.only != nil {
			shown, is = slices.Contains(c.only, col.heading), true
		}
		if is && shown {
			col.rank = min(col.rank, 1)
		}
		if is && shown || !is && !col.isEmpty {
			keep = append(keep, col)
		}
	}
	return keep
}

func recordShown[R any](c *columnChoices, cols []column[R]) []column[R] {
	c.shown = map[string]bool{}
	for _, col := range cols {
		c.shown[col.heading] = true
	}
	return cols
}

// isShown reports whether a column is shown if there is space.
func (c *columnChoices) isShown(head string) bool {
	if chosen, is := c.chosen[head]; is {
		return chosen
	}
	return c.shown[head]
}

// columnsModal is the list of columns to choose from.
type columnsModal struct {
	choices *columnChoices
	viewport
}

func (m *model) chooseColumns() tea.Cmd {
	m.modal = &columnsModal{choices: m.focus().columnChoices()}
	return nil
}

func (p *columnsModal) key(m *model, msg tea.KeyPressMsg) tea.Cmd {
	c := p.choices
	switch msg.String() {
	case "space", "enter":
		if head := textAt(c.headings, p.cursorRow); head != "" {
			jobs.Insert(&c.chosen, head, !c.isShown(head))
		}
	case "backspace":
		c.chosen = nil
	default:
		move := moveKeys(func() int { return len(c.headings) },
			func(_ *model, by int) { p.cursorRow += by; p.clampCursor(len(c.headings)) })
		if _, is := m.pressIn(move, msg.String()); !is {
			m.modal = nil
		}
	}
	return nil
}

func (p *columnsModal) draw(m *model, w, h int) []string {
	c := p.choices
	p.h = max(1, h-2)
	p.clampCursor(len(c.headings))
	out := append([]string{m.rule("Columns, as far as there is room", w, true)},
		p.drawRows(len(c.headings), func(i int) string {
			l := rowBuilder{isCursor: i == p.cursorRow}
			l.addText(" "+glyphIf(i == p.cursorRow, m.glyphs.cursor)+" ["+glyphIf(c.isShown(c.headings[i]), "x")+"] "+
				c.headings[i], nil)
			return l.String()
		})...)
	return append(out, styleFaint.Render(m.cut(" space shows or hides a column, backspace resets all, esc closes", w)))
}
