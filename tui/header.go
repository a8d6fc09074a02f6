package tui

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"dcs-tui/jobs/runview"
)

// staleAge is the age from which a snapshot is no longer called live. Snapshots arrive every
// second.
const staleAge = 4 * time.Second

// header returns the rows over the view: whether the data is live, the progress of the run, the
// slots, what prevents progress, and the tabs.
func (m *model) header() []string {
	if m.small() {
		return append([]string{m.summaryRow()}, m.banner()...)
	}
	rows := append([]string{m.runRow(), m.progressRow(), m.slotsRow()}, m.banner()...)
	return append(append(rows, m.tabsRow()), m.summary()...)
}

// tally counts the jobs of a snapshot.
type tally struct{ running, handed, queued, retry, done, failed, over, other int }

func counts(p *runview.Snapshot) tally {
	n := p.Phases
	t := tally{
		running: n[runview.Running] + n[runview.Ending] + n[runview.Away],
		handed:  n[runview.Handed],
		queued:  n[runview.Queued] + n[runview.Waits] + n[runview.Retry],
		retry:   n[runview.Retry],
		done:    n[runview.Succeeded],
		failed:  n[runview.Failed] + n[runview.TimedOut],
		other:   n[runview.Canceled] + n[runview.Skipped],
	}
	t.over = t.done + t.failed + t.other
	return t
}

// running describes how many jobs run, and how many were sent to hosts that have not yet reported
// their start. Without a dispatcher, both are unknown.
func (m *model) running(t tally) string {
	switch {
	case m.over() && t.running+t.handed > 0:
		return "may run " + thousands(t.running+t.handed)
	case t.handed > 0:
		return "run " + thousands(t.running) + " +" + thousands(t.handed) + " handed" + when(m.w >= roomyW, " (sent to hosts, not started)")
	}
	return "run " + thousands(t.running)
}

// runRow returns the row with the name of the run, the age of the snapshot, and the numbers of
// jobs.
func (m *model) runRow() string {
	live, style := m.liveness()
	if m.pic == nil {
		return " " + styleBold.Render("dcs-tui") + "  " + style.Render(live)
	}
	t, p := counts(m.pic), &m.g.phase
	numbers := []string{
		styleBusy.Render(m.running(t)), "queue " + thousands(t.queued),
		styleGood.Render("done " + thousands(t.done)), m.failures(t.failed),
	}
	if t.retry > 0 {
		numbers = append(numbers, styleWarn.Render(p[runview.Retry]+" "+thousands(t.retry)))
	}
	if m.pic.Stragglers > 0 && !m.over() {
		numbers = append(numbers, styleWarn.Render(m.g.warn+" "+thousands(m.pic.Stragglers)+" slow"))
	}
	if n := m.pic.Phases[runview.Away]; n > 0 && !m.over() {
		numbers = append(numbers, styleWarn.Render(p[runview.Away]+" "+thousands(n)+" away"))
	}
	if t.other > 0 {
		numbers = append(numbers, styleFaint.Render(p[runview.Canceled]+" "+thousands(t.other)))
	}
	if on := m.pic.Run.Standby; on != "" && !m.over() {
		numbers = append(numbers, styleFaint.Render("standby "+m.clean(on)))
	}
	// If space is short, drop the laboratory first, then the wide gaps, the name, and the finished
	// jobs.
	name, lab := m.clean(m.pic.Run.Name), m.cut(m.clean(m.pic.Run.Lab), max(8, m.w/6))
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
	return m.sides(left, m.most(numbers, between, m.w-width(left)-3)+" ", m.w)
}

// failures describes the number of failures, in red if there are any.
func (m *model) failures(n int) string {
	s := m.g.phase[runview.Failed] + " " + thousands(n)
	if n > 0 {
		return styleBad.Render(s)
	}
	return s
}

// liveness reports whether the data is live and how old it is (rule 5).
func (m *model) liveness() (string, ink) {
	age := m.since()
	switch {
	case m.pic == nil && m.lookErr != nil:
		return m.g.gone + " no answer", styleBad
	case m.pic == nil:
		return m.g.gone + " reading the run", styleWarn
	case m.pic.Status == runview.StatusSilent:
		return m.g.phase[runview.Failed] + " dispatcher silent", styleBad
	case m.crashed():
		return m.g.phase[runview.Failed] + " dispatcher died", styleBad
	case m.over() && m.pic.Total > counts(m.pic).over:
		return m.g.gone + " stopped", styleWarn
	case m.over():
		return m.g.gone + " ended", styleBold
	case m.lookErr != nil || age >= staleAge:
		return m.g.gone + " not live, " + span(age) + " old", styleBad
	}
	return m.g.live + " live " + span(age), styleGood
}

// progressRow describes the progress of the run, its rate, and when it will end.
func (m *model) progressRow() string {
	if m.pic == nil {
		return ""
	}
	t := counts(m.pic)
	if m.pic.Total == 0 {
		return " " + m.shares(0, 0, 0, 0, m.w/2) + "  " + "no jobs yet" + when(m.pic.More, ", more may come")
	}
	said := []string{percent(t.over, m.pic.Total)}
	if m.over() {
		said = append(said, thousands(t.over)+" of "+thousands(m.pic.Total)+" jobs are over")
	} else {
		n := min(len(m.pic.Rates), max(8, m.w/10))
		if n == 1 { // a single bar has no scale
			n = 0
		}
		said = append(said, strings.TrimSpace(pace(m.pic.Rate)+" "+styleBusy.Render(m.spark(m.pic.Rates, 0, n))), m.eta())
	}
	right := "  " + strings.Join(said, "  ") + " "
	return m.sides(" "+m.shares(t.done, t.failed, t.other, m.pic.Total, m.w-1-width(right)), right, m.w)
}

// eta describes when the run is expected to end, with the uncertainty.
func (m *model) eta() string {
	switch {
	case m.pic.ETA <= 0 && m.pic.More:
		return "more may come"
	case m.pic.ETA <= 0:
		return "ETA not known yet"
	}
	s := "ETA " + span(m.pic.ETA)
	if m.pic.Spread > 0 {
		s += " " + m.g.plusMinus + span(m.pic.Spread)
	}
	if m.pic.More {
		s += ", more may come"
	}
	return s
}

// summaryRow returns the whole header of a small screen.
func (m *model) summaryRow() string {
	live, style := m.liveness()
	if m.pic == nil {
		return style.Render(live)
	}
	glyph, _, _ := strings.Cut(live, " ")
	t := counts(m.pic)
	parts := []string{
		style.Render(glyph) + " " + percent(t.over, m.pic.Total), m.failures(t.failed), styleBusy.Render(m.running(t)),
		"queue " + thousands(t.queued), styleGood.Render("done " + thousands(t.done)), m.eta(),
	}
	if m.over() || m.lookErr != nil {
		parts[0] = style.Render(live)
	}
	where := styleBold.Render("[" + tabNames[m.tab] + "]")
	return m.sides(m.most(parts, "  ", m.w-width(where)-2), where, m.w)
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
	if m.pic != nil {
		t := counts(m.pic)
		rows = append(rows, m.most([]string{m.failures(t.failed), m.running(t), "queue " + thousands(t.queued), "done " + thousands(t.done)}, " ", m.w))
	}
	return append(rows, fmt.Sprintf("too small: %dx%d needed", tinyW, tinyH), "q leaves the screen")
}

// most joins as many of the first parts as fit into w cells.
func (m *model) most(parts []string, between string, w int) string {
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
		if r = r[1:]; width(string(r)) <= w-1 {
			return m.g.cut + string(r)
		}
	}
	return string(r)
}

// cut shortens a text to at most w cells.
func (m *model) cut(s string, w int) string { return m.fit(s, min(w, width(s))) }

// tabsRow names the views with their counts and, at the right, the filter and order of the list of
// jobs.
func (m *model) tabsRow() string {
	var full, short []string
	for i := range tabs {
		name := string('1'+rune(i)) + " " + tabNames[i]
		long := name
		if n := m.tabCount(i); n != "" {
			long += " " + n
		}
		if i == m.tab {
			name, long = styleBold.with(styleHere).Render("["+name+"]"), styleBold.with(styleHere).Render("["+plainText(long)+"]")
		}
		full, short = append(full, long), append(short, name)
	}
	left := " " + strings.Join(full, "  ")
	right := m.listState()
	for _, tight := range []string{" " + strings.Join(short, "  "), strings.Join(short, " ")} {
		if width(left)+2+width(right) > m.w {
			left = tight
		}
	}
	return m.sides(left, m.cut(right, max(0, m.w-width(left)-2)), m.w)
}

// tabCount returns the number beside the name of a view.
func (m *model) tabCount(t tab) string {
	if m.pic == nil {
		return ""
	}
	switch t {
	case tabJobs:
		if p := m.jobs.page; m.jobs.filter != "" && p != nil && m.jobs.fits(p) && p.Wrong == "" {
			return thousands(p.Matched)
		}
		return thousands(m.pic.Total)
	case tabHosts:
		if m.over() {
			return thousands(len(m.pic.Hosts))
		}
		up, _ := m.usable()
		return fmt.Sprintf("%d/%d", up, len(m.pic.Hosts))
	case tabFailed:
		if n := counts(m.pic).failed; n > 0 {
			return styleBad.Render(thousands(n))
		}
	}
	return ""
}

// listState describes how the view is filtered and sorted.
func (m *model) listState() string {
	if state := m.panes[m.tab].state(m); state != "" {
		return state + " "
	}
	return ""
}

// banner describes what prevents progress, the worst first. It returns one row if that is enough,
// and none if there are no problems.
func (m *model) banner() []string {
	var said, words, texts []string
	add := func(style ink, word, text string) {
		words, texts = append(words, style.with(styleHere).with(styleBold).Render(" "+word+" ")), append(texts, text)
		said = append(said, words[len(words)-1]+" "+text)
	}
	if m.lookErr != nil {
		add(styleBad, "NOT LIVE", m.clean(m.lookErr.Error()))
	}
	if p := m.pic; p != nil {
		t := counts(p)
		switch {
		case p.Status == runview.StatusSilent:
			add(styleBad, "NO HEARTBEAT", "of the dispatcher; "+thousands(max(0, p.Total-t.over))+" jobs are left: "+resumeKey+" resumes")
		case m.crashed():
			add(styleBad, "DISPATCHER DIED", thousands(max(0, p.Total-t.over))+" jobs are left, what ran may still run: "+resumeKey+" resumes")
		case m.over() && p.Total > t.over:
			add(styleWarn, "STOPPED", thousands(p.Total-t.over)+" jobs are left: "+resumeKey+" resumes")
		case m.over() && t.done < p.Total:
			add(styleWarn, "ENDED", m.clean(p.Over))
		case m.over():
			add(styleGood, "ENDED", m.clean(p.Over))
		}
		if p.Problem != "" {
			add(styleBad, "PROBLEM", m.clean(p.Problem))
		}
		if p.Draining != "" && !m.over() {
			add(styleWarn, "DRAINING", "nothing more is launched until "+pauseKey+" continues: "+m.clean(p.Draining))
		}
		if p.Paused && !m.over() {
			add(styleWarn, "PAUSED", "nothing is launched until "+pauseKey+" continues")
		}
	}
	if p := m.pic; p != nil && !m.over() && !p.Paused && p.Draining == "" {
		up, connecting := m.usable()
		switch waits := counts(p).queued > 0; {
		case p.Stuck != "":
			add(styleBad, "NOTHING CAN START", m.clean(p.Stuck))
		case len(p.Hosts) == 0 || m.taking() > 0:
			if busy := m.takenByOthers(); busy != "" {
				add(styleWarn, "OTHERS' LOAD", busy)
			}
		case up == 0 && connecting > 0:
			add(styleWarn, "CONNECTING", "to "+plural(len(p.Hosts), "host")+", none is up yet")
		case waits && connecting == 0:
			why, _ := m.worst()
			add(styleBad, "NOTHING CAN START", "none of "+plural(len(p.Hosts), "host")+" takes jobs: "+why)
		case up == 0 && connecting == 0:
			add(styleBad, "NO HOST", "none of "+plural(len(p.Hosts), "host")+" can be used now: 2 says why")
		}
	}
	if len(said) == 0 {
		return nil
	}
	if row := " " + strings.Join(said, "  "); width(row) <= m.w || m.maxRows() == 1 {
		return []string{row}
	}
	// If one row is too short, each problem has its own, and the worst has as many as it needs.
	var rows []string
	most := m.maxRows()
	for i := 0; i < len(said) && len(rows) < most; i++ {
		indent := 1 + width(words[i]) + 1
		left := most - len(rows) - (len(said) - i - 1)
		lines := m.wrap(texts[i], max(10, m.w-indent-1))
		for k, l := range m.atMost(lines, max(1, left), max(1, m.w-indent-1)) {
			if k == 0 {
				rows = append(rows, " "+words[i]+" "+l)
			} else {
				rows = append(rows, strings.Repeat(" ", indent)+l)
			}
		}
	}
	return rows
}

// The keys that the header names. A test checks that they are in the table.
const (
	resumeKey = "R"
	pauseKey  = "p"
)

// usable returns the numbers of hosts that are up and of hosts being connected to.
func (m *model) usable() (up, connecting int) {
	if m.pic == nil {
		return 0, 0
	}
	for i := range m.pic.Hosts {
		switch h := &m.pic.Hosts[i]; {
		case h.State == hostUp:
			up++
		case h.State == hostConnecting:
			connecting++
		}
	}
	return up, connecting
}

// othersTime is how long the load of others is shown after its last report, because the load comes
// and goes.
const othersTime = 15 * time.Second

// noteOthersLoad records the hosts whose slots are reduced because other users occupy their cores,
// or all cores that jobs could have.
func (m *model) noteOthersLoad() {
	for i := range m.pic.Hosts {
		h := &m.pic.Hosts[i]
		if h.State == hostUp && h.Cores > 0 && h.Usable < float64(h.Slots) && (h.Busy-h.Ours >= float64(h.Cores)-0.5 || strings.HasPrefix(h.Reason, "reduces its slots")) {
			m.others[h.Name] = m.now()
		}
	}
}

// takenByOthers names these hosts. It returns "" if there are none.
func (m *model) takenByOthers() string {
	var names []string
	for i := range m.pic.Hosts {
		if h := &m.pic.Hosts[i]; m.now().Sub(m.others[h.Name]) < othersTime && h.State == hostUp {
			names = append(names, fmt.Sprintf("%s (%s of %d cores)", m.clean(h.Name), oneDigit(min(h.Busy-h.Ours, float64(h.Cores))), h.Cores))
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "on " + some(names, 3) + when(!m.small(), ": jobs start there as these become free")
}

// taking returns the number of hosts that start jobs.
func (m *model) taking() int {
	n := 0
	for i := range m.pic.Hosts {
		if takes(&m.pic.Hosts[i]) {
			n++
		}
	}
	return n
}
