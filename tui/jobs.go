package tui

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"dcs-tui/internal/text"
	"dcs-tui/jobs"
	"dcs-tui/observe/runview"
)

// jobsPane is the list of jobs.
type jobsPane struct {
	jobList
	choices columnChoices
	sel     selection
	needs   columnNeeds

	edits, filters, commands history
}

func (p *jobsPane) title(m *model) string {
	return "Jobs " + text.Thousands(p.numMatched()) + "  " + p.filterAndOrder(m)
}

func (p *jobsPane) draw(m *model, w, h int, focused bool) []string {
	return m.drawList(&p.jobList, p.columns(m, w-2), w, h, focused)
}

func (p *jobsPane) addToQuery(m *model, ask *runview.Query) { ask.Jobs = p.requestWindow() }

func (p *jobsPane) keys() []binding {
	return append(jobListKeys(), p.listKeys(p.selectAll, screenAction(p.nextSort))...)
}

func (p *jobsPane) columnChoices() *columnChoices { return &p.choices }

// onSnapshot handles a new snapshot.
func (p *jobsPane) onSnapshot(m *model) {
	if page := m.snap.Jobs; page != nil && p.isCurrentPage(page) {
		p.needs.update(m, page.Rows)
		p.setPageAndNoteSlip(m, page)
	}
}

func (p *jobsPane) hasJobs() bool { return true }

func (p *jobsPane) currentJob(m *model) (runview.Row, bool) { return p.cursorJob() }

func (p *jobsPane) selectedJobs(*model) jobs.Ranges { return p.sel.which }

func (p *jobsPane) clearSelectionOrFilter(*model) bool {
	return p.jobList.clearSelectionOrFilter(&p.sel)
}

// columnNeeds records which columns, and which widths, the rows so far need. It only grows, so that
// no column appears and disappears while a list scrolls.
type columnNeeds struct {
	id, host, try, queue         int  // widths in cells
	title                        int  // width in cells, at most maxTitle
	hasPriority, hasHiddenParams bool // hasHiddenParams: a name does not show all parameters
	hasProgress                  bool // a job reports progress or the cause of its failure
	hasCPU, hasMemory            bool
	params                       []string // names, in order of appearance
}

// maxTitle is the maximum width, in cells, that names get before other columns are widened.
const maxTitle = 80

// maxParams bounds the number of parameters that have a column or are completed.
const maxParams = 32

func (s *columnNeeds) update(m *model, rows []runview.Row) {
	for i := range rows {
		r := &rows[i]
		s.id = max(s.id, len(itoa(int(r.ID))))
		s.host = max(s.host, m.maxTextWidth(16, r.Host))
		s.try = max(s.try, len(triesText(m, r)))
		s.queue = max(s.queue, m.maxTextWidth(12, r.Queue))
		s.title = max(s.title, m.maxTextWidth(maxTitle, r.Title))
		s.hasProgress = s.hasProgress || r.Progress >= 0 || r.Said != "" || r.Cause != ""
		s.hasPriority = s.hasPriority || r.Priority != 0
		s.hasCPU, s.hasMemory = s.hasCPU || r.CPU > 0, s.hasMemory || r.MaxRSS > 0
		for _, p := range r.Params {
			if len(s.params) < maxParams && !slices.Contains(s.params, p.Name) {
				s.params = append(s.params, p.Name)
			}
			s.hasHiddenParams = s.hasHiddenParams || !strings.Contains(prefix(r.Title, maxShown), p.Name+"="+p.Value)
		}
	}
}

type jobColumn = column[*runview.Row]

// columns returns the columns for w cells, without the marks.
func (p *jobsPane) columns(m *model, w int) []jobColumn {
	s := &p.needs
	return recordShown(&p.choices, p.fitSortedColumns(m, applyChoices(&p.choices, []jobColumn{
		{heading: "ID", sort: runview.SortID, w: s.idWidth(m), alignRight: true, cell: idCell},
		{heading: "STATE", sort: runview.SortState, w: stateWidth, cell: stateCell},
		{heading: "HOST", sort: runview.SortHost, rank: 2, w: max(4, s.host), cell: hostCell},
		{heading: "TRY", sort: runview.SortTry, rank: 4, w: max(3, s.try), cell: tryCell},
		{heading: "TIME", sort: runview.SortTime, rank: 1, w: timeWidth, cell: timeCell},
		{heading: "PROGRESS", sort: runview.SortProgress, rank: 3, w: 10, maxExtra: 8, hasBar: true, cell: progressCell,
			isEmpty: !s.hasProgress && p.sort != runview.SortProgress},
		{heading: "NAME", sort: runview.SortName, w: 12, maxExtra: max(32, s.title-12),
			nameCells: min(s.title, 60) - 12, cell: nameCell},
		{heading: "PARAMETERS", sort: runview.Sorts, rank: optionalRank, w: 16, maxExtra: 60, cell: paramsCell,
			isEmpty: !s.hasHiddenParams},
		{heading: "QUEUE", sort: runview.SortQueue, rank: optionalRank + 1, w: max(6, s.queue), cell: queueCell,
			isEmpty: s.queue == 0},
		{heading: "PRIO", sort: runview.SortPriority, rank: optionalRank + 1, w: 5, alignRight: true,
			cell: priorityCell, isEmpty: !s.hasPriority && p.sort != runview.SortPriority},
		{heading: "CPU", sort: runview.Sorts, rank: optionalRank + 3, w: 9, alignRight: true, cell: cpuCell,
			isEmpty: !s.hasCPU},
		{heading: "MEM", sort: runview.SortMemory, rank: optionalRank + 2, w: 5, alignRight: true, cell: memoryCell,
			isEmpty: !s.hasMemory && p.sort != runview.SortMemory},
	}), w))
}

// fitSortedColumns fits columns. The column that orders the list is always among them.
func (l *jobList) fitSortedColumns(m *model, all []jobColumn, w int) []jobColumn {
	for i := range all {
		if all[i].sort == l.sort {
			all[i].addArrow(m.orderArrow(l.isHighestFirst()))
		}
	}
	return fitColumns(all, w, false)
}

const (
	stateWidth = 9 // the glyph and a word of seven letters
	timeWidth  = 9
)

func (s *columnNeeds) idWidth(m *model) int {
	if m.snap != nil {
		s.id = max(s.id, len(itoa(m.snap.Total)))
	}
	return max(5, s.id)
}

func idCell(m *model, r *runview.Row, w int) (string, *textStyle) { return itoa(int(r.ID)), nil }

// stateCell returns the phase as glyph, word, and color (rule 8). A straggler is called slow.
func stateCell(m *model, r *runview.Row, w int) (string, *textStyle) {
	if r.Straggler && r.Phase == runview.Running {
		return m.glyphs.warn + " slow", &styleWarn
	}
	return m.sign(r.Phase) + " " + r.Phase.String(), &phaseInfoOf(r.Phase).style
}

func hostCell(m *model, r *runview.Row, w int) (string, *textStyle) {
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
func tryCell(m *model, r *runview.Row, w int) (string, *textStyle) {
	if r.Failures > 0 && !r.Phase.Terminal() {
		return triesText(m, r), &styleWarn
	}
	return triesText(m, r), nil
}

func triesText(m *model, r *runview.Row) string {
	n, most := r.Failures, r.Tries
	if most == 0 && m.snap != nil {
		most = m.snap.Tries
	}
	switch r.Phase {
	case runview.Ending, runview.Running, runview.Suspended, runview.Away, runview.Sent, runview.Succeeded,
		runview.Retry:
		n++ // the current, the successful, or the next try
	}
	return fmt.Sprintf("%d/%d", min(n, most), most)
}

// timeCell returns how long a job has run or ran, when it is retried, or its place in the queue.
func timeCell(m *model, r *runview.Row, w int) (string, *textStyle) {
	switch r.Phase {
	case runview.Retry:
		return "in " + text.Clock(r.Retry.Sub(m.dispatcherNow())+time.Second-1), &styleWarn
	case runview.Queued, runview.Waits, runview.Sent:
		if r.Place >= 0 && r.Phase == runview.Queued {
			return "#" + itoa(r.Place+1), &styleFaint
		}
		return "-", &styleFaint
	}
	return elapsedCell(m, r, w)
}

func elapsedCell(m *model, r *runview.Row, w int) (string, *textStyle) {
	end := r.Ended
	if !r.Phase.Terminal() {
		end = m.dispatcherNow()
	}
	if r.Started.IsZero() || end.IsZero() {
		return "-", &styleFaint
	}
	switch ran := end.Sub(r.Started) - r.Suspended; {
	case r.Phase == runview.Away || m.isUndispatched() && !r.Phase.Terminal():
		return text.Clock(ran) + "?", &styleFaint // if it still runs
	case r.Straggler:
		return text.Clock(ran), &styleWarn
	case r.Phase.Terminal():
		return formatElapsed(ran), nil
	default:
		return text.Clock(ran), nil
	}
}

// progressCell returns what the job reports about its progress, or why it failed.
func progressCell(m *model, r *runview.Row, w int) (string, *textStyle) {
	switch {
	case r.Phase == runview.Succeeded, r.Phase.Terminal() && r.Cause == "":
		return "", nil
	case r.Cause != "" && (r.Phase.Terminal() || r.Phase == runview.Retry):
		return m.cellText(r.Cause, w), &phaseInfoOf(r.Phase).style
	case r.Progress >= 0 && w >= 15:
		return m.drawBar(r.Progress, w-5) + fmt.Sprintf(" %3.0f%%", 100*min(1, r.Progress)), &styleBusy
	case r.Progress >= 0:
		return m.drawBar(r.Progress, w), &styleBusy
	case r.Said != "":
		return m.cellText(r.Said, w), nil
	}
	return "", nil
}

func nameCell(m *model, r *runview.Row, w int) (string, *textStyle) {
	if n := len(m.namePrefix); 4*n >= 3*w && len(r.Title) > n {
		if name := []rune(m.clean(r.Title)); len(name) > w && width(string(name)) > w {
			head := max(4, w/3) // all have the same beginning, so show more of the end
			return m.fit(ansi.TruncateWc(string(name[:w]), head, ""),
				head) + m.cutLeft(string(name[len(name)-w:]), w-head), nil
		}
	}
	return m.cellText(r.Title, w), nil
}

func paramsCell(m *model, r *runview.Row, w int) (string, *textStyle) {
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

func queueCell(m *model, r *runview.Row, w int) (string, *textStyle) {
	return m.cellText(r.Queue, w), nil
}

func priorityCell(m *model, r *runview.Row, w int) (string, *textStyle) {
	return itoa(r.Priority), nil
}

func cpuCell(m *model, r *runview.Row, w int) (string, *textStyle) {
	if r.CPU <= 0 {
		return "-", &styleFaint
	}
	return formatElapsed(r.CPU), nil
}

func memoryCell(m *model, r *runview.Row, w int) (string, *textStyle) {
	if r.MaxRSS <= 0 {
		return "-", &styleFaint
	}
	return formatPeak(r.MaxRSS, text.ShortSize), nil
}

// drawList draws the heading and the visible rows of a list.
func (m *model) drawList(l *jobList, cols []jobColumn, w, h int, focused bool) []string {
	l.resize(max(0, h-1))
	count := ""
	if n := m.jobs.sel.n; n > 0 {
		count = "  " + styleSelected.Render(text.Thousands(n)+" selected")
	}
	head := heading(m, cols, 2, w-width(count)) + count
	out := []string{head}
	if l.page == nil {
		return append(out, styleFaint.Render("  waiting for the dispatcher"))
	}
	wrong := ""
	if line, typing := m.modal.(*inputLine); l.isCurrentPage(l.page) {
		wrong = l.page.Wrong
	} else if !typing || line.filteredList != l {
		wrong = l.currentFilterError()
	}
	if wrong != "" {
		return append(out, "  "+styleBad.Render(m.sign(runview.Failed)+" "+m.clean(wrong)),
			"  "+m.keyFor("back")+" clears the filter")
	}
	if l.page.Matched == 0 {
		return append(out, styleFaint.Render("  "+m.whyEmpty(l)))
	}
	m.namePrefix = l.commonPrefix()
	return append(out, l.drawRows(l.page.Matched, func(pos int) string {
		r, ok := l.row(pos)
		if !ok {
			return glyphIf(pos == l.cursorRow, m.glyphs.cursor) + styleFaint.Render(" "+m.glyphs.ellipsis)
		}
		return rowLine(m, cols, r, pos == l.cursorRow, m.jobs.sel.has(r.ID), focused, w)
	})...)
}

// commonPrefix returns the common prefix of the names of the visible rows.
func (l *jobList) commonPrefix() string {
	var titles []string
	for i := range l.h {
		if r, ok := l.row(l.top + i); ok {
			titles = append(titles, prefix(r.Title, maxShown))
		}
	}
	if len(titles) < 2 {
		return ""
	}
	return longestCommonPrefix(titles)
}

// whyEmpty explains why a list has no rows.
func (m *model) whyEmpty(l *jobList) string {
	switch {
	case l.filter != "":
		return "no job matches " + m.clean(l.filter) + "; " + m.keyFor("back") + " clears the filter"
	case l.baseFilter != "":
		return "nothing has finished yet"
	case m.snap != nil && m.snap.More:
		return "no jobs yet, more may come"
	}
	return "no jobs"
}
