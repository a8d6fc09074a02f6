package tui

import (
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"dcs-tui/internal/text"
)

// binding defines what a key does in a view. Its action, the footer, and the help come from it
// (rule 12).
type binding struct {
	names     string            // of entries of keyTable, separated by blanks
	keys      []string          // Bubble Tea's names; the footer shows the first
	label     string            // the action, for the footer; "": not in the footer
	help      string            // the action, for the help; "": not in the help
	group     string            // heading in the help
	condition func(*model) bool // whether the key works now; nil: always
	whyNot    string            // why it does not work while the condition is false; "": obvious
	acts      bool              // it does more than move, show, or filter something
	do        func(*model) tea.Cmd
}

// key returns a binding for entries of keyTable. Its keys are set by withKeys.
func key(names, word, help string, do func(*model) tea.Cmd) binding {
	return binding{names: names, label: word, help: help, do: do}
}

// withKeys sets the keys of bindings, as the user has chosen them.
func (m *model) withKeys(table []binding) []binding {
	out := make([]binding, 0, len(table))
	for _, b := range table {
		b.keys = m.keysFor(b.names)
		if len(b.keys) > 0 {
			out = append(out, b)
		}
	}
	return out
}

// onlyIf returns a binding that works only under a condition.
func (b binding) onlyIf(is func(*model) bool) binding {
	b.condition = is
	return b
}

// orSay sets the reason that is shown where the condition is false.
func (b binding) orSay(whyNot string) binding {
	b.whyNot = whyNot
	return b
}

// thatActs returns a binding that does more than move, show, or filter something.
func (b binding) thatActs() binding {
	b.acts = true
	return b
}

// withGroup puts bindings under a heading of the help.
func withGroup(group string, keys ...binding) []binding {
	for i := range keys {
		keys[i].group = group
	}
	return keys
}

// screenAction returns the action of a key that changes only the screen.
func screenAction(do func()) func(*model) tea.Cmd {
	return func(*model) tea.Cmd {
		do()
		return nil
	}
}

func (b *binding) isOffered(m *model) bool { return b.condition == nil || b.condition(m) }

// firstKey returns the name of the key in the footer.
func (b *binding) firstKey() string { return b.keys[0] }

// bindings returns the keys that work now, those of the focused pane before the general ones.
func (m *model) bindings() []binding {
	return m.withKeys(append(slices.Clip(m.focus().keys()), m.generalKeys()...))
}

// pressIn executes a key according to a table of bindings. It returns false if the key has no
// meaning there.
func (m *model) pressIn(table []binding, key string) (tea.Cmd, bool) {
	for _, b := range m.withKeys(table) {
		if m.isTiny() && m.modal == nil && !slices.Contains([]string{"leave", "suspend", "redraw"}, b.names) {
			continue // a key must not act on invisible items
		}
		if slices.Contains(b.keys, key) && b.isOffered(m) {
			return b.do(m), true
		}
	}
	return nil, false
}

// findBinding returns the binding of a key that works now, or nil.
func (m *model) findBinding(key string) *binding {
	for _, b := range m.bindings() {
		if slices.Contains(b.keys, key) && b.isOffered(m) {
			return &b
		}
	}
	return nil
}

// bindingOf returns the binding of an entry of keyTable that works now, or nil. So an entry without a
// key is still a command.
func (m *model) bindingOf(name string) *binding {
	for _, b := range append(slices.Clip(m.focus().keys()), m.generalKeys()...) {
		if slices.Contains(strings.Fields(b.names), name) && b.isOffered(m) {
			return &b
		}
	}
	return nil
}

// press executes a key.
func (m *model) press(key string) tea.Cmd {
	m.pressedKey, m.inPress = key, true
	defer func() { m.inPress = false }()
	table := m.bindings()
	if m.findBinding(key) != nil {
		m.dismissWarnings()
	}
	if cmd, is := m.pressIn(table, key); is {
		return cmd
	}
	if m.isTiny() || m.message.isError && !m.message.isHint { // an error is read first
		return nil
	}
	why := key + " does nothing here; " + m.keyFor("help") + " lists the keys that do"
	for _, b := range table {
		if slices.Contains(b.keys, key) && b.whyNot != "" {
			why = b.whyNot
			break
		}
	}
	m.showError(why)
	m.message.isHint = true
	return nil
}

// generalKeys returns the keys of every pane.
func (m *model) generalKeys() []binding {
	zoomed := m.viewZoomed || m.extraZoomed || len(m.placed) > 1
	views := []binding{
		key("next-view", "", "next view, or next pane where several are on the screen",
			func(m *model) tea.Cmd { return m.focusNext(1) }),
		key("previous-view", "", "the previous one", func(m *model) tea.Cmd { return m.focusNext(-1) }),
	}
	for i := range numTabs {
		help := tabNames[i] + text.If(m.isWide(), "; again: with the whole width, and back")
		views = append(views, key(viewNames()[i], "", help, screenAction(func() { m.openOrWiden(i) })))
	}
	return slices.Concat(
		withGroup("Views", key("zoom", text.If(zoomed, "zoom"),
			"this pane alone on the screen, over the whole width, and back", (*model).zoom)),
		m.jobKeys(), m.runKeys(), m.outsideKeys(), withGroup("Views", views...),
		withGroup("List", key("columns", "", "choose the columns of the list",
			(*model).chooseColumns).onlyIf(func(m *model) bool { return m.focus().columnChoices() != nil }).
			orSay("this view has no columns to choose")),
		m.resumeKeys(),
		withGroup("Views",
			key("help", "help", "the keys that work here", (*model).openHelp),
			key("back", "", "back: close, clear the filter, the selection, fold the summary away",
				(*model).closeInnermost),
			key("leave", "leave", "leave: detach, drain or cancel", (*model).leave),
			key("suspend", "", "suspend the screen; the run continues", (*model).suspend),
			key("redraw", "", "redraw", func(*model) tea.Cmd { return tea.ClearScreen }),
		),
	)
}

// maxMove is a move to the end of any list.
const maxMove = 1 << 30

// moveKeys returns the keys that move in a list. rows returns the number of visible rows, and move
// moves.
func moveKeys(rows func() int, move func(m *model, by int)) []binding {
	by := func(n int) func(*model) tea.Cmd {
		return func(m *model) tea.Cmd { move(m, n); return nil }
	}
	pages := func(sign, parts int) func(*model) tea.Cmd {
		return func(m *model) tea.Cmd { move(m, sign*max(1, rows()/parts)); return nil }
	}
	return withGroup("Move",
		key("down", "", "down", by(1)),
		key("up", "", "up", by(-1)),
		key("half-page-down", "", "down half a page", pages(1, 2)),
		key("half-page-up", "", "up half a page", pages(-1, 2)),
		key("page-down", "", "down a page", pages(1, 1)),
		key("page-up", "", "up a page", pages(-1, 1)),
		key("first", "", "to the first", by(-maxMove)),
		key("last", "", "to the last", by(maxMove)),
	)
}

// keyName returns a key in the notation of the footer and the help.
func (m *model) keyName(key string) string {
	return strings.NewReplacer("enter", m.glyphs.enter, "left", m.glyphs.left, "right", m.glyphs.right).Replace(key)
}
