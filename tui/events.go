package tui

import (
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"dcs-tui/jobs/runview"
)

// spareEvents are requested beyond both ends of what is shown, so that moving needs no
// answer, and a place is kept while new events come.
const spareEvents = 100

// eventsPane is the event log. It follows the newest, until the cursor is moved
// off it: then the cursor stays on its event, in its row, whatever comes.
type eventsPane struct {
	filter string
	all    bool // every record, not only what a person wants to know

	cursor uint64 // Seq of the event under the cursor; 0: the newest, followed
	back   int    // about how many events are newer than the cursor's
	row    int    // of the cursor on the screen, from the top
	h      int

	bad runview.Event // the newest that wants attention, for the footer
}

func (p *eventsPane) title(m *model) string { return "Events  " + p.state(m) }

// state describes what of the log is shown.
func (p *eventsPane) state(m *model) string {
	s := "what matters"
	if p.all {
		s = "all records"
	}
	if p.filter != "" {
		s += "  /" + m.cut(m.clean(p.filter), 24)
	}
	if p.cursor == 0 {
		s += "  following"
	} else {
		s += "  " + thousands(p.back) + " newer: G follows"
	}
	for _, older := range p.older(m) {
		s += " " + older
	}
	return s
}

// older names what shows the events that are not kept here; none: all are.
func (p *eventsPane) older(m *model) []string {
	if m.pic == nil || m.pic.Events == nil || !m.pic.Events.Cut {
		return nil
	}
	return []string{" older ones: dcs-tui events " + m.clean(m.pic.Run.Name)}
}

func (p *eventsPane) ask(m *model, ask *runview.Ask) {
	w := runview.EventsWindow{Filter: p.filter, All: p.all, Rows: min(runview.MaxRows, 2*max(10, p.h))} // a page beyond what is shown
	if p.cursor != 0 {
		w.Rows = min(runview.MaxRows, max(1, p.h)+2*spareEvents)
		// Steps, so that not every move is a new wish.
		w.Back = max(0, p.back-(p.h-p.row)-spareEvents/2) / spareEvents * spareEvents
	}
	ask.Events = &w
}

// see finds the cursor's position in the loaded events.
func (p *eventsPane) see(m *model) {
	e := m.pic.Events
	if e == nil {
		return
	}
	for i := range e.Lines {
		if l := &e.Lines[i]; l.Bad && l.Seq > p.bad.Seq {
			p.bad = *l
		}
	}
	if p.cursor == 0 || len(e.Lines) == 0 || !m.shown(p) {
		return
	}
	first, last := e.Lines[0].Seq, e.Lines[len(e.Lines)-1].Seq
	steps := func(seqs uint64) int { // so many lines, as dense as those here are
		return 1 + int(float64(seqs)*float64(len(e.Lines))/float64(last-first+1))
	}
	switch at := p.find(e); {
	case at >= 0:
		p.back = e.Back + len(e.Lines) - 1 - at
	case p.cursor < first: // many have come meanwhile, or it is not kept any more
		if e.Back+len(e.Lines) >= e.Total {
			p.put(e, 0)
			return
		}
		p.back = min(e.Total-1, e.Back+len(e.Lines)+steps(first-p.cursor))
	case p.cursor > last && e.Back == 0: // its dispatcher has gone: the journal numbers them anew
		p.put(e, len(e.Lines)-1)
	case p.cursor > last:
		p.back = max(0, e.Back-steps(p.cursor-last))
	default: // the filter leaves it out now: the nearest one
		at, _ := slices.BinarySearchFunc(e.Lines, p.cursor, func(l runview.Event, seq uint64) int {
			if l.Seq < seq {
				return -1
			}
			return 1
		})
		p.put(e, min(at, len(e.Lines)-1))
	}
}

// find is the cursor's place among the lines that are here, -1 when it is not.
func (p *eventsPane) find(e *runview.Events) int {
	if p.cursor == 0 {
		return len(e.Lines) - 1
	}
	return slices.IndexFunc(e.Lines, func(l runview.Event) bool { return l.Seq == p.cursor })
}

// put sets the cursor on a line that is here.
func (p *eventsPane) put(e *runview.Events, at int) {
	if p.cursor = e.Lines[at].Seq; e.Back == 0 && at == len(e.Lines)-1 {
		p.cursor = 0
	}
	p.back = e.Back + len(e.Lines) - 1 - at
}

// lines are the events that are here; nil: none yet.
func (p *eventsPane) lines(m *model) *runview.Events {
	if m.pic == nil || m.pic.Events == nil || len(m.pic.Events.Lines) == 0 {
		return nil
	}
	return m.pic.Events
}

// event is the one under the cursor.
func (p *eventsPane) event(m *model) *runview.Event {
	if e := p.lines(m); e != nil {
		if at := p.find(e); at >= 0 {
			return &e.Lines[at]
		}
	}
	return nil
}

func (p *eventsPane) move(m *model, by int) {
	e := p.lines(m)
	if e == nil {
		return
	}
	at := p.find(e)
	switch {
	case by >= far:
		p.cursor, p.back = 0, 0
		return
	case by <= -far && e.Back+len(e.Lines) < e.Total: // the first ones are not here
		p.cursor, p.back, p.row = 1, e.Total-1, 0
		return
	case at < 0: // it is on its way
		return
	}
	to := max(0, min(at+by, len(e.Lines)-1))
	p.row = max(0, min(p.row+to-at, p.h-1))
	p.put(e, to)
}

// click puts the cursor on a row of the screen.
func (p *eventsPane) click(m *model, row int) { p.move(m, row-p.row) }

func (p *eventsPane) draw(m *model, w, h int, focused bool) []string {
	p.h = h
	e := p.lines(m)
	switch {
	case m.pic != nil && m.pic.Events != nil && m.pic.Events.Wrong != "":
		return []string{styleBad.Render(" the filter: " + m.clean(m.pic.Events.Wrong))}
	case e == nil && p.filter != "":
		return append([]string{" no event matches " + m.clean(p.filter) + ": esc shows all"}, p.older(m)...)
	case e == nil:
		return []string{m.waitingWord("nothing has happened yet that matters: a shows all records")}
	}
	at := p.find(e)
	if at < 0 {
		return []string{" " + m.g.cut}
	}
	p.row = max(0, min(p.row, h-1))
	if p.cursor == 0 {
		p.row = h - 1
	}
	top := max(0, min(at-p.row, len(e.Lines)-h))
	p.row = at - top
	var out []string
	for i := top; i < min(len(e.Lines), top+h); i++ {
		out = append(out, m.underCursor(m.eventLine(&e.Lines[i], w-1), i == at && focused, focused, w))
	}
	return out
}

// eventLine is an event in w cells: sign, time, and what happened.
func (m *model) eventLine(e *runview.Event, w int) string {
	sign := " "
	if e.Bad {
		sign = styleWarn.Render(m.g.warn)
	}
	text := m.clean(e.Text)
	if e.Host != "" && !strings.Contains(text, m.clean(e.Host)) {
		text = m.clean(e.Host) + " " + text
	}
	return m.cut(sign+" "+styleFaint.Render(m.when(e))+" "+text, w)
}

// when is the time of an event, with its day when that is not today's.
func (m *model) when(e *runview.Event) string {
	at, today := e.At, m.instant()
	if at.YearDay() != today.YearDay() || at.Year() != today.Year() {
		return at.Format("Jan 02 15:04")
	}
	return at.Format("15:04:05")
}

// newsAge is how long a bad event stands in the footer.
const newsAge = time.Hour

// newestBad is the newest event that wants attention, in a line.
func (m *model) newestBad() string {
	e := &m.events.bad
	if e.Seq == 0 || m.instant().Sub(e.At) > newsAge {
		return ""
	}
	return plainText(m.eventLine(e, m.w))[len(m.g.warn)+1:]
}

func (p *eventsPane) keys() []binding {
	return append([]binding{
		{keys: []string{"enter"}, show: "enter", word: "details", group: "Events", help: "details of the job of the event, or of its host",
			when: func(m *model) bool { e := p.event(m); return e != nil && (e.Job != 0 || e.Host != "") }, do: p.open},
		{keys: []string{"l"}, show: "l", word: "log", group: "Events", help: "output of the job of the event",
			when: p.hasJob, do: func(m *model) tea.Cmd { return m.openOutput(p.event(m).Job) }},
		{keys: []string{"f"}, show: "f", word: "in list", group: "Events", help: "the job of the event in the list of jobs",
			when: p.hasJob, do: func(m *model) tea.Cmd { return m.showJob(p.event(m).Job) }},
		{keys: []string{"a"}, show: "a", word: "all records", group: "Events", help: "every record of the journal, or only what matters",
			do: func(*model) tea.Cmd { p.all = !p.all; return nil }},
		{keys: []string{"/"}, show: "/", word: "filter", group: "Events", help: "only events with a text, host=ws01, job=17",
			do: func(m *model) tea.Cmd {
				m.modal = &input{prompt: "filter events: /", text: newEdited(p.filter),
					done: func(m *model, s string) (tea.Cmd, error) { p.filter, p.cursor = s, 0; return nil, nil }}
				return nil
			}},
	}, moving(func() int { return p.h }, p.move)...)
}

func (p *eventsPane) hasJob(m *model) bool {
	e := p.event(m)
	return e != nil && e.Job != 0
}

// open shows the job of the event under the cursor, or its host.
func (p *eventsPane) open(m *model) tea.Cmd {
	e := p.event(m)
	if e.Job != 0 {
		return m.openDetail(e.Job)
	}
	m.hosts.show(e.Host)
	m.modal = &hostModal{name: e.Host}
	return nil
}

// clear takes the filter away; false: there was none.
func (p *eventsPane) clear() bool {
	had := p.filter != ""
	p.filter = ""
	return had
}
