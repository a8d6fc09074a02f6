package tui

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"

	"dcs-tui/jobs"
	"dcs-tui/jobs/runview"
)

// detailPane shows all that is known of one job: what it runs and needs, why it is
// where it is, and each attempt.
type detailPane struct {
	job  jobs.ID
	row  runview.Row // the newest known
	all  *runview.Detail
	top  int // first line shown
	h, n int // lines on the screen, in all
}

// openDetail shows the details of a job.
func (m *model) openDetail(id jobs.ID) tea.Cmd {
	p := &detailPane{job: id}
	if r, ok := m.job(); ok && r.ID == id {
		p.row = r
	}
	m.full = m.full && m.onExtra
	m.extra, m.onExtra = p, true
	p.see(m)
	return nil
}

func (p *detailPane) see(m *model) {
	if m.pic != nil && m.pic.Detail != nil && m.pic.Detail.Row.ID == p.job {
		p.all, p.row = m.pic.Detail, m.pic.Detail.Row
	}
}

func (p *detailPane) title(m *model) string {
	s := fmt.Sprintf("job %d", p.job)
	if p.row.ID == p.job {
		s += " " + m.g.dot + " " + m.g.phase[min(p.row.Phase, runview.Phases-1)] + " " + p.row.Phase.String()
	}
	if p.n > p.h && p.h > 0 {
		s += fmt.Sprintf(" %s line %d of %d", m.g.dot, p.top+1, p.n)
	}
	return s + m.beside(p.job)
}

func (p *detailPane) ask(m *model, ask *runview.Ask) { ask.Focus = p.job }

func (p *detailPane) current(*model) (runview.Row, bool) { return p.row, p.row.ID == p.job }

func (p *detailPane) keys() []binding {
	const group = "Details"
	move := func(by func() int) func(*model) tea.Cmd {
		return func(m *model) tea.Cmd { p.scroll(by()); return nil }
	}
	return []binding{
		{keys: []string{"l"}, show: "l", word: "log", group: group, help: "what the job prints", do: func(m *model) tea.Cmd { return m.openOutput(p.job) }},
		{keys: []string{"j", "down"}, show: "j k", group: group, help: "a line down, up", do: move(func() int { return 1 })},
		{keys: []string{"k", "up"}, group: group, do: move(func() int { return -1 })},
		{keys: []string{"pgdown", "ctrl+f", "ctrl+d"}, show: "pgup pgdn", group: group, help: "a page down, up", do: move(func() int { return max(1, p.h-1) })},
		{keys: []string{"pgup", "ctrl+b", "ctrl+u"}, group: group, do: move(func() int { return -max(1, p.h-1) })},
		{keys: []string{"g", "home"}, show: "g G", group: group, help: "first and last line", do: move(func() int { return -p.n })},
		{keys: []string{"G", "end"}, group: group, do: move(func() int { return p.n })},
		{keys: []string{"z"}, show: "z", word: "full", group: group, help: "the whole screen, and back", do: (*model).zoom},
	}
}

func (p *detailPane) scroll(by int) { p.top = max(0, min(p.top+by, p.n-p.h)) }

func (p *detailPane) draw(m *model, w, h int, focused bool) []string {
	if p.all == nil {
		return []string{styleFaint.Render("asking the dispatcher " + m.g.cut)}
	}
	lines := p.lines(m, w)
	p.h, p.n = h, len(lines)
	p.scroll(0)
	return limit(lines[p.top:], h)
}

// labelColumn is the width of the names of things.
const labelColumn = 10

// labelled are the lines of one thing: its name at the left, the rest beside it,
// wrapped between words.
func (m *model) labelled(label, text string, w int) []string {
	if text == "" {
		return nil
	}
	return beside(label, m.wrap(text, max(8, w-labelColumn-1)))
}

func beside(label string, lines []string) []string {
	const column = labelColumn
	var out []string
	for i, l := range lines {
		head := strings.Repeat(" ", column)
		if i == 0 {
			head = styleFaint.Render(label + strings.Repeat(" ", max(1, column-len(label))))
		}
		out = append(out, head+" "+l)
	}
	return out
}
