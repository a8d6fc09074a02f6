package tui

import (
	"cmp"
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
	p.onSnapshot(m)
	return nil
}

func (p *detailPane) onSnapshot(m *model) {
	if m.snap != nil && m.snap.Detail != nil && m.snap.Detail.Row.ID == p.job {
		p.all, p.row = m.snap.Detail, m.snap.Detail.Row
	}
}

func (p *detailPane) title(m *model) string {
	s := fmt.Sprintf("job %d", p.job)
	if p.row.ID == p.job {
		s += " " + m.g.dot + " " + m.sign(p.row.Phase) + " " + p.row.Phase.String()
	}
	if len(p.lines) > p.h && p.h > 0 {
		s += fmt.Sprintf(" %s line %d of %d", m.g.dot, p.top+1, len(p.lines))
	}
	return s + m.otherJobSuffix(p.job)
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
const labelColumn = 11

// labeled returns a label and the text beside it, wrapped between words.
func (m *model) labeled(label, text string, w int) []string {
	if text == "" {
		return nil
	}
	return hanging(m.label(label), m.wrap(text, max(8, w-labelColumn)))
}

func (m *model) label(text string) string { return styleFaint.Render(m.fit(text, labelColumn)) }

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
		for l := range strings.SplitSeq(strings.TrimRight(prefix(text, maxCommand), "\n"), "\n") {
			if l := m.wholeLine(l); l != "" {
				out = append(out, hanging(m.label(label), wrapped(l, max(8, w-labelColumn)))...)
			}
			label = ""
		}
	}
	if d.Row.Title != d.Command {
		whole("name", d.Row.Title)
	}
	whole("command", d.Command)
	clean("params", strings.Join(mapped(d.Row.Params, func(p jobs.Param) string { return p.Name + "=" + p.Value }), "  "))
	add("state", m.stateLine(&d.Row))
	add("asks for", m.clean(needs(d)))
	add("limits", m.clean(m.limits(d)))
	clean("setup", d.Setup)
	clean("env", strings.Join(mapped(d.Env, func(e jobs.EnvVar) string { return e.Name + "=" + e.Value }), "  "))
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
	s := phaseOf(r.Phase).style.Render(m.sign(r.Phase) + " " + r.Phase.String())
	tries := fmt.Sprintf("%d of %d tries failed", r.Failures, r.Tries)
	if r.Attempt > r.Failures+1 {
		tries += fmt.Sprintf(" (%s in all: those that a host gave back, or lost, and those of rounds before use up no try)", plural(r.Attempt, "attempt"))
	}
	copies := fmt.Sprintf("%d copies", r.Copies)
	if r.Copies == 1 {
		copies = "1 copy"
	}
	progress := when(r.Said != "", "it says: "+m.clean(r.Said))
	if r.Progress >= 0 {
		progress = fmt.Sprintf("%d%% done by its own account", int(r.Progress*100))
	}
	return strings.Join(nonEmpty(
		s+when(r.Host != "", " on "+m.clean(r.Host)),
		when(r.Copies > 0, copies),
		tries,
		when(r.Phase == runview.Retry && !r.Retry.IsZero(), "next one in "+formatClock(r.Retry.Sub(m.dispatcherNow()))),
		when(r.Phase == runview.Queued && r.Place >= 0, jobs.Thousands(r.Place)+" before it in the queue"),
		when(r.Round > 1, fmt.Sprintf("round %d", r.Round)),
		progress,
	), ", ")
}

// needs describes the job's requirements on a host.
func needs(d *runview.Detail) string {
	return strings.Join(nonEmpty(
		plural(d.SlotCount(), "slot"),
		when(d.GPUs > 0, d.GPUs.Text()),
		when(d.MemBytes > 0, formatSize(d.MemBytes)+" memory"),
		when(len(d.Tags) > 0, "tags "+strings.Join(d.Tags, " ")),
		when(len(d.Tokens) > 0, "tokens "+d.TokenText()),
	), ", ")
}

// limits describes the queue, the priority, and the times of a job.
func (m *model) limits(d *runview.Detail) string {
	return strings.Join(nonEmpty(
		when(d.Row.Queue != "", "queue "+d.Row.Queue),
		when(d.Row.Priority != 0, fmt.Sprintf("priority %d", d.Row.Priority)),
		when(d.Timeout > 0, "timeout "+formatSpan(d.Timeout)),
		when(!d.Deadline.IsZero(), "deadline "+m.formatTime(d.Deadline)),
		when(d.Estimate > 0, "expected to take "+formatSpan(d.Estimate)),
	), ", ")
}

// prefix returns the first n bytes of a text.
func prefix(s string, n int) string { return s[:min(len(s), n)] }

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
	head := styleBold.Render(a.ID.String()) + " " + style.Render(m.clean(cmp.Or(a.Result, a.State))) + " on " + m.clean(a.Host) +
		when(a.Slot > 0, fmt.Sprintf(" slot %d", a.Slot)) + when(a.Round > 1, fmt.Sprintf(", round %d", a.Round)) + when(a.Charged, ", a try that failed")
	out := m.wrap(head, w)
	add := func(label, text string) { out = append(out, m.labeled("  "+label, text, w)...) }
	add("time", m.times(a))
	add("used", when(a.CPU > 0 || a.MaxRSS > 0, fmt.Sprintf("%s of CPU time, %s of memory at most", formatElapsed(a.CPU), formatPeak(a.MaxRSS))))
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
		return "launched " + m.formatTime(a.Launched)
	case a.Ended.IsZero():
		return fmt.Sprintf("%s, since %s", m.formatTime(a.Started), formatClock(m.dispatcherNow().Sub(a.Started)))
	}
	return fmt.Sprintf("%s to %s, %s", m.formatTime(a.Started), m.formatTime(a.Ended), formatElapsed(a.Ended.Sub(a.Started)))
}

// formatTime formats a time in this machine's time zone, with its day if that is not today.
func (m *model) formatTime(t time.Time) string {
	now := m.dispatcherNow().Local()
	if t = t.Local(); t.YearDay() == now.YearDay() && t.Year() == now.Year() {
		return t.Format("15:04:05")
	}
	return t.Format("2006-01-02 15:04:05")
}
