package tui

import (
	"strings"

	tea "charm.land/bubbletea/v2"

	"dcs-tui/jobs"
	"dcs-tui/jobs/runview"
)

// placed is a pane with its place on the screen.
type placed struct {
	pane       pane
	x, y, w, h int // with its title, or its border
	border     bool
}

// The sizes at which the screen changes.
const (
	tinyW, tinyH   = 40, 10 // below: the counts and "too small"
	smallW, smallH = 60, 15 // below: a summary and a list
	wideW          = 120    // from here on Hosts stands beside the view
	roomyW         = 150    // from here on the view needs less of the width
	tallH          = 36     // from here on Events stand under it
)

// View returns the frame. It is drawn again only when something has changed (rule 3).
func (m *model) View() tea.View {
	m.draw()
	v := tea.NewView(m.frame)
	v.AltScreen = true
	if m.opt.Mouse {
		v.MouseMode = tea.MouseModeCellMotion
	}
	return v
}

// draw fills m.frame and m.placed.
func (m *model) draw() {
	if m.frame != "" {
		return
	}
	m.frame = strings.Join(m.lines(), "\n")
}

// lines returns the rows of the screen, exactly m.h of them.
func (m *model) lines() []string {
	m.placed = m.placed[:0]
	if m.tiny() {
		return m.exactly(m.tooSmall(), m.h)
	}
	if o, ok := m.modal.(overlay); ok {
		return m.exactly(o.screen(m, m.w, m.h), m.h)
	}
	head := m.header()
	foot := m.footer()
	body := m.h - len(head) - len(foot)
	m.place(len(head), body)
	rows := m.compose(len(head), body)
	if m.modal == nil { // the pane with the focus, whose keys are shown, is known only now
		foot = m.footer()
	}
	return m.exactly(append(append(head, rows...), foot...), m.h)
}

// exactly cuts or fills to n rows of the screen's width.
func (m *model) exactly(rows []string, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = m.fit(at(rows, i), m.w)
	}
	return out
}

// tiny reports whether there is room only for the counts.
func (m *model) tiny() bool { return m.w < tinyW || m.h < tinyH }

// small reports whether there is room for a summary and a list only.
func (m *model) small() bool { return m.w < smallW || m.h < smallH }

// place divides the rows y to y+h-1 among the panes, in the order in which tab visits them.
func (m *model) place(y, h int) {
	wide := m.hasSides()
	tall := m.h >= tallH && !m.small()
	main := m.panes[m.tab]
	put := func(p pane, x, y, w, h int) { m.placed = append(m.placed, placed{p, x, y, w, h, wide}) }
	low := 0 // rows for what stands below
	switch {
	case m.full && m.extra != nil && m.onExtra:
		put(m.extra, 0, y, m.w, h)
		return
	case m.alone && !m.onExtra:
		put(m.panes[m.side], 0, y, m.w, h)
		return
	case tall:
		low = h * 2 / 5
	case m.extra != nil && h >= 12:
		low = h / 2
	case m.extra != nil && m.onExtra: // no room for both
		put(m.extra, 0, y, m.w, h)
		return
	}
	share := 62 // percent for the view, where Hosts or Events stand beside
	if m.w >= roomyW {
		share = 58
	}
	left := m.w
	if wide && !m.hasWhole() {
		left = m.w * share / 100
	}
	put(main, 0, y, left, h-low)
	if left < m.w {
		put(m.panes[tabHosts], left, y, m.w-left, h-low)
	}
	y += h - low
	switch events := m.panes[tabEvents]; {
	case low == 0:
	case !tall || m.tab == tabEvents:
		put(m.below(), 0, y, m.w, low)
	case m.extra == nil && m.tab == tabResults && !m.result.showsRows(): // no job has an output to show
		put(events, 0, y, m.w, low)
	case wide:
		half := m.w * share / 100
		put(m.below(), 0, y, half, low)
		put(events, half, y, m.w-half, low)
	default:
		put(m.below(), 0, y, m.w, low-low/3)
		put(events, 0, y+low-low/3, m.w, low/3)
	}
}

// below returns the pane under the view: what was opened, else the output of the job under
// the cursor.
func (m *model) below() pane {
	if m.extra != nil {
		return m.extra
	}
	return m.under
}

// compose draws the placed panes into h rows, the first of which is row y.
func (m *model) compose(y, h int) []string {
	rows := make([]strings.Builder, h)
	for _, p := range m.placed { // in order of x within each row
		for i, l := range m.box(p) {
			if r := p.y - y + i; r < h {
				rows[r].WriteString(l)
			}
		}
	}
	out := make([]string, h)
	for i := range rows {
		out[i] = rows[i].String()
	}
	return out
}

// box draws one pane with its title, exactly p.h rows of p.w cells.
func (m *model) box(p placed) []string {
	focused := m.modal == nil && m.focus() == p.pane
	title := p.pane.title(m)
	out := make([]string, 0, p.h)
	if !p.border {
		if p.pane != m.panes[m.tab] { // the tabs say what the view is
			out = append(out, m.rule(title, p.w, focused))
		}
		content := p.pane.draw(m, p.w, p.h-len(out), focused)
		for i := 0; len(out) < p.h; i++ {
			out = append(out, m.fit(at(content, i), p.w))
		}
		return out
	}
	line, side, c := m.g.line, m.g.vertical, m.g.corners
	if focused {
		line, side, c = m.g.heavy, m.g.heavyVert, m.g.heavyCorners
	}
	inner := p.w - 2
	name := m.fit(title, min(width(title), max(0, inner-2)))
	if focused {
		name = styleBold.Render(name)
	}
	top := c[0] + line + name + strings.Repeat(line, max(0, inner-1-width(name))) + c[1]
	out = append(out, top)
	content := p.pane.draw(m, inner, p.h-2, focused)
	for i := range p.h - 2 {
		out = append(out, side+m.fit(at(content, i), inner)+side)
	}
	return append(out, c[2]+strings.Repeat(line, inner)+c[3])
}

// rule returns a title as a line across the screen.
func (m *model) rule(title string, w int, focused bool) string {
	line := m.g.line
	if focused {
		line = m.g.heavy
	}
	if title == "" {
		return strings.Repeat(line, w)
	}
	title = m.fit(title, min(width(title), max(0, w-4)))
	if focused {
		title = styleBold.Render(title)
	}
	return line + " " + title + " " + strings.Repeat(line, max(0, w-3-width(title)))
}

func at(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return ""
}

// pane is a part of the screen with its own keys. All methods are called by the goroutine
// that owns the model. Panes embed noPane for what they do not have.
type pane interface {
	// title returns the line over the pane: what it shows, and how.
	title(m *model) string
	// draw returns the pane's content: at most h lines of at most w cells. Texts from
	// outside have passed clean or fit.
	draw(m *model, w, h int, focused bool) []string
	// ask adds what the pane wants to see, for the size it was last drawn in.
	ask(m *model, ask *runview.Ask)
	// keys returns the pane's own keys; they come before those of all panes.
	keys() []binding

	see(m *model)                               // takes the newest picture in
	state(m *model) string                      // how the view is filtered and sorted
	click(m *model, row int)                    // moves the cursor; row 0 is the first of the content
	clear() bool                                // empties selection or filter; false: there was none
	choose() *choices                           // of columns; nil: the pane has none
	slipped(m *model) (newest *slip, on string) // what the cursor is on, in words; nil: it cannot slip
	copied(m *model) (what, text string)        // what `y` copies; "": the command of the job

	// Of panes with a job under the cursor:
	hasJobs() bool                        // keys on jobs work here
	current(m *model) (runview.Row, bool) // the job; false: it is not known, or there is none
	picked() jobs.Ranges                  // the selected jobs
	hold()                                // keeps the cursor on its job
}

// noPane has nothing under its cursor.
type noPane struct{}

func (noPane) ask(*model, *runview.Ask)       {}
func (noPane) see(*model)                     {}
func (noPane) state(*model) string            { return "" }
func (noPane) click(*model, int)              {}
func (noPane) clear() bool                    { return false }
func (noPane) choose() *choices               { return nil }
func (noPane) slipped(*model) (*slip, string) { return nil, "" }
func (noPane) copied(*model) (string, string) { return "", "" }
func (noPane) hasJobs() bool                  { return false }
func (noPane) picked() jobs.Ranges            { return nil }
func (noPane) hold()                          {}

// current returns the job under the cursor of the list of jobs: commands are about it.
func (noPane) current(m *model) (runview.Row, bool) { return m.jobs.job() }

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

// overlay is a modal that takes the whole screen. It may have the method ask of a pane.
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
			if row >= 0 {
				p.pane.click(m, row)
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
