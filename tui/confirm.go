package tui

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"

	"dcs-tui/jobs/live"
	"dcs-tui/jobs/runview"
)

// confirmation asks before something is destroyed (rule 9). No is the default: only y
// does it, or for many jobs their number, typed.
type confirmation struct {
	title, text string
	number      int // to be typed; 0: y is enough
	typed       string
	yes         func(*model) tea.Cmd
}

// manyJobs is how many jobs may be ended with a single key.
const manyJobs = 100

// newConfirmation asks about n jobs.
func newConfirmation(title, text string, n int, yes func(*model) tea.Cmd) *confirmation {
	c := &confirmation{title: title, text: text, yes: yes}
	if n > manyJobs {
		c.number = n
	}
	return c
}

func (c *confirmation) key(m *model, k tea.KeyPressMsg) tea.Cmd {
	key := k.String()
	switch {
	case c.number == 0 && key == "y", c.number > 0 && key == "enter" && strings.ReplaceAll(c.typed, ",", "") == itoa(c.number):
		m.modal = nil
		return c.yes(m)
	case c.number > 0 && key == "backspace":
		c.typed = c.typed[:max(0, len(c.typed)-1)]
		return nil
	case c.number > 0 && len(key) == 1 && strings.Contains("0123456789,", key):
		if len(c.typed) < 12 {
			c.typed += key
		}
		return nil
	}
	m.modal = nil
	m.say("nothing was done")
	return nil
}

func (c *confirmation) draw(m *model, w, h int) []string {
	answer := styleBold.Render("y") + ": yes   any other key: no   [y/N] "
	if c.number > 0 {
		answer = "type " + styleBold.Render(thousands(c.number)) + " and " + m.keyName("enter") + " to do it, esc: no   " + c.typed
	}
	var out []string
	for _, l := range m.wrap(m.clean(c.title), w-2) {
		out = append(out, " "+styleBold.Render(l))
	}
	for _, l := range m.wrap(m.clean(c.text), w-2) {
		out = append(out, " "+styleWarn.Render(l))
	}
	out = out[:min(len(out), max(0, h-1))] // the answer is always seen
	return append(out, " "+answer+styleHere.Render(" "))
}

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
		{keys: []string{"c"}, show: "c", word: "cancel", help: "everything that runs or waits is ended (asks again)", do: (*model).cancelRun},
		{keys: []string{"esc", "n"}, show: "esc", word: "stay", help: "back to the screen", do: func(m *model) tea.Cmd { m.modal = nil; return nil }},
	}
}

func (l *leaveModal) key(m *model, k tea.KeyPressMsg) tea.Cmd {
	cmd, _ := m.pressIn(l.keys(m), k.String())
	return cmd
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
		s += ", " + thousands(t.handed) + " sent to hosts"
	}
	return s
}

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
