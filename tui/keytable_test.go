package tui

import (
	"fmt"
	"os"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"dcs-tui/jobs"
	"dcs-tui/jobs/action"
	"dcs-tui/jobs/live"
	"dcs-tui/observe/runview"
)

// TestOneKeyHasOneMeaning checks that no two entries of the table of keys share a key, that bindings use
// each entry, and that no binding names another one (rule 12).
func TestOneKeyHasOneMeaning(t *testing.T) {
	owner := map[string]string{}
	for _, e := range keyTable {
		for k := range strings.FieldsSeq(e.keys) {
			if other := owner[k]; other != "" {
				t.Errorf("%s is the key of %s and of %s", k, other, e.name)
			}
			owner[k] = e.name
		}
	}
	used := map[string]bool{}
	note := func(list []binding) {
		for _, b := range list {
			for name := range strings.FieldsSeq(b.names) {
				if used[name] = true; findKey(name) == nil {
					t.Errorf("%q is not in the table of keys", name)
				}
			}
		}
	}
	for _, m := range keyScreens(t) {
		note(m.bindings())
		note((&leaveModal{}).keys(m))
	}
	p := newResultsPane()
	note(append(append(p.heatKeys(), p.groupKeys()...), newOutputPane(1, true).keys()...))
	note((&detailPane{}).keys())
	for _, e := range keyTable {
		if !used[e.name] {
			t.Errorf("no view uses the key %s", e.name)
		}
	}
}

// TestKeysAreDocumented checks that docs/screen.md lists the table of keys. With -update it writes the
// list.
func TestKeysAreDocumented(t *testing.T) {
	const file, begin, end = "../docs/screen.md", "<!-- keys -->\n", "<!-- end of keys -->\n"
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var list strings.Builder
	list.WriteString("| key | name | |\n|---|---|---|\n")
	for _, e := range keyTable {
		fmt.Fprintf(&list, "| `%s` | %s | %s |\n", strings.ReplaceAll(e.keys, " ", "` `"), e.name, e.help)
	}
	before, rest, found := strings.Cut(string(page), begin)
	old, after, closed := strings.Cut(rest, end)
	switch {
	case !found || !closed:
		t.Fatalf("%s has no list of keys", file)
	case *update:
		if err := os.WriteFile(file, []byte(before+begin+list.String()+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
	case old != list.String():
		t.Errorf("%s does not list the keys as they are (-update writes it anew)", file)
	}
}

// TestTextsNameChosenKeys checks that texts, the titles of views, and the mouse use the keys that the
// user has chosen, or commands where no key is left.
func TestTextsNameChosenKeys(t *testing.T) {
	o := Options{Mouse: true, Source: sampleWith(func(snap *runview.Snapshot) {
		snap.Awaited = &live.Await{Text: "8 attempts wait", HasLimit: true}
	})}
	for name, keys := range map[string]string{"cancel": "X", "hosts": "H", "leave": "ctrl+q Q", "events": "f5",
		"undo": "U", "stop": "f8", "help": "f12", "list": "1 3", "more": "k up", "back": "shift+tab"} {
		if err := o.Set("keys", name, keys); err != nil {
			t.Fatal(err)
		}
	}
	m := newScreenOf(t, o, 100, 24)
	shows(t, m, "[Jobs", "H Hosts", " Failed", "f5 Events", "X cancel", "ctrl+q leave", "f12 help",
		"8 attempts wait: f8 on the hosts ends the wait")
	press(t, m, "2", "2 does nothing here; f12 lists the keys that do")
	press(t, m, "e", "X cancels it, then it can be edited")
	press(t, m, "H", "[H Hosts")
	titles, _ := m.tabTitles()
	m.Update(tea.MouseClickMsg{X: strings.Index(plainText(titles), m.tabTitle(tabFailed)), Y: m.tabsAt,
		Button: tea.MouseLeft})
	refresh(t, m)
	shows(t, m, "[Failed")
	m.Update(tea.MouseWheelMsg{X: 5, Y: 8, Button: tea.MouseWheelUp})
	hides(t, m, ":up")
	press(t, m, "H r", "this is not a list of jobs; tab, :jobs, or enter leads to one")
}

// TestWaitAtTheEndIsShown checks that the screen shows which hosts the dispatcher waits for at the end.
func TestWaitAtTheEndIsShown(t *testing.T) {
	m := newScreenOf(t, Options{Source: sampleWith(func(snap *runview.Snapshot) {
		snap.Finish = &live.Finish{How: "done", Text: "box7, which packs files"}
	})}, 100, 24)
	shows(t, m, "WAITING", "for box7, which packs files")
}

// TestWaitForMetricsIsShown checks that the screen shows that a run without further jobs waits for
// metrics, and not that more jobs may come.
func TestWaitForMetricsIsShown(t *testing.T) {
	m := newScreenOf(t, Options{Source: sampleWith(func(snap *runview.Snapshot) {
		snap.Phases = [len(snap.Phases)]int{runview.Succeeded: snap.Total}
		snap.MetricsOf = []string{"box7", "box8"}
	})}, 100, 24)
	shows(t, m, "WAITING", "for metrics of earlier jobs on box7, box8")
}

// TestKeysAreRemapped checks that a key of the configuration file replaces the keys of its entry, is
// taken from the entry that had it, and is the one that the footer, the help, and messages name.
func TestKeysAreRemapped(t *testing.T) {
	var o Options
	for name, keys := range map[string]string{"cancel": "x ctrl+x", "stop": "c", "pause": "ctrl+p", "sort": "N"} {
		if err := o.Set("keys", name, keys); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name  string
		value any
		err   string
	}{
		{"cancle", "x", `there is no key "cancle" (did you mean "cancel"?)`},
		{"edit", 5, "keys.edit is a key"},
		{"edit", "ctrl+x", `the key "ctrl+x" is given twice`},
		{"edit", "é é", `the key "é" is given twice`},
		{"edit", "C-x", `unknown key "C-x"; keys are named like x,`},
		{"edit", "Esc", `unknown key "Esc"`},
		{"edit", "ctrl+X", `unknown key "ctrl+X"`},
		{"edit", "shift+x", `unknown key "shift+x"`},
		{"edit", "f0", `unknown key "f0"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := o.Set("keys", c.name, c.value); err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s = %v: got %v, want %q", c.name, c.value, err, c.err)
			}
		})
	}
	src := sampleWith(func(snap *runview.Snapshot) { snap.Paused = true })
	src.cost = runview.Cost{Queued: 1}
	o.Source = src
	m := newScreenOf(t, o, 160, 24)
	shows(t, m, "x cancel", "nothing is launched until ctrl+p continues")
	m.jobs.moveToJob(aQueued)
	refresh(t, m)
	press(t, m, "x N")
	shows(t, m, "sort:id")
	press(t, m, "2 c", "Stop ws01 now?")
	press(t, m, "esc p", "p does nothing here")
	press(t, m, "ctrl+p")
	checkActions(t, src, action.Request{Do: action.Cancel, Jobs: jobs.One(aQueued)},
		action.Request{Do: action.Continue})
	equal(t, m.keyFor("previous-match"), ":previous-match", "the name of an entry without a key")
	typeLine(t, m, ":", "failed")
	shows(t, m, "[3 Failed")
	typeLine(t, m, ":", "previous-match")
	shows(t, m, `there is no command "previous-match"`)
}
