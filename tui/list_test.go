package tui

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"dcs-tui/jobs"
	"dcs-tui/jobs/action"
	"dcs-tui/observe/runview"
)

// fakeJobs is a source of a list whose order a test changes.
type fakeJobs struct{ order []jobs.ID }

func newFakeJobs(n int) *fakeJobs {
	c := &fakeJobs{}
	for i := range n {
		c.order = append(c.order, jobs.ID(i+1))
	}
	return c
}

// page answers a request as documented at runview.JobsWindow.
func (c *fakeJobs) page(w *runview.JobsWindow) *runview.Page {
	p := &runview.Page{Filter: w.Filter, Sort: w.Sort, Reverse: w.Reverse, Matched: len(c.order),
		Cursor: w.Cursor}
	at := min(w.At, len(c.order)-1)
	if i := slices.Index(c.order, w.Cursor); i >= 0 {
		at = i
	}
	p.First = max(0, at-w.Above)
	for _, id := range c.order[p.First:min(len(c.order), p.First+w.Rows)] {
		p.Rows = append(p.Rows, runview.Row{ID: id})
	}
	return p
}

// fetch fetches pages as the snapshotter does until the request no longer changes.
func (c *fakeJobs) fetch(l *jobList) (asked int) {
	for range 5 {
		w := l.requestWindow()
		l.setPage(c.page(w))
		asked++
		if *l.requestWindow() == *w {
			return asked
		}
	}
	return asked
}

func newJobList(c *fakeJobs, h int) *jobList {
	l := &jobList{}
	l.resize(h)
	c.fetch(l)
	return l
}

// shownIDs returns the job ids on the screen, 0 for a row that is not loaded.
func (l *jobList) shownIDs() (ids []jobs.ID) {
	for i := range min(l.h, l.numMatched()-l.top) {
		r, ok := l.row(l.top + i)
		if !ok {
			r = &runview.Row{}
		}
		ids = append(ids, r.ID)
	}
	return ids
}

func cursorID(l *jobList) jobs.ID {
	r, _ := l.cursorJob()
	return r.ID
}

// checkCursor checks the job and the position of the cursor.
func checkCursor(t *testing.T, l *jobList, id jobs.ID, at int) {
	t.Helper()
	equal(t, cursorID(l), id, "the job under the cursor")
	equal(t, l.cursorRow, at, "the position of the cursor")
}

// TestTheCursorSticksToItsJob checks that the cursor stays on its job, and the job in its screen
// row, however the order changes (rule 4).
func TestTheCursorSticksToItsJob(t *testing.T) {
	c := newFakeJobs(100_000)
	l := newJobList(c, 20)
	l.moveTo(7)
	if cursorID(l) != 8 {
		t.Fatalf("the cursor is on %d", cursorID(l))
	}
	for _, to := range []int{50_000, 3, 99_999, 0, 70} {
		i, line := slices.Index(c.order, 8), l.cursorRow-l.top
		c.order = slices.Insert(slices.Delete(c.order, i, i+1), to, 8)
		c.fetch(l)
		checkCursor(t, l, 8, to)
		if to > 20 && to < 99_000 && l.cursorRow-l.top != line {
			t.Errorf("at %d its line is %d, was %d", to, l.cursorRow-l.top, line)
		}
		if slices.Contains(l.shownIDs(), 0) {
			t.Errorf("at %d rows are missing: %v", to, l.shownIDs())
		}
	}
}

// TestTheTopStaysTheTop checks that the list shows its top, whatever arrives there, until the user
// moves the cursor, and again after g.
func TestTheTopStaysTheTop(t *testing.T) {
	c := newFakeJobs(1000)
	l := newJobList(c, 10)
	for _, prepare := range []func(){func() {}, func() { l.moveTo(500); c.fetch(l); l.moveToTop(); c.fetch(l) }} {
		prepare()
		slices.Reverse(c.order)
		c.fetch(l)
		checkCursor(t, l, c.order[0], 0)
	}
	l.pinCursor() // the user acts on the visible rows
	slices.Reverse(c.order)
	c.fetch(l)
	equal(t, cursorID(l), c.order[len(c.order)-1], "held, the job under the cursor")
}

// TestMovingAsksRarely checks that a key draws from loaded rows, and that the source is asked only
// for missing rows (rule 3).
func TestMovingAsksRarely(t *testing.T) {
	c := newFakeJobs(1_000_000)
	l := newJobList(c, 20)
	asked, before := 0, *l.requestWindow()
	for i := range 400 {
		l.moveTo(l.cursorRow + 1)
		if slices.Contains(l.shownIDs(), 0) {
			t.Fatalf("at %d rows are missing", i)
		}
		if w := l.requestWindow(); *w != before {
			asked++
			l.setPage(c.page(w))
			before = *l.requestWindow()
		}
	}
	if asked > 20 {
		t.Errorf("400 rows took %d round trips", asked)
	}
	equal(t, cursorID(l), 401, "the job under the cursor")
}

// TestAHeldKeyDoesNotStarveTheAnswer checks that keys that stay within a pending answer do not ask
// again. Each new request ends the previous one, so a held key would never get an answer.
func TestAHeldKeyDoesNotStarveTheAnswer(t *testing.T) {
	c := newFakeJobs(100_000)
	l := newJobList(c, 20)
	l.moveTo(50_000)
	w := *l.requestWindow()
	for range 15 {
		l.moveTo(l.cursorRow + 1)
		if *l.requestWindow() != w {
			t.Fatal("the request has changed before its answer")
		}
	}
	l.setPage(c.page(&w))
	equal(t, cursorID(l), 50_016, "the job under the cursor")
}

// TestAJumpIsDrawnAtOnce checks that a jump to rows that are not loaded is drawn immediately, with
// placeholder rows.
func TestAJumpIsDrawnAtOnce(t *testing.T) {
	c := newFakeJobs(5000)
	l := newJobList(c, 10)
	l.moveTo(4999)
	if _, ok := l.cursorJob(); ok || l.top != 4990 {
		t.Errorf("there is a job under the cursor before it has come; top %d", l.top)
	}
	c.fetch(l)
	if cursorID(l) != 5000 || len(l.shownIDs()) != 10 {
		t.Errorf("the cursor is on %d, %v", cursorID(l), l.shownIDs())
	}
	slices.Reverse(c.order)
	c.fetch(l)
	checkCursor(t, l, 5000, 0)
	equal(t, l.requestWindow().Cursor, 5000, "the job of the request")
}

// TestALateAnswerChangesNothing checks that an answer to an older request does not move the cursor.
func TestALateAnswerChangesNothing(t *testing.T) {
	c := newFakeJobs(10_000)
	l := newJobList(c, 10)
	late := c.page(&runview.JobsWindow{Cursor: 9000, Rows: 40, Above: 20})
	l.moveTo(5)
	before := l.shownIDs()
	l.setPage(late)
	if cursorID(l) != 6 || !slices.Equal(before, l.shownIDs()) {
		t.Errorf("the cursor is on %d, %v", cursorID(l), l.shownIDs())
	}
	c.fetch(l)
	equal(t, cursorID(l), 6, "the job under the cursor")

	l.moveToJob(6)
	l.requestWindow()
	late = c.page(&runview.JobsWindow{At: 9000, Rows: 40}) // asked for a position, not for the job
	l.setPage(late)
	equal(t, cursorID(l), 6, "the job under the cursor after a late answer")
}

// TestAJobThatLeavesTheList checks that the cursor keeps its position when its job leaves the list.
func TestAJobThatLeavesTheList(t *testing.T) {
	c := newFakeJobs(100)
	l := newJobList(c, 10)
	l.moveTo(40)
	c.fetch(l)
	c.order = slices.DeleteFunc(c.order, func(id jobs.ID) bool { return id == 41 })
	c.fetch(l)
	c.fetch(l)
	checkCursor(t, l, 42, 40)
	c.order = c.order[:3]
	c.fetch(l)
	c.fetch(l)
	equal(t, cursorID(l), 3, "the job under the cursor")
	c.order = nil
	c.fetch(l)
	c.fetch(l)
	if _, ok := l.cursorJob(); ok || len(l.shownIDs()) != 0 {
		t.Errorf("an empty list shows %v", l.shownIDs())
	}
	l.moveTo(5)
	l.moveToTop()
}

// TestAFilterAndTheCursor checks that a filter keeps the cursor on its job if the job matches, and
// otherwise moves it to the top.
func TestAFilterAndTheCursor(t *testing.T) {
	all := newFakeJobs(1000)
	l := newJobList(all, 10)
	l.moveTo(500)
	all.fetch(l)
	l.setFilter("x")
	some := &fakeJobs{order: []jobs.ID{7, 400, 501, 900}}
	some.fetch(l)
	checkCursor(t, l, 501, 2)
	l.setFilter("y")
	other := &fakeJobs{order: []jobs.ID{8, 9}}
	other.fetch(l)
	equal(t, cursorID(l), 8, "the job under the cursor")
	equal(t, l.pinned, false, "the user has moved the cursor")
	l.setFilter("")
	l.moveToJob(777)
	all.fetch(l)
	if cursorID(l) != 777 || slices.Contains(l.shownIDs(), 0) {
		t.Errorf("the cursor is on %d, %v", cursorID(l), l.shownIDs())
	}
	l.sort, l.reverse = runview.SortName, true
	slices.Reverse(all.order)
	all.fetch(l)
	equal(t, cursorID(l), 777, "the job under the cursor, sorted anew")
	equal(t, l.requestWindow().Sort, runview.SortName, "the order of the request")
}

// TestResizeKeepsTheCursorOnTheScreen checks that no size and no list leaves the cursor outside the
// screen.
func TestResizeKeepsTheCursorOnTheScreen(t *testing.T) {
	for _, n := range []int{0, 1, 3, 50, 5000} {
		c := newFakeJobs(n)
		l := newJobList(c, 10)
		for _, h := range []int{10, 1, 0, 40, 3, 400, 20} {
			for _, pos := range []int{0, n / 2, n - 1, n + 100} {
				l.resize(h)
				l.moveTo(pos)
				c.fetch(l)
				if h > 0 && n > 0 && (l.cursorRow < l.top || l.cursorRow >= l.top+h ||
					slices.Contains(l.shownIDs(), 0)) {
					t.Errorf("%d rows, %d on the screen: cursor %d, top %d, %v", n, h, l.cursorRow, l.top, l.shownIDs())
				}
			}
		}
	}
}

// TestKeysSelectJobs checks that space selects a job and a selects all matching jobs. esc first
// clears the selection, then the filter.
func TestKeysSelectJobs(t *testing.T) {
	src := sample()
	src.matches = jobs.Ranges{{First: 1, Last: 40_000}, {First: 50_000, Last: 90_000}}
	m, _ := screenOn(t, src, aFailed, 80, 24)
	press(t, m, "space space k space", "1 selected")
	if !m.jobs.sel.has(aFailed) || m.jobs.sel.n != 1 {
		t.Errorf("selected: %v", m.jobs.sel.which)
	}
	press(t, m, "a", "80,001 selected")
	m.jobs.setFilter("C=0.1")
	refresh(t, m)
	press(t, m, "esc")
	if m.jobs.sel.n != 0 || m.jobs.filter == "" {
		t.Error("esc has not cleared the selection alone")
	}
	press(t, m, "esc")
	equal(t, m.jobs.filter, "", "the filter after esc")
	src.matches = nil
	press(t, m, "a", "nothing was selected")
}

// TestKeysWaitForTheSelection checks that keys behind `a` apply to the selected jobs, although the
// source has not named them yet. They do nothing if no job matches, and confirm no question that
// was not shown.
func TestKeysWaitForTheSelection(t *testing.T) {
	for _, c := range []struct {
		name    string
		matches jobs.Ranges
		shows   string
	}{
		{"30 jobs match", jobs.Ranges{{First: 1, Last: 30}}, "Cancel 30 jobs?"},
		{"no job matches", nil, "nothing was selected"},
	} {
		t.Run(c.name, func(t *testing.T) {
			src := sample()
			src.matches, src.cost = c.matches, runview.Cost{Running: 30}
			m, _ := screenOn(t, src, aRunning, 80, 24)
			_, matching := m.Update(keyMessage("a"))
			for _, key := range []string{"c", "y"} {
				_, cmd := m.Update(keyMessage(key))
				runCommands(t, m, cmd)
			}
			runCommands(t, m, matching)
			refresh(t, m)
			shows(t, m, c.shows)
			equal(t, len(src.actions()), 0, "actions")
		})
	}
}

// passFilterDelay lets the time pass after which a filter that is being typed is applied.
func passFilterDelay(t *testing.T, m *model) {
	t.Helper()
	line := m.modal.(*inputLine)
	m.Update(filterDue{line.filteredList, line.text.String(), line})
	refresh(t, m)
}

// TestFilterAppliesDuringTyping checks that `/` filters during typing, after a pause, and that
// errors are shown in the line.
func TestFilterAppliesDuringTyping(t *testing.T) {
	src := sampleWith(func(snap *runview.Snapshot) {
		if snap.Jobs != nil && strings.Contains(snap.Jobs.Filter, "stat:") {
			snap.Jobs.Wrong, snap.Jobs.Rows, snap.Jobs.Matched = "there is no stat:; did you mean state?", nil, 0
		}
	})
	m, _ := screenOn(t, src, aFailed, 80, 24)
	press(t, m, "/")
	typeText(t, m, "stat:x")
	equal(t, m.jobs.filter, "", "the filter without a pause")
	m.Update(filterDue{&m.jobs.jobList, "sta", m.modal.(*inputLine)})
	equal(t, m.jobs.filter, "", "the filter after the pause of an older text")
	passFilterDelay(t, m)
	// And the list stays while it is being typed.
	shows(t, m, "there is no stat:; did you mean state?", "50118")
	press(t, m, "enter")
	if m.modal == nil {
		t.Error("a filter that is wrong was taken")
	}
	shows(t, m, "there is no stat:; did you mean state?")
	press(t, m, "ctrl+u")
	typeText(t, m, "C=0.1")
	passFilterDelay(t, m)
	shows(t, m, "/C=0.1", "96,859 jobs")
	press(t, m, "enter")
	if m.modal != nil || m.jobs.filter != "C=0.1" {
		t.Errorf("filter %q, modal %v", m.jobs.filter, m.modal)
	}
	shows(t, m, "/C=0.1")
	press(t, m, "/ esc")
	equal(t, m.jobs.filter, "", "the filter after esc")
	press(t, m, "/ up enter")
	equal(t, m.jobs.filter, "C=0.1", "the filter after up")
}

// TestKeysSortTheList checks that s cycles through the columns, S reverses the order, and the head
// of the list shows both.
func TestKeysSortTheList(t *testing.T) {
	m, _ := screenOn(t, sample(), aFailed, 80, 24)
	press(t, m, "s", "sort:id ▲", "ID▲")
	press(t, m, "S", "sort:id ▼", "ID▼")
	for range runview.Sorts - 1 {
		press(t, m, "s")
	}
	shows(t, m, "sort:age ▼")
	r, _ := m.currentJob()
	equal(t, r.ID, aFailed, "the job under the cursor")
}

// TestKeysMoveTheCursor checks the keys j k g G ctrl+d ctrl+u PgUp PgDn.
func TestKeysMoveTheCursor(t *testing.T) {
	m, _ := screenOn(t, sample(), aRunning, 80, 24)
	h := m.jobs.h
	for _, c := range []struct {
		keys string
		want int
	}{
		{"j", 1}, {"k", 0}, {"down down up", 1}, {"g", 0}, {"ctrl+d", h / 2}, {"ctrl+u", 0}, {"pgdown", h}, {"pgup", 0},
		{"G", sampleTotal - 1}, {"k", sampleTotal - 2}, {"home", 0}, {"end", sampleTotal - 1}, {"g", 0}, {"k", 0},
	} {
		t.Run(c.keys, func(t *testing.T) {
			press(t, m, c.keys)
			if m.jobs.cursorRow != c.want {
				t.Fatalf("%s: at %d, not %d", c.keys, m.jobs.cursorRow, c.want)
			}
			if r, ok := m.currentJob(); !ok || r.ID != aRunning+jobs.ID(c.want) {
				t.Errorf("%s: on %d", c.keys, r.ID)
			}
		})
	}
}

// TestMouseMovesAndScrolls checks that a click moves the cursor to its row and that the wheel
// scrolls.
func TestMouseMovesAndScrolls(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {160, 48}} {
		m, _ := screenOn(t, sample(), aRunning, size[0], size[1])
		p := m.placed[0]
		y := p.y + 1 + 4 // the heading and four rows
		if p.border {
			y++
		}
		m.Update(tea.MouseClickMsg{X: p.x + 3, Y: y, Button: tea.MouseLeft})
		r, _ := m.currentJob()
		equal(t, r.ID, aRunning+4, "%v: the job under the cursor", size)
		m.Update(tea.MouseWheelMsg{X: p.x + 3, Y: y, Button: tea.MouseWheelDown})
		equal(t, m.jobs.cursorRow, 4+wheelRows, "%v: row of the cursor", size)
		for _, y := range []int{-1, 0, m.h - 1, m.h, 1000} {
			m.Update(tea.MouseClickMsg{X: 5, Y: y, Button: tea.MouseLeft})
		}
	}
}

// TestSelectionIsASetOfRanges checks a selection against a set of ids after random changes.
func TestSelectionIsASetOfRanges(t *testing.T) {
	var s selection
	want := map[jobs.ID]bool{}
	seed := uint32(7)
	for range 3000 {
		seed = seed*1664525 + 1013904223
		id := jobs.ID(seed>>16)%200 + 1
		if seed%7 == 0 {
			last := id + jobs.ID(seed%13)
			s.add(jobs.Ranges{{First: id, Last: last}, {First: last + 2, Last: last + 3}})
			for x := id; x <= last+3; x++ {
				want[x] = want[x] || x != last+1
			}
		} else {
			s.toggle(id)
			want[id] = !want[id]
		}
	}
	n := 0
	for id := jobs.ID(0); id < 230; id++ {
		equal(t, s.has(id), want[id], "%d is selected", id)
		if want[id] {
			n++
		}
	}
	equal(t, s.n, n, "the number of selected jobs")
	equal(t, s.which.Count(), n, "the number of jobs in the ranges")
	for i := 1; i < len(s.which); i++ {
		if s.which[i].First <= s.which[i-1].Last+1 {
			t.Errorf("ranges touch: %v", s.which)
		}
	}
}

// TestSelectionsAreNotChangedInPlace checks that an action in progress keeps its jobs even if the
// selection changes meanwhile.
func TestSelectionsAreNotChangedInPlace(t *testing.T) {
	var s selection
	s.add(jobs.Ranges{{First: 1, Last: 9}, {First: 20, Last: 20}})
	held, before := s.which, fmt.Sprint(s.which)
	s.toggle(5)
	s.toggle(20)
	s.toggle(12)
	equal(t, fmt.Sprint(held), before, "the jobs of the action")
}

// TestKeysDoNothingWhereTheCursorSlipped checks each view with a cursor: if the item under the
// cursor goes away, the next key only reports that. The key after it works (rule 4).
func TestKeysDoNothingWhereTheCursorSlipped(t *testing.T) {
	for _, c := range []struct {
		name, keys string
		change     func(*runview.Snapshot)
		key, says  string
		does       action.Request
	}{
		{"a host", "2 j", func(snap *runview.Snapshot) { snap.Hosts = append(snap.Hosts[:1:1], snap.Hosts[2:]...) },
			"D", "ws02 has left the list; the cursor is on ws03 now: press again", action.Request{Do: action.DrainHost,
				Host: "ws03"}},
		{"the last host", "2 G", func(snap *runview.Snapshot) { snap.Hosts = snap.Hosts[:len(snap.Hosts)-1] },
			"+", "ws12 has left the list; the cursor is on ws11 now: press again", action.Request{Do: action.Slots,
				Host: "ws11", Number: 1, Relative: true}},
		{"a cause", "3", func(snap *runview.Snapshot) { snap.Groups = snap.Groups[min(1, len(snap.Groups)):] },
			"r", "exit 137 Killed has left the list; the cursor is on exit 1 ValueError: " +
				"gamma must be positi… now: press again",
			action.Request{Do: action.Requeue, Jobs: jobs.Ranges{{First: 50140, Last: 50142}}}},
		{"a job of a cause", "3 enter j", func(snap *runview.Snapshot) {
			for i := range snap.Groups {
				snap.Groups[i].Jobs = []runview.Row{sampleRow(50122 + 10)}
			}
		}, "r", "job 50120 has left the list; the cursor is on job 50132 now: press again",
			action.Request{Do: action.Requeue, Jobs: jobs.One(50132)}},
		{"a job that is over", "4", func(snap *runview.Snapshot) {
			if snap.Jobs != nil {
				snap.Jobs.Rows[0] = sampleRow(50120)
			}
		}, "r", "has left the list; the cursor is on job 50120 now: press again",
			action.Request{Do: action.Requeue, Jobs: jobs.One(50120)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			gone := false
			src := sampleWith(func(snap *runview.Snapshot) {
				if gone {
					c.change(snap)
				}
			})
			m := newScreen(t, src, 80, 24)
			press(t, m, c.keys)
			gone = true
			refresh(t, m)
			press(t, m, c.key)
			if did := src.actions(); !strings.HasSuffix(m.message.text, c.says) || len(did) > 0 || m.modal != nil {
				t.Errorf("%s: it says %q and did %+v", c.name, m.message.text, did)
			}
			press(t, m, c.key)
			did := src.actions()
			if len(did) != 1 || did[0].Do != c.does.Do || did[0].Host != c.does.Host ||
				!slices.Equal(did[0].Jobs, c.does.Jobs) || did[0].Number != c.does.Number {
				t.Errorf("%s: the second key did %+v, not %+v; it says %q", c.name, did, c.does, m.message.text)
			}
		})
	}
}
