package tui

import (
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"dcs-tui/dispatch/view"
)

// helpModal shows, over the whole screen, the keys that work where the focus was, the
// commands of the command line and the language of the filter.
type helpModal struct {
	lines []string
	top   int
	h     int // rows it was last drawn with
}

func newHelp(m *model) modal {
	return &helpModal{lines: slices.Concat(m.helpKeys(), m.helpCommands(), m.helpFilter(), m.helpSigns())}
}

func (p *helpModal) key(m *model, k tea.KeyPressMsg) tea.Cmd {
	if !p.scroll(k.String()) {
		m.modal = nil
	}
	return nil
}

// scroll moves the text; false: the key is none that does.
func (p *helpModal) scroll(key string) bool {
	switch key {
	case "j", "down":
		p.top++
	case "k", "up":
		p.top--
	case "pgdown", "space", "ctrl+f":
		p.top += p.h
	case "pgup", "b", "ctrl+b":
		p.top -= p.h
	case "ctrl+d":
		p.top += p.h / 2
	case "ctrl+u":
		p.top -= p.h / 2
	case "g", "home":
		p.top = 0
	case "G", "end":
		p.top = len(p.lines)
	default:
		return false
	}
	return true
}

func (p *helpModal) draw(m *model, w, rows int) []string { return nil }

func (p *helpModal) screen(m *model, w, h int) []string {
	p.h = h - 2
	p.top = max(0, min(p.top, len(p.lines)-p.h))
	out := []string{m.rule("Help", w, true)}
	for i := range p.h {
		out = append(out, " "+at(p.lines, p.top+i))
	}
	foot := " any other key closes"
	if rest := len(p.lines) - p.top - p.h; rest > 0 {
		foot = " j k PgDn PgUp move, " + thousands(rest) + " more lines;" + foot
	}
	return append(out, styleFaint.Render(foot))
}

// helpKeys are the bindings that count now, by their groups.
func (m *model) helpKeys() []string {
	var groups []string
	lines := map[string][]string{}
	all := m.bindings()
	wide := 0
	for _, b := range all {
		wide = max(wide, width(m.keyName(b.show)))
	}
	for _, b := range all {
		if _, ok := lines[b.group]; !ok {
			groups = append(groups, b.group)
		}
		l := "  " + styleBold.Render(m.fit(m.keyName(b.show), wide)) + "  " + b.help
		if !b.offered(m) {
			l += styleFaint.Render("  (not now)")
		}
		lines[b.group] = append(lines[b.group], l)
	}
	var out []string
	for _, g := range groups {
		out = append(append(append(out, styleBold.Render(g)), lines[g]...), "")
	}
	return out
}

// helpCommands are the commands of the `:` line.
func (m *model) helpCommands() []string { return nil }

// helpFilter is the language of `/`, of which dispatch/board has the meaning.
func (m *model) helpFilter() []string {
	text := []string{
		"  text             jobs whose name or command has it",
		"  state:failed     run, queue, retry, fail, timeout, ok, cancel, skip …",
		"  host:ws01        jobs on that host; queue:x in that queue",
		"  exit:137         ended so; id:10-20",
		"  C=0.1            a parameter with that value; also < <= > >= !=",
		"  a b              both; -a or !a: not a; \"two words\" as one",
	}
	return m.section("Filter", text)
}

// helpSigns says what the signs in the lists mean.
func (m *model) helpSigns() []string {
	var text []string
	for p := range view.Phases {
		text = append(text, "  "+phaseStyle(p).Render(m.g.phase[p])+"  "+m.fit(p.String(), 8)+phaseHelp[p])
	}
	return m.section("Signs", text)
}

var phaseHelp = [view.Phases]string{
	view.Ending:    "runs, and is being cancelled",
	view.Running:   "runs",
	view.Away:      "runs on a host that cannot be reached now",
	view.Handed:    "handed to a host, not known to have started",
	view.Retry:     "failed or lost, waits for its next try",
	view.Failed:    "failed, and has no try left",
	view.TimedOut:  "ended because it ran longer than it may",
	view.Queued:    "waits for a slot",
	view.Waits:     "waits for other jobs",
	view.Succeeded: "succeeded",
	view.Cancelled: "cancelled by a person",
	view.Skipped:   "skipped: as hard as one that timed out, or what it waits for failed",
}

func (m *model) section(title string, text []string) []string {
	out := []string{styleBold.Render(title)}
	for _, l := range text {
		if m.opt.ASCII {
			l = strings.ReplaceAll(l, "…", "...")
		}
		out = append(out, l)
	}
	return append(out, "")
}
