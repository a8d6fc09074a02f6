package tui

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"dcs-tui/jobs"
	"dcs-tui/jobs/runview"
)

// jobsPane is the list of jobs.
type jobsPane struct {
	list
	choices choices
	sel     selection
	seen    seen
	memory  progressMemory

	edits, filters, commands history
}

func (p *jobsPane) title(m *model) string {
	return "Jobs " + jobs.Thousands(p.matched()) + "  " + p.state(m)
}

func (p *jobsPane) draw(m *model, w, h int, focused bool) []string {
	return m.drawList(&p.list, p.columns(m, w-2), w, h, focused)
}

func (p *jobsPane) ask(m *model, ask *runview.Query) { ask.Jobs = p.request() }

func (p *jobsPane) keys() []binding {
	return append(jobListKeys(), p.listKeys(p.selectAll, quietly(p.nextSort))...)
}

func (p *jobsPane) choose() *choices { return &p.choices }

// onSnapshot handles a new snapshot.
func (p *jobsPane) onSnapshot(m *model) {
	if page := m.snap.Jobs; page != nil && p.isCurrentPage(page) {
		p.seen.update(m, page.Rows)
		p.memory.update(page.Rows)
		p.setPageAndNoteSlip(m, page)
	}
}

func (p *jobsPane) hasJobs() bool { return true }

func (p *jobsPane) current(m *model) (runview.Row, bool) { return p.job() }

func (p *jobsPane) picked() jobs.Ranges { return p.sel.which }

func (p *jobsPane) clear() bool { return p.clearOne(&p.sel) }

func (p *jobsPane) state(m *model) string { return m.listed(&p.list) }

// seen records which columns, and which widths, the rows so far need. It only grows, so that no
// column appears and disappears while a list scrolls.
type seen struct {
	id, host, try, queue int  // widths in cells
	title                int  // width in cells, at most maxTitle
	priority, unnamed    bool // unnamed: a name does not show all parameters
	progress             bool // a job reports progress or the cause of its failure
	cpu, memory          bool
	params               []string // names, in order of appearance
}

// maxTitle is the maximum width, in cells, that names get before other columns are widened.
const maxTitle = 80

// maxParams bounds the number of parameters that have a column or are completed.
const maxParams = 32

func (s *seen) update(m *model, rows []runview.Row) {
	for i := range rows {
		r := &rows[i]
		s.id = max(s.id, len(itoa(int(r.ID))))
		s.host = max(s.host, m.widest(16, r.Host))
		s.try = max(s.try, len(tries(m, r)))
		s.queue = max(s.queue, m.widest(12, r.Queue))
		s.title = max(s.title, m.widest(maxTitle, r.Title))
		s.progress = s.progress || r.Progress >= 0 || r.Said != "" || r.Cause != ""
		s.priority = s.priority || r.Priority != 0
		s.cpu, s.memory = s.cpu || r.CPU > 0, s.memory || r.MaxRSS > 0
		for _, p := range r.Params {
			if len(s.params) < maxParams && !slices.Contains(s.params, p.Name) {
				s.params = append(s.params, p.Name)
			}
			s.unnamed = s.unnamed || !strings.Contains(prefix(r.Title, maxShown), p.Name+"="+p.Value)
		}
	}
}

// jobColumn is a column of a list of jobs.
type jobColumn = column[*runview.Row]

// columns returns the columns for w cells, without the marks.
func (p *jobsPane) columns(m *model, w int) []jobColumn {
	s := &p.seen
	return fitted(&p.choices, p.arrange(m, chosen(&p.choices, []jobColumn{
		{head: "ID", sort: runview.SortID, w: s.idWidth(m), right: true, cell: idCell},
		{head: "STATE", sort: runview.SortState, w: stateWidth, cell: stateCell},
		{head: "HOST", sort: runview.SortHost, rank: 2, w: max(4, s.host), cell: hostCell},
		{head: "TRY", sort: runview.SortTry, rank: 4, w: max(3, s.try), cell: tryCell},
		{head: "TIME", sort: runview.SortTime, rank: 1, w: timeWidth, cell: timeCell},
		{head: "PROGRESS", sort: runview.SortProgress, rank: 3, w: 10, more: 8, bar: true, cell: progressCell, off: !s.progress && p.sort != runview.SortProgress},
		{head: "NAME", sort: runview.SortName, w: 12, more: max(32, s.title-12), spare: min(s.title, 60) - 12, cell: nameCell},
		{head: "PARAMETERS", sort: runview.Sorts, rank: luxury, w: 16, more: 60, cell: paramsCell, off: !s.unnamed},
		{head: "QUEUE", sort: runview.SortQueue, rank: luxury + 1, w: max(6, s.queue), cell: queueCell, off: s.queue == 0},
		{head: "PRIO", sort: runview.SortPriority, rank: luxury + 1, w: 5, right: true, cell: priorityCell, off: !s.priority && p.sort != runview.SortPriority},
		{head: "CPU", sort: runview.Sorts, rank: luxury + 3, w: 9, right: true, cell: cpuCell, off: !s.cpu},
		{head: "MEM", sort: runview.SortMemory, rank: luxury + 2, w: 5, right: true, cell: memoryCell, off: !s.memory && p.sort != runview.SortMemory},
	}), w))
}

// arrange fits columns. The column that orders the list is always among them.
func (l *list) arrange(m *model, all []jobColumn, w int) []jobColumn {
	for i := range all {
		if all[i].sort == l.sort {
			all[i].orders(m.arrow(l.sort, l.reverse))
		}
	}
	return fitColumns(all, w, false)
}

const (
	stateWidth = 9 // the glyph and a word of seven letters
	timeWidth  = 9
)

func (s *seen) idWidth(m *model) int {
	if m.snap != nil {
		s.id = max(s.id, len(itoa(m.snap.Total)))
	}
	return max(5, s.id)
}

func idCell(m *model, r *runview.Row, w int) (string, *ink) { return itoa(int(r.ID)), nil }

// stateCell returns the phase as glyph, word, and color (rule 8). A straggler is called slow.
func stateCell(m *model, r *runview.Row, w int) (string, *ink) {
	if r.Straggler && r.Phase == runview.Running {
		return m.g.warn + " slow", &styleWarn
	}
	return m.sign(r.Phase) + " " + r.Phase.String(), &phaseOf(r.Phase).style
}

func hostCell(m *model, r *runview.Row, w int) (string, *ink) {
	if r.Host == "" {
		return "-", &styleFaint
	}
	if r.Copies > 0 { // on other hosts
		copies := " +" + itoa(r.Copies)
		return m.cellText(r.Host, max(1, w-len(copies))) + copies, nil
	}
	return m.cellText(r.Host, w), nil
}

// tryCell returns the number of a job's try, and of its tries (rule 6).
func tryCell(m *model, r *runview.Row, w int) (string, *ink) {
	if r.Failures > 0 && !r.Phase.Terminal() {
		return tries(m, r), &styleWarn
	}
	return tries(m, r), nil
}

func tries(m *model, r *runview.Row) string {
	n, most := r.Failures, r.Tries
	if most == 0 && m.snap != nil {
		most = m.snap.Tries
	}
	switch r.Phase {
	case runview.Ending, runview.Running, runview.Away, runview.Handed, runview.Succeeded, runview.Retry:
		n++ // the current, the successful, or the next try
	}
	return fmt.Sprintf("%d/%d", min(n, most), most)
}

// timeCell returns how long a job has run or ran, when it is retried, or its place in the queue.
func timeCell(m *model, r *runview.Row, w int) (string, *ink) {
	switch r.Phase {
	case runview.Retry:
		return "in " + formatClock(r.Retry.Sub(m.dispatcherNow())+time.Second-1), &styleWarn
	case runview.Queued, runview.Waits, runview.Handed:
		if r.Place >= 0 && r.Phase == runview.Queued {
			return "#" + itoa(r.Place+1), &styleFaint
		}
		return "-", &styleFaint
	}
	return elapsed(m, r, w)
}

func elapsed(m *model, r *runview.Row, w int) (string, *ink) {
	end := r.Ended
	if !r.Phase.Terminal() {
		end = m.dispatcherNow()
	}
	if r.Started.IsZero() || end.IsZero() {
		return "-", &styleFaint
	}
	switch ran := end.Sub(r.Started); {
	case r.Phase == runview.Away || m.isUndispatched() && !r.Phase.Terminal():
		return formatClock(ran) + "?", &styleFaint // if it still runs
	case r.Straggler:
		return formatClock(ran), &styleWarn
	case r.Phase.Terminal():
		return formatElapsed(ran), nil
	default:
		return formatClock(ran), nil
	}
}

// progressCell returns what the job reports about its progress, or why it failed.
func progressCell(m *model, r *runview.Row, w int) (string, *ink) {
	switch {
	case r.Phase == runview.Succeeded, r.Phase.Terminal() && r.Cause == "":
		return "", nil
	case r.Cause != "" && (r.Phase.Terminal() || r.Phase == runview.Retry):
		return m.cellText(r.Cause, w), &phaseOf(r.Phase).style
	case r.Progress >= 0 && w >= 15:
		return m.bar(r.Progress, w-5) + fmt.Sprintf(" %3.0f%%", 100*min(1, r.Progress)), &styleBusy
	case r.Progress >= 0:
		return m.bar(r.Progress, w), &styleBusy
	case r.Said != "":
		return m.cellText(r.Said, w), nil
	}
	return "", nil
}

func nameCell(m *model, r *runview.Row, w int) (string, *ink) {
	if n := len(m.alike); 4*n >= 3*w && len(r.Title) > n {
		if name := []rune(m.clean(r.Title)); len(name) > w && width(string(name)) > w {
			head := max(4, w/3) // all have the same beginning, so show more of the end
			return m.fit(ansi.TruncateWc(string(name[:w]), head, ""), head) + m.cutLeft(string(name[len(name)-w:]), w-head), nil
		}
	}
	return m.cellText(r.Title, w), nil
}

func paramsCell(m *model, r *runview.Row, w int) (string, *ink) {
	var b strings.Builder
	for _, p := range r.Params {
		if b.Len() > 8*w { // enough for w cells, whatever the width of the characters
			break
		}
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(m.cellText(p.Name, w) + "=" + m.cellText(p.Value, w))
	}
	return b.String(), &styleFaint
}

func queueCell(m *model, r *runview.Row, w int) (string, *ink) {
	return m.cellText(r.Queue, w), nil
}

func priorityCell(m *model, r *runview.Row, w int) (string, *ink) {
	return itoa(r.Priority), nil
}

func cpuCell(m *model, r *runview.Row, w int) (string, *ink) {
	if r.CPU <= 0 {
		return "-", &styleFaint
	}
	return formatElapsed(r.CPU), nil
}

func memoryCell(m *model, r *runview.Row, w int) (string, *ink) {
	if r.MaxRSS <= 0 {
		return "-", &styleFaint
	}
	return formatPeak(r.MaxRSS), nil
}

// drawList draws the heading and the visible rows of a list.
func (m *model) drawList(l *list, cols []jobColumn, w, h int, focused bool) []string {
	l.resize(max(0, h-1))
	count := ""
	if n := m.jobs.sel.n; n > 0 {
		count = "  " + stylePick.Render(jobs.Thousands(n)+" selected")
	}
	head := heading(m, cols, 2, w-width(count)) + count
	out := []string{head}
	if l.page == nil {
		return append(out, styleFaint.Render("  waiting for the dispatcher"))
	}
	wrong := ""
	if line, typing := m.modal.(*input); l.isCurrentPage(l.page) {
		wrong = l.page.Wrong
	} else if !typing || line.filters != l {
		wrong = l.wrongNow()
	}
	if wrong != "" {
		return append(out, "  "+styleBad.Render(m.sign(runview.Failed)+" "+m.clean(wrong)), "  esc clears the filter")
	}
	if l.page.Matched == 0 {
		return append(out, styleFaint.Render("  "+m.whyEmpty(l)))
	}
	m.alike = l.commonPrefix()
	return append(out, l.rows(l.page.Matched, func(pos int) string {
		r, ok := l.row(pos)
		if !ok {
			return mark(pos == l.at, m.g.cursor) + styleFaint.Render(" "+m.g.cut)
		}
		return rowLine(m, cols, r, pos == l.at, m.jobs.sel.has(r.ID), focused, w)
	})...)
}

// commonPrefix returns the common prefix of the names of the visible rows.
func (l *list) commonPrefix() string {
	var titles []string
	for i := range l.h {
		if r, ok := l.row(l.top + i); ok {
			titles = append(titles, prefix(r.Title, maxShown))
		}
	}
	if len(titles) < 2 {
		return ""
	}
	return commonStart(titles)
}

// whyEmpty explains why a list has no rows.
func (m *model) whyEmpty(l *list) string {
	switch {
	case l.filter != "":
		return "no job matches " + m.clean(l.filter) + "; esc clears the filter"
	case l.base != "":
		return "nothing has finished yet"
	case m.snap != nil && m.snap.More:
		return "no jobs yet, more may come"
	}
	return "no jobs"
}
