package tui

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"dcs-tui/internal/text"
	"dcs-tui/jobs"
	"dcs-tui/observe/runview"
)

// jobList is a list of jobs. It loads only a page of rows, some screens around the cursor, so its
// work does not grow with the number of jobs (rule 3). The cursor is on a job, not on a row (rule
// 4). Until the user moves it, it stays at the top.
type jobList struct {
	noPane
	viewport // rows are positions in the whole list

	baseFilter string // the fixed part
	filter     string // the user's part
	sort       runview.Sort
	reverse    bool

	// The newest page that fits the request; until it arrives, a page of an older filter or order.
	page   *runview.Page
	cursor jobs.ID // 0: the job at position at, once it is known
	pinned bool    // the cursor stays on its job, because the user has moved it there

	window      runview.JobsWindow // the newest request
	windowFirst int                // its first position, as far as it is known before the answer
	waiting     bool               // the answer is pending
	outdated    bool               // the page no longer contains the cursor's job
	slip        slip
	acted       actedJob

	back       func() // returns to the list that was narrowed down to backFilter; nil: there is none
	backFilter string

	filterError, filterErrorOf string // error of a filter, and that filter; its page was not used
}

func (l *jobList) fullFilter() string {
	if l.baseFilter == "" {
		return l.filter
	}
	return strings.TrimSpace(l.baseFilter + " " + parenthesize(l.filter))
}

// isCurrentPage reports whether a page has the current filter and order.
func (l *jobList) isCurrentPage(p *runview.Page) bool {
	return p.Filter == l.fullFilter() && p.Sort == l.sort && p.Reverse == l.reverse
}

func (l *jobList) numMatched() int {
	if l.page == nil {
		return 0
	}
	return l.page.Matched
}

// row returns the row at a position, if it is loaded.
func (l *jobList) row(pos int) (*runview.Row, bool) {
	if l.page == nil || pos < l.page.First || pos >= l.page.First+len(l.page.Rows) {
		return nil, false
	}
	return &l.page.Rows[pos-l.page.First], true
}

// findJob returns the position of a job in a page, or -1.
func findJob(p *runview.Page, id jobs.ID) int {
	for i := range p.Rows {
		if p.Rows[i].ID == id {
			return p.First + i
		}
	}
	return -1
}

// cursorJob returns the job under the cursor. It returns false while the row is not loaded.
func (l *jobList) cursorJob() (runview.Row, bool) {
	r, ok := l.row(l.cursorRow)
	if !ok || r.ID != l.cursor {
		return runview.Row{}, false
	}
	return *r, true
}

// setPage replaces the page, unless it has another filter or order, or follows another job.
func (l *jobList) setPage(p *runview.Page) {
	if !l.isCurrentPage(p) {
		return
	}
	anew := l.page == nil || !l.isCurrentPage(l.page)
	switch pos := findJob(p, l.cursor); {
	case p.Wrong != "": // the cursor's job returns with a corrected filter
	case !l.pinned:
		l.cursorRow, l.top = 0, 0
	case l.cursor == 0: // a position, whatever job is there
	case pos >= 0 && l.hasMovedByAction(p, pos):
		if l.moveToJob(l.acted.next); findJob(p, l.cursor) >= 0 { // otherwise it is requested now
			l.setPage(p)
		}
		return
	case pos >= 0:
		l.top += pos - l.cursorRow
		if anew {
			l.top = pos - l.h/2
		}
		l.cursorRow = pos
	case p.Cursor != l.cursor: // the answer to a request from before the cursor moved
		l.waiting, l.outdated = false, true
		return
	case anew:
		l.pinned, l.cursorRow, l.top = false, 0, 0
	default: // the job has left the list
		l.cursor = 0
	}
	l.page, l.waiting = p, false
	l.clampCursor()
}

// actedJob is the job under the cursor at the last action on it. If the action moves the job away,
// the cursor stays at its place, on the next job, so that the same keys act on one job after another.
type actedJob struct {
	id, next jobs.ID // next: the job after it that the action does not affect
	phase    runview.Phase
}

// noteAction records that an action on jobs begins.
func (l *jobList) noteAction(which jobs.Ranges) {
	r, ok := l.cursorJob()
	l.acted = (actedJob{})
	if !ok || !which.Has(r.ID) {
		return
	}
	l.acted.id, l.acted.phase = r.ID, r.Phase
	for pos := l.cursorRow + 1; l.acted.next == 0; pos++ {
		after, ok := l.row(pos)
		if !ok {
			break
		}
		if !which.Has(after.ID) {
			l.acted.next = after.ID
		}
	}
}

// hasMovedByAction reports whether the last action has moved the cursor's job, which is at a position
// of a page, away from the job after it.
func (l *jobList) hasMovedByAction(p *runview.Page, pos int) bool {
	return l.acted.id == l.cursor && l.acted.next != 0 && p.Rows[pos-p.First].Phase != l.acted.phase &&
		findJob(p, l.acted.next) != pos+1
}

// clampCursor keeps the cursor within the list, on the screen, and on a job.
func (l *jobList) clampCursor() {
	l.viewport.clampCursor(l.numMatched())
	if r, ok := l.row(l.cursorRow); ok && (l.cursor == 0 || !l.pinned) {
		l.cursor = r.ID
	}
}

// moveTo moves the cursor to a position.
func (l *jobList) moveTo(pos int) {
	if l.numMatched() > 0 {
		l.cursorRow, l.pinned, l.cursor = pos, true, 0
		l.clampCursor()
	}
}

// click moves the cursor to a row of the screen. Row 0 is the heading.
func (l *jobList) click(_ *model, row int) {
	if pos := l.top + row - 1; row > 0 && pos < l.numMatched() {
		l.moveTo(pos)
	}
}

// moveToTop moves the cursor to the top, where it stays whatever job is there.
func (l *jobList) moveToTop() {
	l.pinned, l.cursor, l.cursorRow, l.top = false, 0, 0, 0
	l.clampCursor()
}

// moveToJob moves the cursor to a job at an unknown position.
func (l *jobList) moveToJob(id jobs.ID) {
	l.cursor, l.pinned, l.outdated = id, true, true
	if l.page != nil {
		if pos := findJob(l.page, id); pos >= 0 {
			l.cursorRow = pos
			l.clampCursor()
		}
	}
}

// pinCursor keeps the cursor on its job, even at the top.
func (l *jobList) pinCursor() {
	if !l.pinned && l.cursor != 0 {
		l.pinned, l.outdated = true, true
	}
}

// resize sets the number of visible rows.
func (l *jobList) resize(h int) {
	if l.h != h {
		l.h = h
		l.clampCursor()
	}
}

// requestWindow returns the window to request from the source. It stays the same while the loaded
// rows suffice, because each change costs a round trip and ends the request in progress.
func (l *jobList) requestWindow() *runview.JobsWindow {
	w := &l.window
	switch {
	case w.Rows == 0 || w.Filter != l.fullFilter() || w.Sort != l.sort || w.Reverse != l.reverse:
	case w.Rows < min(runview.MaxRows, 2*l.h): // the screen has become larger
	case l.outdated:
	case l.waiting:
		if l.top >= l.windowFirst && l.top+l.h <= l.windowFirst+w.Rows {
			return new(l.window)
		}
	case l.page != nil && l.coversScreen(l.page):
		return new(l.window)
	}
	*w = runview.JobsWindow{Filter: l.fullFilter(), Sort: l.sort, Reverse: l.reverse, At: l.cursorRow,
		Rows: min(runview.MaxRows, max(40, 4*l.h))}
	w.Above = l.cursorRow - l.top + l.h*3/2
	if !l.pinned {
		w.Above = 0
	}
	if l.pinned {
		w.Cursor = l.cursor
	}
	l.windowFirst, l.waiting, l.outdated = max(0, w.At-w.Above), true, false
	return new(l.window)
}

// coversScreen reports whether a page has the visible rows and some more on both sides.
func (l *jobList) coversScreen(p *runview.Page) bool {
	more := l.h / 2
	return p.First <= max(0, l.top-more) && p.First+len(p.Rows) >= min(p.Matched, l.top+l.h+more)
}

// nextSort orders the list by the next column.
func (l *jobList) nextSort() { l.sort, l.reverse = (l.sort+1)%runview.Sorts, false }

// isHighestFirst reports whether the list begins with the highest value.
func (l *jobList) isHighestFirst() bool { return highestFirst(l.sort) != l.reverse }

// highestFirst reports whether an order that is not reversed begins with the highest value, as
// orders by amounts and the first order do.
func highestFirst(s runview.Sort) bool {
	switch s {
	case runview.SortAge, runview.SortTry, runview.SortTime, runview.SortProgress, runview.SortMemory:
		return true
	}
	return false
}

// orderArrow returns an arrow that points down if the highest value comes first.
func (m *model) orderArrow(highestFirst bool) string {
	if highestFirst {
		return m.glyphs.down
	}
	return m.glyphs.up
}

// oldOrderAge is the age from which the order of a list is marked as old.
const oldOrderAge = 3 * time.Second

// describeList describes a filter, an order, and how old that is: "/C=0.1  sort:age ▼  5 s ago".
func (m *model) describeList(filter, order string, page *runview.Page) string {
	age := time.Duration(0)
	if page != nil {
		age = page.Settled
	}
	return text.Join("  ", text.If(filter != "", m.cut("/"+m.clean(filter), 30)), order,
		text.If(age >= oldOrderAge, text.Span(age)+" ago"))
}

func (l *jobList) filterAndOrder(m *model) string {
	return m.describeList(l.filter, "sort:"+l.sort.String()+" "+m.orderArrow(l.isHighestFirst()), l.page)
}

func jobListKeys() []binding {
	return withGroup("Jobs",
		key("open", "detail", "details of a job: command, attempts with reasons, files",
			onCurrent((*model).openDetail)),
		key("log", "log", "its output: follow, search, wrap, stdout and stderr", onCurrent((*model).openOutput)),
	)
}

func (l *jobList) listKeys(selectAll, nextSort func(*model) tea.Cmd) []binding {
	return append(withGroup("List",
		key("find", "filter", "filter the list while you type", func(m *model) tea.Cmd { return m.openFilter(l) }),
		key("select", "select", "select a job, or not", l.selectCurrent).thatActs(),
		key("select-all", "", "select all jobs that match the filter", selectAll).thatActs(),
		key("sort", "", "sort by the next column", nextSort),
		key("reverse", "", "in reverse order", screenAction(func() { l.reverse = !l.reverse })),
	), moveKeys(func() int { return l.h }, func(m *model, by int) {
		switch stepped := l.slip.hasStepped(m, by); {
		case by <= -maxMove:
			l.moveToTop()
		case !stepped:
			l.moveTo(l.cursorRow + by)
		}
	})...)
}

// onCurrent returns the action of a key on the job under the cursor.
func onCurrent(do func(*model, jobs.ID) tea.Cmd) func(*model) tea.Cmd {
	return func(m *model) tea.Cmd {
		r, ok := m.currentJob()
		if !ok {
			m.showError(noJobText)
			return nil
		}
		return do(m, r.ID)
	}
}

const noJobText = "there is no job under the cursor yet"

// selectCurrent selects or deselects the job under the cursor, and moves to the next job.
func (l *jobList) selectCurrent(m *model) tea.Cmd {
	if r, ok := l.cursorJob(); ok {
		m.jobs.sel.toggle(r.ID)
		l.moveTo(l.cursorRow + 1)
	}
	return nil
}

// selectAll selects all jobs of a list, loaded or not.
func (l *jobList) selectAll(m *model) tea.Cmd { return m.selectMatches(l.fullFilter()) }

// selectMatches selects all jobs that a filter matches. Keys that are pressed meanwhile apply to
// the selection.
func (m *model) selectMatches(filter string) tea.Cmd {
	src, box := m.src, &waitModal{keepsKeys: true}
	return m.awaitAnswer(box, sourceTimeout, func(ctx context.Context) reply {
		which, err := src.Match(ctx, filter)
		return func(m *model) tea.Cmd {
			if which.Count() == 0 {
				box.kept = nil // they would apply to the job under the cursor
			}
			switch {
			case err != nil:
				m.showError("nothing was selected: " + err.Error())
			case which.Count() == 0:
				m.showError("no job matches: nothing was selected")
			default:
				m.jobs.sel.add(which)
				m.showMessage(text.Plural(m.jobs.sel.n, "job") + " selected; " + m.keyFor("back") +
					" clears the selection")
			}
			return nil
		}
	})
}

// clearSelectionOrFilter clears the selection or, if there is none, the filter. It returns false if
// both are empty.
func (l *jobList) clearSelectionOrFilter(sel *selection) bool {
	switch {
	case sel.n > 0:
		sel.set(nil)
	case l.filter != "" && l.back != nil && l.filter == l.backFilter:
		back := l.back
		l.back = nil
		back()
	case l.filter != "":
		l.setFilter("")
	default:
		return false
	}
	return true
}

// narrowDown sets a filter that leaves only a part of what was shown. While it stands, esc returns to
// that: it calls back.
func (l *jobList) narrowDown(filter string, back func()) {
	l.setFilter(filter)
	l.moveToTop()
	l.back, l.backFilter = back, l.filter
}

// selection is a set of jobs, stored as ranges. Selecting all matching jobs may select a million,
// and no frame iterates over them.
type selection struct {
	which jobs.Ranges
	n     int // number of jobs
}

func (s *selection) has(id jobs.ID) bool { return s.which.Has(id) }

// toggle adds a job, or removes it.
func (s *selection) toggle(id jobs.ID) {
	if !s.has(id) {
		s.add(jobs.One(id))
		return
	}
	i := slices.IndexFunc(s.which, func(r jobs.Range) bool { return id <= r.Last })
	parts := jobs.Ranges{{First: s.which[i].First, Last: id - 1}, {First: id + 1, Last: s.which[i].Last}}
	parts = slices.DeleteFunc(parts, func(r jobs.Range) bool { return r.First > r.Last })
	s.set(slices.Concat(s.which[:i], parts, s.which[i+1:])) // a new slice: an action may still use the old one
}

func (s *selection) add(more jobs.Ranges) { s.set(jobs.Union(s.which, more)) }

func (s *selection) set(which jobs.Ranges) { s.which, s.n = which, which.Count() }

// slipTime is how long the user has to notice that the cursor has moved to another job by itself.
// During that time, a key has no effect, because it was meant for the previous job (rule 4).
const slipTime = 1500 * time.Millisecond

// slip is a move of a cursor that the user did not request.
type slip struct {
	from string // the previous item, in words; "": the slip was reported, or there was none
	gone bool   // the previous item is no longer in the list
	// The item after the previous one has its place, so the cursor has made a step down.
	replaced bool
	at       time.Time
}

// hasStepped reports whether a step down was made by the slip itself, a moment ago: the user, who
// has not noticed that yet, means the item that is under the cursor now. Any move ends the slip.
func (s *slip) hasStepped(m *model, by int) bool {
	stepped := s.from != "" && s.replaced && by == 1 && m.now().Sub(s.at) < slipTime
	s.from = ""
	return stepped
}

// setPageAndNoteSlip replaces the page and records whether that moves the cursor.
func (l *jobList) setPageAndNoteSlip(m *model, p *runview.Page) {
	// The user is typing the filter: keep the previous one.
	if line, typing := m.modal.(*inputLine); typing && line.filteredList == l && p.Wrong != "" && l.page != nil {
		l.filterError, l.filterErrorOf, l.waiting, l.outdated = p.Wrong, p.Filter, false, false
		return
	}
	anew := l.page == nil || !l.isCurrentPage(l.page)
	before, held := l.cursor, l.pinned
	l.setPage(p)
	if before == 0 || l.cursor == before || anew {
		return
	}
	l.slip = slip{from: jobName(before), gone: findJob(p, before) < 0, replaced: held || findJob(p, before) < 0,
		at: m.now()}
}

func (l *jobList) newestSlip(*model) (*slip, string) {
	if r, ok := l.cursorJob(); ok {
		return &l.slip, jobName(r.ID)
	}
	return &l.slip, ""
}

// warnIfSlipped reports whether the cursor has just moved to an item that the user may not mean.
// If so, it shows a message, and the next key works.
func (m *model) warnIfSlipped() bool {
	s, on := m.focus().newestSlip(m)
	if s == nil {
		return false
	}
	from := s.from
	if from == "" || m.now().Sub(s.at) >= slipTime {
		return false
	}
	s.from = ""
	if on == "" || on == from {
		return false
	}
	why := "has moved in the list"
	if s.gone {
		why = "has left the list"
	}
	m.showError(fmt.Sprintf("%s %s; the cursor is on %s now: press again", from, why, on))
	return true
}

// otherJobSuffix returns a suffix for the title of a pane that stays with a job, if the cursor of
// the list is on another one.
func (m *model) otherJobSuffix(id jobs.ID) string {
	if m.tab != tabJobs {
		return ""
	}
	if r, ok := m.jobs.currentJob(m); ok && r.ID != id {
		return " " + m.glyphs.dot + " the cursor is on " + jobName(r.ID)
	}
	return ""
}
