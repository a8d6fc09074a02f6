package tui

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"dcs-tui/internal/text"
	"dcs-tui/jobs"
	"dcs-tui/observe/runview"
)

// detailPane shows the details of one job: its command, its requirements, why it is in its state,
// and each attempt.
type detailPane struct {
	noPane
	viewer
	job    jobs.ID
	row    runview.Row     // the newest known row
	detail *runview.Detail // nil: not known yet
}

func (m *model) openDetail(id jobs.ID) tea.Cmd {
	p := &detailPane{job: id}
	p.viewer.text = p.detailLines
	if r, ok := m.currentJob(); ok && r.ID == id {
		p.row = r
	}
	m.showBelow(p)
	p.onSnapshot(m)
	return nil
}

// showBelow opens a pane under the view and focuses it.
func (m *model) showBelow(p pane) {
	m.extraZoomed = m.extraZoomed && m.lowerFocused
	m.extra, m.lowerFocused = p, true
}

func (p *detailPane) onSnapshot(m *model) {
	if m.snap != nil && m.snap.Detail != nil && m.snap.Detail.Row.ID == p.job {
		p.detail, p.row = m.snap.Detail, m.snap.Detail.Row
	}
}

func (p *detailPane) title(m *model) string {
	s := fmt.Sprintf("job %d", p.job)
	s += text.If(p.row.ID == p.job, " "+m.glyphs.dot+" "+m.sign(p.row.Phase)+" "+p.row.Phase.String())
	s += text.If(len(p.lines) > p.h && p.h > 0, fmt.Sprintf(" %s line %d of %d", m.glyphs.dot, p.top+1, len(p.lines)))
	return s + m.otherJobSuffix(p.job)
}

func (p *detailPane) addToQuery(m *model, ask *runview.Query) { ask.Focus = p.job }

func (p *detailPane) hasJobs() bool { return true }

func (p *detailPane) currentJob(*model) (runview.Row, bool) { return p.row, p.row.ID == p.job }

func (p *detailPane) keys() []binding {
	log := key("log", "log", "what the job prints", func(m *model) tea.Cmd { return m.openOutput(p.job) })
	return append(withGroup("Details", log, shellKey()), moveKeys(p.visibleRows, p.scroll)...)
}

func (p *detailPane) draw(m *model, w, h int, focused bool) []string {
	if p.detail == nil {
		return []string{styleFaint.Render("asking the dispatcher " + m.glyphs.ellipsis)}
	}
	return p.viewer.draw(m, w, h)
}

// labelWidth is the width of the labels, in cells.
const labelWidth = 11

// labeled returns a label and the text beside it, wrapped between words.
func (m *model) labeled(label, text string, w int) []string {
	if text == "" {
		return nil
	}
	return hangingIndent(m.label(label), m.wrap(text, max(8, w-labelWidth)))
}

func (m *model) label(text string) string { return styleFaint.Render(m.fit(text, labelWidth)) }

// detailLines returns all lines for a width of w cells.
func (p *detailPane) detailLines(m *model, w int) []string {
	detail := p.detail
	var out []string
	add := func(label, text string) { out = append(out, m.labeled(label, text, w)...) }
	clean := func(label, text string) { add(label, m.clean(text)) }
	clean("why", detail.Why)
	if detail.Row.Straggler {
		add("", styleWarn.Render(m.glyphs.warn+" runs much longer than others of its queue"))
	}
	whole := func(label, text string) { // shows a text in full
		for l := range strings.SplitSeq(strings.TrimRight(prefix(text, maxCommand), "\n"), "\n") {
			if l := m.cleanWholeRow(l); l != "" {
				out = append(out, hangingIndent(m.label(label), hardWrap(l, max(8, w-labelWidth)))...)
			}
			label = ""
		}
	}
	if detail.Row.Title != detail.Command {
		whole("name", detail.Row.Title)
	}
	whole("command", detail.Command)
	clean("params", strings.Join(text.Each(detail.Row.Params,
		func(p jobs.Param) string { return p.Name + "=" + p.Value }), "  "))
	add("state", m.stateLine(&detail.Row))
	add("asks for", m.clean(requirementsText(detail)))
	add("limits", m.clean(m.limitsText(detail)))
	clean("setup", detail.Setup)
	env := text.Each(detail.Env, func(e jobs.EnvVar) string { return e.Name + "=" + e.Value })
	clean("env", strings.Join(env, "  "))
	clean("after", detail.After().String())
	clean("in", detail.Cwd)
	if detail.File != "" {
		clean("from", fmt.Sprintf("%s:%d", detail.File, detail.Line))
	}
	for i := len(detail.Attempts) - 1; i >= 0; i-- {
		out = append(out, "")
		out = append(out, m.attemptLines(&detail.Attempts[i], w)...)
	}
	return out
}

// maxCommand bounds the displayed part of a command, in bytes.
const maxCommand = 64 << 10

// stateLine describes the state of the job, with its tries.
func (m *model) stateLine(r *runview.Row) string {
	s := phaseInfoOf(r.Phase).style.Render(m.sign(r.Phase) + " " + r.Phase.String())
	tries := fmt.Sprintf("%d of %d tries failed", r.Failures, r.Tries)
	if r.Attempt > r.Failures+1 {
		tries += fmt.Sprintf(" (%s in all: those that a host gave back, or lost, "+
			"and those of rounds before use up no try)", text.Plural(r.Attempt, "attempt"))
	}
	copies := fmt.Sprintf("%d copies", r.Copies)
	if r.Copies == 1 {
		copies = "1 copy"
	}
	progress := text.If(r.Said != "", "it reports: "+m.clean(r.Said))
	if r.Progress >= 0 {
		progress = fmt.Sprintf("%d%% done, as it reports", int(r.Progress*100))
	}
	return text.Join(", ",
		s+text.If(r.Host != "", " on "+m.clean(r.Host)),
		text.If(r.Copies > 0, copies),
		tries,
		text.If(r.Phase == runview.Retry && !r.Retry.IsZero(),
			"next one in "+text.Clock(r.Retry.Sub(m.dispatcherNow()))),
		text.If(r.Phase == runview.Queued && r.Place >= 0, text.Thousands(r.Place)+" before it in the queue"),
		text.If(r.Round > 1, fmt.Sprintf("round %d", r.Round)),
		progress,
	)
}

// requirementsText describes the job's requirements on a host.
func requirementsText(detail *runview.Detail) string {
	return text.Join(", ",
		text.Plural(detail.SlotCount(), "slot"),
		text.If(detail.GPUs > 0, detail.GPUs.Text()),
		text.If(detail.MemBytes > 0, text.Size(detail.MemBytes)+" memory"),
		text.If(len(detail.Tags) > 0, "tags "+strings.Join(detail.Tags, " ")),
		text.If(len(detail.Tokens) > 0, "tokens "+detail.TokenText()),
	)
}

// limitsText describes the queue, the priority, and the times of a job.
func (m *model) limitsText(detail *runview.Detail) string {
	return text.Join(", ",
		text.If(detail.Row.Queue != "", "queue "+detail.Row.Queue),
		text.If(detail.Row.Priority != 0, fmt.Sprintf("priority %d", detail.Row.Priority)),
		text.If(detail.Timeout > 0, "timeout "+text.Span(detail.Timeout)),
		text.If(!detail.Deadline.IsZero(), "deadline "+m.formatTime(detail.Deadline)),
		text.If(detail.Estimate > 0, "expected to take "+text.Span(detail.Estimate)),
	)
}

// prefix returns the first n bytes of a text.
func prefix(s string, n int) string { return s[:min(len(s), n)] }

func (m *model) attemptLines(a *runview.Attempt, w int) []string {
	style := styleFaint
	switch {
	case a.State == "running" || a.State == "launching":
		style = styleBusy
	case a.Result == "exit 0":
		style = styleGood
	case a.Result != "" || a.State == "lost":
		style = styleBad
	}
	head := styleBold.Render(a.ID.String()) + " " + style.Render(m.clean(cmp.Or(a.Result, a.State))) + " on " +
		m.clean(a.Host) + text.If(a.Slot > 0, fmt.Sprintf(" slot %d", a.Slot)) +
		text.If(a.Round > 1, fmt.Sprintf(", round %d", a.Round)) + text.If(a.Charged, ", a try that failed")
	out := m.wrap(head, w)
	add := func(label, text string) { out = append(out, m.labeled("  "+label, text, w)...) }
	add("time", m.attemptTimes(a))
	add("used", text.If(a.CPU > 0 || a.MaxRSS > 0, fmt.Sprintf("%s of CPU time, %s of memory at most",
		formatElapsed(a.CPU), formatPeak(a.MaxRSS, text.Size))))
	add("reason", m.clean(a.Reason))
	add("stderr", m.cleanRow([]byte(a.Last)))
	add("output", text.If(!a.Started.IsZero() || a.Result != "", m.logsCommand(a.ID, jobs.FileOut)))
	add("only in", m.clean(a.Far))
	return out
}

// attemptTimes describes when an attempt ran and how long it took.
func (m *model) attemptTimes(a *runview.Attempt) string {
	switch {
	case a.Started.IsZero() && a.Launched.IsZero():
		return ""
	case a.Started.IsZero():
		return "launched " + m.formatTime(a.Launched)
	case a.Ended.IsZero():
		return fmt.Sprintf("%s, since %s", m.formatTime(a.Started), text.Clock(m.dispatcherNow().Sub(a.Started)))
	}
	return fmt.Sprintf("%s to %s, %s", m.formatTime(a.Started), m.formatTime(a.Ended),
		formatElapsed(a.Ended.Sub(a.Started)-a.Suspended)) +
		text.If(a.Suspended > 0, ", and suspended for "+formatElapsed(a.Suspended))
}

// formatTime formats a time in this machine's time zone, with its day if that is not today.
func (m *model) formatTime(t time.Time) string {
	now := m.dispatcherNow().Local()
	t = t.Local()
	if t.YearDay() == now.YearDay() && t.Year() == now.Year() {
		return t.Format("15:04:05")
	}
	return t.Format("2006-01-02 15:04:05")
}
