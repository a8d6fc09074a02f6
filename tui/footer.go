package tui

import (
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"dcs-tui/internal/text"
	"dcs-tui/jobs"
	"dcs-tui/jobs/action"
	"dcs-tui/observe/runview"
)

// footer returns the rows under the view: a message, and the keys that work.
func (m *model) footer() []string {
	switch {
	case m.modal != nil:
		return m.modal.draw(m, m.w, max(1, m.h/2))
	case !m.isSmall():
		return append(m.messageRows(), m.hintsRow())
	case m.message.text != "" || m.undo != nil:
		return m.messageRows()
	}
	return []string{m.hintsRow()}
}

// maxMessageRows returns the maximum number of rows of a long message.
func (m *model) maxMessageRows() int { return max(1, min(3, m.h/5)) }

// messageRows returns the result of the last key or, without one, the newest bad event.
func (m *model) messageRows() []string {
	undo := ""
	if m.undo != nil {
		if left := m.undo.expiresAt.Sub(m.now()); left > 0 {
			undo = "  " + styleBold.Render(m.keyFor("undo")+": undo "+text.Span(left)) + " "
		}
	}
	if m.isSmall() { // there is no row of hints below
		undo += "  " + styleBold.Render(m.keyFor("leave")) + " leave"
	}
	if text := m.clean(m.message.text); text != "" {
		style := textStyle{}
		if m.message.isError {
			text, style = m.glyphs.warn+" "+text, styleBad
		}
		w := m.w - 2 - width(undo)
		rows := m.limitRows(m.wrap(text, w), m.maxMessageRows(), w)
		for i, r := range rows {
			rows[i] = m.justify(" "+style.Render(r), undo, m.w)
			undo = ""
		}
		return rows
	}
	if r, ok := m.currentJob(); ok && r.Phase == runview.Sent && m.focusHasJobs() {
		return []string{m.justify(" "+phaseInfoOf(r.Phase).style.Render(m.sign(r.Phase)+" sent")+": "+
			phaseInfoOf(r.Phase).help, undo, m.w)}
	}
	if e := m.newestBad(); e != "" {
		return []string{m.justify(" "+styleWarn.Render(m.glyphs.warn)+" "+e,
			undo+styleFaint.Render("  "+m.keyFor("events")+": events "), m.w)}
	}
	return []string{m.justify("", undo, m.w)}
}

// limitRows returns at most n rows of a text; the last one is cut if there are more.
func (m *model) limitRows(rows []string, n, w int) []string {
	if len(rows) > n {
		rows[n-1] = m.cut(strings.Join(rows[n-1:], " "), w)
		rows = rows[:n]
	}
	return rows
}

// hintsRow returns the keys that work now, as many as fit (rule 12). Leave and help are always
// among them.
func (m *model) hintsRow() string {
	var hints []string
	always, seen := "", []string{}
	for _, b := range m.bindings() {
		if b.label == "" || !b.isOffered(m) || slices.Contains(seen, b.firstKey()) {
			continue
		}
		seen = append(seen, b.firstKey())
		hint := styleBold.Render(m.keyName(b.firstKey())) + " " + b.label
		switch b.names {
		case "leave":
			always = "  " + hint + always
			continue
		case "help":
			always += "  " + hint
			continue
		}
		// These hints come first if they get the run going again.
		hints = append(hints, hint)
		if b.names == "resume" || b.names == "pause" && m.isPausedOrDraining() {
			hints = append([]string{hint}, hints[:len(hints)-1]...)
		}
	}
	return " " + m.joinFitting(hints, "  ", m.w-1-width(always)) + always
}

// minSummaryH is the minimum height for the summary over a view.
const minSummaryH = 20

// summaryRows returns the rows over the view of a finished run: the results of the jobs, the causes
// of failures, and what to do next.
func (m *model) summaryRows() []string {
	if !m.isUndispatched() || m.h < minSummaryH || m.summaryHidden || m.extraZoomed && m.extra != nil &&
		m.lowerFocused {
		return nil
	}
	n := m.snap.Phases
	var parts []string
	for _, p := range []runview.Phase{runview.Succeeded, runview.Failed, runview.TimedOut, runview.Canceled,
		runview.Skipped} {
		if n[p] > 0 {
			parts = append(parts, phaseInfoOf(p).style.Render(m.sign(p)+" "+text.Thousands(n[p])+" "+
				strings.SplitN(phaseInfoOf(p).verbPhrase, " ", 2)[1]))
		}
	}
	left := m.snap.NumLeft()
	parts = nonEmpty(append(parts, styleWarn.Render(text.If(left > 0, m.sign(runview.Queued)+" "+text.Thousands(left)+
		" left")), text.If(m.snap.Total == 0, "there were no jobs"),
		styleFaint.Render(text.If(!m.snap.Run.Created.IsZero(), "begun "+m.snap.Run.Created.Format("Jan 2 15:04"))))...)
	out := []string{m.rule("Summary", m.w, false), " " + m.joinFitting(parts, "   ", m.w-1)}
	trouble := m.hostTroubleLines(max(1, m.h/3-6))
	// room is the number of rows for causes. The summary takes at most a third of the screen.
	room := max(1, min(3, m.h/3-5-len(trouble)))
	for i := range m.snap.Groups {
		if i == room {
			out = append(out, styleFaint.Render(fmt.Sprintf(" %10s",
				"and "+text.Plural(len(m.snap.Groups)-i, "other cause")+" (key "+m.keyFor("failed")+")")))
			break
		}
		group := &m.snap.Groups[i]
		if group.Count > 0 {
			out = append(out, m.cut(fmt.Sprintf(" %8s  %s  %s", text.Thousands(group.Count),
				styleBold.Render(m.clean(group.Cause)), m.clean(group.Last)), m.w))
		}
	}
	out = append(out, trouble...)
	var next []string
	for _, b := range m.withKeys(m.resumeKeys()) {
		if b.isOffered(m) {
			next = append(next, styleBold.Render(b.firstKey())+" "+b.label)
		}
	}
	next = nonEmpty(append(next, text.If(m.snap.NumFailed() > 0, styleBold.Render(m.keyFor("failed"))+" failures"),
		text.If(m.tab != tabJobs, styleBold.Render(m.keyFor("jobs"))+" the jobs"),
		styleBold.Render(m.keyFor("back"))+" hides this", styleBold.Render(m.keyFor("leave"))+" leave")...)
	return append(out, " "+m.joinFitting(next, "   ", m.w-1), m.rule("", m.w, false))
}

// hostTroubleLines describes the trouble of hosts during the run, in at most n lines.
func (m *model) hostTroubleLines(n int) []string {
	var out []string
	for _, text := range m.snap.Trouble {
		out = append(out, hangingIndent(" "+styleWarn.Render(m.glyphs.warn)+" ",
			m.wrap(m.clean(text), m.w-3-width(m.glyphs.warn)))...)
	}
	if len(out) > n {
		more := "  view " + m.keyFor("hosts") + " has more"
		out = out[:n]
		out[n-1] = m.cut(out[n-1], m.w-width(more)) + styleFaint.Render(more)
	}
	return out
}

// resumeKeys returns the keys that start a dispatcher for a run without one.
func (m *model) resumeKeys() []binding {
	left := func(m *model) bool { return m.snap.NumLeft() > 0 }
	resume := func(m *model) tea.Cmd { return m.startAction(action.Request{Do: action.Resume}) }
	requeue := func(m *model) tea.Cmd { return m.requeueJobs(m.allFailedJobs()) }
	return withGroup("Run",
		key("resume", "resume", "resume the run: a dispatcher is started, what still runs is adopted", resume).
			onlyIf(func(m *model) bool { return m.isUndispatched() && left(m) }).thatActs(),
		key("resume", "requeue what failed", "when the run is over: run again what has failed", requeue).
			onlyIf(func(m *model) bool { return m.isUndispatched() && !left(m) && m.snap.NumFailed() > 0 }).
			orSay("there is nothing to resume: the run has a dispatcher, or all its jobs succeeded").thatActs(),
	)
}

func (m *model) allFailedJobs() jobs.Ranges {
	var which jobs.Ranges
	for i := range m.snap.Groups {
		which = jobs.Union(which, m.snap.Groups[i].Which)
	}
	return which
}
