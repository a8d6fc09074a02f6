package tui

import (
	"slices"
	"strings"
)

// footer are the rows under the view: a message, and the hints of the keys that work.
func (m *model) footer() []string {
	switch {
	case m.modal != nil:
		return m.modal.draw(m, m.w, max(1, m.h/2))
	case !m.small():
		return append(m.messageRows(), m.hintsRow())
	case m.message.text != "" || m.undo != nil:
		return m.messageRows()
	}
	return []string{m.hintsRow()}
}

// mostRows is in how many rows a message may be told that is too long for one.
func (m *model) mostRows() int { return max(1, min(3, m.h/5)) }

// messageRows are what came of the last key, else the newest bad event.
func (m *model) messageRows() []string {
	undo := ""
	if m.undo != nil {
		if left := m.undo.till.Sub(m.now()); left > 0 {
			undo = "  " + styleBold.Render("u: undo "+span(left)) + " "
		}
	}
	if text := m.clean(m.message.text); text != "" {
		style := ink{}
		if m.message.bad {
			text, style = m.g.warn+" "+text, styleBad
		}
		rows := m.inRows(text, m.w-2-width(undo))
		for i, r := range rows {
			rows[i] = m.sides(" "+style.Render(r), undo, m.w)
			undo = ""
		}
		return rows
	}
	if e := m.newestBad(); e != "" {
		return []string{m.sides(" "+styleWarn.Render(m.g.warn)+" "+e, undo+styleFaint.Render("  5: events "), m.w)}
	}
	return []string{m.sides("", undo, m.w)}
}

// inRows breaks a text into as many rows as a message may have; the last is cut where
// that is not enough.
func (m *model) inRows(text string, w int) []string {
	rows := m.wrap(text, w)
	if n := m.mostRows(); len(rows) > n {
		rows[n-1] = m.cut(strings.Join(rows[n-1:], " "), w)
		rows = rows[:n]
	}
	return rows
}

// hintsRow are the keys that work now, from the table of bindings, as many as there is
// room for (rule 12). The first are the most important; help is always among them.
func (m *model) hintsRow() string {
	var hints []string
	help, seen := "", []string{}
	for _, b := range m.bindings() {
		if b.word == "" || !b.offered(m) || slices.Contains(seen, b.show) {
			continue
		}
		seen = append(seen, b.show)
		hint := styleBold.Render(m.keyName(b.show)) + " " + b.word
		if b.show == "?" {
			help = "  " + hint
			continue
		}
		// These hints come first when they get the run going again.
		if hints = append(hints, hint); b.show == resumeKey || b.show == pauseKey && m.launchesNothing() {
			hints = append([]string{hint}, hints[:len(hints)-1]...)
		}
	}
	return " " + m.most(hints, "  ", m.w-1-width(help)) + help
}

// keyName is a key as the footer and the help write it.
func (m *model) keyName(key string) string {
	return strings.NewReplacer("enter", m.g.enter, "left", m.g.left, "right", m.g.right).Replace(key)
}
