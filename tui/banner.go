package tui

import (
	"strings"

	"dcs-tui/jobs/runview"
)

// banner says what stands in the way of the run, the worst first, in one row; none
// when nothing does.
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
			add(styleBad, "NO SIGN OF LIFE", "of the dispatcher; "+thousands(max(0, p.Total-t.over))+" jobs are left: "+resumeKey+" carries on")
		case m.crashed():
			add(styleBad, "DISPATCHER DIED", thousands(max(0, p.Total-t.over))+" jobs are left, what ran may still run: "+resumeKey+" carries on")
		case m.over() && p.Total > t.over:
			add(styleWarn, "STOPPED", thousands(p.Total-t.over)+" jobs are left: "+resumeKey+" carries on")
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
	if row := " " + strings.Join(said, "  "); width(row) <= m.w || m.mostRows() == 1 {
		return []string{row}
	}
	// There is no room for all of it in a row: each has its own, the worst as many as it needs.
	var rows []string
	most := m.mostRows()
	for i := 0; i < len(said) && len(rows) < most; i++ {
		indent := 1 + width(words[i]) + 1
		left := most - len(rows) - (len(said) - i - 1)
		lines := m.wrap(texts[i], max(10, m.w-indent-1))
		if left = max(1, left); len(lines) > left {
			lines[left-1] = m.cut(strings.Join(lines[left-1:], " "), max(1, m.w-indent-1))
			lines = lines[:left]
		}
		for k, l := range lines {
			if k == 0 {
				rows = append(rows, " "+words[i]+" "+l)
			} else {
				rows = append(rows, strings.Repeat(" ", indent)+l)
			}
		}
	}
	return rows
}

// The keys that the header names; a test holds them to the table.
const (
	resumeKey = "R"
	pauseKey  = "p"
)

// usable counts the hosts that are up, and those being connected to.
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

// taking counts the hosts that start jobs.
func (m *model) taking() int {
	n := 0
	for i := range m.pic.Hosts {
		if takes(&m.pic.Hosts[i]) {
			n++
		}
	}
	return n
}
