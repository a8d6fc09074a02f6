package tui

import (
	tea "charm.land/bubbletea/v2"

	"dcs-tui/jobs"
	"dcs-tui/jobs/runview"
)

// pane is a part of the screen. All methods are called by the goroutine that owns
// the model.
type pane interface {
	// title is the line over the pane: what it shows, and how.
	title(m *model) string
	// draw returns the pane's content: at most h lines of at most w cells. Texts from
	// outside have passed clean or fit.
	draw(m *model, w, h int, focused bool) []string
	// ask adds what the pane wants to see, for the size it was last drawn in.
	ask(m *model, ask *runview.Ask)
	// keys are the pane's own; they come before those of all panes.
	keys() []binding
}

// tab is one of the five views.
type tab int

const (
	tabJobs tab = iota
	tabHosts
	tabFailed
	tabResults
	tabEvents
	tabs
)

var tabNames = [tabs]string{"Jobs", "Hosts", "Failed", "Results", "Events"}

// modal takes all keys until it is closed: a question, a line to type, the help. It
// closes itself with m.modal = nil.
type modal interface {
	key(m *model, k tea.KeyPressMsg) tea.Cmd
	// draw returns the lines that stand in place of the footer, at most h.
	draw(m *model, w, h int) []string
}

// overlay is a modal that takes the whole screen. What it wants to see it asks for
// with a method of a pane, ask.
type overlay interface {
	modal
	screen(m *model, w, h int) []string
}

// showJobs shows the list of jobs with a filter.
func (m *model) showJobs(filter string) tea.Cmd {
	m.jobs.filter = filter
	m.jobs.home()
	m.open(tabJobs)
	return nil
}

// showJob shows the list of jobs with the cursor on one of them.
func (m *model) showJob(id jobs.ID) tea.Cmd {
	m.jobs.filter = ""
	m.jobs.follow(id)
	m.open(tabJobs)
	return nil
}

// clickable is a pane whose rows can be clicked: row 0 is the first of its content.
type clickable interface{ click(m *model, row int) }

// mouse gives the pane under the mouse the focus, and its cursor the row.
func (m *model) mouse(msg tea.MouseMsg) tea.Cmd {
	at := msg.Mouse()
	if m.modal != nil {
		return nil
	}
	for _, p := range m.placed {
		if at.X < p.x || at.X >= p.x+p.w || at.Y < p.y || at.Y >= p.y+p.h {
			continue
		}
		switch msg := msg.(type) {
		case tea.MouseClickMsg:
			if msg.Button != tea.MouseLeft {
				return nil
			}
			m.focusOn(p.pane)
			row := at.Y - p.y
			if p.border || p.pane != m.panes[m.tab] { // a title is above
				row--
			}
			if c, ok := p.pane.(clickable); ok && row >= 0 {
				c.click(m, row)
			}
		case tea.MouseWheelMsg:
			m.focusOn(p.pane)
			key := map[tea.MouseButton]string{tea.MouseWheelUp: "k", tea.MouseWheelDown: "j"}[msg.Button]
			if key == "" {
				return nil
			}
			for range wheelRows {
				m.press(key)
			}
		}
		return nil
	}
	return nil
}

// wheelRows is how far one notch of the wheel goes.
const wheelRows = 3

// focusOn gives a pane on the screen the focus.
func (m *model) focusOn(p pane) {
	m.onExtra = p == m.below()
	for t, x := range m.panes {
		if x == p {
			m.side = tab(t)
		}
	}
}

// click puts the cursor of a list on a row; row 0 is its heading.
func (l *list) click(_ *model, row int) {
	if pos := l.top + row - 1; row > 0 && pos < l.matched() {
		l.move(pos)
	}
}
