package tui

import (
	"slices"
	"strings"

	"dcs-tui/dispatch/view"
)

// helpModal shows, over the whole screen, the keys that work where the focus was, the
// commands of the command line and the language of the filter.
type helpModal struct{ page }

func newHelp(m *model) modal {
	return &helpModal{page{lines: slices.Concat(m.helpKeys(), m.helpCommands(), m.helpFilter(), m.helpSigns())}}
}

func (p *helpModal) screen(m *model, w, h int) []string { return p.full(m, "Help", w, h) }

// helpKeys are the bindings that count now, by their groups: the focused pane's, and
// those of all panes that work here and that it does not use otherwise.
func (m *model) helpKeys() []string {
	own := m.focus().keys()
	taken := map[string]bool{}
	for _, b := range own {
		taken[b.keys[0]] = true
	}
	all := own[:len(own):len(own)]
	for _, b := range m.general() {
		if b.offered(m) && !taken[b.keys[0]] {
			all = append(all, b)
		}
	}
	var groups []string
	lines := map[string][]string{}
	wide := 0
	for _, b := range all {
		wide = max(wide, width(m.keyName(b.show)))
	}
	for _, b := range all {
		if b.help == "" { // the same as another
			continue
		}
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
func (m *model) helpCommands() []string {
	var text []string
	wide := 0
	for _, c := range commandHelp() {
		wide = max(wide, width(c[0]))
	}
	for _, c := range commandHelp() {
		text = append(text, "  "+styleBold.Render(m.fit(c[0], wide))+"  "+c[1])
	}
	return m.section("Commands", text)
}

// helpFilter is the language of `/`, of which dispatch/board has the meaning.
func (m *model) helpFilter() []string {
	return m.section("Filter", filterHelp)
}

// filterHelp is what can be typed after `/`; dispatch/board has its meaning.
var filterHelp = []string{
	"  words             a job must fit all of them",
	"  text              name, command or parameters contain it, in capitals or not",
	"  \"two words\"       quotes hold blanks together",
	"  C=0.1  C>=1       the parameter C; also != < > <=; * ? [a-z] with = and !=",
	"  state:fail        also run, away, handed, retry, timeout, queue, waits, ok, cancel, skip, ending,",
	"                    and open, done, bad; several with a comma",
	"  host:ws01         where it runs or ran",
	"  queue:x  tag:gpu  its queue, a tag that it asks for",
	"  exit:137          how it ended: a code, a signal such as SIGKILL, !0 for all but 0",
	"  try:2  try:>1     which try it is at; also try:retried",
	"  prio:5  prio:<0   its priority",
	"  id:3-9,12         numbers",
	"  straggler         it runs far longer than others of its queue",
	"  -word  !word      jobs that do not fit the word",
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
