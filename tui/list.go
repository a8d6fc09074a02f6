package tui

import (
	"context"
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"dcs-tui/jobs"
	"dcs-tui/jobs/runview"
)

// list is a list of jobs. Only a page of its rows, some screens around the cursor, is
// here, so its work does not grow with the number of jobs (rule 3). The cursor is on a
// job, not on a row (rule 4). Until a person moves it, it stays at the top.
type list struct {
	noPane
	viewport // rows are positions in the whole list

	base    string // part of the filter that is always there
	filter  string // a person's part
	sort    runview.Sort
	reverse bool

	page   *runview.Page // the newest that fits; until it has come, one of an older filter or order
	cursor jobs.ID       // 0: whichever is at position at, as soon as that is known
	held   bool          // a person has put the cursor somewhere

	win      runview.JobsWindow // the newest request
	first    int                // where it begins, as far as is known before its answer
	waits    bool               // for its answer
	outdated bool               // it does not have the cursor's job any more
	missed   bool               // one page did not have the cursor's job: the next one decides
	slip     slip

	wrong, wrongOf string // what is wrong with a filter, and which; its page was not taken
}

// query returns the whole filter.
func (l *list) query() string {
	if l.base == "" {
		return l.filter
	}
	return strings.TrimSpace(l.base + " " + asOne(l.filter))
}

// fits reports whether a page shows what is wanted.
func (l *list) fits(p *runview.Page) bool {
	return p.Filter == l.query() && p.Sort == l.sort && p.Reverse == l.reverse
}

func (l *list) matched() int {
	if l.page == nil {
		return 0
	}
	return l.page.Matched
}

// row returns the row at a position, if it is here.
func (l *list) row(pos int) (*runview.Row, bool) {
	if l.page == nil || pos < l.page.First || pos >= l.page.First+len(l.page.Rows) {
		return nil, false
	}
	return &l.page.Rows[pos-l.page.First], true
}

// find returns the position of a job among the rows here, or -1.
func find(p *runview.Page, id jobs.ID) int {
	for i := range p.Rows {
		if p.Rows[i].ID == id {
			return p.First + i
		}
	}
	return -1
}

// job returns the job under the cursor; false while its row is not here.
func (l *list) job() (runview.Row, bool) {
	r, ok := l.row(l.at)
	if !ok || r.ID != l.cursor {
		return runview.Row{}, false
	}
	return *r, true
}

// take replaces the page. It returns false if the cursor's job is not in the list any more.
func (l *list) take(p *runview.Page) bool {
	if p == nil || !l.fits(p) {
		return true
	}
	anew := l.page == nil || !l.fits(l.page)
	there := true
	switch pos := find(p, l.cursor); {
	case p.Wrong != "": // the cursor's job comes back with a better filter
	case !l.held:
		l.at, l.top = 0, 0
	case l.cursor == 0: // a position, wherever its row is
	case pos >= 0:
		if l.top += pos - l.at; anew {
			l.top = pos - l.h/2
		}
		l.at = pos
	case p.Cursor >= 0 || l.win.Cursor != l.cursor: // the answer to a wish before the cursor moved
		l.waits, l.outdated = false, true
		return true
	case anew:
		l.held, l.at, l.top, there = false, 0, 0, false
	case !l.missed: // perhaps the answer to a wish for a position
		l.missed, l.waits = true, false
		return true
	default:
		l.cursor, there = 0, false
	}
	l.page, l.waits, l.missed = p, false, false
	l.settle()
	return there
}

// settle keeps the cursor within the list and on the screen, and on a job.
func (l *list) settle() {
	l.viewport.settle(l.matched())
	if r, ok := l.row(l.at); ok && (l.cursor == 0 || !l.held) {
		l.cursor = r.ID
	}
}

// move puts the cursor on a position.
func (l *list) move(pos int) {
	if l.matched() > 0 {
		l.at, l.held, l.cursor, l.missed = pos, true, 0, false
		l.settle()
	}
}

// click puts the cursor on a row of the screen, of which 0 is the heading.
func (l *list) click(_ *model, row int) {
	if pos := l.top + row - 1; row > 0 && pos < l.matched() {
		l.move(pos)
	}
}

// home puts the cursor at the top, where it stays whichever job is there.
func (l *list) home() {
	l.held, l.cursor, l.at, l.top = false, 0, 0, 0
	l.settle()
}

// follow puts the cursor on a job that may be anywhere.
func (l *list) follow(id jobs.ID) {
	l.cursor, l.held, l.outdated, l.missed = id, true, true, false
	if l.page != nil {
		if pos := find(l.page, id); pos >= 0 {
			l.at = pos
			l.settle()
		}
	}
}

// hold keeps the cursor on its job, also at the top.
func (l *list) hold() {
	if !l.held && l.cursor != 0 {
		l.held, l.outdated = true, true
	}
}

// resize sets how many rows are on the screen.
func (l *list) resize(h int) {
	if l.h != h {
		l.h = h
		l.settle()
	}
}

// request returns what is wanted of the source. It stays the same while what is here is
// enough: each change costs a round trip, and ends the look under way.
func (l *list) request() *runview.JobsWindow {
	w := &l.win
	switch {
	case w.Rows == 0 || w.Filter != l.query() || w.Sort != l.sort || w.Reverse != l.reverse:
	case w.Rows < min(runview.MaxRows, 2*l.h): // the screen has grown
	case l.outdated:
	case l.waits:
		if l.top >= l.first && l.top+l.h <= l.first+w.Rows {
			return l.requested()
		}
	case l.page != nil && l.enough(l.page):
		return l.requested()
	}
	*w = runview.JobsWindow{Filter: l.query(), Sort: l.sort, Reverse: l.reverse, At: l.at, Rows: min(runview.MaxRows, max(40, 4*l.h))}
	if w.Above = l.at - l.top + l.h*3/2; !l.held {
		w.Above = 0
	}
	if l.held {
		w.Cursor = l.cursor
	}
	l.first, l.waits, l.outdated = max(0, w.At-w.Above), true, false
	return l.requested()
}

func (l *list) requested() *runview.JobsWindow {
	w := l.win
	return &w
}

// enough reports whether a page has the rows on the screen and some more on both sides.
func (l *list) enough(p *runview.Page) bool {
	more := l.h / 2
	return p.First <= max(0, l.top-more) && p.First+len(p.Rows) >= min(p.Matched, l.top+l.h+more)
}

// nextSort orders the list by the next column.
func (l *list) nextSort() { l.sort, l.reverse = (l.sort+1)%runview.Sorts, false }

// highestFirst reports whether an order that is not reversed begins with the highest value:
// that of amounts, and the first order.
func highestFirst(s runview.Sort) bool {
	switch s {
	case runview.SortAge, runview.SortTry, runview.SortTime, runview.SortProgress, runview.SortMemory:
		return true
	}
	return false
}

// arrow points down when the highest comes first.
func (m *model) arrow(s runview.Sort, reverse bool) string {
	if highestFirst(s) != reverse {
		return m.g.down
	}
	return m.g.up
}

// oldOrder is the age from which the order of a list is called old.
const oldOrder = 3 * time.Second

// listed describes how a list is filtered and sorted: "/C=0.1  sort:age ▼".
func (m *model) listed(l *list) string {
	s := "sort:" + l.sort.String() + " " + m.arrow(l.sort, l.reverse)
	if l.page != nil && l.page.Settled >= oldOrder {
		s += " " + span(l.page.Settled) + " ago"
	}
	if l.filter != "" {
		s = m.cut("/"+m.clean(l.filter), 30) + "  " + s
	}
	return s
}

// jobListKeys returns the keys on a job of a list.
func jobListKeys() []binding {
	return grouped("Jobs",
		key("enter", "detail", "details of a job: command, attempts with reasons, files", onCurrent((*model).openDetail)),
		key("l", "log", "its output: follow, search, wrap, stdout and stderr", onCurrent((*model).openOutput)),
	)
}

// listKeys returns the keys on a list of jobs.
func (l *list) listKeys(selectAll, nextSort func(*model) tea.Cmd) []binding {
	return append(grouped("List",
		key("/", "filter", "filter the list while you type", func(m *model) tea.Cmd { return m.openFilter(l) }),
		key("space", "select", "select a job, or not", l.selectCurrent),
		key("a", "", "select all jobs that match the filter", selectAll),
		key("s", "", "sort by the next column", nextSort),
		key("S", "", "the other way round", quietly(func() { l.reverse = !l.reverse })),
	), moving(func() int { return l.h }, func(_ *model, by int) {
		if by <= -far {
			l.home()
			return
		}
		l.move(l.at + by)
	})...)
}

// onCurrent returns the action of a key on the job under the cursor.
func onCurrent(do func(*model, jobs.ID) tea.Cmd) func(*model) tea.Cmd {
	return func(m *model) tea.Cmd {
		r, ok := m.job()
		if !ok {
			m.complain(noJob)
			return nil
		}
		return do(m, r.ID)
	}
}

const noJob = "there is no job under the cursor yet"

// selectCurrent selects the job under the cursor, or takes it out, and goes on to the next.
func (l *list) selectCurrent(m *model) tea.Cmd {
	if r, ok := l.job(); ok {
		m.jobs.sel.toggle(r.ID)
		l.move(l.at + 1)
	}
	return nil
}

// matchedAll holds the jobs that a filter matches.
type matchedAll struct {
	filter string
	which  jobs.Ranges
	err    error
}

// selectAll selects all jobs of a list, whether their rows are here or not.
func (l *list) selectAll(m *model) tea.Cmd { return m.selectMatches(l.query()) }

// selectMatches selects all jobs that a filter matches.
func (m *model) selectMatches(filter string) tea.Cmd {
	src := m.src
	return func() tea.Msg {
		ctx, cancel := context.WithTimeout(context.Background(), lookTimeout)
		defer cancel()
		which, _, err := src.Match(ctx, filter)
		return matchedAll{filter, which, err}
	}
}

func (a matchedAll) apply(m *model) tea.Cmd {
	switch n := a.which.Count(); {
	case a.err != nil:
		m.complain("nothing was selected: " + a.err.Error())
	case n == 0:
		m.complain("no job matches: nothing was selected")
	default:
		m.jobs.sel.add(a.which)
		m.say(plural(m.jobs.sel.n, "job") + " selected; esc clears the selection")
	}
	return nil
}

// empty empties the selection, or else the filter; false: both are empty.
func (l *list) empty(sel *selection) bool {
	switch {
	case sel.n > 0:
		sel.set(nil)
	case l.filter != "":
		l.setFilter("")
	default:
		return false
	}
	return true
}

// selection is a set of jobs, kept as ranges: "all that match" may be a million, and
// no frame walks them.
type selection struct {
	which jobs.Ranges
	n     int // how many
}

func (s *selection) has(id jobs.ID) bool { return s.which.Has(id) }

// toggle adds a job, or removes it.
func (s *selection) toggle(id jobs.ID) {
	if !s.has(id) {
		s.add(jobs.One(id))
		return
	}
	var rest jobs.Ranges // a new slice: an action may hold the old one
	for _, r := range s.which {
		if id < r.First || id > r.Last {
			rest = append(rest, r)
			continue
		}
		if r.First < id {
			rest = append(rest, jobs.Range{First: r.First, Last: id - 1})
		}
		if r.Last > id {
			rest = append(rest, jobs.Range{First: id + 1, Last: r.Last})
		}
	}
	s.set(rest)
}

// add adds jobs.
func (s *selection) add(more jobs.Ranges) { s.set(jobs.Union(s.which, more)) }

func (s *selection) set(which jobs.Ranges) { s.which, s.n = which, which.Count() }

// slipTime is how long a person has to see that the cursor has moved to another job by
// itself. Within it a key, which was meant for the job before, does nothing (rule 4).
const slipTime = 1500 * time.Millisecond

// slip is a move of a cursor that nobody asked for.
type slip struct {
	from string // what it was on, in words; "": it was reported, or there was none
	gone bool   // that is not in the list any more
	at   time.Time
}

// watch replaces the page and notes whether that moves the cursor.
func (l *list) watch(m *model, p *runview.Page) {
	if line, typing := m.modal.(*input); typing && line.filters == l && p.Wrong != "" && l.page != nil { // it is being typed: what it was stays
		l.wrong, l.wrongOf, l.waits, l.outdated = p.Wrong, p.Filter, false, false
		return
	}
	anew := l.page == nil || !l.fits(l.page)
	before, held := l.cursor, l.held
	l.take(p)
	if before == 0 || l.cursor == before || anew {
		return
	}
	l.slip = slip{from: jobName(before), gone: held || find(p, before) < 0, at: m.now()}
}

func (l *list) slipped(*model) (*slip, string) {
	if r, ok := l.job(); ok {
		return &l.slip, jobName(r.ID)
	}
	return &l.slip, ""
}

// slid reports whether the cursor has just moved to something else than a key may be meant
// for. It tells the person; the next key counts.
func (m *model) slid() bool {
	s, on := m.focus().slipped(m)
	if s == nil {
		return false
	}
	from := s.from
	if from == "" || m.now().Sub(s.at) >= slipTime {
		return false
	}
	if s.from = ""; on == "" || on == from {
		return false
	}
	why := "has moved in the list"
	if s.gone {
		why = "has left the list"
	}
	m.complain(fmt.Sprintf("%s %s; the cursor is on %s now: press again", from, why, on))
	return true
}

// beside returns an addition to the title of a pane that stays with a job, when the cursor
// of the list is on another one.
func (m *model) beside(id jobs.ID) string {
	if m.tab != tabJobs {
		return ""
	}
	if r, ok := m.jobs.current(m); ok && r.ID != id {
		return " " + m.g.dot + " the cursor is on " + jobName(r.ID)
	}
	return ""
}

// progressMemory is the newest progress by attempt. The source knows none of an attempt
// that cannot be reached now.
type progressMemory map[jobs.AttemptID]float64

// maxProgress bounds progressMemory.
const maxProgress = 4096

// update records the progress of rows, and completes those without it.
func (t *progressMemory) update(rows []runview.Row) {
	if *t == nil || len(*t) > maxProgress {
		*t = progressMemory{}
	}
	for i := range rows {
		r := &rows[i]
		id := jobs.AttemptID{Job: r.ID, N: r.Attempt}
		switch {
		case r.Phase != runview.Running && r.Phase != runview.Away && r.Phase != runview.Ending:
		case r.Progress >= 0:
			(*t)[id] = r.Progress
		default:
			if v, ok := (*t)[id]; ok {
				r.Progress = v
			}
		}
	}
}
