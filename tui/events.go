package tui

import (
	"cmp"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"dcs-tui/internal/text"
	"dcs-tui/observe/runview"
)

// eventsPane is the event log. It follows the newest event until the user moves the cursor off it.
// Then the cursor stays on its event, in its row of the screen.
type eventsPane struct {
	noPane
	viewport // of the loaded events
	filter   string
	showsAll bool // every record, not only the important ones

	cursor uint64 // Seq of the event under the cursor; 0: the newest, followed

	newestBad   runview.Event // the newest that needs attention, for the footer
	newestBadAt time.Time     // when the screen has received it
}

func (p *eventsPane) title(m *model) string { return "Events  " + p.filterAndOrder(m) }

func (p *eventsPane) filterAndOrder(m *model) string {
	s := "important"
	if p.showsAll {
		s = "all records"
	}
	s += text.If(p.filter != "", "  /"+m.cutCell(p.filter, 24))
	if events := p.loadedEvents(m); p.cursor == 0 || events == nil {
		s += "  following"
	} else {
		s += "  " + text.Thousands(len(events.Lines)-1-max(0, p.cursorPosition(events))) + " newer: G follows"
	}
	older := p.olderHint(m)
	return s + text.If(older != "", " "+older)
}

// olderHint names the command that shows the events that are not kept here. It returns "" if all
// are kept.
func (p *eventsPane) olderHint(m *model) string {
	if m.snap == nil || m.snap.Events == nil || !m.snap.Events.Cut {
		return ""
	}
	return " older ones: dcs-tui events " + m.clean(m.snap.Run.Name)
}

// addToQuery requests the newest events, one page more than visible, or all if the user has moved the
// cursor off the newest one.
func (p *eventsPane) addToQuery(m *model, ask *runview.Query) {
	w := runview.EventsWindow{Filter: p.filter, All: p.showsAll, Rows: 2 * max(10, p.h)}
	if p.cursor != 0 {
		w.Rows = runview.MaxEvents
	}
	ask.Events = &w
}

// onSnapshot finds the cursor's position in the loaded events.
func (p *eventsPane) onSnapshot(m *model) {
	events := m.snap.Events
	if events == nil {
		return
	}
	for i := range events.Lines {
		if l := &events.Lines[i]; l.Bad && l.Seq > p.newestBad.Seq {
			p.newestBad, p.newestBadAt = *l, m.now()
		}
	}
	n := len(events.Lines)
	if p.cursor == 0 || n == 0 || !m.isShown(p) {
		return
	}
	at, found := slices.BinarySearchFunc(events.Lines, p.cursor,
		func(l runview.Event, seq uint64) int { return cmp.Compare(l.Seq, seq) })
	switch {
	case found:
		p.shiftTo(at)
	case at > 0 || n == events.Total: // hidden by the filter, or not kept any more: use the nearest one
		p.moveTo(events, min(at, n-1))
	}
}

// shiftTo records that the event under the cursor has another position among the loaded events. It
// stays in its row of the screen.
func (p *eventsPane) shiftTo(at int) {
	p.top += at - p.cursorRow
	p.cursorRow = at
}

// cursorPosition returns the position of the cursor among the loaded events, or -1 if it is not
// among them.
func (p *eventsPane) cursorPosition(events *runview.Events) int {
	if p.cursor == 0 {
		return len(events.Lines) - 1
	}
	return slices.IndexFunc(events.Lines, func(l runview.Event) bool { return l.Seq == p.cursor })
}

func (p *eventsPane) moveTo(events *runview.Events, at int) {
	p.cursorRow = at
	p.cursor = events.Lines[at].Seq
	if at == len(events.Lines)-1 {
		p.cursor = 0
	}
}

// loadedEvents returns the loaded events, or nil if there are none yet.
func (p *eventsPane) loadedEvents(m *model) *runview.Events {
	if m.snap == nil || m.snap.Events == nil || len(m.snap.Events.Lines) == 0 {
		return nil
	}
	return m.snap.Events
}

// currentEvent returns the event under the cursor, or nil if it is not loaded.
func (p *eventsPane) currentEvent(m *model) *runview.Event {
	if events := p.loadedEvents(m); events != nil {
		if at := p.cursorPosition(events); at >= 0 {
			return &events.Lines[at]
		}
	}
	return nil
}

func (p *eventsPane) move(m *model, by int) {
	events := p.loadedEvents(m)
	if events == nil {
		return
	}
	at := p.cursorPosition(events)
	switch {
	case by >= maxMove:
		p.cursor = 0
		return
	case by <= -maxMove && len(events.Lines) < events.Total: // the first events are not loaded
		p.cursor = 1
		return
	case at < 0: // the event was requested but has not arrived
		return
	}
	p.shiftTo(at)
	p.moveTo(events, max(0, min(at+by, len(events.Lines)-1)))
	p.clampCursor(len(events.Lines))
}

func (p *eventsPane) click(m *model, row int) { p.move(m, p.top+row-p.cursorRow) }

func (p *eventsPane) textToCopy(m *model) (what, text string) {
	if e := p.currentEvent(m); e != nil {
		return "the event", plainText(m.eventLine(e, maxShown))
	}
	return "", ""
}

func (p *eventsPane) draw(m *model, w, h int, focused bool) []string {
	p.h = h
	events := p.loadedEvents(m)
	switch {
	case m.snap != nil && m.snap.Events != nil && m.snap.Events.Wrong != "":
		return []string{styleBad.Render(" the filter: " + m.clean(m.snap.Events.Wrong))}
	case events == nil && p.filter != "":
		return []string{" no event matches " + m.clean(p.filter) + ": " + m.keyFor("back") + " shows all",
			p.olderHint(m)}
	case events == nil:
		return []string{m.waitingText("no important events yet: " + m.keyFor("all-records") + " shows all records")}
	}
	at := p.cursorPosition(events)
	if at < 0 {
		return []string{" " + m.glyphs.ellipsis}
	}
	p.shiftTo(at)
	p.clampCursor(len(events.Lines))
	return p.drawRows(len(events.Lines), func(i int) string {
		return m.lineWithCursor(m.eventLine(&events.Lines[i], w-1), i == at && focused, focused, w)
	})
}

// eventLine formats an event in w cells: sign, time, and what happened.
func (m *model) eventLine(e *runview.Event, w int) string {
	sign := " "
	if e.Bad {
		sign = styleWarn.Render(m.glyphs.warn)
	}
	text := m.clean(e.Text)
	if e.Host != "" && !strings.Contains(text, m.clean(e.Host)) {
		text = m.clean(e.Host) + " " + text
	}
	head := sign + " " + styleFaint.Render(m.formatTime(e.At)) + " "
	return m.cut(head+m.cutWords(text, w-width(head)), w)
}

// maxNewsAge is how long a bad event is shown in the footer, unless a key is pressed.
const maxNewsAge = time.Hour

// dismissWarning removes the newest bad event from the footer. The list keeps it.
func (p *eventsPane) dismissWarning(m *model) {
	if m.now().Sub(p.newestBadAt) >= readTime {
		p.newestBad.Text = ""
	}
}

// newestBad returns the newest event that needs attention as a line, or "" if there is none.
func (m *model) newestBad() string {
	e := &m.events.newestBad
	if e.Text == "" || m.dispatcherNow().Sub(e.At) > maxNewsAge {
		return ""
	}
	return plainText(m.eventLine(e, m.w))[len(m.glyphs.warn)+1:]
}

func (p *eventsPane) keys() []binding {
	something := func(m *model) bool { e := p.currentEvent(m); return e != nil && (e.Job != 0 || e.Host != "") }
	job := func(m *model) bool { e := p.currentEvent(m); return e != nil && e.Job != 0 }
	return append(withGroup("Events",
		key("open", "details", "details of the job of the event, or of its host", p.openCurrent).onlyIf(something),
		key("log", "log", "output of the job of the event",
			func(m *model) tea.Cmd { return m.openOutput(p.currentEvent(m).Job) }).onlyIf(job),
		key("list", "in list", "the job of the event in the list of jobs",
			func(m *model) tea.Cmd { return m.showJob(p.currentEvent(m).Job) }).onlyIf(job),
		key("all-records", "all records", "all records of the journal, or only important events",
			screenAction(func() { p.showsAll = !p.showsAll })),
		key("find", "filter", "only events with a text, host=ws01, job=17", p.openFilter),
	), moveKeys(func() int { return p.h }, p.move)...)
}

func (p *eventsPane) openFilter(m *model) tea.Cmd {
	m.modal = &inputLine{prompt: "filter events: /", text: newEditableText(p.filter),
		onConfirm: func(m *model, s string) (tea.Cmd, error) { p.filter, p.cursor = s, 0; return nil, nil }}
	return nil
}

// openCurrent shows the job of the event under the cursor, or its host.
func (p *eventsPane) openCurrent(m *model) tea.Cmd {
	e := p.currentEvent(m)
	if e.Job != 0 {
		return m.openDetail(e.Job)
	}
	m.hosts.moveToHost(e.Host)
	return m.openHost(e.Host)
}

func (p *eventsPane) clearSelectionOrFilter(*model) bool {
	had := p.filter != ""
	p.filter = ""
	return had
}
