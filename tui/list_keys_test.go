package tui

import (
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"dcs-tui/jobs"
	"dcs-tui/jobs/runview"
)

// space selects, a selects all that match, esc clears: selection first, then filter.
func TestSelecting(t *testing.T) {
	src := sample()
	src.matches = jobs.Ranges{{First: 1, Last: 40_000}, {First: 50_000, Last: 90_000}}
	m, _ := screenOn(t, src, aFailed, 80, 24)
	do(t, m, "space", "space", "k", "space")
	shows(t, m, "1 selected")
	if !m.jobs.sel.has(aFailed) || m.jobs.sel.n != 1 {
		t.Errorf("selected: %v", m.jobs.sel.which)
	}
	do(t, m, "a")
	shows(t, m, "80,001 selected")
	m.jobs.setFilter("C=0.1")
	refresh(t, m)
	do(t, m, "esc")
	if m.jobs.sel.n != 0 || m.jobs.filter == "" {
		t.Error("esc has not cleared the selection alone")
	}
	do(t, m, "esc")
	if m.jobs.filter != "" {
		t.Error("esc has not cleared the filter")
	}
	src.matches = nil
	do(t, m, "a")
	shows(t, m, "nothing was selected")
}

// `/` filters while it is typed, after a pause; what is wrong is said in place.
func TestFilterLine(t *testing.T) {
	src := &fakeSource{picture: func(ask runview.Ask) (*runview.Picture, error) {
		p := samplePicture(ask)
		if p.Jobs != nil && strings.Contains(p.Jobs.Filter, "stat:") {
			p.Jobs.Wrong, p.Jobs.Rows, p.Jobs.Matched, p.Jobs.Cursor = "there is no stat:; did you mean state?", nil, 0, -1
		}
		return p, nil
	}}
	m, _ := screenOn(t, src, aFailed, 80, 24)
	typed := func() {
		if l, ok := m.modal.(*input); ok {
			m.Update(filterDue{&m.jobs.list, l.text.String(), l})
			refresh(t, m)
		}
	}
	do(t, m, "/")
	typeText(t, m, "stat:x")
	if m.jobs.filter != "" {
		t.Error("it was applied without a pause")
	}
	m.Update(filterDue{&m.jobs.list, "sta", m.modal.(*input)})
	if m.jobs.filter != "" {
		t.Error("what is no longer there was applied")
	}
	typed()
	shows(t, m, "there is no stat:; did you mean state?", "50118") // and the list stays while it is being typed
	do(t, m, "enter")
	if m.modal == nil {
		t.Error("a filter that is wrong was taken")
	}
	shows(t, m, "there is no stat:; did you mean state?")
	do(t, m, "ctrl+u")
	typeText(t, m, "C=0.1")
	typed()
	shows(t, m, "/C=0.1", "96,859 jobs")
	do(t, m, "enter")
	if m.modal != nil || m.jobs.filter != "C=0.1" {
		t.Errorf("filter %q, modal %v", m.jobs.filter, m.modal)
	}
	shows(t, m, "/C=0.1")
	do(t, m, "/", "esc")
	if m.jobs.filter != "" {
		t.Error("esc did not clear the filter")
	}
	do(t, m, "/", "up", "enter")
	if m.jobs.filter != "C=0.1" {
		t.Errorf("the filter before is not remembered: %q", m.jobs.filter)
	}
}

// s goes through the columns and S turns the order round; the head of the list says so.
func TestSorting(t *testing.T) {
	m, _ := screenOn(t, sample(), aFailed, 80, 24)
	do(t, m, "s")
	shows(t, m, "sort:id ▲", "ID▲")
	do(t, m, "S")
	shows(t, m, "sort:id ▼", "ID▼")
	for range runview.Sorts - 1 {
		do(t, m, "s")
	}
	shows(t, m, "sort:age ▼")
	if r, _ := m.job(); r.ID != aFailed {
		t.Errorf("the cursor is on %d", r.ID)
	}
}

// j k g G ctrl+d ctrl+u PgUp PgDn move.
func TestMoving(t *testing.T) {
	m, _ := screenOn(t, sample(), aRunning, 80, 24)
	h := m.jobs.h
	for _, c := range []struct {
		keys string
		want int
	}{
		{"j", 1}, {"k", 0}, {"down down up", 1}, {"g", 0}, {"ctrl+d", h / 2}, {"ctrl+u", 0}, {"pgdown", h}, {"pgup", 0},
		{"G", sampleTotal - 1}, {"k", sampleTotal - 2}, {"home", 0}, {"end", sampleTotal - 1}, {"g", 0}, {"k", 0},
	} {
		do(t, m, strings.Fields(c.keys)...)
		if m.jobs.at != c.want {
			t.Fatalf("%s: at %d, not %d", c.keys, m.jobs.at, c.want)
		}
		if r, ok := m.job(); !ok || r.ID != aRunning+jobs.ID(c.want) {
			t.Errorf("%s: on %d", c.keys, r.ID)
		}
	}
}

// A click puts the cursor on the row under it, the wheel scrolls.
func TestMouse(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {160, 48}} {
		m, _ := screenOn(t, sample(), aRunning, size[0], size[1])
		p := m.placed[0]
		y := p.y + 1 + 4 // the heading, four rows
		if p.border {
			y++
		}
		m.Update(tea.MouseClickMsg{X: p.x + 3, Y: y, Button: tea.MouseLeft})
		if r, _ := m.job(); r.ID != aRunning+4 {
			t.Errorf("%v: on %d", size, r.ID)
		}
		m.Update(tea.MouseWheelMsg{X: p.x + 3, Y: y, Button: tea.MouseWheelDown})
		if m.jobs.at != 4+wheelRows {
			t.Errorf("%v: at %d", size, m.jobs.at)
		}
		for _, y := range []int{-1, 0, m.h - 1, m.h, 1000} {
			m.Update(tea.MouseClickMsg{X: 5, Y: y, Button: tea.MouseLeft})
		}
	}
}
