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

// list is a cursor over the rows of a list that only partly are here: some screens
// round the cursor. Its work does not grow with the list (rule 3). The cursor is on a
// job, not on a row (rule 4); before a person has moved it, it stays at the top.
type list struct {
	base    string // part of the filter that is always there
	filter  string // a person's part
	sort    runview.Sort
	reverse bool

	page   *runview.Page // the newest that fits; of an older filter or order until it has come
	cursor jobs.ID       // 0: whichever is at position at, as soon as that is known
	held   bool          // a person has put the cursor somewhere
	at     int           // position of the cursor
	top    int           // position of the first row on the screen
	h      int           // rows on the screen

	win      runview.JobsWindow // the newest wish
	first    int                // where it begins, as far as can be said before its answer
	waits    bool               // for its answer
	outdated bool               // it does not have the cursor's job any more
	missed   bool               // one page did not have the cursor's job: the next one decides
	slip     slip

	wrong, wrongOf string // what is wrong with a filter, and which; its page was not taken
}

// query is the whole filter.
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

// current is the job under the cursor; there is none while its row is not here.
func (l *list) current() (runview.Row, bool) {
	r, ok := l.row(l.at)
	if !ok || r.ID != l.cursor {
		return runview.Row{}, false
	}
	return *r, true
}

// see takes a page in; false: the cursor's job is not in the list any more.
func (l *list) see(p *runview.Page) bool {
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

// settle keeps cursor and screen within the list, and the cursor on the screen.
func (l *list) settle() {
	n := l.matched()
	l.at = max(0, min(l.at, n-1))
	l.top = max(0, min(l.top, n-l.h))
	l.top = max(min(l.top, l.at), l.at-max(1, l.h)+1)
	if r, ok := l.row(l.at); ok && (l.cursor == 0 || !l.held) {
		l.cursor = r.ID
	}
}

// move puts the cursor on a position.
func (l *list) move(pos int) {
	if n := l.matched(); n > 0 {
		l.at, l.held, l.cursor, l.missed = max(0, min(pos, n-1)), true, 0, false
		l.settle()
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

// window is what the source is requested. It stays the same while what is here is
// enough: each change costs a round trip, and ends the look under way.
func (l *list) window() *runview.JobsWindow {
	w := &l.win
	switch {
	case w.Rows == 0 || w.Filter != l.query() || w.Sort != l.sort || w.Reverse != l.reverse:
	case w.Rows < min(runview.MaxRows, 2*l.h): // the screen has grown
	case l.outdated:
	case l.waits:
		if l.top >= l.first && l.top+l.h <= l.first+w.Rows {
			return l.wish()
		}
	case l.page != nil && l.enough(l.page):
		return l.wish()
	}
	*w = runview.JobsWindow{Filter: l.query(), Sort: l.sort, Reverse: l.reverse, At: l.at, Rows: min(runview.MaxRows, max(40, 4*l.h))}
	if w.Above = l.at - l.top + l.h*3/2; !l.held {
		w.Above = 0
	}
	if l.held {
		w.Cursor = l.cursor
	}
	l.first, l.waits, l.outdated = max(0, w.At-w.Above), true, false
	return l.wish()
}

func (l *list) wish() *runview.JobsWindow {
	w := l.win
	return &w
}

// enough reports whether a page has the rows on the screen and some more on both sides.
func (l *list) enough(p *runview.Page) bool {
	more := l.h / 2
	return p.First <= max(0, l.top-more) && p.First+len(p.Rows) >= min(p.Matched, l.top+l.h+more)
}

// sortBy orders a list again. The cursor stays on its job.
func (l *list) sortBy(s runview.Sort, reverse bool) { l.sort, l.reverse = s, reverse }

// nextSort goes through the columns.
func (l *list) nextSort() { l.sortBy((l.sort+1)%runview.Sorts, false) }

// highestFirst reports for a column that not reversed it begins with the highest: those
// that are about amounts, and the order at first.
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

// sorted describes how a list is sorted: "sort:age ▼".
func (m *model) sorted(l *list) string {
	s := "sort:" + l.sort.String() + " " + m.arrow(l.sort, l.reverse)
	if l.page != nil && l.page.Settled >= oldOrder {
		s += " " + span(l.page.Settled) + " ago"
	}
	return s
}

// listed describes how a list is filtered and sorted: "/C=0.1  sort:age ▼".
func (m *model) listed(l *list) string {
	s := m.sorted(l)
	if l.filter != "" {
		s = m.cut("/"+m.clean(l.filter), 30) + "  " + s
	}
	return s
}

// listKeys are the keys of a list of jobs.
func listKeys(l *list) []binding {
	key := func(k, show, word, group, help string, do func(*model) tea.Cmd) binding {
		return binding{keys: []string{k}, show: show, word: word, group: group, help: help, do: do}
	}
	now := func(do func()) func(*model) tea.Cmd { return func(*model) tea.Cmd { do(); return nil } }
	return append([]binding{
		key("enter", "enter", "detail", "Jobs", "details of a job: command, attempts with reasons, files", (*model).detailCurrent),
		key("l", "l", "log", "Jobs", "its output: follow, search, wrap, stdout and stderr", (*model).logCurrent),
		key("/", "/", "filter", "List", "filter the list while you type", func(m *model) tea.Cmd { return m.openFilter(l) }),
		key("space", "space", "select", "List", "select a job, or not", func(m *model) tea.Cmd { return m.pick(l) }),
		key("a", "a", "", "List", "select all jobs that match the filter", func(m *model) tea.Cmd { return m.pickAll(l) }),
		key("s", "s", "", "List", "sort by the next column", now(l.nextSort)),
		key("S", "S", "", "List", "the other way round", now(func() { l.reverse = !l.reverse })),
	}, moving(func() int { return l.h }, func(_ *model, by int) {
		if by <= -far {
			l.home()
			return
		}
		l.move(l.at + by)
	})...)
}

func (m *model) detailCurrent() tea.Cmd {
	if r, ok := m.job(); ok {
		return m.openDetail(r.ID)
	}
	return nil
}

func (m *model) logCurrent() tea.Cmd {
	if r, ok := m.job(); ok {
		return m.openOutput(r.ID)
	}
	return nil
}

// pick selects the job under the cursor, or takes it out, and goes on to the next.
func (m *model) pick(l *list) tea.Cmd {
	if r, ok := l.current(); ok {
		m.jobs.sel.toggle(r.ID)
		l.move(l.at + 1)
	}
	return nil
}

// matchedAll is what a filter matches.
type matchedAll struct {
	filter string
	which  jobs.Ranges
	err    error
}

// pickAll selects all jobs that a list shows, here or not.
func (m *model) pickAll(l *list) tea.Cmd { return m.pickFilter(l.query()) }

func (m *model) pickFilter(filter string) tea.Cmd {
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

// clear empties the selection, or else the filter; false: both are empty.
func (l *list) clear(sel *selection) bool {
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

// toggle takes a job in, or out.
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

// add takes more jobs in.
func (s *selection) add(more jobs.Ranges) { s.set(jobs.Union(s.which, more)) }

func (s *selection) set(which jobs.Ranges) { s.which, s.n = which, which.Count() }

// slipTime is how long a person has to see that the cursor has gone to another job by
// itself. A key that was meant for the job before does nothing to the one that is there
// now (rule 4).
const slipTime = 1500 * time.Millisecond

// slip is the newest such move of a cursor.
type slip struct {
	from string // what it was on, in words; "": nothing to be told
	gone bool   // that is not in the list any more
	at   time.Time
}

// slippery is a pane with a cursor that can slide: what it is on now, in words.
type slippery interface {
	slipped(m *model) (newest *slip, on string)
}

// watch has a list see a page and notes whether that moves its cursor.
func (l *list) watch(m *model, p *runview.Page) {
	if line, typing := m.modal.(*input); typing && line.filters == l && p.Wrong != "" && l.page != nil { // it is being typed: what it was stays
		l.wrong, l.wrongOf, l.waits, l.outdated = p.Wrong, p.Filter, false, false
		return
	}
	anew := l.page == nil || !l.fits(l.page)
	before, held := l.cursor, l.held
	l.see(p)
	if before == 0 || l.cursor == before || anew {
		return
	}
	l.slip = slip{from: jobName(before), gone: held || find(p, before) < 0, at: m.now()}
}

func (l *list) slipped(*model) (*slip, string) {
	if r, ok := l.current(); ok {
		return &l.slip, jobName(r.ID)
	}
	return &l.slip, ""
}

// slid reports whether the cursor has just gone to something else than a key may be meant for,
// and reports that; the next key counts.
func (m *model) slid() bool {
	p, is := m.focus().(slippery)
	if !is {
		return false
	}
	s, on := p.slipped(m)
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

// beside says, in the title of a pane that stays with a job, that the cursor of the list
// is on another one.
func (m *model) beside(id jobs.ID) string {
	if m.tab != tabJobs {
		return ""
	}
	if r, ok := m.jobs.current(m); ok && r.ID != id {
		return " " + m.g.dot + " the cursor is on " + jobName(r.ID)
	}
	return ""
}

// told is what jobs have said of their progress, by their attempts. Of one that cannot
// be reached now, the source knows nothing.
type told map[jobs.AttemptID]float64

// maxTold bounds it.
const maxTold = 4096

// keep records what rows say, and gives those that do not know it what they last said.
func (t *told) keep(rows []runview.Row) {
	if *t == nil || len(*t) > maxTold {
		*t = told{}
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
