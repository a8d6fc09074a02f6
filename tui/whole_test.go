package tui

import (
	"fmt"
	"strings"
	"testing"

	"dcs-tui/jobs"
	"dcs-tui/jobs/runview"
)

// As the help says, pressing the key of the current view gives it the full width, and
// pressing it once more undoes that.
func TestAViewsKeyAgainGivesItTheWholeWidth(t *testing.T) {
	for _, s := range [][2]int{{120, 30}, {120, 40}, {160, 48}} {
		for v := range tabs {
			m := newScreen(t, sample(), s[0], s[1])
			key := string('1' + rune(v))
			widthOf := func() int {
				for _, x := range m.placed {
					if x.pane == m.panes[v] {
						return x.w
					}
				}
				return 0
			}
			press(t, m, key)
			if m.tab != v { // it is a pane beside another view
				press(t, m, key)
				if got := widthOf(); got != s[0] || m.focus() != m.panes[v] {
					t.Errorf("%v: %s: %d cells", s, tabNames[v], got)
				}
				press(t, m, key)
				if got := widthOf(); got == s[0] || m.focus() != m.panes[v] {
					t.Errorf("%v: %s has the whole width still", s, tabNames[v])
				}
				continue
			}
			if v == tabJobs { // it has the focus from the start
				if got := widthOf(); got != s[0] {
					t.Errorf("%v: %s: %d cells", s, tabNames[v], got)
				}
				press(t, m, key)
			}
			before := widthOf()
			press(t, m, key)
			if got := widthOf(); got != s[0] || before == got {
				t.Errorf("%v: %s: %d cells, before %d", s, tabNames[v], got, before)
			}
			press(t, m, key)
			if got := widthOf(); got != before || m.focus() != m.panes[v] {
				t.Errorf("%v: %s: %d cells, before %d", s, tabNames[v], got, before)
			}
			press(t, m, key, "esc")
			if got := widthOf(); got != before {
				t.Errorf("%v: %s: %d cells after esc, before %d", s, tabNames[v], got, before)
			}
		}
	}
	m := newScreen(t, sample(), 80, 24)
	press(t, m, "?")
	if strings.Contains(plain(m), "whole width") {
		t.Error("the help of a narrow screen promises what it cannot do")
	}
}

// Names get the width that no other column needs, before less important columns do. The
// details show a name and a command in full.
func TestNamesAreShownWhole(t *testing.T) {
	name := "calibrate-detector-module-" + strings.Repeat("north-", 3) + "b" // 48 cells with its number
	command := "python3 calibrate.py " + strings.Repeat("--verbose ", 900) + "--last"
	src := &fakeSource{picture: func(ask runview.Ask) (*runview.Picture, error) {
		p := samplePicture(runview.Ask{})
		if w := ask.Jobs; w != nil {
			p.Jobs = &runview.Page{Filter: w.Filter, Sort: w.Sort, Reverse: w.Reverse, Matched: 20, Cursor: -1}
			for i := range 20 {
				r := sampleRow(1)
				r.Phase, r.Progress, r.Said, r.Cause = runview.Queued, -1, "", ""
				r.ID, r.Title = jobs.One(1)[0].First, fmt.Sprintf("%02d-%s", i, name)
				p.Jobs.Rows = append(p.Jobs.Rows, r)
			}
		}
		if ask.Focus != 0 {
			r := sampleRow(1)
			r.ID, r.Title = ask.Focus, name
			p.Detail = &runview.Detail{Row: r, Command: command}
		}
		return p, nil
	}}
	m := newScreen(t, src, 120, 30)
	if text := plain(m); strings.Contains(text, "PROGRESS") {
		t.Errorf("a column without content takes the room of names:\n%s", text)
	}
	press(t, m, "1")
	shows(t, m, "07-"+name)
	m = newScreen(t, src, 160, 48)
	shows(t, m, "07-"+name)
	press(t, m, "enter", "z")
	shows(t, m, name)
	press(t, m, "G")
	shows(t, m, "--last")
}
