package tui

import (
	"slices"

	tea "charm.land/bubbletea/v2"
)

// binding is what one key does. The table of bindings is the only place where a key
// is named: what it does, the footer's hints and the help come from it (rule 12).
type binding struct {
	keys  []string          // as Bubble Tea names them
	show  string            // as the footer and the help show them
	word  string            // what it does, one or two words, for the footer; "": not in the footer
	help  string            // what it does, a line, for the help
	group string            // heading in the help
	when  func(*model) bool // nil: always
	do    func(*model) tea.Cmd
}

func (b *binding) offered(m *model) bool { return b.when == nil || b.when(m) }

// bindings are those that count now, the focused pane's before the general ones.
func (m *model) bindings() []binding {
	return append(slices.Clip(m.focus().keys()), m.general()...)
}

// pressIn does what a key means in a table of bindings; false: nothing.
func (m *model) pressIn(table []binding, key string) (tea.Cmd, bool) {
	for _, b := range table {
		if m.tiny() && m.modal == nil && !slices.Contains([]string{"q", "ctrl+z", "ctrl+l"}, b.keys[0]) {
			continue // nobody acts on what is not seen
		}
		if slices.Contains(b.keys, key) && b.offered(m) {
			return b.do(m), true
		}
	}
	return nil, false
}

// press does what a key means now.
func (m *model) press(key string) tea.Cmd {
	if cmd, is := m.pressIn(m.bindings(), key); is {
		return cmd
	}
	if !m.tiny() && !(m.message.bad && m.message.text != "") { // an error is read first
		m.say(key + " does nothing here; ? lists the keys that do")
	}
	return nil
}

// general are the keys of every pane.
func (m *model) general() []binding {
	all := append(append([]binding{
		{keys: []string{"z"}, show: "z", word: when(m.alone || m.full || len(m.placed) > 1, "zoom"), group: "Views", help: "this pane alone on the screen, over the whole width, and back", do: (*model).zoom},
	}, slices.Concat(m.jobKeys(), m.runKeys(), m.outsideKeys())...), []binding{
		{keys: []string{"tab"}, show: "tab", group: "Views", help: "next view, or next pane where several are on the screen", do: func(m *model) tea.Cmd { return m.turn(1) }},
		{keys: []string{"C"}, show: "C", group: "List", help: "choose the columns of the list",
			when: func(m *model) bool { _, is := m.focus().(interface{ choose() *choices }); return is }, do: (*model).chooseColumns},
		{keys: []string{"shift+tab"}, show: "shift+tab", group: "Views", help: "the one before", do: func(m *model) tea.Cmd { return m.turn(-1) }},
	}...)
	for i := range tabs {
		help := tabNames[i]
		if m.hasSides() {
			help += "; again: with the whole width, and back"
		}
		all = append(all, binding{keys: []string{string('1' + rune(i))}, show: string('1' + rune(i)), group: "Views", help: help,
			do: func(m *model) tea.Cmd { m.openAgain(i); return nil }})
	}
	all = append(all, m.lifeKeys()...)
	return append(all,
		binding{keys: []string{"?"}, show: "?", word: "help", group: "Views", help: "the keys that work here", do: func(m *model) tea.Cmd { m.modal = newHelp(m); return nil }},
		binding{keys: []string{"esc"}, show: "esc", group: "Views", help: "back: close, clear the filter, the selection, fold the summary away", do: (*model).back},
		binding{keys: []string{"q", "ctrl+c"}, show: "q", word: "leave", group: "Views", help: "leave: detach, drain or cancel", do: (*model).leave},
		binding{keys: []string{"ctrl+z"}, show: "ctrl+z", group: "Views", help: "suspend the screen; the run goes on", do: (*model).suspend},
		binding{keys: []string{"ctrl+l"}, show: "ctrl+l", group: "Views", help: "draw anew", do: func(*model) tea.Cmd { return tea.ClearScreen }},
	)
}

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
