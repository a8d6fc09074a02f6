package tui

import (
	"os"
	"slices"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
)

// TestSettings checks what each setting of the configuration file changes, and the error of each
// wrong one.
func TestSettings(t *testing.T) {
	var o Options
	for _, s := range []struct {
		table, key string
		value      any
		err        string // "": none
	}{
		{"", "mouse", true, ""},
		{"", "colors", "256", ""},
		{"", "view", "hosts", ""},
		{"columns", "jobs", []any{"id", "NAME"}, ""},
		{"", "mosue", true, `there is no setting "mosue" (did you mean "mouse"?)`},
		{"", "mouse", "yes", "mouse must be true or false"},
		{"", "colors", int64(16), `colors is one of "auto", "none", "16", "256"`},
		{"", "view", "job", `view is one of "jobs", "hosts"`},
		{"", "keys", "x", "keys is a table: its settings are below a line [keys]"},
		{"columns", "job", []any{"ID"}, `there is no view "job" (did you mean "jobs"?)`},
		{"columns", "jobs", "ID", "columns.jobs is a list of headings"},
		{"columns", "jobs", []any{"IDS"}, `there is no column "IDS"`},
		{"columns", "events", []any{"ID"}, "the view events has no columns to choose"},
		{"columns", "results", []any{"acc"}, ""},
		{"colums", "jobs", []any{"ID"}, `there is no table "colums" (did you mean "columns"?)`},
	} {
		err := o.Set(s.table, s.key, s.value)
		switch {
		case s.err == "" && err != nil:
			t.Errorf("%s.%s = %v: %v", s.table, s.key, s.value, err)
		case s.err != "" && (err == nil || !strings.Contains(err.Error(), s.err)):
			t.Errorf("%s.%s = %v: got %v, want %q", s.table, s.key, s.value, err, s.err)
		}
	}
	equal(t, o.Mouse, true, "the mouse")
	equal(t, o.Colors, "256", "the colors")
	o.Source = sample()
	m := newScreenOf(t, o, 80, 24)
	shows(t, m, "[2 Hosts")
	press(t, m, "1", "ID NAME")
	hides(t, m, "STATE", "PROGRESS")
	press(t, m, "C j space esc", "STATE") // the user's choice on the screen comes first
}

// TestSettingsAreDocumented checks that the sample of docs/screen.md has each setting and each table,
// and nothing else.
func TestSettingsAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../docs/screen.md")
	if err != nil {
		t.Fatal(err)
	}
	_, sample, _ := strings.Cut(string(page), "<!-- file config.toml -->\n```toml\n")
	sample, _, _ = strings.Cut(sample, "```")
	var found []string
	for line := range strings.Lines(sample) {
		if name, isTable := strings.CutPrefix(line, "["); isTable {
			name, _, _ = strings.Cut(name, "]")
			found = append(found, name)
		} else if !slices.ContainsFunc(found, func(s string) bool { return slices.Contains(settingsTables, s) }) {
			if name, _, ok := strings.Cut(line, " ="); ok {
				found = append(found, name)
			}
		}
	}
	equal(t, strings.Join(found, " "), strings.Join(slices.Concat(plainSettings, settingsTables), " "), "settings")
}

// TestTitlesOfViewsAreClicked checks that a click on the title of a view opens it, at sizes with
// long and short titles, and that a click beside them does nothing.
func TestTitlesOfViewsAreClicked(t *testing.T) {
	for _, size := range [][2]int{{60, 15}, {80, 24}, {160, 48}} {
		m := newScreenOf(t, Options{Source: sample(), Mouse: true}, size[0], size[1])
		click := func(x, y int) { m.Update(tea.MouseClickMsg{X: x, Y: y, Button: tea.MouseLeft}); refresh(t, m) }
		for _, view := range []tab{tabFailed, tabJobs, tabEvents, tabResults, tabHosts} {
			row := strings.Split(plainScreen(m), "\n")[m.tabsAt]
			at := strings.Index(row, string('1'+rune(view))+" "+tabNames[view][:4])
			if at < 0 {
				t.Fatalf("no title of view %d in %q", view+1, row)
			}
			click(width(row[:at])+2, m.tabsAt)
			equal(t, m.focus(), m.panes[view], "the pane after a click on the title of view %d at %v", view+1, size)
		}
		before := m.focus()
		titles, _ := m.tabTitles()
		click(width(titles)+1, m.tabsAt)
		equal(t, m.focus(), before, "the pane after a click beside the titles")
	}
}
