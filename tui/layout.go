package tui

import (
	"strings"

	tea "charm.land/bubbletea/v2"

	"dcs-tui/jobs"
	"dcs-tui/observe/runview"
)

// placedPane is a pane with its position on the screen.
type placedPane struct {
	pane       pane
	x, y, w, h int // including its title or its border
	border     bool
}

// The sizes at which the layout changes.
const (
	tinyW, tinyH   = 40, 10 // below: the counts and "too small"
	smallW, smallH = 60, 15 // below: a summary and a list
	wideW          = 120    // from this width on, Hosts is beside the view
	roomyW         = 150    // from this width on, the view gets a smaller share of the width
	tallH          = 36     // from this height on, Events is below them
)

// View returns the frame. It is redrawn only if something has changed (rule 3).
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
	m.frame = strings.Join(m.screenRows(), "\n")
}

// screenRows returns the rows of the screen. There are exactly m.h.
func (m *model) screenRows() []string {
	m.placed = m.placed[:0]
	if m.isTiny() {
		return m.fitRows(m.tooSmall(), m.h)
	}
	if p, ok := m.modal.(*textModal); ok && p.fullScreen {
		return m.fitRows(p.draw(m, m.w, m.h), m.h)
	}
	head := m.header()
	foot := m.footer()
	body := m.h - len(head) - len(foot)
	m.placePanes(len(head), body)
	rows := m.composePanes(len(head), body)
	if m.modal == nil { // the focused pane, whose keys are shown, is known only now
		foot = m.footer()
	}
	return m.fitRows(append(append(head, rows...), foot...), m.h)
}

// fitRows cuts or pads the rows to n rows of the screen's width.
func (m *model) fitRows(rows []string, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = m.fit(textAt(rows, i), m.w)
	}
	return out
}

// isTiny reports whether there is space only for the counts.
func (m *model) isTiny() bool { return m.w < tinyW || m.h < tinyH }

// isSmall reports whether there is space only for a summary and a list.
func (m *model) isSmall() bool { return m.w < smallW || m.h < smallH }

// placePanes distributes the rows y to y+h-1 among the panes, in the order in which tab visits
// them.
func (m *model) placePanes(y, h int) {
	wide := m.isWide()
	tall := m.h >= tallH && !m.isSmall()
	main := m.panes[m.tab]
	put := func(p pane, x, y, w, h int) { m.placed = append(m.placed, placedPane{p, x, y, w, h, wide}) }
	low := 0 // rows for the panes below
	switch {
	case m.extraZoomed && m.extra != nil && m.lowerFocused:
		put(m.extra, 0, y, m.w, h)
		return
	case m.viewZoomed && !m.lowerFocused:
		put(m.panes[m.focusedTab], 0, y, m.w, h)
		return
	case tall:
		low = h * 2 / 5
	case m.extra != nil && h >= 12:
		low = h / 2
	case m.extra != nil && m.lowerFocused: // there is no space for both
		put(m.extra, 0, y, m.w, h)
		return
	}
	share := 62 // width of the view in percent, where Hosts or Events are beside it
	if m.w >= roomyW {
		share = 58
	}
	left := m.w
	if wide && !m.hasFullWidth() {
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
		put(m.lowerPane(), 0, y, m.w, low)
	case m.extra == nil && m.tab == tabResults && !m.results.showsRows(): // no job whose output could be shown
		put(events, 0, y, m.w, low)
	case wide:
		half := m.w * share / 100
		put(m.lowerPane(), 0, y, half, low)
		put(events, half, y, m.w-half, low)
	default:
		put(m.lowerPane(), 0, y, m.w, low-low/3)
		put(events, 0, y+low-low/3, m.w, low/3)
	}
}

// lowerPane returns the pane under the view: the opened pane or, without one, the output of the job
// under the cursor.
func (m *model) lowerPane() pane {
	if m.extra != nil {
		return m.extra
	}
	return m.cursorOutput
}

// composePanes draws the placed panes into h rows. The first row is row y of the screen.
func (m *model) composePanes(y, h int) []string {
	rows := make([]string, h)
	for _, p := range m.placed { // in order of x within each row
		for i, l := range m.drawPane(p) {
			if r := p.y - y + i; r < h {
				rows[r] += l
			}
		}
	}
	return rows
}

// drawPane draws one pane with its title, exactly p.h rows of p.w cells.
func (m *model) drawPane(p placedPane) []string {
	focused := m.modal == nil && m.focus() == p.pane
	title := p.pane.title(m)
	out := make([]string, 0, p.h)
	if !p.border {
		if p.pane != m.panes[m.tab] { // the tabs already name the view
			out = append(out, m.rule(title, p.w, focused))
		}
		content := p.pane.draw(m, p.w, p.h-len(out), focused)
		for i := 0; len(out) < p.h; i++ {
			out = append(out, m.fit(textAt(content, i), p.w))
		}
		return out
	}
	line, side, c := m.glyphs.line, m.glyphs.vertical, m.glyphs.corners
	if focused {
		line, side, c = m.glyphs.heavy, m.glyphs.heavyVertical, m.glyphs.heavyCorners
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
		out = append(out, side+m.fit(textAt(content, i), inner)+side)
	}
	return append(out, c[2]+strings.Repeat(line, inner)+c[3])
}

// rule returns a title in a line across the screen.
func (m *model) rule(title string, w int, focused bool) string {
	line := m.glyphs.line
	if focused {
		line = m.glyphs.heavy
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

func textAt(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return ""
}

// pane is a part of the screen with its own keys. All methods are called by the goroutine that owns
// the model. Panes embed noPane for the methods that they do not need.
type pane interface {
	// title returns the line over the pane, which describes what it shows.
	title(m *model) string
	// draw returns the pane's content: at most h lines of at most w cells. Texts from outside must
	// have passed clean or fit.
	draw(m *model, w, h int, focused bool) []string
	// addToQuery adds what the pane needs from the source, for the size at which it was last drawn.
	addToQuery(m *model, ask *runview.Query)
	// keys returns the pane's own keys. They take precedence over the general keys.
	keys() []binding

	onSnapshot(m *model)                  // handles a new snapshot
	filterAndOrder(m *model) string       // filter and order of the view
	click(m *model, row int)              // moves the cursor; row 0 is the first row of the content
	clearSelectionOrFilter(m *model) bool // clears the selection or the filter; false: there was none
	columnChoices() *columnChoices        // of columns; nil: the pane has none
	// newestSlip returns the newest slip (nil: the cursor cannot slip); on describes the item under
	// the cursor.
	newestSlip(m *model) (newest *slip, on string)
	textToCopy(m *model) (what, text string) // what `y` copies; "": the command of the job

	// Methods of panes with a job under the cursor:
	hasJobs() bool                           // keys for jobs work here
	currentJob(m *model) (runview.Row, bool) // the job; false: unknown, or there is none
	selectedJobs(m *model) jobs.Ranges       // the selected jobs
	pinCursor()                              // keeps the cursor on its job
}

// noPane has nothing under its cursor.
type noPane struct{}

func (noPane) addToQuery(*model, *runview.Query)  {}
func (noPane) onSnapshot(*model)                  {}
func (noPane) filterAndOrder(*model) string       { return "" }
func (noPane) click(*model, int)                  {}
func (noPane) clearSelectionOrFilter(*model) bool { return false }
func (noPane) columnChoices() *columnChoices      { return nil }
func (noPane) newestSlip(*model) (*slip, string)  { return nil, "" }
func (noPane) textToCopy(*model) (string, string) { return "", "" }
func (noPane) hasJobs() bool                      { return false }
func (noPane) selectedJobs(*model) jobs.Ranges    { return nil }
func (noPane) pinCursor()                         {}

// currentJob returns the job under the cursor of the list of jobs: commands and the output below
// may use it. targetJobs does not.
func (noPane) currentJob(m *model) (runview.Row, bool) { return m.jobs.cursorJob() }

// tab is one of the five views.
type tab int

const (
	tabJobs tab = iota
	tabHosts
	tabFailed
	tabResults
	tabEvents
	numTabs
)

var tabNames = [numTabs]string{"Jobs", "Hosts", "Failed", "Results", "Events"}

// modal receives all keys until it is closed: a question, an input line, or the help. It closes
// itself with m.modal = nil.
type modal interface {
	key(m *model, msg tea.KeyPressMsg) tea.Cmd
	// draw returns at most h lines that replace the footer.
	draw(m *model, w, h int) []string
}

// showMatchingJobs shows the list of jobs with a filter. Esc returns to the view.
func (m *model) showMatchingJobs(filter string) tea.Cmd {
	t, before := m.focusedTab, m.jobs.filter
	m.jobs.narrowDown(filter, func() {
		m.jobs.setFilter(before)
		m.openView(t)
	})
	m.openView(tabJobs)
	return nil
}

// showJob shows the list of jobs with the cursor on a job.
func (m *model) showJob(id jobs.ID) tea.Cmd {
	m.jobs.filter = ""
	m.jobs.moveToJob(id)
	m.openView(tabJobs)
	return nil
}

// handleMouse opens the view whose title is clicked. Otherwise, it gives the pane under the mouse the
// focus, and moves its cursor to the clicked row.
func (m *model) handleMouse(msg tea.MouseMsg) tea.Cmd {
	at := msg.Mouse()
	if m.modal != nil {
		return nil
	}
	if click, ok := msg.(tea.MouseClickMsg); ok && click.Button == tea.MouseLeft {
		if t, ok := m.tabAt(at.X, at.Y); ok && m.tabsAt > 0 {
			m.openView(t)
			return nil
		}
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
			if p.border || p.pane != m.panes[m.tab] { // a title is above the content
				row--
			}
			if row >= 0 {
				p.pane.click(m, row)
			}
		case tea.MouseWheelMsg:
			m.focusOn(p.pane)
			name := map[tea.MouseButton]string{tea.MouseWheelUp: "up", tea.MouseWheelDown: "down"}[msg.Button]
			if len(m.keysFor(name)) == 0 {
				return nil
			}
			for range wheelRows {
				m.press(m.keyFor(name))
			}
		}
		return nil
	}
	return nil
}

// wheelRows is the number of rows that one notch of the wheel scrolls.
const wheelRows = 3

// focusOn gives a visible pane the focus.
func (m *model) focusOn(p pane) {
	m.lowerFocused = p == m.lowerPane()
	for t, x := range m.panes {
		if x == p {
			m.focusedTab = tab(t)
		}
	}
}
