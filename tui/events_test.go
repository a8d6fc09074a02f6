package tui

import (
	"testing"

	"dcs-tui/jobs/runview"
)

// E8: where older events are not kept, the pane says so and names what shows them, also where
// none of those that are kept matches.
func TestEventsThatAreCutSaySo(t *testing.T) {
	cut, none := true, false
	m := newScreen(t, change(func(p *runview.Picture) {
		if p.Events != nil {
			if p.Events.Cut = cut; none {
				p.Events.Total, p.Events.Lines = 0, nil
			}
		}
	}), 120, 24)
	press(t, m, "5")
	shows(t, m, "older ones: dcs-tui events sweep")
	none = true
	press(t, m, "/")
	typeText(t, m, "job:1")
	press(t, m, "enter")
	shows(t, m, "no event matches job:1: esc shows all", "┃ older ones: dcs-tui events sweep-20260314")
	cut = false
	refresh(t, m)
	hides(t, m, "dcs-tui events")
	shows(t, m, "no event matches job:1: esc shows all")
}

// When its dispatcher has gone, events come out of the journal, with other numbers: a cursor that
// stood on one of the live run's does not leave the pane empty.
func TestEventsAfterTheDispatcherHasGone(t *testing.T) {
	const live = 1 << 32
	own := uint64(live)
	m := newScreen(t, change(func(p *runview.Picture) {
		if p.Events != nil {
			for i := range p.Events.Lines {
				p.Events.Lines[i].Seq += own
			}
		}
	}), 80, 24)
	press(t, m, "5", "k")
	shows(t, m, "1 newer: G follows")
	own = 0
	refresh(t, m)
	shows(t, m, "link lost", "is being drained", "following")
}
