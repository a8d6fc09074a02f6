package tui

import (
	"slices"
	"testing"

	"dcs-tui/jobs"
	"dcs-tui/jobs/runview"
)

// crowd is a source's list in an order that a test changes.
type crowd struct{ order []jobs.ID }

func newCrowd(n int) *crowd {
	c := &crowd{}
	for i := range n {
		c.order = append(c.order, jobs.ID(i+1))
	}
	return c
}

// page answers a wish as runview.JobsWindow says.
func (c *crowd) page(w *runview.JobsWindow) *runview.Page {
	p := &runview.Page{Filter: w.Filter, Sort: w.Sort, Reverse: w.Reverse, Matched: len(c.order), Cursor: -1}
	at := min(w.At, len(c.order)-1)
	if w.Cursor != 0 {
		if p.Cursor = slices.Index(c.order, w.Cursor); p.Cursor >= 0 {
			at = p.Cursor
		}
	}
	p.First = max(0, at-w.Above)
	for _, id := range c.order[p.First:min(len(c.order), p.First+w.Rows)] {
		p.Rows = append(p.Rows, runview.Row{ID: id})
	}
	return p
}

// look asks as the looker would, until the wish stays the same.
func (c *crowd) look(l *list) (asked int) {
	for range 5 {
		w := l.window()
		l.see(c.page(w))
		asked++
		if *l.window() == *w {
			return asked
		}
	}
	return asked
}

func newList(c *crowd, h int) *list {
	l := &list{}
	l.resize(h)
	c.look(l)
	return l
}

// shown are the ids on the screen, 0 for a row that is not here.
func (l *list) shown() (ids []jobs.ID) {
	for i := range min(l.h, l.matched()-l.top) {
		r, ok := l.row(l.top + i)
		if !ok {
			r = &runview.Row{}
		}
		ids = append(ids, r.ID)
	}
	return ids
}

func here(l *list) jobs.ID {
	r, _ := l.current()
	return r.ID
}

// Rule 4: the cursor sticks to its job, and the job to its place on the screen,
// wherever the order takes it.
func TestTheCursorSticksToItsJob(t *testing.T) {
	c := newCrowd(100_000)
	l := newList(c, 20)
	l.move(7)
	if here(l) != 8 {
		t.Fatalf("the cursor is on %d", here(l))
	}
	for _, to := range []int{50_000, 3, 99_999, 0, 70} {
		i, line := slices.Index(c.order, 8), l.at-l.top
		c.order = slices.Insert(slices.Delete(c.order, i, i+1), to, 8)
		c.look(l)
		if here(l) != 8 || l.at != to {
			t.Errorf("after its job has moved to %d the cursor is on job %d at %d", to, here(l), l.at)
		}
		if to > 20 && to < 99_000 && l.at-l.top != line {
			t.Errorf("at %d its line is %d, was %d", to, l.at-l.top, line)
		}
		if slices.Contains(l.shown(), 0) {
			t.Errorf("at %d rows are missing: %v", to, l.shown())
		}
	}
}

// Before a person has moved the cursor the top of the list is shown, whatever comes
// there; so it is again after g.
func TestTheTopStaysTheTop(t *testing.T) {
	c := newCrowd(1000)
	l := newList(c, 10)
	for _, prepare := range []func(){func() {}, func() { l.move(500); c.look(l); l.home(); c.look(l) }} {
		prepare()
		slices.Reverse(c.order)
		c.look(l)
		if l.top != 0 || here(l) != c.order[0] {
			t.Errorf("the cursor is on %d at %d, the first is %d", here(l), l.at, c.order[0])
		}
	}
	l.hold() // a person acts on what is there
	slices.Reverse(c.order)
	c.look(l)
	if want := c.order[len(c.order)-1]; here(l) != want {
		t.Errorf("held, the cursor is on %d, not on %d", here(l), want)
	}
}

// Rule 3: a key draws from what is here, and the source is asked only when it must be.
func TestMovingAsksRarely(t *testing.T) {
	c := newCrowd(1_000_000)
	l := newList(c, 20)
	asked, before := 0, *l.window()
	for i := range 400 {
		l.move(l.at + 1)
		if slices.Contains(l.shown(), 0) {
			t.Fatalf("at %d rows are missing", i)
		}
		if w := l.window(); *w != before {
			asked++
			l.see(c.page(w))
			before = *l.window()
		}
	}
	if asked > 20 {
		t.Errorf("400 rows took %d round trips", asked)
	}
	if here(l) != 401 {
		t.Errorf("the cursor is on %d", here(l))
	}
}

// While an answer is under way, keys that stay within it must not ask anew: each new
// wish ends the look before, and a held key would never get an answer.
func TestAHeldKeyDoesNotStarveTheAnswer(t *testing.T) {
	c := newCrowd(100_000)
	l := newList(c, 20)
	l.move(50_000)
	w := *l.window()
	for range 15 {
		l.move(l.at + 1)
		if *l.window() != w {
			t.Fatal("the wish has changed before its answer")
		}
	}
	l.see(c.page(&w))
	if here(l) != 50_016 {
		t.Errorf("the cursor is on %d", here(l))
	}
}

// A jump to rows that are not here is drawn at once, as rows to come.
func TestAJumpIsDrawnAtOnce(t *testing.T) {
	c := newCrowd(5000)
	l := newList(c, 10)
	l.move(4999)
	if _, ok := l.current(); ok || l.top != 4990 {
		t.Errorf("there is a job under the cursor before it has come; top %d", l.top)
	}
	c.look(l)
	if here(l) != 5000 || len(l.shown()) != 10 {
		t.Errorf("the cursor is on %d, %v", here(l), l.shown())
	}
	slices.Reverse(c.order)
	c.look(l)
	if here(l) != 5000 || l.at != 0 || l.window().Cursor != 5000 {
		t.Errorf("in another order the cursor is on %d at %d", here(l), l.at)
	}
}

// An answer to an older wish does not take the cursor away.
func TestALateAnswerChangesNothing(t *testing.T) {
	c := newCrowd(10_000)
	l := newList(c, 10)
	late := c.page(&runview.JobsWindow{Cursor: 9000, Rows: 40, Above: 20})
	l.move(5)
	before := l.shown()
	l.see(late)
	if here(l) != 6 || !slices.Equal(before, l.shown()) {
		t.Errorf("the cursor is on %d, %v", here(l), l.shown())
	}
	c.look(l)
	if here(l) != 6 {
		t.Errorf("the cursor is on %d", here(l))
	}

	l.follow(6)
	l.window()
	late = c.page(&runview.JobsWindow{At: 9000, Rows: 40}) // asked for a position, not for the job
	if l.see(late); here(l) != 6 {
		t.Errorf("one late answer has taken the cursor to %d", here(l))
	}
}

// A job that leaves the list leaves the cursor where it was.
func TestAJobThatLeavesTheList(t *testing.T) {
	c := newCrowd(100)
	l := newList(c, 10)
	l.move(40)
	c.look(l)
	c.order = slices.DeleteFunc(c.order, func(id jobs.ID) bool { return id == 41 })
	c.look(l)
	c.look(l)
	if here(l) != 42 || l.at != 40 {
		t.Errorf("the cursor is on %d at %d", here(l), l.at)
	}
	c.order = c.order[:3]
	c.look(l)
	c.look(l)
	if here(l) != 3 {
		t.Errorf("the cursor is on %d of three", here(l))
	}
	c.order = nil
	c.look(l)
	c.look(l)
	if _, ok := l.current(); ok || len(l.shown()) != 0 {
		t.Errorf("an empty list shows %v", l.shown())
	}
	l.move(5)
	l.home()
}

// A filter keeps the cursor on its job when that matches, else begins at the top.
func TestAFilterAndTheCursor(t *testing.T) {
	all := newCrowd(1000)
	l := newList(all, 10)
	l.move(500)
	all.look(l)
	l.setFilter("x")
	some := &crowd{order: []jobs.ID{7, 400, 501, 900}}
	some.look(l)
	if here(l) != 501 || l.at != 2 {
		t.Errorf("the cursor is on %d at %d", here(l), l.at)
	}
	l.setFilter("y")
	other := &crowd{order: []jobs.ID{8, 9}}
	other.look(l)
	if here(l) != 8 || l.held {
		t.Errorf("the cursor is on %d", here(l))
	}
	l.setFilter("")
	l.follow(777)
	all.look(l)
	if here(l) != 777 || slices.Contains(l.shown(), 0) {
		t.Errorf("the cursor is on %d, %v", here(l), l.shown())
	}
	l.sortBy(runview.SortName, true)
	slices.Reverse(all.order)
	all.look(l)
	if here(l) != 777 || l.window().Sort != runview.SortName {
		t.Errorf("sorted anew the cursor is on %d", here(l))
	}
}

// No size and no list may leave the cursor outside the screen.
func TestResizeKeepsTheCursorOnTheScreen(t *testing.T) {
	for _, n := range []int{0, 1, 3, 50, 5000} {
		c := newCrowd(n)
		l := newList(c, 10)
		for _, h := range []int{10, 1, 0, 40, 3, 400, 20} {
			for _, pos := range []int{0, n / 2, n - 1, n + 100} {
				l.resize(h)
				l.move(pos)
				c.look(l)
				if h > 0 && n > 0 && (l.at < l.top || l.at >= l.top+h || slices.Contains(l.shown(), 0)) {
					t.Errorf("%d rows, %d on the screen: cursor %d, top %d, %v", n, h, l.at, l.top, l.shown())
				}
			}
		}
	}
}
