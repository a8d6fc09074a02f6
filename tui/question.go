package tui

import (
	"strings"

	tea "charm.land/bubbletea/v2"

	"dcs-tui/jobs/live"
	"dcs-tui/jobs/runview"
)

// question puts the dispatcher's question to the person, once (live.Question). It
// does not take the place of what a person is typing or answering.
func (m *model) question() tea.Cmd {
	asked, open := m.modal.(*questionModal)
	q := (*live.Question)(nil)
	if m.pic != nil && !m.over() {
		q = m.pic.Question
	}
	switch {
	case q == nil && open: // another screen has answered
		m.modal = nil
		m.say("the question was answered elsewhere, or is no longer asked")
	case q == nil || q.ID == m.replied:
	case open && asked.q.ID == q.ID:
	case open || m.modal == nil:
		m.modal = &questionModal{q: *q}
	}
	return nil
}

// questionModal is a line to answer the dispatcher in. A secret is not shown, not
// even how long it is.
type questionModal struct {
	q    live.Question
	text edited
}

func (p *questionModal) key(m *model, k tea.KeyPressMsg) tea.Cmd {
	switch k.String() {
	case "enter":
		if len(p.text.text) == 0 {
			return nil // an empty answer would be a refusal
		}
		return p.reply(m, p.text.String())
	case "esc":
		return p.reply(m, "")
	case "ctrl+c": // leaving the screen refuses nothing: it is asked again
		m.modal = nil
		return m.leave()
	}
	p.text.key(k)
	return nil
}

// paste takes what was pasted, up to the end of its first line.
func (p *questionModal) paste(_ *model, s string) tea.Cmd {
	s, _, _ = strings.Cut(s, "\n")
	if len(s) <= maxTyped {
		p.text.insert(strings.TrimRight(s, "\r"))
	}
	return nil
}

func (p *questionModal) reply(m *model, text string) tea.Cmd {
	m.modal, m.replied = nil, p.q.ID
	clear(p.text.text) // a secret stays in memory no longer than it must
	do := m.act(runview.Action{Do: runview.Reply, Number: int(p.q.ID), Text: text})
	return func() tea.Msg { return replied{do()} }
}

// replied is what came of an answer: one that did not arrive is asked for again.
type replied struct{ msg tea.Msg }

func (r replied) apply(m *model) tea.Cmd {
	a, ok := r.msg.(answered)
	if !ok {
		return nil
	}
	if a.err != nil {
		m.replied = 0
	}
	m.heard(a)
	return nil
}

func (p *questionModal) draw(m *model, w, h int) []string {
	var out []string
	for _, l := range m.wrap(m.g.question+" "+m.clean(p.q.Text), w-2) {
		out = append(out, " "+styleBold.Render(l))
	}
	out = out[:min(len(out), max(1, h-2))]
	typed := " " + p.text.view(m, w-2)
	if p.q.Secret {
		typed = " " + styleHere.Render(" ") + styleFaint.Render(" (what is typed is not shown)")
	}
	return append(out, typed, styleFaint.Render(" "+m.g.enter+" answers, esc refuses"))
}
