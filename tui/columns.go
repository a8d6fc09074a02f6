package tui

import (
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"dcs-tui/jobs/runview"
)

// column is one of a list's columns. Which are shown, and how wide, depends on the
// room: those of a high rank go first.
type column struct {
	head  string
	name  string       // in the table of results; "": it has no other
	sort  runview.Sort // that orders by it; Sorts: none does
	rank  int          // 0 is always there
	w     int          // cells it needs
	more  int          // cells beyond w that it can use
	first int          // number of kept columns before those of rank luxury
	right bool
	off   bool                                                 // nothing is in it, so that it is shown only if a person wants it
	bar   bool                                                 // it may draw one
	cell  func(m *model, r *runview.Row, w int) (string, *ink) // nil: the terminal's own
}

// fitColumns chooses the columns that fit into w cells, and widens them.
func fitColumns(all []column, w int) []column {
	keep, room := fitting(all, w)
	var cols []column
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
	for i := len(cols) - 1; i >= 0; i-- { // the rest is for texts
		if c := &cols[i]; c.more > 0 && !c.right {
			c.w += max(0, room)
			break
		}
	}
	return cols
}

// fitting returns which columns fit into w cells, and how many cells are left. Between two
// columns is one cell. Of the least important ones as many stay as there is room for.
func fitting(all []column, w int) (keep []bool, room int) {
	worst, spare := 0, spare
	for _, c := range all {
		worst, spare = max(worst, c.rank), max(spare, c.first)
	}
	keep, room = make([]bool, len(all)), w+1
	for rank, left := 0, false; rank <= worst && !left; rank++ {
		for i, c := range all {
			switch rest := room - c.w - 1; {
			case c.rank != rank:
			case rank > 0 && rest < 0, rank >= luxury && rest < spare:
				left = true
			default:
				keep[i], room = true, rest
			}
		}
	}
	return keep, room
}

// Columns from rank luxury on are shown only where at least spare cells are left for names.
const (
	luxury = 5
	spare  = 20
)

// choices are the columns of a list that a person has chosen (true) or hidden, by their heads.
type choices struct {
	chosen map[string]bool
	heads  []string        // of all columns, as of the newest frame
	shown  map[string]bool // on the screen
}

// of reports whether a column is to be left out, and whether a person wants it.
func (c *choices) of(head string, off bool) (out, wanted bool) {
	c.heads = append(c.heads, head)
	if shown, is := c.chosen[head]; is {
		return !shown, shown
	}
	return off, false
}

// columns applies the choices to the columns of a list.
func (c *choices) columns(all []column) []column {
	c.heads = nil
	var keep []column
	for _, col := range all {
		out, wanted := c.of(col.head, col.off)
		if wanted {
			col.rank = min(col.rank, 1)
		}
		if !out {
			keep = append(keep, col)
		}
	}
	return keep
}

// fitted notes the columns for which there is room.
func (c *choices) fitted(cols []column) []column {
	c.shown = map[string]bool{}
	for _, head := range c.heads {
		c.shown[head] = slices.ContainsFunc(cols, func(col column) bool { return strings.HasPrefix(col.head, head) }) // an arrow may follow
	}
	return cols
}

// columnsModal is the list of columns to choose from.
type columnsModal struct {
	choices *choices
	at, top int
}

func (m *model) chooseColumns() tea.Cmd {
	m.modal = &columnsModal{choices: m.focus().(interface{ choose() *choices }).choose()}
	return nil
}

func (p *columnsModal) key(m *model, k tea.KeyPressMsg) tea.Cmd {
	c := p.choices
	move := moving(func() int { return len(c.heads) }, func(_ *model, by int) { p.at = max(0, min(p.at+by, len(c.heads)-1)) })
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
		if _, is := m.pressIn(move, k.String()); !is {
			m.modal = nil
		}
	}
	return nil
}

func (c *choices) has(head string) bool {
	if chosen, is := c.chosen[head]; is {
		return chosen
	}
	return c.shown[head]
}

func (p *columnsModal) draw(m *model, w, h int) []string {
	c := p.choices
	rows := max(1, h-2)
	p.top = window(p.top, p.at, len(c.heads), rows)
	out := []string{m.rule("Columns, as far as there is room", w, true)}
	for i := p.top; i < min(len(c.heads), p.top+rows); i++ {
		l := cursorLine{here: i == p.at}
		l.text(" "+mark(i == p.at, m.g.cursor)+" ["+mark(c.has(c.heads[i]), "x")+"] "+c.heads[i], nil)
		out = append(out, l.String())
	}
	return append(out, styleFaint.Render(m.cut(" space shows or hides, backspace: all as before, esc closes", w)))
}

// seen is what the rows so far say about the columns that are needed. It only grows,
// so that no column comes and goes while a list scrolls.
type seen struct {
	id, host, try, queue int // cells
	title                int // cells, at most maxTitle
	priority, untold     bool
	progress             bool // a job reports progress or the cause of its failure
	cpu, memory          bool
	params               []string // names, in the order in which they came
}

// maxTitle is the maximum width, in cells, that names are given before other columns
// are widened.
const maxTitle = 80

// maxParams bounds the parameters that have a column or are completed.
const maxParams = 32

func (s *seen) look(m *model, rows []runview.Row) {
	for i := range rows {
		r := &rows[i]
		s.id = max(s.id, len(itoa(int(r.ID))))
		s.host = max(s.host, min(16, width(m.cellText(r.Host, 16))))
		s.try = max(s.try, len(tries(m, r)))
		if r.Queue != "" {
			s.queue = max(s.queue, min(12, width(m.cellText(r.Queue, 12))))
		}
		s.title = max(s.title, min(maxTitle, width(m.cellText(r.Title, maxTitle))))
		s.progress = s.progress || r.Progress >= 0 || r.Said != "" || r.Cause != ""
		s.priority = s.priority || r.Priority != 0
		s.cpu, s.memory = s.cpu || r.CPU > 0, s.memory || r.MaxRSS > 0
		for _, p := range r.Params {
			if len(s.params) < maxParams && !slices.Contains(s.params, p.Name) {
				s.params = append(s.params, p.Name)
			}
			title := r.Title[:min(len(r.Title), maxShown)]
			s.untold = s.untold || !strings.Contains(title, p.Name+"="+p.Value)
		}
	}
}

// heading is the line over the rows. The column that orders them has an arrow.
func (m *model) heading(cols []column, by runview.Sort, reverse bool, w int) string {
	var b strings.Builder
	b.WriteString("  ")
	for i, c := range cols {
		head := c.head
		if c.sort == by {
			arrow := m.arrow(by, reverse)
			head = m.fit(head, min(width(head), c.w-width(arrow))) + arrow
		}
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(m.aligned(head, &c))
	}
	return styleBold.Render(m.fit(strings.TrimRight(b.String(), " "), w))
}

// rowLine draws one row: marks for cursor and selection, then its cells.
func (m *model) rowLine(cols []column, r *runview.Row, cursor, picked, focused bool, w int) string {
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
		if text = m.aligned(text, &c); c.bar && m.isDrawn(text) {
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

// aligned is a text in the cells of a column.
func (m *model) aligned(text string, c *column) string {
	if c.right {
		return m.right(text, c.w)
	}
	return m.fit(text, c.w)
}

func mark(is bool, glyph string) string {
	if is {
		return glyph
	}
	return " "
}

// cellText makes a text from outside harmless for a cell, of which it looks at no more
// than can be seen: a name may have megabytes.
func (m *model) cellText(s string, w int) string {
	if most := 16*w + 16; len(s) > most { // a letter with its accents has at most so many bytes
		s = s[:most]
	}
	return m.clean(s)
}

// sideways turns the pages of a table that has more columns than the screen has room
// for: the first page has the most important ones, each further one those that come next.
type sideways struct {
	page int
	more int // columns on the pages that follow
}

// fit chooses the columns of the page for w cells. The first ones stay on each.
func (s *sideways) fit(all []column, stay, w int) []column {
	first := all[:stay:stay]
	rest := slices.Clone(all[stay:])
	for page := 0; ; page++ {
		if page > 0 {
			rest[0].rank = 0 // each page has one
		}
		keep, _ := fitting(slices.Concat(first, rest), w)
		var here, after []column
		for i, c := range rest {
			if keep[stay+i] {
				here = append(here, c)
			} else {
				after = append(after, c)
			}
		}
		if s.more = len(after); page == s.page || s.more == 0 {
			s.page = page
			return fitColumns(slices.Concat(first, here), w)
		}
		rest = after
	}
}

// keys turn the pages.
func (s *sideways) keys(group string, when func(*model) bool) []binding {
	turn := func(key, word, help string, by int, can bool) binding {
		return binding{keys: []string{key}, show: key, word: word, group: group, help: help,
			when: func(m *model) bool { return can && when(m) }, do: func(*model) tea.Cmd { s.page += by; return nil }}
	}
	return []binding{
		turn("right", "columns", plural(s.more, "more column")+", for which there is no room", 1, s.more > 0),
		turn("left", "back", "the columns before", -1, s.page > 0),
	}
}

// cursorLine builds a row of a list piece by piece. Under the cursor its texts are reversed,
// and what is drawn with blocks is not: a full bar would look empty, and an empty one full.
type cursorLine struct {
	here bool // it is the row under the cursor
	b    strings.Builder
}

// text adds a text; nil is the terminal's own style.
func (l *cursorLine) text(s string, style *ink) {
	switch {
	case s == "":
	case l.here:
		l.b.WriteString(styleHere.Render(plainText(s)))
	case style == nil:
		l.b.WriteString(s)
	default:
		l.b.WriteString(style.Render(s))
	}
}

// mark adds a glyph, or a blank where it does not stand: blanks have no style.
func (l *cursorLine) mark(is bool, glyph string, style *ink) {
	if !is {
		style = nil
	}
	l.text(mark(is, glyph), style)
}

// drawn adds a bar or a line of small bars, and what follows it as text.
func (l *cursorLine) drawn(s string, style *ink, rest string) {
	if style != nil {
		s, rest = style.Render(s), style.Render(rest)
	}
	l.b.WriteString(s)
	l.text(rest, nil)
}

func (l *cursorLine) String() string { return l.b.String() }

// underCursor is a line of texts alone, with the cursor if that is here.
func (m *model) underCursor(text string, here, focused bool, w int) string {
	if here && focused {
		return styleHere.Render(m.fit(m.g.cursor+plainText(text), w))
	}
	return mark(here, m.g.cursor) + text
}

// isDrawn reports whether a text begins with a bar.
func (m *model) isDrawn(s string) bool {
	for _, glyph := range m.g.bar {
		if strings.HasPrefix(s, glyph) {
			return true
		}
	}
	return false
}
