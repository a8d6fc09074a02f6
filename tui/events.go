package tui

import "dcs-tui/dispatch/view"

// eventsPane is the event log (E8).
type eventsPane struct{ h int }

func newEventsPane() *eventsPane { return &eventsPane{} }

func (p *eventsPane) title(m *model) string                          { return "Events" }
func (p *eventsPane) draw(m *model, w, h int, focused bool) []string { p.h = h; return nil }
func (p *eventsPane) ask(m *model, ask *view.Ask)                    { ask.Events = &view.EventsWindow{Rows: max(1, p.h)} }
func (p *eventsPane) keys() []binding                                { return nil }

// newestBad is the newest event that wants attention, in a line.
func (m *model) newestBad() string { return "" }
