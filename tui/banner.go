package tui

import (
	"errors"
	"strings"

	"charm.land/lipgloss/v2"

	"dcs-tui/dispatch/view"
)

// banner says what stands in the way of the run, the worst first, in one row; none
// when nothing does.
func (m *model) banner() []string {
	var said []string
	add := func(style lipgloss.Style, word, text string) {
		said = append(said, style.Reverse(true).Bold(true).Render(" "+word+" ")+" "+text)
	}
	if m.lookErr != nil {
		text := m.clean(m.lookErr.Error())
		if errors.Is(m.lookErr, view.ErrGone) {
			text = "the dispatcher has gone; looking for what it left"
		}
		add(styleBad, "NOT LIVE", text)
	}
	if p := m.pic; p != nil {
		t := counts(p)
		switch {
		case p.Life == view.Dead:
			add(styleBad, "DISPATCHER DIED", thousands(max(0, p.Total-t.over))+" jobs are left, what ran may still run: "+resumeKey+" carries on")
		case p.Life == view.Ended && p.Total > t.over:
			add(styleWarn, "STOPPED", thousands(p.Total-t.over)+" jobs are left: "+resumeKey+" carries on")
		case p.Life == view.Ended && t.done < p.Total:
			add(styleWarn, "ENDED", m.clean(p.Over))
		case p.Life == view.Ended:
			add(styleGood, "ENDED", m.clean(p.Over))
		}
		if p.Problem != "" {
			add(styleBad, "PROBLEM", m.clean(p.Problem))
		}
		if p.Draining != "" && !m.over() {
			add(styleWarn, "DRAINING", "nothing more is launched: "+m.clean(p.Draining))
		}
		if p.Paused && !m.over() {
			add(styleWarn, "PAUSED", "nothing is launched until "+pauseKey+" continues")
		}
	}
	if up, connecting := m.usable(); len(said) == 0 && m.pic != nil && !m.over() && up == 0 && len(m.pic.Hosts) > 0 {
		if connecting > 0 {
			add(styleWarn, "CONNECTING", "to "+plural(len(m.pic.Hosts), "host")+", none is up yet")
		} else {
			add(styleBad, "NO HOST", "none of "+plural(len(m.pic.Hosts), "host")+" can be used now: 2 says why")
		}
	}
	if len(said) == 0 {
		return nil
	}
	return []string{" " + strings.Join(said, "  ")}
}

// The keys that the header names; a test holds them to the table.
const (
	resumeKey = "R"
	pauseKey  = "p"
)

// usable counts the hosts on which jobs can run, and those being connected to.
func (m *model) usable() (up, connecting int) {
	if m.pic == nil {
		return 0, 0
	}
	for i := range m.pic.Hosts {
		switch h := &m.pic.Hosts[i]; {
		case works(h):
			up++
		case h.State == hostConnecting:
			connecting++
		}
	}
	return up, connecting
}
