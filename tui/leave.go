package tui

import (
	"fmt"

	tea "charm.land/bubbletea/v2"

	"dcs-tui/jobs"
	"dcs-tui/jobs/runview"
)

// leave ends the screen; while the run goes on it asks what is to become of it.
func (m *model) leave() tea.Cmd {
	if m.pic == nil || m.over() {
		return tea.Quit
	}
	m.modal = &leaveModal{}
	return nil
}

// leaveModal asks what is to become of the run. Its keys are bindings, so that what is
// drawn is what works.
type leaveModal struct{}

func (l *leaveModal) keys(m *model) []binding {
	drain := binding{keys: []string{"r"}, show: "r", word: "drain", help: "what runs finishes, nothing more starts, then the run ends", do: func(m *model) tea.Cmd {
		m.modal = nil
		return m.act(runview.Action{Do: runview.DrainRun})
	}}
	if m.pic.Draining != "" {
		drain = binding{keys: []string{pauseKey}, show: pauseKey, word: "continue", help: "launch again: the drain is over, the run is not", do: func(m *model) tea.Cmd {
			m.modal = nil
			return m.pauseWith(runview.Continue)
		}}
	}
	return []binding{
		{keys: []string{"d", "ctrl+c", "q"}, show: "d", word: "detach", help: "the run goes on in the background", do: func(*model) tea.Cmd { return tea.Quit }},
		drain,
		{keys: []string{"c"}, show: "c", word: "cancel", help: "everything that runs or waits is ended (asks again)", do: cancelRun},
		{keys: []string{"esc", "n"}, show: "esc", word: "stay", help: "back to the screen", do: func(m *model) tea.Cmd { m.modal = nil; return nil }},
	}
}

func (l *leaveModal) key(m *model, k tea.KeyPressMsg) tea.Cmd {
	for _, b := range l.keys(m) {
		for _, name := range b.keys {
			if name == k.String() {
				return b.do(m)
			}
		}
	}
	return nil
}

func (l *leaveModal) draw(m *model, w, h int) []string {
	t := counts(m.pic)
	name := m.clean(m.pic.Run.Name)
	count := fmt.Sprintf("%s, %s queued.", going(t), thousands(t.queued))
	title := fmt.Sprintf(" Leave %s? ", m.cut(name, max(8, w/2)))
	if width(title)+width(count) > w {
		title = " Leave? "
	}
	if width(title)+width(count) > w {
		count = fmt.Sprintf("%s run, %s wait.", thousands(t.running+t.handed), thousands(t.queued))
	}
	out := []string{styleBold.Render(title) + count}
	wide := 7
	for _, b := range l.keys(m) {
		wide = max(wide, len(b.word))
	}
	for _, b := range l.keys(m) {
		help := b.help
		if b.word == "detach" {
			help += "; dcs-tui attach " + name + " comes back"
		}
		if width(help) > w-7-wide { // too long: use the short form
			help = leaveShort[b.word]
		}
		out = append(out, "  "+styleBold.Render(m.fit(b.show, 4))+m.fit(b.word, wide)+" "+help)
	}
	if len(out) > h { // the words alone
		line := ""
		for _, b := range l.keys(m) {
			line += " " + styleBold.Render(b.show) + " " + b.word + " "
		}
		return []string{line}
	}
	return out
}

// leaveShort says in at most 26 letters what the keys do.
var leaveShort = map[string]string{
	"detach": "the run goes on", "drain": "runs finish, then it ends", "continue": "launch again", "cancel": "all is ended (asks again)", "stay": "back to the screen",
}

// going says how many jobs run, in a sentence.
func going(t tally) string {
	s := thousands(t.running) + " running"
	if t.handed > 0 {
		s += ", " + thousands(t.handed) + " handed"
	}
	return s
}

// cancelRun says what would be lost, and asks (rule 9).
func cancelRun(m *model) tea.Cmd {
	all := jobs.Ranges{{First: 1, Last: jobs.ID(max(1, m.pic.Total))}}
	return m.weigh(all, func(m *model, w runview.Weight) tea.Cmd {
		m.modal = newConfirmation("Cancel the whole run?", loss(w), w.Running+w.Handed+w.Queued, func(m *model) tea.Cmd {
			return m.act(runview.Action{Do: runview.CancelRun})
		})
		return nil
	})
}
