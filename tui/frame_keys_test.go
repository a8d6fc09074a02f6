package tui

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"dcs-tui/jobs"
	"dcs-tui/jobs/action"
	"dcs-tui/jobs/live"
	"dcs-tui/observe/runview"
)

// TestEachKeyRequestsItsAction checks which actions each key requests in the hosts and failures
// views, on leaving, in the dispatcher's question, and in a finished run.
func TestEachKeyRequestsItsAction(t *testing.T) {
	asks := func(id int64, secret bool) func(*runview.Snapshot) {
		return func(snap *runview.Snapshot) {
			snap.Question = &live.Question{ID: id, Text: "Passphrase?", Secret: secret}
		}
	}
	heavy := runview.Cost{Queued: 84_513, Running: 126, Lost: 90 * time.Hour}
	for _, c := range []struct {
		what   string
		change func(*runview.Snapshot)
		cost   runview.Cost
		keys   string // after the number of the view
		want   []action.Request
	}{
		{"drain a host", nil, heavy, "2 j D", []action.Request{{Do: action.DrainHost, Host: "ws02"}}},
		{"add a host", nil, heavy, "2 A w s 7 7 space s l o t s = 4 enter",
			[]action.Request{{Do: action.AddHost, Host: "ws77", Options: "slots=4"}}},
		{"use a draining one again", nil, heavy, "2 G D", []action.Request{{Do: action.UseHost, Host: "ws12"}}},
		{"stop one, confirmed", nil, heavy, "2 x y", []action.Request{{Do: action.StopHost, Host: "ws01"}}},
		{"stop one: No is the default", nil, heavy, "2 x enter", nil},
		{"stop one: esc", nil, heavy, "2 x esc", nil},
		{"a slot more", nil, heavy, "2 +",
			[]action.Request{{Do: action.Slots, Host: "ws01", Number: 1, Relative: true}}},
		{"a slot less", nil, heavy, "2 j j -",
			[]action.Request{{Do: action.Slots, Host: "ws03", Number: -1, Relative: true}}},
		{"no slot below none", func(snap *runview.Snapshot) { snap.Hosts[0].Slots = 0 }, heavy, "2 -", nil},
		{"trouble first, then its first", nil, heavy, "2 s g D",
			[]action.Request{{Do: action.DrainHost, Host: "ws05"}}},
		{"a group again", nil, runview.Cost{Over: 14}, "3 r",
			[]action.Request{{Do: action.Requeue, Jobs: jobs.Ranges{{First: 50120, Last: 50133}}}}},
		{"the second group", nil, runview.Cost{Over: 3}, "3 j r",
			[]action.Request{{Do: action.Requeue, Jobs: jobs.Ranges{{First: 50140, Last: 50142}}}}},
		{"one job of a group", nil, runview.Cost{Over: 1}, "3 enter j r",
			[]action.Request{{Do: action.Requeue, Jobs: jobs.One(50120)}}},
		{"a large group: y is not enough", func(snap *runview.Snapshot) {
			snap.Groups = []runview.Group{{Cause: "exit 1", Count: 500, Which: jobs.Ranges{{First: 1, Last: 500}}}}
		}, runview.Cost{Over: 500}, "3 r y y", nil},
		{"a large group: its number", func(snap *runview.Snapshot) {
			snap.Groups = []runview.Group{{Cause: "exit 1", Count: 500, Which: jobs.Ranges{{First: 1, Last: 500}}}}
		}, runview.Cost{Over: 500}, "3 r 5 0 0 enter",
			[]action.Request{{Do: action.Requeue, Jobs: jobs.Ranges{{First: 1, Last: 500}}}}},
		{"drain the run", nil, heavy, "q D", []action.Request{{Do: action.DrainRun}}},
		{"stay", nil, heavy, "q esc", nil},
		{"cancel the run: y is not enough", nil, heavy, "q c y y", nil},
		{"cancel the run: another number", nil, heavy, "q c 1 2 6 enter", nil},
		{
			"cancel the run: its number",
			nil,
			heavy,
			"q c 8 4 6 3 9 enter",
			[]action.Request{{Do: action.Cancel, All: true}},
		},
		{
			"cancel a small run",
			nil,
			runview.Cost{Running: 2},
			"q c y",
			[]action.Request{{Do: action.Cancel, All: true}},
		},
		{"answer", asks(3, true), heavy, "h u n t e r enter",
			[]action.Request{{Do: "reply", Number: 3, Why: "hunter"}}},
		{"answer: corrected", asks(4, false), heavy, "h i backspace o enter",
			[]action.Request{{Do: "reply", Number: 4, Why: "ho"}}},
		{"refuse", asks(5, true), heavy, "h u esc", []action.Request{{Do: "reply", Number: 5}}},
		{"an empty answer is none", asks(6, true), heavy, "enter", nil},
		{"answered once", asks(7, true), heavy, "a enter q esc",
			[]action.Request{{Do: "reply", Number: 7, Why: "a"}}},
		{"resume a dead run", states["dead"], heavy, "R", []action.Request{{Do: action.Resume}}},
		{"resume a stopped run", states["stopped"], heavy, "5 R", []action.Request{{Do: action.Resume}}},
		{"again what has failed", states["ended"], runview.Cost{Over: 17}, "2 R",
			[]action.Request{{Do: action.Requeue,
				Jobs: jobs.Ranges{{First: 50120, Last: 50133}, {First: 50140, Last: 50142}}}}},
		{"nobody drains hosts of a dead run", states["dead"], heavy, "2 D x + -", nil},
		{"nothing to resume while it lives", nil, heavy, "2 R", nil},
	} {
		t.Run(c.what, func(t *testing.T) {
			src := sampleWith(c.change)
			src.cost = c.cost
			m := newScreen(t, src, 80, 24)
			runCommands(t, m, m.showQuestion())
			press(t, m, c.keys)
			equal(t, fmt.Sprintf("%+v", src.actions()), fmt.Sprintf("%+v", c.want), "%s (%s)", c.what, c.keys)
		})
	}
}

// endsScreen reports whether a key ends the screen.
func endsScreen(m *model, key string) bool {
	_, cmd := m.Update(keyMessage(key))
	_, is := messageOf(cmd).(tea.QuitMsg)
	return is
}

// TestLeavingEndsNoRun checks that leaving never ends a run that continues, asks only if there is a
// choice, and always remains possible.
func TestLeavingEndsNoRun(t *testing.T) {
	for _, c := range []struct {
		what   string
		change func(*runview.Snapshot)
		keys   string // these keep the screen open
		last   string
		ends   bool
	}{
		{"detach", nil, "q", "d", true},
		{"ctrl+c twice", nil, "ctrl+c", "ctrl+c", true},
		{"ctrl+c once", nil, "", "ctrl+c", false},
		{"out of a question of the screen", nil, "2 x ctrl+c ctrl+c", "ctrl+c", true},
		{"out of the dispatcher's question", states["question"], "ctrl+c", "ctrl+c", true},
		{"out of the help", nil, "? ctrl+c ctrl+c", "ctrl+c", true},
		{"out of a host", nil, "2 enter ctrl+c ctrl+c", "ctrl+c", true},
		{"stay", nil, "q", "esc", false},
		{"drain stays", nil, "q", "D", false},
		{"over", states["ended"], "", "q", true},
		{"dead", states["dead"], "", "q", true},
	} {
		t.Run(c.what, func(t *testing.T) {
			src := sampleWith(c.change)
			m := newScreen(t, src, 80, 24)
			runCommands(t, m, m.showQuestion())
			press(t, m, c.keys)
			equal(t, endsScreen(m, c.last), c.ends, "%s: %s %s ends the screen", c.what, c.keys, c.last)
			for _, a := range src.actions() {
				equal(t, a.Do, action.DrainRun, "%s: the action of leaving", c.what)
			}
		})
	}
	m := newModel(Options{Source: sample()}, func() time.Time { return noon })
	if !endsScreen(m, "q") {
		t.Error("a screen without a snapshot cannot be left")
	}
}

// TestRunEndsDuringTheQuestion checks that the screen closes if the run ends while the screen asks
// how to leave it.
func TestRunEndsDuringTheQuestion(t *testing.T) {
	over := false
	m := newScreen(t, sampleWith(func(snap *runview.Snapshot) {
		if over {
			snap.Status = runview.StatusFinished
		}
	}), 80, 24)
	press(t, m, "q")
	if _, asks := m.modal.(*leaveModal); !asks {
		t.Fatalf("q: %T", m.modal)
	}
	over = true
	refresh(t, m)
	if _, is := messageOf(m.showQuestion()).(tea.QuitMsg); !is {
		t.Errorf("the question stays: %T", m.modal)
	}
}

// TestSecretsAreNotShown checks that a secret is neither drawn nor kept.
func TestSecretsAreNotShown(t *testing.T) {
	m := newScreen(t, sampleWith(states["question"]), 80, 24)
	runCommands(t, m, m.showQuestion())
	typeText(t, m, "swordfish")
	m.Update(pasteMessage("trout\nsecond line"))
	if text := m.frame + plainScreen(m); strings.Contains(text, "sword") || strings.Contains(text, "trout") ||
		strings.Contains(text, "*") {
		t.Errorf("it shows:\n%s", text)
	}
	press(t, m, "enter")
	if got := m.src.(*fakeSource).actions(); len(got) != 1 || got[0].Why != "swordfishtrout" {
		t.Errorf("it answered %+v", got)
	}
}

// TestQuestionsUntilTheyAreAnswered checks that an answer that did not arrive is requested again,
// and that an answer from another screen closes the question here.
func TestQuestionsUntilTheyAreAnswered(t *testing.T) {
	asked := true
	src := sampleWith(func(snap *runview.Snapshot) {
		if asked {
			states["question"](snap)
		}
	})
	m := newScreen(t, src, 80, 24)
	src.answer = func(action.Request) (*runview.Answer, error) { return nil, fmt.Errorf("connection reset") }
	runCommands(t, m, m.showQuestion())
	press(t, m, "a enter")
	runCommands(t, m, m.showQuestion())
	if _, ok := m.modal.(*questionModal); !ok {
		t.Errorf("after an error it is not asked again: %T", m.modal)
	}
	asked = false
	refresh(t, m)
	runCommands(t, m, m.showQuestion())
	if m.modal != nil {
		t.Errorf("it is still asked: %T", m.modal)
	}
}

// keyScreens returns screens on which different keys work.
func keyScreens(t *testing.T) map[string]*model {
	all := map[string]*model{}
	for _, v := range []tab{tabJobs, tabHosts, tabFailed, tabResults, tabEvents} {
		for name, f := range states {
			if name == "question" || name == "notlive" {
				continue
			}
			m := newView(t, Options{Source: sampleWith(f)}, v, 80, 24)
			all[tabNames[v]+", "+name] = m
		}
		m := newView(t, Options{Source: sample()}, v, 80, 24)
		all[tabNames[v]] = m
	}
	return all
}

// TestEveryKeyHasHelpAndOneMeaning checks that every key on the screen has a help text, and that no
// key has two meanings in one context (rule 12).
func TestEveryKeyHasHelpAndOneMeaning(t *testing.T) {
	for name, m := range keyScreens(t) {
		for where, list := range map[string][]binding{"the pane": m.withKeys(m.focus().keys()),
			"all panes": m.withKeys(m.generalKeys())} {
			taken := map[string]string{}
			for _, b := range list {
				if len(b.keys) == 0 || b.do == nil {
					t.Errorf("%s: %q has no key, or does nothing", name, b.firstKey())
				}
				if b.label != "" && b.help == "" && b.group != "" {
					t.Errorf("%s: %s has no help", name, b.firstKey())
				}
				if !b.isOffered(m) || b.help == "" { // an alias, or a fallback
					continue
				}
				for _, k := range b.keys {
					if other, ok := taken[k]; ok {
						t.Errorf("%s, keys of %s: %s is %q and %q", name, where, k, other, b.help)
					}
					taken[k] = b.help
				}
			}
		}
	}
}

// TestHintsDoSomething checks that each hint in the footer of the frame's own views has an effect:
// it changes the screen, shows a message, or requests an action (rule 12).
func TestHintsDoSomething(t *testing.T) {
	for _, v := range []tab{tabHosts, tabFailed, tabEvents} {
		fresh := func() *model {
			m := newView(t, Options{Source: sample()}, v, 200, 24)
			return m
		}
		first := fresh()
		for _, b := range first.withKeys(first.focus().keys()) {
			m := fresh()
			if b.label == "" || !b.isOffered(m) {
				continue
			}
			before := plainScreen(m)
			press(t, m, b.keys[0])
			if plainScreen(m) == before && len(m.src.(*fakeSource).actions()) == 0 {
				t.Errorf("%s: %s (%s) does nothing", tabNames[v], b.firstKey(), b.label)
			}
			checkContains(t, before, m.keyName(b.firstKey())+" "+b.label, "%s: the footer of a wide screen",
				tabNames[v])
		}
	}
}

// TestTheHeaderNamesRealKeys checks that the keys named in the header are in the table of keys.
func TestTheHeaderNamesRealKeys(t *testing.T) {
	m := newScreen(t, sampleWith(states["paused"]), 80, 24)
	press(t, m, "p")
	checkActions(t, m.src.(*fakeSource), action.Request{Do: action.Continue})
	m = newScreen(t, sampleWith(states["draining"]), 80, 24)
	press(t, m, "q esc p q p")
	checkActions(t, m.src.(*fakeSource), action.Request{Do: action.Continue}, action.Request{Do: action.Continue})
}

// TestEachCursorStaysOnItsItem checks that each cursor stays on its host, cause, or job when the
// list changes (rule 4).
func TestEachCursorStaysOnItsItem(t *testing.T) {
	turned := false
	m := newScreen(t, sampleWith(func(snap *runview.Snapshot) {
		if turned {
			slices.Reverse(snap.Hosts)
			slices.Reverse(snap.Groups)
		}
	}), 80, 24)
	press(t, m, "2 j j 3 j enter j")
	turned = true
	refresh(t, m)
	equal(t, m.hosts.currentHost(m).Name, "ws03", "the host under the cursor")
	if r, ok := m.failed.currentJob(m); !ok || r.ID != jobs.ID(50140) {
		t.Errorf("the cursor went to job %d", r.ID)
	}
	press(t, m, "k enter") // close the group that the job belongs to
	if l, _ := m.failed.currentLine(m); l.row != nil || l.group.Cause != "exit 1" {
		t.Errorf("the cursor went to %+v", l)
	}
}

// TestKeysActOnWhatWasSeen checks that a key acts on the job that the user saw under the cursor,
// even if the cursor was never moved or the job has left the list (rule 4).
func TestKeysActOnWhatWasSeen(t *testing.T) {
	turned := false
	src := sampleWith(func(snap *runview.Snapshot) {
		if turned && len(snap.Groups) > 0 {
			snap.Groups[0].Jobs = []runview.Row{sampleRow(50121), sampleRow(50122)}
			slices.Reverse(snap.Groups)
			snap.Hosts[0].State = jobs.HostUp
			snap.Hosts[3].State = jobs.HostLost
		}
	})
	m := newScreen(t, src, 80, 24)
	press(t, m, "3")
	turned = true
	refresh(t, m)
	press(t, m, "r")
	turned = false
	refresh(t, m)
	press(t, m, "enter j")
	turned = true
	refresh(t, m)
	press(t, m, "r") // reports that the job has gone, and has no effect
	press(t, m, "r")
	checkActions(t, src, action.Request{Do: action.Requeue, Jobs: jobs.Ranges{{First: 50120, Last: 50133}}},
		action.Request{Do: action.Requeue, Jobs: jobs.One(50121)})
}

// TestFocusGoesThroughThePanes checks that keys go to the pane with the focus when two panes are
// visible.
func TestFocusGoesThroughThePanes(t *testing.T) {
	m := newScreen(t, sample(), 160, 48)
	var seen []string
	for range 5 {
		title, _, _ := strings.Cut(strings.TrimSpace(m.focus().title(m)), " ")
		seen = append(seen, title)
		press(t, m, "tab")
	}
	equal(t, strings.Join(seen, " "), "Jobs Hosts 50117 Events Jobs", "the panes that tab goes through")
	equal(t, strings.Count(plainScreen(m), "┏"), 1, "panes with the heavy border")
	press(t, m, "1 2")
	equal(t, m.tab, tabJobs, "the view after 2")
	equal(t, m.focus(), pane(m.hosts), "the pane with the focus after 2")
	press(t, m, "2")
	equal(t, m.tab, tabHosts, "the view after 2 again")
}

func pasteMessage(s string) tea.PasteMsg { return tea.PasteMsg{Content: s} }

// TestDrainTwiceIsTakenBack checks that D on a host means the opposite as soon as the first D is
// answered, also before a snapshot shows the effect; that it does nothing before the answer; and that
// the snapshots decide again after an error, and after some seconds.
func TestDrainTwiceIsTakenBack(t *testing.T) {
	drain, use := action.Request{Do: action.DrainHost, Host: "ws01"}, action.Request{Do: action.UseHost, Host: "ws01"}
	src := sample()
	m := newScreen(t, src, 80, 24)
	now := noon
	m.now = func() time.Time { return now }
	press(t, m, "2 D D D")
	checkActions(t, src, drain, use, drain)

	now = now.Add(maxSnapshotDelay + time.Second)
	press(t, m, "D") // the snapshots show a host that is up
	checkActions(t, src, drain, use, drain, drain)

	src.answer = func(action.Request) (*runview.Answer, error) { return nil, &runview.Refused{Why: "not now"} }
	press(t, m, "D D", "not now")
	checkActions(t, src, drain, use, drain, drain, use, drain)

	m = newScreen(t, src, 80, 24)
	press(t, m, "2")
	_, first := m.Update(keyMessage("D"))
	_, second := m.Update(keyMessage("D"))
	src.answer, src.doneActions = nil, nil
	runCommands(t, m, second)
	runCommands(t, m, first)
	checkActions(t, src, drain)
}

// TestOnlyLeavingWorksOnATinyScreen checks that only the keys for leaving work, with visible
// feedback, on a screen that is too small to show what keys act on.
func TestOnlyLeavingWorksOnATinyScreen(t *testing.T) {
	m := newScreen(t, sample(), 39, 9)
	press(t, m, "2 D p c x r")
	checkActions(t, m.src.(*fakeSource)) // keys for what is not seen have no effect
	press(t, m, "q", "detach")
	if !endsScreen(m, "d") {
		t.Error("it cannot be left")
	}
}

// TestClickMovesTheCursorInEachList checks that a click moves the cursor in each of the frame's
// lists.
func TestClickMovesTheCursorInEachList(t *testing.T) {
	m := newScreen(t, sample(), 80, 24)
	m.hosts.click(m, 3)
	equal(t, m.hosts.currentHost(m).Name, "ws03", "the third row of the hosts")
	m.openView(tabFailed)
	refresh(t, m)
	m.failed.click(m, 2)
	if l, _ := m.failed.currentLine(m); l.group.Cause != "exit 1" {
		t.Errorf("the second row of the failures is %s", l.group.Cause)
	}
	m.openView(tabEvents)
	refresh(t, m)
	m.events.click(m, 0)
	if e := m.events.currentEvent(m); e.Host != "ws05" || e.Seq != 1 {
		t.Errorf("the first row of the events is %+v", e)
	}
	for _, row := range []int{-1, 0, 99} { // headings and blank rows
		m.hosts.click(m, row)
		m.failed.click(m, row)
		m.events.click(m, row)
	}
}
