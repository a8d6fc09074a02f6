package tui

import (
	"strings"
	"testing"

	"dcs-tui/jobs"
	"dcs-tui/jobs/runview"
)

// up and down go through what was typed before; a line with an error stays to be mended.
func TestHistoryAndErrors(t *testing.T) {
	src := sample()
	m, _ := screenOn(t, src, aQueued, 80, 24)
	enter(t, m, "sort host")
	enter(t, m, "sort nme")
	if p, ok := m.modal.(*input); !ok || p.text.String() != "sort nme" {
		t.Fatal("a line with an error is gone")
	}
	do(t, m, "left", "left", "a", "enter")
	if m.jobs.sort != runview.SortName {
		t.Errorf("sorted by %v", m.jobs.sort)
	}
	do(t, m, ":", "d", "up", "up", "up", "up", "down")
	if got := m.modal.(*input).text.String(); got != "sort nme" {
		t.Errorf("the past shows %q", got)
	}
	do(t, m, "down", "down", "down")
	if got := m.modal.(*input).text.String(); got != "d" {
		t.Errorf("what was being typed is %q", got)
	}
}

// A job's command comes back from the line as it went in: newlines, tabs and what a
// terminal must not see are kept, and shown as pictures.
func TestEditKeepsEveryCharacter(t *testing.T) {
	const command = "for i in 1 2\ndo\techo \"$i \x1b[31m\" 日本\ndone"
	src := &fakeSource{picture: func(ask runview.Ask) (*runview.Picture, error) {
		p := samplePicture(ask)
		if p.Detail != nil {
			p.Detail.Command = command
		}
		return p, nil
	}}
	m, _ := screenOn(t, src, aFailed, 80, 24)
	do(t, m, "e")
	shows(t, m, "␊do echo")
	harmless(t, m, "edit")
	m.Update(pasteMsg(" # more\r\nlines\r\n"))
	do(t, m, "enter")
	same(t, src, runview.Action{Do: runview.Edit, Jobs: jobs.One(aFailed), Edit: &jobs.Change{Command: new(command + " # more\nlines")}})
}

// The line stays within its cells wherever the cursor is, and the cursor is on it.
func TestTheLineScrolls(t *testing.T) {
	m := newScreen(t, sample(), 80, 24)
	for _, text := range []string{"", "short", strings.Repeat("long text ", 40), strings.Repeat("日本", 100), strings.Repeat("e\u0301", 300), strings.Repeat("\x1b]52;c;", 50)} {
		e := newEdited(text)
		for e.pos = range len(e.text) + 1 {
			for _, w := range []int{0, 3, 4, 5, 20, 71} {
				if got := width(e.view(m, w)); got != w {
					t.Fatalf("%q at %d: %d cells of %d", text, e.pos, got, w)
				}
			}
			if s := e.view(m, 30); !strings.Contains(s, "\x1b[7m") {
				t.Fatalf("%q at %d: the cursor is not seen: %q", text, e.pos, s)
			}
		}
	}
}
