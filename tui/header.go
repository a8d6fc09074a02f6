package tui

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"dcs-tui/internal/text"
	"dcs-tui/jobs"
	"dcs-tui/jobs/live"
	"dcs-tui/observe/runview"
)

// staleAge is the age from which a snapshot is no longer called live. Snapshots arrive every
// second.
const staleAge = 4 * time.Second

// header returns the rows over the view: whether the data is live, the progress of the run, the
// slots, what prevents progress, and the tabs.
func (m *model) header() []string {
	m.tabsAt = 0
	if m.isSmall() {
		return append([]string{m.summaryRow()}, m.banner()...)
	}
	rows := append([]string{m.runRow(), m.progressRow(), m.slotsRow()}, m.banner()...)
	m.tabsAt = len(rows)
	left, right := m.tabTitles()
	tabs := m.justify(left, m.cut(right, max(0, m.w-width(left)-2)), m.w)
	return append(append(rows, tabs), m.summaryRows()...)
}

// runRow returns the row with the name of the run, the age of the snapshot, and the numbers of
// jobs.
func (m *model) runRow() string {
	live, style := m.liveness()
	if m.snap == nil {
		return " " + styleBold.Render("dcs-tui") + "  " + style.Render(live)
	}
	n := &m.snap.Phases
	away, retry, standby := n[runview.Away], n[runview.Retry], m.clean(m.snap.Run.Standby)
	numbers := nonEmpty(
		styleBusy.Render(m.snap.RunningText()), m.snap.QueuedText(), styleGood.Render(m.snap.SucceededText()),
		m.failuresText(),
		styleWarn.Render(text.If(retry > 0, m.sign(runview.Retry)+" "+text.Thousands(retry))),
		styleWarn.Render(text.If(m.snap.Stragglers > 0 && !m.isUndispatched(), m.glyphs.warn+" "+
			text.Thousands(m.snap.Stragglers)+" slow")),
		styleWarn.Render(text.If(away > 0 && !m.isUndispatched(), m.sign(runview.Away)+" "+text.Thousands(away)+
			" away")),
		styleFaint.Render(text.If(m.snap.NumCanceled() > 0, m.sign(runview.Canceled)+" "+
			text.Thousands(m.snap.NumCanceled()))),
		styleFaint.Render(text.If(standby != "" && !m.isUndispatched(), "standby "+standby)),
	)
	// If space is short, drop the laboratory first, then the wide gaps, the name, and the finished
	// jobs.
	name, lab := m.clean(m.snap.Run.Name), m.cutCell(m.snap.Run.Lab, max(8, m.w/6))
	between, all := "   ", numbers[:4]
	room := func() int { return m.w - 4 - width(live) - width(strings.Join(all, between)) }
	left := styleBold.Render(m.cut(name, max(10, m.w/4))) + "  " + lab + "  "
	if width(left) > room() {
		left = styleBold.Render(m.cut(name, max(0, room()-2))) + "  "
	}
	if room() < 8 {
		between = "  "
		left = styleBold.Render(m.cut(name, max(0, room()-2))) + "  "
	}
	if room() < 8 {
		left = ""
	}
	if room() < 0 {
		numbers = slices.Delete(numbers, 2, 3)
	}
	left = " " + left + style.Render(live)
	return m.justify(left, m.joinFitting(numbers, between, m.w-width(left)-3)+" ", m.w)
}

// failuresText describes the number of failures, in red if there are any.
func (m *model) failuresText() string {
	s := m.sign(runview.Failed) + " " + text.Thousands(m.snap.NumFailed())
	if m.snap.NumFailed() > 0 {
		return styleBad.Render(s)
	}
	return s
}

// liveness reports whether the data is live and how old it is (rule 5).
func (m *model) liveness() (string, textStyle) {
	age := m.snapshotAge()
	switch {
	case m.snap == nil && m.snapshotErr != nil:
		return m.glyphs.gone + " no answer", styleBad
	case m.snap == nil:
		return m.glyphs.gone + " reading the run", styleWarn
	case m.snap.Status == runview.StatusSilent:
		return m.sign(runview.Failed) + " dispatcher silent", styleBad
	case m.isCrashed():
		return m.sign(runview.Failed) + " dispatcher died", styleBad
	case m.isUndispatched() && m.snap.NumLeft() > 0:
		return m.glyphs.gone + " stopped", styleWarn
	case m.isUndispatched():
		return m.glyphs.gone + " ended", styleBold
	case m.snapshotErr != nil || age >= staleAge:
		return m.glyphs.gone + " not live, " + text.Span(age) + " old", styleBad
	}
	return m.glyphs.live + " live " + text.Span(age), styleGood
}

// progressRow describes the progress of the run, its rate, and when it will end.
func (m *model) progressRow() string {
	if m.snap == nil {
		return ""
	}
	over := m.snap.NumOver()
	if m.snap.Total == 0 {
		return " " + m.drawShares(0, 0, 0, 0, m.w/2) + "  " + "no jobs yet" + text.If(m.snap.More, ", more may come")
	}
	said := []string{formatPercent(over, m.snap.Total)}
	if m.isUndispatched() {
		said = append(said, text.Thousands(over)+" of "+text.Thousands(m.snap.Total)+" jobs are over")
	} else {
		n := min(len(m.snap.Rates), max(8, m.w/10))
		if n == 1 { // a single bar has no scale
			n = 0
		}
		said = append(said, strings.TrimSpace(text.Rate(m.snap.Rate)+" "+
			styleBusy.Render(m.sparkline(m.snap.Rates, 0, n))), m.etaText())
		const minBarW = 16
		if next := m.nextSlotText(); next != "" && width(strings.Join(said, "  "))+width(next)+minBarW+6 <= m.w {
			said = slices.Insert(said, len(said)-1, next)
		}
	}
	right := "  " + strings.Join(said, "  ") + " "
	return m.justify(
		" "+m.drawShares(m.snap.Phases[runview.Succeeded], m.snap.NumFailed(), m.snap.NumCanceled(), m.snap.Total,
			m.w-1-width(right)),
		right,
		m.w,
	)
}

// nextSlotText describes when the next slot is due for jobs that wait for one. It returns "" if none
// waits, or if that is not known. A time that is soon over has no number, because many such slots may
// follow each other.
func (m *model) nextSlotText() string {
	const soon = 10 * time.Second
	next := m.snap.NextSlot
	if next == nil || next.From == jobs.SlotUnknown {
		return ""
	}
	in := next.In - m.snapshotAge()
	switch {
	case next.In <= 0 && next.From == jobs.SlotOfJob:
		return "next slot overdue"
	case in < soon:
		return "next slot <" + text.Span(soon)
	}
	return "next slot " + text.Span(in)
}

// etaText describes when the run is expected to end, with the uncertainty.
func (m *model) etaText() string {
	return cmp.Or(m.snap.ETAText(m.glyphs.plusMinus), "ETA not known yet")
}

// summaryRow returns the whole header of a small screen.
func (m *model) summaryRow() string {
	live, style := m.liveness()
	if m.snap == nil {
		return style.Render(live)
	}
	glyph, _, _ := strings.Cut(live, " ")
	parts := []string{
		style.Render(glyph) + " " + formatPercent(m.snap.NumOver(), m.snap.Total), m.failuresText(),
		styleBusy.Render(m.snap.RunningText()),
		m.snap.QueuedText(),
		styleGood.Render(m.snap.SucceededText()),
		m.etaText(),
	}
	if m.isUndispatched() || m.snapshotErr != nil {
		parts[0] = style.Render(live)
	}
	where := styleBold.Render("[" + tabNames[m.tab] + "]")
	return m.justify(m.joinFitting(parts, "  ", m.w-width(where)-2), where, m.w)
}

// tooSmall returns the rows of a screen below 40x10.
func (m *model) tooSmall() []string {
	if m.modal != nil { // a question must be visible
		if rows := m.modal.draw(m, m.w, m.h); len(rows) > 0 {
			return rows
		}
	}
	live, style := m.liveness()
	rows := []string{style.Render(live)}
	if m.snap != nil {
		rows = append(rows, m.joinFitting([]string{m.failuresText(), m.snap.RunningText(), m.snap.QueuedText(),
			m.snap.SucceededText()}, " ", m.w))
	}
	return append(rows, fmt.Sprintf("too small: %dx%d needed", tinyW, tinyH), m.keyFor("leave")+" leaves the screen")
}

// joinFitting joins as many of the first parts as fit into w cells.
func (m *model) joinFitting(parts []string, between string, w int) string {
	s := ""
	for i, p := range parts {
		if i > 0 {
			p = between + p
		}
		if width(s)+width(p) > w {
			break
		}
		s += p
	}
	return s
}

// cutLeft shortens a text to at most w cells by removing its beginning.
func (m *model) cutLeft(s string, w int) string {
	r := []rune(s)
	for len(r) > 0 && width(string(r)) > w-1 {
		r = r[1:]
		if width(string(r)) <= w-1 {
			return m.glyphs.ellipsis + string(r)
		}
	}
	return string(r)
}

// cut shortens a text to at most w cells.
func (m *model) cut(s string, w int) string { return m.fit(s, min(w, width(s))) }

// cutWords is like cut, for sentences without styles: it cuts after a word if that loses little.
func (m *model) cutWords(s string, w int) string {
	if kept := ansi.TruncateWc(s, w-1, ""); w > 1 && width(s) > w && strings.HasPrefix(s, kept) {
		w = width(kept[:text.WordEnd(kept, s[len(kept):])]) + width(m.glyphs.ellipsis)
	}
	return m.cut(s, w)
}

// tabTitles returns the titles of the views, shortened if space is short, and the filter and order
// beside them.
func (m *model) tabTitles() (left, right string) {
	var full, short []string
	for i := range numTabs {
		name := m.tabTitle(i)
		long := name
		if n := m.tabCount(i); n != "" {
			long += " " + n
		}
		if i == m.tab {
			name, long = styleBold.with(styleCursor).Render("["+name+"]"), styleBold.with(styleCursor).Render("["+
				plainText(long)+"]")
		}
		full, short = append(full, long), append(short, name)
	}
	left = " " + strings.Join(full, "  ")
	right = m.panes[m.tab].filterAndOrder(m)
	right += text.If(right != "", " ")
	for _, tight := range []string{" " + strings.Join(short, "  "), strings.Join(short, " ")} {
		if width(left)+2+width(right) > m.w {
			left = tight
		}
	}
	return left, right
}

// tabTitle returns the title of a view: its key and its name.
func (m *model) tabTitle(t tab) string {
	if keys := m.keysFor(viewNames()[t]); len(keys) > 0 {
		return keys[0] + " " + tabNames[t]
	}
	return tabNames[t]
}

// tabAt returns the view whose title is at a place of the screen.
func (m *model) tabAt(x, y int) (t tab, ok bool) {
	titles, _ := m.tabTitles()
	titles = plainText(titles)
	if y != m.tabsAt || x >= width(titles) {
		return 0, false
	}
	for i := range numTabs {
		if at := strings.Index(titles, m.tabTitle(i)); x >= width(titles[:at]) {
			t, ok = i, true
		}
	}
	return t, ok
}

// tabCount returns the number beside the name of a view.
func (m *model) tabCount(t tab) string {
	if m.snap == nil {
		return ""
	}
	switch t {
	case tabJobs:
		if p := m.jobs.page; m.jobs.filter != "" && p != nil && m.jobs.isCurrentPage(p) && p.Wrong == "" {
			return text.Thousands(p.Matched)
		}
		return text.Thousands(m.snap.Total)
	case tabHosts:
		if m.isUndispatched() {
			return text.Thousands(len(m.snap.Hosts))
		}
		up, _, _ := m.countUsable()
		return fmt.Sprintf("%d/%d", up, len(m.snap.Hosts))
	case tabFailed:
		if n := m.snap.NumFailed(); n > 0 {
			return styleBad.Render(text.Thousands(n))
		}
	}
	return ""
}

// successorText describes how a run without a dispatcher gets one.
func (m *model) successorText() string {
	text := m.keyFor("resume") + " resumes"
	if standby := m.snap.Run.Standby; standby != "" {
		text = "the standby on " + m.clean(standby) + " takes over if it is alive, or " + text
	}
	return text
}

// banner describes what prevents progress, the worst first. It returns one row if that is enough,
// and none if there are no problems.
func (m *model) banner() []string {
	var words, texts, said []string
	add := func(style textStyle, word, text string) {
		word = style.with(styleCursor).with(styleBold).Render(" "+word+" ") + " "
		words, texts, said = append(words, word), append(texts, text), append(said, word+text)
	}
	if m.snapshotErr != nil {
		add(styleBad, "NOT LIVE", m.clean(m.snapshotErr.Error()))
	}
	if snap := m.snap; snap != nil {
		left := text.Thousands(snap.NumLeft()) + " jobs are left"
		switch {
		case snap.Status == runview.StatusSilent:
			add(styleBad, "NO HEARTBEAT", "of the dispatcher; "+left+": "+m.successorText())
		case m.isCrashed():
			add(styleBad, "DISPATCHER DIED", left+", and jobs that ran may still run: "+m.successorText())
		case m.isUndispatched() && snap.NumLeft() > 0:
			add(styleWarn, "STOPPED", text.Join("; ", left+": "+m.keyFor("resume")+" resumes", m.clean(snap.End)))
		case m.isUndispatched() && snap.Phases[runview.Succeeded] < snap.Total:
			add(styleWarn, "ENDED", m.clean(snap.Over))
		case m.isUndispatched():
			add(styleGood, "ENDED", m.clean(snap.Over))
		}
		if n := snap.Requests; n > 0 && m.isUndispatched() {
			add(styleWarn, "WAITING", text.Plural(n, "request")+" for a dispatcher: "+m.keyFor("resume")+" resumes")
		}
		if snap.Problem != "" {
			add(styleBad, "PROBLEM", m.clean(snap.Problem))
		}
		if snap.Draining != "" && !m.isUndispatched() {
			add(styleWarn, "DRAINING",
				"nothing more is launched until "+m.keyFor("pause")+" continues: "+m.clean(snap.Draining))
		}
		if len(snap.MetricsOf) > 0 && snap.NumLeft() == 0 && !m.isUndispatched() {
			add(styleWarn, "WAITING", "for metrics of earlier jobs on "+m.clean(text.List(snap.MetricsOf, 5)))
		}
		if hosts := snap.Finish.Waiting(); hosts != "" && !m.isUndispatched() {
			add(styleWarn, "WAITING", "for "+m.clean(hosts))
		}
		if snap.Paused && !m.isUndispatched() {
			add(styleWarn, "PAUSED", "nothing is launched until "+m.keyFor("pause")+" continues")
		}
	}
	if snap := m.snap; snap != nil && !m.isUndispatched() && !snap.Paused && snap.Draining == "" {
		up, connecting, taking := m.countUsable()
		if snap.Awaited != nil {
			end := m.keyFor("requeue") + " on the jobs"
			if snap.Awaited.HasLimit {
				end = m.keyFor("stop") + " on the hosts"
			}
			add(styleWarn, "WAITING", m.clean(snap.Awaited.Text)+": "+end+" ends the wait")
		}
		switch waits := snap.NumQueued() > 0; {
		case snap.Stuck != "":
			add(styleBad, "NOTHING CAN START", m.clean(snap.Stuck))
		case len(snap.Hosts) == 0 || taking > 0:
			if busy := m.othersLoadText(); busy != "" {
				add(styleWarn, "OTHERS' LOAD", busy)
			}
		case up == 0 && connecting > 0:
			add(styleWarn, "CONNECTING", "to "+text.Plural(len(snap.Hosts), "host")+", none is up yet")
		case waits && connecting == 0:
			why, _ := m.describeWorstHost()
			add(styleBad, "NOTHING CAN START", "none of "+text.Plural(len(snap.Hosts), "host")+" takes jobs: "+why)
		case up == 0 && connecting == 0:
			add(styleBad, "NO HOST", "none of "+text.Plural(len(snap.Hosts), "host")+
				" can be used now: view "+m.keyFor("hosts")+" shows why")
		}
	}
	if len(said) == 0 {
		return nil
	}
	if row := " " + strings.Join(said, "  "); width(row) <= m.w || m.maxMessageRows() == 1 {
		return []string{row}
	}
	// If one row is too short, each problem has its own, and the worst has as many as it needs.
	var rows []string
	most := m.maxMessageRows()
	for i := 0; i < len(said) && len(rows) < most; i++ {
		w := m.w - width(words[i]) - 2
		left := most - len(rows) - (len(said) - i - 1)
		lines := m.wrap(texts[i], max(10, w))
		rows = append(rows, hangingIndent(" "+words[i], m.limitRows(lines, max(1, left), max(1, w)))...)
	}
	return rows
}

// allHosts iterates over the hosts of the newest snapshot.
func (m *model) allHosts() iter.Seq2[int, *live.Host] {
	return func(yield func(int, *live.Host) bool) {
		for i := range m.snap.Hosts {
			if !yield(i, &m.snap.Hosts[i]) {
				return
			}
		}
	}
}

// countUsable returns the numbers of hosts that are up, that are being connected to, and that start
// jobs.
func (m *model) countUsable() (up, connecting, taking int) {
	for _, h := range m.allHosts() {
		switch h.State {
		case jobs.HostUp:
			up++
		case jobs.HostConnecting:
			connecting++
		}
		if h.StartsJobs() {
			taking++
		}
	}
	return up, connecting, taking
}

// othersLoadText names the hosts whose slots the dispatcher reduces because other users occupy their
// cores. It returns "" if there are none. Cores that other runs of the same user occupy do not count.
func (m *model) othersLoadText() string {
	var names []string
	for _, h := range m.allHosts() {
		if h.IsHeld() && h.Cores > 0 && h.Hold == jobs.HeldByOthersLoad {
			names = append(names, fmt.Sprintf("%s (%s of %d cores)", m.clean(h.Name),
				oneDigit(min(h.Busy-h.Ours, float64(h.Cores))), h.Cores))
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "on " + text.List(names, 3) + text.If(!m.isSmall(), ": jobs start there as these become free")
}
