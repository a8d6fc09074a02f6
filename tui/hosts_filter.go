package tui

import (
	"strings"

	tea "charm.land/bubbletea/v2"

	"dcs-tui/dispatch/view"
)

// matches says whether every word of the filter stands in the host's name, its state or
// the reason for it.
func (p *hostsPane) matches(m *model, h *view.Host, words []string) bool {
	text := strings.ToLower(strings.Join([]string{h.Name, hostWord(h), m.clean(h.Reason)}, "\n"))
	for _, w := range words {
		if !strings.Contains(text, w) {
			return false
		}
	}
	return true
}

// show puts the cursor on a host, whatever the filter is.
func (p *hostsPane) show(name string) { p.filter, p.cursor = "", name }

// clear takes the filter away; false: there was none.
func (p *hostsPane) clear() bool {
	had := p.filter != ""
	p.filter = ""
	return had
}

// openFilter opens the line of the filter; the list follows what is typed.
func (p *hostsPane) openFilter(m *model) tea.Cmd {
	set := func(_ *model, s string) tea.Cmd { p.filter = strings.TrimSpace(s); return nil }
	m.modal = &input{prompt: "filter hosts: /", text: newEdited(p.filter), changed: set,
		done: func(m *model, s string) (tea.Cmd, error) { return set(m, s), nil },
		left: func(m *model) tea.Cmd { return set(m, "") }}
	return nil
}
