package tui

import (
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"dcs-tui/jobs"
	"dcs-tui/jobs/runview"
)

// failedPane shows what failed, by cause: groups, and under those that are
// opened some of their jobs. The cursor sticks to a cause and to a job of it.
type failedPane struct {
	cause  [2]string // of the group under the cursor: cause and last line
	job    jobs.ID   // of the row under the cursor; 0: the group itself, -1: its rest
	below  int       // so many lines below its group's
	opened map[[2]string]bool
	slip   slip
	top, h int
}

func newFailedPane() *failedPane { return &failedPane{opened: map[[2]string]bool{}} }

func (p *failedPane) title(m *model) string {
	if m.pic == nil {
		return "Failed"
	}
	return "Failed " + thousands(counts(m.pic).failed)
}

// state is what the tabs row says of the view.
func (p *failedPane) state(m *model) string {
	if m.pic == nil || len(m.pic.Groups) == 0 {
		return ""
	}
	if n := len(m.pic.Groups); n < runview.MaxGroups {
		return plural(n, "cause")
	}
	return thousands(runview.MaxGroups-1) + " causes and others"
}

func (p *failedPane) ask(_ *model, ask *runview.Ask) { ask.Groups = true }

// failedLine is a line of the view: a group, or a job of it.
type failedLine struct {
	group *runview.Group
	row   *runview.Row // nil: the group itself
	rest  int          // this many jobs of the group are not listed; nothing else then
}

func key(g *runview.Group) [2]string { return [2]string{g.Cause, g.Last} }

func (p *failedPane) lines(m *model) []failedLine {
	if m.pic == nil {
		return nil
	}
	var out []failedLine
	for i := range m.pic.Groups {
		g := &m.pic.Groups[i]
		out = append(out, failedLine{group: g})
		if !p.opened[key(g)] {
			continue
		}
		for k := range g.Jobs {
			out = append(out, failedLine{group: g, row: &g.Jobs[k]})
		}
		if rest := g.Count - len(g.Jobs); rest > 0 {
			out = append(out, failedLine{group: g, rest: rest})
		}
	}
	return out
}

// line is the one under the cursor.
func (p *failedPane) line(m *model) (failedLine, bool) {
	lines := p.lines(m)
	if len(lines) == 0 {
		return failedLine{}, false
	}
	return lines[p.at(lines)], true
}

// current is the job under the cursor; of a group its newest.
func (p *failedPane) current(m *model) (runview.Row, bool) {
	l, ok := p.line(m)
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

// click puts the cursor on a row of the screen, of which 0 is the heading.
func (p *failedPane) click(m *model, row int) {
	if lines := p.lines(m); row > 0 {
		p.move(m, p.top+row-1-p.at(lines))
	}
}

func (p *failedPane) draw(m *model, w, h int, focused bool) []string {
	lines := p.lines(m)
	if len(lines) == 0 {
		if m.pic != nil && counts(m.pic).failed > 0 {
			return []string{" counting what failed " + m.g.cut}
		}
		return []string{m.waitingWord("nothing has failed")}
	}
	p.h = h - 1
	at := p.at(lines)
	p.put(lines, at) // what is seen under the cursor is what it sticks to
	p.top = window(p.top, at, len(lines), p.h)
	out := []string{styleFaint.Render(m.fit(fmt.Sprintf("   %8s  %-12s %s", "JOBS", "CAUSE", "LAST LINE OF STDERR"), w))}
	for i := p.top; i < min(len(lines), p.top+p.h); i++ {
		out = append(out, m.underCursor(p.text(m, lines[i], w-1), i == at, focused, w))
	}
	return out
}

func (p *failedPane) text(m *model, l failedLine, w int) string {
	g := l.group
	switch {
	case l.rest > 0:
		return fmt.Sprintf("%12s and %s more: f shows them in the list of jobs", "", thousands(l.rest))
	case l.row != nil:
		r := l.row
		when := ""
		if !r.Ended.IsZero() {
			when = span(m.instant().Sub(r.Ended)) + " ago"
		}
		return m.cut(fmt.Sprintf("%12d %s %s  %d/%d  %-8s %s", r.ID, phaseStyle(r.Phase).Render(m.g.phase[min(r.Phase, runview.Phases-1)]),
			m.fit(m.clean(r.Host), 8), r.Failures, r.Tries, when, m.clean(r.Title)), w)
	}
	sign := "+"
	if p.opened[key(g)] {
		sign = "-"
	}
	left := sign + " " + styleBad.Render(fmt.Sprintf("%8s", thousands(g.Count))) + "  "
	var right []string
	if g.Tries > 0 {
		right = append(right, styleWarn.Render(m.g.phase[runview.Retry]+" "+thousands(g.Tries)+" retrying"))
	}
	if len(g.Hosts) > 0 {
		right = append(right, "on "+m.cut(m.clean(strings.Join(g.Hosts, " ")), max(8, w/4)))
	}
	tail := strings.Join(right, "  ")
	if width(tail) > w/2 || w < 60 {
		tail = ""
	}
	room := max(0, w-width(left)-width(tail)-2)
	if g.Last == "" { // nothing ran: the cause is all that there is to say
		return m.sides(left+styleBold.Render(m.cut(m.clean(g.Cause), room)), tail, w)
	}
	cause := m.fit(m.clean(g.Cause), 12)
	return m.sides(left+styleBold.Render(cause)+" "+m.cut(m.clean(g.Last), max(0, room-width(cause)-1)), tail, w)
}

func (p *failedPane) keys() []binding {
	own := []binding{
		{keys: []string{"enter", "space"}, show: "enter", word: "jobs", group: "Failed", help: "show some jobs of the cause, or hide them; details of a job",
			when: p.some, do: p.enter},
		{keys: []string{"r"}, show: "r", word: "requeue all", group: "Failed", help: "run all jobs of this cause again; on a job, only that one",
			when: p.some, do: p.requeue},
		{keys: []string{"l"}, show: "l", word: "log", group: "Failed", help: "stderr of the job, of a cause that of its newest job",
			when: p.some, do: p.log},
		{keys: []string{"/"}, show: "/", group: "Failed", help: "filter what failed, in the list of jobs", do: p.filterJobs},
		{keys: []string{"f"}, show: "f", word: "select", group: "Failed", help: "select all jobs of this cause in the list of jobs",
			when: p.some, do: p.inJobs},
	}
	return append(own, moving(func() int { return p.h }, p.move)...)
}

func (p *failedPane) some(m *model) bool { return len(p.lines(m)) > 0 }

func (p *failedPane) enter(m *model) tea.Cmd {
	l, _ := p.line(m)
	switch {
	case l.row != nil:
		return m.openDetail(l.row.ID)
	case l.rest > 0:
		return p.inJobs(m)
	}
	p.move(m, 0)
	if k := key(l.group); p.opened[k] {
		delete(p.opened, k)
	} else {
		p.opened[k] = true
	}
	return nil
}

// log shows what a job wrote to stderr: there it says why it failed.
func (p *failedPane) log(m *model) tea.Cmd {
	r, ok := p.current(m)
	if !ok {
		return nil
	}
	cmd := m.openOutput(r.ID)
	if o, ok := m.extra.(*outputPane); ok {
		o.file = jobs.FileErr
	}
	return cmd
}

// requeue runs a whole group again; what that means for many jobs is asked first.
func (p *failedPane) requeue(m *model) tea.Cmd {
	if m.slid() {
		return nil
	}
	l, _ := p.line(m)
	if l.row != nil {
		return m.requeueJobs(jobs.One(l.row.ID))
	}
	return m.requeueJobs(l.group.Which)
}

// failedFilter takes the jobs that failed.
const failedFilter = "(state=fail or state=timeout)"

// filterJobs goes on in the list of jobs, with its filter to be typed further.
func (p *failedPane) filterJobs(m *model) tea.Cmd {
	cmd := m.showJobs(failedFilter)
	m.openFilter(&m.jobs.list)
	if line, ok := m.modal.(*input); ok {
		line.text.insert(" ")
	}
	return cmd
}

// inJobs shows a group in the list of jobs, selected: what is done next is about it.
func (p *failedPane) inJobs(m *model) tea.Cmd {
	l, _ := p.line(m)
	m.jobs.sel.set(slices.Clone(l.group.Which))
	m.say(plural(l.group.Count, "job") + " selected: " + m.clean(l.group.Cause))
	return m.showJobs(failedFilter)
}

// at is the place of the cursor. When its job is no longer listed it is another of the
// same cause, never all of them.
func (p *failedPane) at(lines []failedLine) int {
	group, last := 0, 0
	for i, l := range lines {
		if key(l.group) != p.cause {
			continue
		}
		if last = i; l.row == nil && l.rest == 0 {
			group = i
		}
		if l.row != nil && l.row.ID == p.job || l.rest > 0 && p.job < 0 {
			return i
		}
	}
	if p.job != 0 && last > group {
		return min(last, group+max(1, p.below))
	}
	return group
}

// see notes when what is under the cursor has gone.
func (p *failedPane) see(m *model) {
	lines := p.lines(m)
	if len(lines) == 0 || p.cause == [2]string{} {
		return
	}
	before, had := p.cause, p.job
	p.put(lines, p.at(lines))
	if p.cause != before || p.job != had {
		p.slip = slip{from: failedName(m, before, had), gone: true, at: m.now()}
	}
}

func (p *failedPane) slipped(m *model) (*slip, string) {
	if len(p.lines(m)) == 0 {
		return &p.slip, ""
	}
	return &p.slip, failedName(m, p.cause, p.job)
}

// failedName is how a job, or else a cause, is called in sentences.
func failedName(m *model, cause [2]string, job jobs.ID) string {
	if job > 0 {
		return jobName(job)
	}
	return strings.TrimSpace(m.cut(m.cellText(cause[0]+" "+cause[1], 40), 40))
}

// put sets the cursor on a line.
func (p *failedPane) put(lines []failedLine, at int) {
	l := lines[at]
	p.cause, p.job, p.below = key(l.group), 0, 0
	switch {
	case l.row != nil:
		p.job = l.row.ID
	case l.rest > 0:
		p.job = -1
	default:
		return
	}
	for i := at; i > 0 && lines[i-1].group == l.group; i-- {
		p.below++
	}
}

func (p *failedPane) move(m *model, by int) {
	if lines := p.lines(m); len(lines) > 0 {
		p.put(lines, max(0, min(len(lines)-1, p.at(lines)+by)))
	}
}
