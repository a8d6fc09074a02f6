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
		return []string{m.messageRow(), m.hintsRow()}
	case m.message.text != "" || m.undo != nil:
		return []string{m.messageRow()}
	}
	return []string{m.hintsRow()}
}

// messageRow is what came of the last key, else the newest bad event.
func (m *model) messageRow() string {
	undo := ""
	if m.undo != nil {
		if left := m.undo.till.Sub(m.now()); left > 0 {
			undo = "  " + styleBold.Render("u: undo "+span(left)) + " "
		}
	}
	if text := m.clean(m.message.text); text != "" {
		if m.message.bad {
			text = styleBad.Render(m.g.warn + " " + text)
		}
		return m.sides(" "+text, undo, m.w)
	}
	if e := m.newestBad(); e != "" {
		return m.sides(" "+styleWarn.Render(m.g.warn)+" "+e, undo+styleFaint.Render("  5: events "), m.w)
	}
	return m.sides("", undo, m.w)
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
		if hints = append(hints, hint); b.show == resumeKey { // nothing matters more, when it is offered
			hints = append([]string{hint}, hints[:len(hints)-1]...)
		}
	}
	return " " + m.most(hints, "  ", m.w-1-width(help)) + help
}

// keyName is a key as the footer and the help write it.
func (m *model) keyName(key string) string {
	return strings.ReplaceAll(key, "enter", m.g.enter)
}
