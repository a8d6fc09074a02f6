package tui

import (
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"dcs-tui/internal/text"
	"dcs-tui/jobs"
	"dcs-tui/observe/runview"
)

// failedPane shows failures by cause (rule 7): groups and, under open groups, some of their jobs.
type failedPane struct {
	noPane
	table[failedKey]
	rowsBelowGroup int // number of rows from the cursor up to its group's row
	opened         map[cause]bool
}

// cause is what the jobs of a group have in common.
type cause struct{ text, last string }

// failedKey identifies a row of the view.
type failedKey struct {
	cause
	job jobs.ID // 0: the group itself; -1: the row with the number of unlisted jobs
}

// failedLine is a row of the view: a group, or one of its jobs.
type failedLine struct {
	group       *runview.Group
	row         *runview.Row // nil: the group itself
	numUnlisted int          // number of unlisted jobs of the group; the other fields are then unset
}

func newFailedPane() *failedPane { return &failedPane{opened: map[cause]bool{}} }

func causeOf(group *runview.Group) cause { return cause{group.Cause, group.Last} }

func (p *failedPane) title(m *model) string {
	if m.snap == nil {
		return "Failed"
	}
	return "Failed " + text.Thousands(m.snap.NumFailed())
}

func (p *failedPane) filterAndOrder(m *model) string {
	if m.snap == nil || len(m.snap.Groups) == 0 {
		return ""
	}
	if n := len(m.snap.Groups); n < runview.MaxGroups {
		return text.Plural(n, "cause")
	}
	return text.Thousands(runview.MaxGroups-1) + " causes and others"
}

func (p *failedPane) addToQuery(_ *model, ask *runview.Query) { ask.Groups = true }

// lines returns the rows of the view and their keys.
func (p *failedPane) lines(m *model) (lines []failedLine, keys []failedKey) {
	if m.snap == nil {
		return nil, nil
	}
	add := func(l failedLine, job jobs.ID) {
		lines, keys = append(lines, l), append(keys, failedKey{causeOf(l.group), job})
	}
	for i := range m.snap.Groups {
		group := &m.snap.Groups[i]
		add(failedLine{group: group}, 0)
		if !p.opened[causeOf(group)] {
			continue
		}
		for k := range group.Jobs {
			add(failedLine{group: group, row: &group.Jobs[k]}, group.Jobs[k].ID)
		}
		if rest := group.Count - len(group.Jobs); rest > 0 {
			add(failedLine{group: group, numUnlisted: rest}, -1)
		}
	}
	return lines, keys
}

// moveToKey moves the cursor to its row. If its job is no longer listed, it moves to the row of
// another job of the same cause, never to the row of the whole group.
func (p *failedPane) moveToKey(keys []failedKey) {
	if p.table.moveToKey(keys) {
		return
	}
	group := slices.Index(keys, failedKey{cause: p.key.cause})
	last := group
	for last >= 0 && last+1 < len(keys) && keys[last+1].cause == p.key.cause {
		last++
	}
	p.cursorRow = max(0, group)
	if p.key.job != 0 && last > group {
		p.cursorRow = min(last, group+max(1, p.rowsBelowGroup))
	}
}

// moveTo moves the cursor to a row.
func (p *failedPane) moveTo(keys []failedKey, at int) {
	p.table.moveTo(keys, at)
	p.rowsBelowGroup = p.cursorRow - max(0, slices.Index(keys, failedKey{cause: p.key.cause}))
}

func (p *failedPane) move(m *model, by int) {
	_, keys := p.lines(m)
	p.moveToKey(keys)
	if !p.slip.hasStepped(m, by) {
		p.moveTo(keys, p.cursorRow+by)
	}
}

func (p *failedPane) click(m *model, row int) {
	_, keys := p.lines(m)
	p.table.click(keys, row)
}

// currentLine returns the row under the cursor.
func (p *failedPane) currentLine(m *model) (failedLine, bool) {
	lines, keys := p.lines(m)
	if len(lines) == 0 {
		return failedLine{}, false
	}
	p.moveToKey(keys)
	return lines[p.cursorRow], true
}

func (p *failedPane) hasJobs() bool { return true }

// currentJob returns the job under the cursor. For a group, it returns the newest job.
func (p *failedPane) currentJob(m *model) (runview.Row, bool) {
	l, ok := p.currentLine(m)
	switch {
	case !ok:
		return runview.Row{}, false
	case l.row != nil:
		return *l.row, true
	case len(l.group.Jobs) > 0:
		return l.group.Jobs[0], true
	}
	return runview.Row{}, false
}

// onSnapshot detects that the item under the cursor has gone.
func (p *failedPane) onSnapshot(m *model) {
	_, keys := p.lines(m)
	before := p.key
	if len(keys) == 0 || before == (failedKey{}) {
		return
	}
	p.moveToKey(keys)
	p.moveTo(keys, p.cursorRow)
	if p.key != before {
		p.slip = slip{from: before.describe(m), gone: true, replaced: true, at: m.now()}
	}
}

func (p *failedPane) newestSlip(m *model) (*slip, string) {
	if _, keys := p.lines(m); len(keys) == 0 {
		return &p.slip, ""
	}
	return &p.slip, p.key.describe(m)
}

// describe returns the description of a job or, if the key has none, of a cause.
func (k failedKey) describe(m *model) string {
	if k.job > 0 {
		return jobName(k.job)
	}
	return strings.TrimSpace(m.cutCell(k.text+" "+k.last, 40))
}

func (p *failedPane) textToCopy(m *model) (what, text string) {
	if l, ok := p.currentLine(m); ok && l.row == nil {
		return "the cause", strings.TrimSpace(l.group.Cause + "  " + l.group.Last)
	}
	return "", ""
}

func (p *failedPane) draw(m *model, w, h int, focused bool) []string {
	lines, keys := p.lines(m)
	if len(lines) == 0 {
		if m.snap != nil && m.snap.NumFailed() > 0 {
			return []string{" counting what failed " + m.glyphs.ellipsis}
		}
		return []string{m.waitingText("nothing has failed")}
	}
	p.h = h - 1
	p.moveToKey(keys)
	p.moveTo(keys, p.cursorRow) // the cursor stays on the item that the user sees under it
	head := styleBold.Render(m.fit(fmt.Sprintf("   %8s  %-12s %s", "JOBS", "CAUSE", "LAST LINE OF STDERR"), w))
	return append([]string{head}, p.drawRows(len(lines), func(i int) string {
		return m.lineWithCursor(p.lineText(m, lines[i], w-1), i == p.cursorRow, focused, w)
	})...)
}

func (p *failedPane) lineText(m *model, l failedLine, w int) string {
	group := l.group
	switch {
	case l.numUnlisted > 0:
		return fmt.Sprintf("%12s and %s more: %s shows them in the list of jobs", "", text.Thousands(l.numUnlisted),
			m.keyFor("list"))
	case l.row != nil:
		r := l.row
		when := text.If(!r.Ended.IsZero(), text.Span(m.dispatcherNow().Sub(r.Ended))+" ago")
		return m.cut(fmt.Sprintf("%12d %s %s  %d/%d  %-8s %s", r.ID, phaseInfoOf(r.Phase).style.Render(m.sign(r.Phase)),
			m.fit(m.clean(r.Host), 8), r.Failures, r.Tries, when, m.clean(r.Title)), w)
	}
	sign := "+"
	if p.opened[causeOf(group)] {
		sign = "-"
	}
	left := sign + " " + styleBad.Render(fmt.Sprintf("%8s", text.Thousands(group.Count))) + "  "
	var right []string
	if group.Tries > 0 {
		right = append(right, styleWarn.Render(m.sign(runview.Retry)+" "+text.Thousands(group.Tries)+" retrying"))
	}
	if len(group.Hosts) > 0 {
		right = append(right, "on "+m.cutCell(strings.Join(group.Hosts, " "), max(8, w/4)))
	}
	tail := strings.Join(right, "  ")
	if width(tail) > w/2 || w < 60 {
		tail = ""
	}
	room := max(0, w-width(left)-width(tail)-2)
	if group.Last == "" { // nothing ran, so only the cause is known
		return m.justify(left+styleBold.Render(m.cutWords(m.clean(group.Cause), room)), tail, w)
	}
	cause := m.fit(m.clean(group.Cause), 12)
	last := m.cutWords(m.clean(group.Last), max(0, room-width(cause)-1))
	return m.justify(left+styleBold.Render(cause)+" "+last, tail, w)
}

func (p *failedPane) keys() []binding {
	some := func(m *model) bool { _, ok := p.currentLine(m); return ok }
	return append(withGroup("Failed",
		key("open", "jobs", "show some jobs of the cause, or hide them; details of a job", p.openCurrent).
			onlyIf(some),
		key("requeue", "requeue all", "requeue all jobs of this cause; on a job, only that one", p.requeue).
			onlyIf(some).thatActs(),
		key("log", "log", "stderr of the job, of a cause that of its newest job", p.openStderr).onlyIf(some),
		key("find", "", "filter what failed, in the list of jobs", p.filterJobs),
		key("list", "in list", "select all jobs of this cause in the list of jobs", p.selectInJobs).
			onlyIf(some).thatActs(),
	), moveKeys(func() int { return p.h }, p.move)...)
}

// openCurrent opens or closes a group, or shows the details of a job.
func (p *failedPane) openCurrent(m *model) tea.Cmd {
	l, _ := p.currentLine(m)
	switch {
	case l.row != nil:
		return m.openDetail(l.row.ID)
	case l.numUnlisted > 0:
		return p.selectInJobs(m)
	}
	p.move(m, 0)
	c := causeOf(l.group)
	p.opened[c] = !p.opened[c]
	return nil
}

// openStderr shows the stderr of a job, which usually explains the failure.
func (p *failedPane) openStderr(m *model) tea.Cmd {
	r, ok := p.currentJob(m)
	if !ok {
		return nil
	}
	cmd := m.openOutput(r.ID)
	if o, ok := m.extra.(*outputPane); ok {
		o.file = jobs.FileErr
	}
	return cmd
}

// requeue runs a whole group again. It asks first if the group is large.
func (p *failedPane) requeue(m *model) tea.Cmd {
	if m.warnIfSlipped() {
		return nil
	}
	l, _ := p.currentLine(m)
	if l.row != nil {
		return m.requeueJobs(jobs.One(l.row.ID))
	}
	return m.requeueJobs(l.group.Which)
}

// failedFilter matches the jobs that failed.
const failedFilter = "(state=fail or state=timeout)"

// filterJobs opens the filter of the list of jobs, for the user to extend.
func (p *failedPane) filterJobs(m *model) tea.Cmd {
	cmd := m.showMatchingJobs(failedFilter)
	m.openFilter(&m.jobs.jobList)
	if line, ok := m.modal.(*inputLine); ok {
		line.text.insert(" ")
	}
	return cmd
}

// selectInJobs shows the jobs of a group in the list of jobs and selects them, so that the next key
// acts on them.
func (p *failedPane) selectInJobs(m *model) tea.Cmd {
	l, _ := p.currentLine(m)
	m.jobs.sel.set(slices.Clone(l.group.Which))
	m.showMessage(text.Plural(l.group.Count, "job") + " selected: " + m.clean(l.group.Cause))
	return m.showMatchingJobs(failedFilter)
}
