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

// press does what a key means now.
func (m *model) press(key string) tea.Cmd {
	for _, b := range m.bindings() {
		if m.tiny() && !slices.Contains([]string{"q", "ctrl+z", "ctrl+l"}, b.keys[0]) {
			continue // nobody acts on what is not seen
		}
		if slices.Contains(b.keys, key) && b.offered(m) {
			return b.do(m)
		}
	}
	if !m.tiny() && !(m.message.bad && m.message.text != "") { // an error is read first
		m.say(key + " does nothing here; ? lists the keys that do")
	}
	return nil
}

// general are the keys of every pane.
func (m *model) general() []binding {
	all := append(append(m.jobKeys(), m.runKeys()...), []binding{
		{keys: []string{"tab"}, show: "tab", group: "Views", help: "next view, or next pane where several are on the screen", do: func(m *model) tea.Cmd { return m.turn(1) }},
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
