package tui

import (
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"dcs-tui/jobs"
	"dcs-tui/jobs/runview"
)

// detailPane shows the details of one job: its command, its requirements, why it is in its state,
// and each attempt.
type detailPane struct {
	noPane
	viewer
	job jobs.ID
	row runview.Row     // the newest known row
	all *runview.Detail // nil: not known yet
}

// openDetail shows the details of a job.
func (m *model) openDetail(id jobs.ID) tea.Cmd {
	p := &detailPane{job: id}
	p.viewer.text = p.detailLines
	if r, ok := m.job(); ok && r.ID == id {
		p.row = r
	}
	m.full = m.full && m.onExtra
	m.extra, m.onExtra = p, true
	p.see(m)
	return nil
}

func (p *detailPane) see(m *model) {
	if m.pic != nil && m.pic.Detail != nil && m.pic.Detail.Row.ID == p.job {
		p.all, p.row = m.pic.Detail, m.pic.Detail.Row
	}
}

func (p *detailPane) title(m *model) string {
	s := fmt.Sprintf("job %d", p.job)
	if p.row.ID == p.job {
		s += " " + m.g.dot + " " + m.g.phase[min(p.row.Phase, runview.Phases-1)] + " " + p.row.Phase.String()
	}
	if len(p.lines) > p.h && p.h > 0 {
		s += fmt.Sprintf(" %s line %d of %d", m.g.dot, p.top+1, len(p.lines))
	}
	return s + m.beside(p.job)
}

func (p *detailPane) ask(m *model, ask *runview.Query) { ask.Focus = p.job }

func (p *detailPane) hasJobs() bool { return true }

func (p *detailPane) current(*model) (runview.Row, bool) { return p.row, p.row.ID == p.job }

func (p *detailPane) keys() []binding {
	log := key("l", "log", "what the job prints", func(m *model) tea.Cmd { return m.openOutput(p.job) })
	return append(grouped("Details", log, shellKey()), moving(p.rows, p.scroll)...)
}

func (p *detailPane) draw(m *model, w, h int, focused bool) []string {
	if p.all == nil {
		return []string{styleFaint.Render("asking the dispatcher " + m.g.cut)}
	}
	return p.viewer.draw(m, w, h)
}

// labelColumn is the width of the labels, in cells.
const labelColumn = 10

// labeled returns a label and the text beside it, wrapped between words.
func (m *model) labeled(label, text string, w int) []string {
	if text == "" {
		return nil
	}
	return beside(label, m.wrap(text, max(8, w-labelColumn-1)))
}

// beside returns lines with a label to the left of the first one.
func beside(label string, lines []string) []string {
	head := styleFaint.Render(label + strings.Repeat(" ", max(1, labelColumn-len(label))))
	var out []string
	for _, l := range lines {
		out = append(out, head+" "+l)
		head = strings.Repeat(" ", labelColumn)
	}
	return out
}

// detailLines returns all lines for a width of w cells.
func (p *detailPane) detailLines(m *model, w int) []string {
	d := p.all
	var out []string
	add := func(label, text string) { out = append(out, m.labeled(label, text, w)...) }
	clean := func(label, text string) { add(label, m.clean(text)) }
	clean("why", d.Why)
	if d.Row.Straggler {
		add("", styleWarn.Render(m.g.warn+" runs much longer than others of its queue"))
	}
	whole := func(label, text string) { // shows a text in full
		for l := range strings.SplitSeq(strings.TrimRight(clip(text, maxCommand), "\n"), "\n") {
			if l := m.wholeLine(l); l != "" {
				out = append(out, beside(label, wrapped(l, max(8, w-labelColumn-1)))...)
			}
			label = ""
		}
	}
	if d.Row.Title != d.Command {
		whole("name", d.Row.Title)
	}
	whole("command", d.Command)
	clean("params", joined(d.Row.Params, "  ", func(p jobs.Param) string { return p.Name + "=" + p.Value }))
	add("state", m.stateLine(&d.Row))
	add("asks for", m.clean(needs(d)))
	add("limits", m.clean(m.limits(d)))
	clean("setup", d.Setup)
	clean("env", joined(d.Env, "  ", func(e jobs.EnvVar) string { return e.Name + "=" + e.Value }))
	clean("after", d.AfterText())
	clean("in", d.Cwd)
	if d.File != "" {
		clean("from", fmt.Sprintf("%s:%d", d.File, d.Line))
	}
	for i := len(d.Attempts) - 1; i >= 0; i-- {
		out = append(out, "")
		out = append(out, m.attempt(&d.Attempts[i], w)...)
	}
	return out
}

// maxCommand bounds the displayed part of a command, in bytes.
const maxCommand = 64 << 10

// stateLine describes the state of the job, with its tries.
func (m *model) stateLine(r *runview.Row) string {
	s := phaseStyle(r.Phase).Render(m.g.phase[min(r.Phase, runview.Phases-1)] + " " + r.Phase.String())
	if r.Host != "" {
		s += " on " + m.clean(r.Host)
	}
	switch {
	case r.Copies == 1:
		s += ", 1 copy"
	case r.Copies > 1:
		s += fmt.Sprintf(", %d copies", r.Copies)
	}
	s += fmt.Sprintf(", %d of %d tries failed", r.Failures, r.Tries)
	if r.Attempt > r.Failures+1 {
		s += fmt.Sprintf(" (%s in all: those that a host gave back, or lost, and those of rounds before use up no try)", plural(r.Attempt, "attempt"))
	}
	switch {
	case r.Phase == runview.Retry && !r.Retry.IsZero():
		s += ", next one in " + clock(r.Retry.Sub(m.instant()))
	case r.Phase == runview.Queued && r.Place >= 0:
		s += fmt.Sprintf(", %s before it in the queue", thousands(r.Place))
	}
	if r.Round > 1 {
		s += fmt.Sprintf(", round %d", r.Round)
	}
	if r.Progress >= 0 {
		s += fmt.Sprintf(", %d%% done by its own account", int(r.Progress*100))
	} else if r.Said != "" {
		s += ", it says: " + m.clean(r.Said)
	}
	return s
}

// needs describes the job's requirements on a host.
func needs(d *runview.Detail) string {
	s := []string{plural(d.SlotCount(), "slot")}
	if d.GPUs > 0 {
		s = append(s, d.GPUs.Text())
	}
	if d.MemBytes > 0 {
		s = append(s, size(d.MemBytes)+" memory")
	}
	if len(d.Tags) > 0 {
		s = append(s, "tags "+strings.Join(d.Tags, " "))
	}
	if len(d.Tokens) > 0 {
		s = append(s, "tokens "+d.TokenText())
	}
	return strings.Join(s, ", ")
}

// limits describes the queue, the priority, and the times of a job.
func (m *model) limits(d *runview.Detail) string {
	var s []string
	if d.Row.Queue != "" {
		s = append(s, "queue "+d.Row.Queue)
	}
	if d.Row.Priority != 0 {
		s = append(s, fmt.Sprintf("priority %d", d.Row.Priority))
	}
	if d.Timeout > 0 {
		s = append(s, "timeout "+span(d.Timeout))
	}
	if !d.Deadline.IsZero() {
		s = append(s, "deadline "+m.moment(d.Deadline))
	}
	if d.Estimate > 0 {
		s = append(s, "expected to take "+span(d.Estimate))
	}
	return strings.Join(s, ", ")
}

// joined joins the texts of the elements of a list.
func joined[T any](list []T, between string, text func(T) string) string {
	s := make([]string, len(list))
	for i, x := range list {
		s[i] = text(x)
	}
	return strings.Join(s, between)
}

// clip returns the first n bytes of a text.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return s[:n]
}

// attempt returns the lines of one attempt.
func (m *model) attempt(a *runview.Attempt, w int) []string {
	style := styleFaint
	switch {
	case a.State == "running" || a.State == "launching":
		style = styleBusy
	case a.Result == "exit 0":
		style = styleGood
	case a.Result != "" || a.State == "lost":
		style = styleBad
	}
	word := a.State
	if a.Result != "" {
		word = a.Result
	}
	head := styleBold.Render(a.ID.String()) + " " + style.Render(m.clean(word)) + " on " + m.clean(a.Host)
	if a.Slot > 0 {
		head += fmt.Sprintf(" slot %d", a.Slot)
	}
	if a.Round > 1 {
		head += fmt.Sprintf(", round %d", a.Round)
	}
	if a.Charged {
		head += ", a try that failed"
	}
	out := m.wrap(head, w)
	add := func(label, text string) { out = append(out, m.labeled("  "+label, text, w)...) }
	add("time", m.times(a))
	if a.CPU > 0 || a.MaxRSS > 0 {
		add("used", fmt.Sprintf("%s of CPU time, %s of memory at most", took(a.CPU), peak(a.MaxRSS)))
	}
	add("reason", m.clean(a.Reason))
	add("stderr", m.line([]byte(a.Last)))
	add("files", m.clean(a.Out))
	add("", m.clean(a.Err))
	return out
}

// times describes when an attempt ran and how long it took.
func (m *model) times(a *runview.Attempt) string {
	switch {
	case a.Started.IsZero() && a.Launched.IsZero():
		return ""
	case a.Started.IsZero():
		return "launched " + m.moment(a.Launched)
	case a.Ended.IsZero():
		return fmt.Sprintf("%s, since %s", m.moment(a.Started), clock(m.instant().Sub(a.Started)))
	}
	return fmt.Sprintf("%s to %s, %s", m.moment(a.Started), m.moment(a.Ended), took(a.Ended.Sub(a.Started)))
}

// moment formats a time in this machine's time zone, with its day if that is not today.
func (m *model) moment(t time.Time) string {
	now := m.instant().Local()
	if t = t.Local(); t.YearDay() == now.YearDay() && t.Year() == now.Year() {
		return t.Format("15:04:05")
	}
	return t.Format("2006-01-02 15:04:05")
}
