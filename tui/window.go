package tui

import tea "charm.land/bubbletea/v2"

// window returns the first of n rows that is shown in h rows, so that row at is among
// them and as little as possible moves from top, where it was before.
func window(top, at, n, h int) int {
	h = max(1, h)
	top = min(top, at)
	top = max(top, at-h+1)
	return max(0, min(top, n-h))
}

// far is a move to the end of any list.
const far = 1 << 30

// moving are the keys that move in a list: rows says how many it shows, move does it.
func moving(rows func() int, move func(m *model, by int)) []binding {
	key := func(show, help string, by func() int, keys ...string) binding {
		return binding{keys: keys, show: show, help: help, group: "Move", do: func(m *model) tea.Cmd { move(m, by()); return nil }}
	}
	is := func(n int) func() int { return func() int { return n } }
	return []binding{
		key("j", "down", is(1), "j", "down"),
		key("k", "up", is(-1), "k", "up"),
		key("ctrl+d", "down half a page", func() int { return max(1, rows()/2) }, "ctrl+d"),
		key("ctrl+u", "up half a page", func() int { return -max(1, rows()/2) }, "ctrl+u"),
		key("PgDn", "down a page", func() int { return max(1, rows()) }, "pgdown", "ctrl+f"),
		key("PgUp", "up a page", func() int { return -max(1, rows()) }, "pgup", "ctrl+b"),
		key("g", "to the first", is(-far), "g", "home"),
		key("G", "to the last", is(far), "G", "end"),
	}
}
