package tui

import (
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"dcs-tui/jobs/runview"
)

// viewport is the visible part of a list.
type viewport struct {
	at  int // row with the cursor
	top int // first visible row
	h   int // number of visible rows
}

// clampCursor keeps the cursor within n rows and on the screen.
func (v *viewport) clampCursor(n int) {
	v.at = max(0, min(v.at, n-1))
	v.top = window(v.top, v.at, n, v.h)
}

// window returns the first of n rows to show in h rows, so that row at is visible and the distance
// to top, the previous first row, is minimal.
func window(top, at, n, h int) int {
	h = max(1, h)
	top = min(top, at)
	top = max(top, at-h+1)
	return max(0, min(top, n-h))
}

// rows draws the visible rows of n rows.
func (v *viewport) rows(n int, draw func(i int) string) []string {
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

// find moves the cursor to the row of its key. It returns false if no row has it; the
// cursor then stays where it is.
func (t *table[K]) find(keys []K) bool {
	i := slices.Index(keys, t.key)
	if i >= 0 {
		t.at = i
	}
	t.clampCursor(len(keys))
	return i >= 0
}

// moveTo moves the cursor to a row, or to the nearest one.
func (t *table[K]) moveTo(keys []K, at int) {
	if len(keys) > 0 {
		t.at = max(0, min(at, len(keys)-1))
		t.key = keys[t.at]
		t.clampCursor(len(keys))
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
	head  string
	name  string       // name in the table of results; "": it is not in that table
	sort  runview.Sort // order by this column; Sorts: none
	arrow string       // arrow of the column that orders the rows
	rank  int          // 0: always shown
	w     int          // cells that the column needs
	more  int          // cells beyond w that it can use
	spare int          // cells that must be left for names to show a column of rank luxury
	right bool
	off   bool // the column is empty, so it is shown only if the user chooses it
	bar   bool // cells may contain a bar
	cell  func(m *model, r R, w int) (string, *ink)
}

// Columns of at least rank luxury are shown only if at least spare cells are left for names.
const (
	luxury = 20
	spare  = 20
)

// orders adds the arrow to the column that orders the rows, and keeps the column on the screen.
func (c *column[R]) orders(arrow string) {
	c.arrow = arrow
	c.rank = min(c.rank, 1)
	c.w = max(c.w, width(c.head)+width(arrow))
}

// fitColumns chooses the columns that fit into w cells, and widens them. With gaps, a narrower
// column of a higher rank may replace a column that does not fit.
func fitColumns[R any](all []column[R], w int, gaps bool) []column[R] {
	keep, room := fitting(all, w, gaps)
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
				more := min(c.more, room)
				c.w += more
				room -= more
			}
		}
	}
	for i := len(cols) - 1; i >= 0; i-- { // texts get the remaining space
		if c := &cols[i]; c.more > 0 && !c.right {
			c.w += max(0, room)
			break
		}
	}
	return cols
}

// fitting reports which columns fit into w cells, and how many cells are left. One cell separates
// two columns.
func fitting[R any](all []column[R], w int, gaps bool) (keep []bool, room int) {
	worst, spare := 0, spare
	for _, c := range all {
		worst, spare = max(worst, c.rank), max(spare, c.spare)
	}
	keep, room = make([]bool, len(all)), w+1
	for rank, full := 0, false; rank <= worst && !full; rank++ {
		for i, c := range all {
			switch left := room - c.w - 1; {
			case c.rank != rank:
			case rank > 0 && left < 0, rank >= luxury && left < spare:
				full = !gaps
			default:
				keep[i], room = true, left
			}
		}
	}
	return keep, room
}

// sideways selects the page of a table that has more columns than fit the screen. The first page
// has the most important columns. Each further page has the next ones.
type sideways struct {
	page int
	more int // number of columns on the following pages
}

// columnsOf returns the columns of the current page for w cells. The first stay columns are on
// every page.
func columnsOf[R any](s *sideways, all []column[R], stay, w int) []column[R] {
	first := all[:stay:stay]
	rest := slices.Clone(all[stay:])
	for page := 0; ; page++ {
		if page > 0 {
			rest[0].rank = 0 // each page has at least one
		}
		keep, _ := fitting(slices.Concat(first, rest), w, false)
		var here, after []column[R]
		for i, c := range rest {
			if keep[stay+i] {
				here = append(here, c)
			} else {
				after = append(after, c)
			}
		}
		if s.more = len(after); page == s.page || s.more == 0 {
			s.page = page
			return fitColumns(slices.Concat(first, here), w, false)
		}
		rest = after
	}
}

// keys returns the keys that turn the pages.
func (s *sideways) keys(is func(*model) bool) []binding {
	turn := func(by int) func(*model) tea.Cmd { return quietly(func() { s.page += by }) }
	return []binding{
		key("right", "columns", plural(s.more, "more column")+", for which there is no room", turn(1)).onlyIf(func(m *model) bool { return s.more > 0 && is(m) }),
		key("left", "back", "the columns before", turn(-1)).onlyIf(func(m *model) bool { return s.page > 0 && is(m) }),
	}
}

// heading returns the line over the rows, after marks of the given number of cells.
func heading[R any](m *model, cols []column[R], marks, w int) string {
	heads := make([]string, len(cols))
	for i, c := range cols {
		head := c.head
		if c.arrow != "" {
			head = m.fit(head, min(width(head), c.w-width(c.arrow))) + c.arrow
		}
		heads[i] = c.aligned(m, head)
	}
	line := strings.Repeat(" ", marks) + strings.Join(heads, " ")
	return styleBold.Render(m.fit(strings.TrimRight(line, " "), w))
}

// rowLine draws one row: marks for cursor and selection, then its cells.
func rowLine[R any](m *model, cols []column[R], r R, cursor, picked, focused bool, w int) string {
	l := cursorLine{here: cursor && focused}
	l.mark(cursor, m.g.cursor, &styleBold)
	l.mark(picked, m.g.picked, &stylePick)
	used := 2
	for i, c := range cols {
		if i > 0 {
			l.text(" ", nil)
			used++
		}
		text, style := c.cell(m, r, c.w)
		if text = c.aligned(m, text); c.bar && m.isDrawn(text) {
			bar, _, _ := strings.Cut(text, " ")
			l.drawn(bar, style, text[len(bar):])
		} else {
			l.text(text, style)
		}
		used += c.w
	}
	if l.here {
		l.text(strings.Repeat(" ", max(0, w-used)), nil)
	}
	return l.String()
}

// aligned returns a text in the cells of a column.
func (c *column[R]) aligned(m *model, text string) string {
	if c.right {
		return m.padLeft(text, c.w)
	}
	return m.fit(text, c.w)
}

// cursorLine builds a row of a list piece by piece. Under the cursor, its texts are reversed, but
// block graphics are not: a full bar would look empty, and an empty one full.
type cursorLine struct {
	here bool // this is the row under the cursor
	strings.Builder
}

// text adds a text; with a nil style, it has the terminal's own style.
func (l *cursorLine) text(s string, style *ink) {
	switch {
	case s == "":
	case l.here:
		l.WriteString(styleHere.Render(plainText(s)))
	case style == nil:
		l.WriteString(s)
	default:
		l.WriteString(style.Render(s))
	}
}

// mark adds a glyph, or an unstyled blank in its place.
func (l *cursorLine) mark(is bool, glyph string, style *ink) {
	if !is {
		style = nil
	}
	l.text(mark(is, glyph), style)
}

func mark(is bool, glyph string) string {
	if is {
		return glyph
	}
	return " "
}

// drawn adds a bar or a sparkline, and then rest as text.
func (l *cursorLine) drawn(s string, style *ink, rest string) {
	if style != nil {
		s, rest = style.Render(s), style.Render(rest)
	}
	l.WriteString(s)
	l.text(rest, nil)
}

// underCursor returns a line of text, with the cursor if here is set.
func (m *model) underCursor(text string, here, focused bool, w int) string {
	if here && focused {
		return styleHere.Render(m.fit(m.g.cursor+plainText(text), w))
	}
	return mark(here, m.g.cursor) + text
}

// isDrawn reports whether a text begins with a bar.
func (m *model) isDrawn(s string) bool {
	return slices.ContainsFunc(m.g.bar, func(glyph string) bool { return strings.HasPrefix(s, glyph) })
}

// choices records which columns of a list the user has chosen (true) or hidden (false), by their
// headings.
type choices struct {
	chosen map[string]bool
	heads  []string        // of all columns, in the newest frame
	shown  map[string]bool // the visible columns
}

// chosen applies the user's choices to the columns of a list.
func chosen[R any](c *choices, all []column[R]) []column[R] {
	c.heads = nil
	var keep []column[R]
	for _, col := range all {
		c.heads = append(c.heads, col.head)
		shown, is := c.chosen[col.head]
		if is && shown {
			col.rank = min(col.rank, 1)
		}
		if is && shown || !is && !col.off {
			keep = append(keep, col)
		}
	}
	return keep
}

// fitted records which columns are visible.
func fitted[R any](c *choices, cols []column[R]) []column[R] {
	c.shown = map[string]bool{}
	for _, col := range cols {
		c.shown[col.head] = true
	}
	return cols
}

// has reports whether a column is shown if there is space.
func (c *choices) has(head string) bool {
	if chosen, is := c.chosen[head]; is {
		return chosen
	}
	return c.shown[head]
}

// columnsModal is the list of columns to choose from.
type columnsModal struct {
	choices *choices
	viewport
}

func (m *model) chooseColumns() tea.Cmd {
	m.modal = &columnsModal{choices: m.focus().choose()}
	return nil
}

func (p *columnsModal) key(m *model, k tea.KeyPressMsg) tea.Cmd {
	c := p.choices
	switch k.String() {
	case "space", "enter":
		if head := at(c.heads, p.at); head != "" {
			if c.chosen == nil {
				c.chosen = map[string]bool{}
			}
			c.chosen[head] = !c.has(head)
		}
	case "backspace":
		c.chosen = nil
	default:
		move := moving(func() int { return len(c.heads) }, func(_ *model, by int) { p.at += by; p.clampCursor(len(c.heads)) })
		if _, is := m.pressIn(move, k.String()); !is {
			m.modal = nil
		}
	}
	return nil
}

func (p *columnsModal) draw(m *model, w, h int) []string {
	c := p.choices
	p.h = max(1, h-2)
	p.clampCursor(len(c.heads))
	out := append([]string{m.rule("Columns, as far as there is room", w, true)}, p.rows(len(c.heads), func(i int) string {
		l := cursorLine{here: i == p.at}
		l.text(" "+mark(i == p.at, m.g.cursor)+" ["+mark(c.has(c.heads[i]), "x")+"] "+c.heads[i], nil)
		return l.String()
	})...)
	return append(out, styleFaint.Render(m.cut(" space shows or hides, backspace: all as before, esc closes", w)))
}
