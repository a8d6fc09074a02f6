package tui

import (
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"dcs-tui/jobs/live"
	"dcs-tui/jobs/runview"
)

// binding is what one key does. The table of bindings is the only place where a key
// is named: what it does, the footer's hints and the help come from it (rule 12).
type binding struct {
	keys  []string          // as Bubble Tea names them
	show  string            // as the footer and the help show them
	word  string            // what it does, one or two words, for the footer; "": not in the footer
	help  string            // what it does, a line, for the help
	group string            // heading in the help
	when  func(*model) bool // nil: always
	do    func(*model) tea.Cmd
}

func (b *binding) offered(m *model) bool { return b.when == nil || b.when(m) }

// bindings are those that count now, the focused pane's before the general ones.
func (m *model) bindings() []binding {
	return append(slices.Clip(m.focus().keys()), m.general()...)
}

// pressIn does what a key means in a table of bindings; false: nothing.
func (m *model) pressIn(table []binding, key string) (tea.Cmd, bool) {
	for _, b := range table {
		if m.tiny() && m.modal == nil && !slices.Contains([]string{"q", "ctrl+z", "ctrl+l"}, b.keys[0]) {
			continue // nobody acts on what is not seen
		}
		if slices.Contains(b.keys, key) && b.offered(m) {
			return b.do(m), true
		}
	}
	return nil, false
}

// press does what a key means now.
func (m *model) press(key string) tea.Cmd {
	if cmd, is := m.pressIn(m.bindings(), key); is {
		return cmd
	}
	if !m.tiny() && !(m.message.bad && m.message.text != "") { // an error is read first
		m.say(key + " does nothing here; ? lists the keys that do")
	}
	return nil
}

// general are the keys of every pane.
func (m *model) general() []binding {
	all := append(append([]binding{
		{keys: []string{"z"}, show: "z", word: when(m.alone || m.full || len(m.placed) > 1, "zoom"), group: "Views", help: "this pane alone on the screen, over the whole width, and back", do: (*model).zoom},
	}, slices.Concat(m.jobKeys(), m.runKeys(), m.outsideKeys())...), []binding{
		{keys: []string{"tab"}, show: "tab", group: "Views", help: "next view, or next pane where several are on the screen", do: func(m *model) tea.Cmd { return m.turn(1) }},
		{keys: []string{"C"}, show: "C", group: "List", help: "choose the columns of the list",
			when: func(m *model) bool { _, is := m.focus().(interface{ choose() *choices }); return is }, do: (*model).chooseColumns},
		{keys: []string{"shift+tab"}, show: "shift+tab", group: "Views", help: "the one before", do: func(m *model) tea.Cmd { return m.turn(-1) }},
	}...)
	for i := range tabs {
		help := tabNames[i]
		if m.hasSides() {
			help += "; again: with the whole width, and back"
		}
		all = append(all, binding{keys: []string{string('1' + rune(i))}, show: string('1' + rune(i)), group: "Views", help: help,
			do: func(m *model) tea.Cmd { m.openAgain(i); return nil }})
	}
	all = append(all, m.lifeKeys()...)
	return append(all,
		binding{keys: []string{"?"}, show: "?", word: "help", group: "Views", help: "the keys that work here", do: func(m *model) tea.Cmd { m.modal = newHelp(m); return nil }},
		binding{keys: []string{"esc"}, show: "esc", group: "Views", help: "back: close, clear the filter, the selection, fold the summary away", do: (*model).back},
		binding{keys: []string{"q", "ctrl+c"}, show: "q", word: "leave", group: "Views", help: "leave: detach, drain or cancel", do: (*model).leave},
		binding{keys: []string{"ctrl+z"}, show: "ctrl+z", group: "Views", help: "suspend the screen; the run continues", do: (*model).suspend},
		binding{keys: []string{"ctrl+l"}, show: "ctrl+l", group: "Views", help: "draw anew", do: func(*model) tea.Cmd { return tea.ClearScreen }},
	)
}

// window returns the first of n rows that is shown in h rows, so that row at is among
// them and as little as possible moves from top, where it was before.
func window(top, at, n, h int) int {
	h = max(1, h)
	top = min(top, at)
	top = max(top, at-h+1)
	return max(0, min(top, n-h))
}

// far is a move to the end of any list.
const far = 1 << 30

// moving are the keys that move in a list: rows says how many it shows, move does it.
func moving(rows func() int, move func(m *model, by int)) []binding {
	key := func(show, help string, by func() int, keys ...string) binding {
		return binding{keys: keys, show: show, help: help, group: "Move", do: func(m *model) tea.Cmd { move(m, by()); return nil }}
	}
	is := func(n int) func() int { return func() int { return n } }
	return []binding{
		key("j", "down", is(1), "j", "down"),
		key("k", "up", is(-1), "k", "up"),
		key("ctrl+d", "down half a page", func() int { return max(1, rows()/2) }, "ctrl+d"),
		key("ctrl+u", "up half a page", func() int { return -max(1, rows()/2) }, "ctrl+u"),
		key("PgDn", "down a page", func() int { return max(1, rows()) }, "pgdown", "ctrl+f"),
		key("PgUp", "up a page", func() int { return -max(1, rows()) }, "pgup", "ctrl+b"),
		key("g", "to the first", is(-far), "g", "home"),
		key("G", "to the last", is(far), "G", "end"),
	}
}

// page is a text over the whole screen that can be scrolled; any key that does not
// scroll closes it.
type page struct {
	lines  []string
	top, h int // the first row shown, and how many there were room for
}

func (p *page) rows() int { return p.h }

func (p *page) scroll(_ *model, by int) { p.top = max(0, min(p.top+by, len(p.lines)-p.h)) }

func (p *page) key(m *model, k tea.KeyPressMsg) tea.Cmd {
	cmd, is := m.pressIn(moving(p.rows, p.scroll), k.String())
	if !is {
		m.modal = nil
	}
	return cmd
}

// draw is nothing: it takes the whole screen instead.
func (p *page) draw(*model, int, int) []string { return nil }

func (p *page) full(m *model, title string, w, h int) []string {
	p.h = h - 2
	p.scroll(m, 0)
	out := []string{m.rule(title, w, true)}
	for i := range p.h {
		out = append(out, " "+at(p.lines, p.top+i))
	}
	foot := " esc closes"
	if len(p.lines) > p.h {
		foot += "; j k PgDn PgUp g G move; rows " + thousands(p.top+1) + " to " + thousands(min(len(p.lines), p.top+p.h)) + " of " + thousands(len(p.lines))
	}
	return append(out, styleFaint.Render(foot))
}

// wrap breaks a text into lines of at most w cells, between words where there are any.
func (m *model) wrap(s string, w int) []string {
	return strings.Split(ansi.WrapWc(s, max(1, w), ""), "\n")
}

// helpModal shows, over the whole screen, the keys that work where the focus was, the
// commands of the command line and the language of the filter.
type helpModal struct {
	page
	rows []helpRow
}

// helpRow is a thing and what it means; without a meaning it is a heading.
type helpRow struct{ name, text string }

func newHelp(m *model) modal {
	return &helpModal{rows: slices.Concat(m.helpKeys(), helpCommands(), m.helpSigns(), helpFilter)}
}

func (p *helpModal) screen(m *model, w, h int) []string {
	p.lines = m.helpLines(p.rows, w-2)
	return p.full(m, "Help", w, h)
}

// helpLines sets the rows in w cells: names at the left, as wide as those under the
// same heading, what they mean beside them.
func (m *model) helpLines(rows []helpRow, w int) []string {
	var out []string
	column := 0
	for i, r := range rows {
		if r.text == "" {
			if column = 0; i > 0 {
				out = append(out, "")
			}
			for _, x := range rows[i+1:] {
				if x.text == "" {
					break
				}
				column = max(column, min(24, width(x.name)))
			}
			out = append(out, styleBold.Render(r.name))
			continue
		}
		for k, l := range m.wrap(r.text, max(10, w-column-4)) {
			name := ""
			if k == 0 {
				name = r.name
			}
			out = append(out, "  "+styleBold.Render(m.fit(name, column))+"  "+l)
		}
	}
	return out
}

// helpKeys are the bindings that count now, by their groups: the focused pane's, and
// those of all panes that work here and that it does not use otherwise.
func (m *model) helpKeys() []helpRow {
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
	rows := map[string][]helpRow{}
	for _, b := range all {
		if b.help == "" { // the same as another
			continue
		}
		if _, ok := rows[b.group]; !ok {
			groups = append(groups, b.group)
		}
		text := b.help
		if !b.offered(m) {
			text += " (not now)"
		}
		rows[b.group] = append(rows[b.group], helpRow{m.keyName(strings.Join(b.keys, " ")), text})
	}
	var out []helpRow
	for _, g := range groups {
		out = append(append(out, helpRow{name: g}), rows[g]...)
	}
	return out
}

// helpCommands are the commands of the `:` line.
func helpCommands() []helpRow {
	out := []helpRow{{name: "Commands"}}
	for _, c := range commands {
		out = append(out, helpRow{strings.TrimSpace(":" + c.name + " " + c.args), c.help})
	}
	return out
}

// helpFilter is what can be typed after `/`; jobs/runview has its meaning.
var helpFilter = []helpRow{
	{name: "Filter"},
	{"text", "name, command or parameters contain it, in upper or lower case"},
	{`"two words"`, "quotes keep blanks together"},
	{"C=0.1 C>=1", "the parameter C; also != < <=, and 1 <= C < 10; C=\"0.10\" is exactly that text"},
	{"host=ws* name~^train", "* ? [a-z] stand for other characters with = and !=; ~ and !~ are regular expressions"},
	{"and or not ( )", "state=fail (host=ws1 or host=ws2) not resnet; a blank and a comma are `and`"},
	{"state=fail", "also run, away, handed, retry, timeout, queue, waits, ok, cancel, skip, ending; open, done, and bad are several"},
	{"exit=137 signal=SIGKILL", "how it ended"},
	{"time>2h mem>1.5G cpu<1m", "how long it ran, its memory, its CPU time"},
	{"queue= tags~ try= prio=", "its queue, the tags that it asks for, which try it is at, its priority; also job, command, failures, progress"},
	{"straggler=yes", "it runs far longer than others of its queue"},
	{"acc>0.9 acc=nan", "in Results: a metric, and all other columns of results; among groups acc_mean>0.9, solved>2"},
	{"C * gamma < 10", "arithmetic, with blanks around + - * / %"},
}

// helpSigns returns what the signs in the lists mean.
func (m *model) helpSigns() []helpRow {
	out := []helpRow{{name: "Signs"}}
	for p := range runview.Phases {
		out = append(out, helpRow{m.g.phase[p] + " " + p.String(), phaseWords[p].help})
	}
	out = append(out, helpRow{name: "Signs of hosts"})
	for _, s := range hostHelp {
		h := live.Host{State: s[0]}
		out = append(out, helpRow{m.hostGlyph(&h) + " " + hostWord(&h), s[1]})
	}
	full := m.g.bar[len(m.g.bar)-1]
	return append(out,
		helpRow{m.spark([]float64{1, 3, 6, 8}, 8, 4), "before ETA: how many jobs ended, in each of the last minutes"},
		helpRow{"2/4+1", "of a host: 2 of its 4 slots in use, 1 job handed to it in advance"},
		helpRow{"0:42?", "so long, if it still runs: nobody hears of it now"},
		helpRow{"TRY 2/3", "at the second of three tries; an attempt that a host gave back, or that was lost with it, uses up none"},
		helpRow{m.g.spark[0] + " " + m.g.spark[len(m.g.spark)-1], "up, in the header: how busy its cores are, by everybody"},
		helpRow{full + m.g.bar[0] + m.g.othersBar, "slots: in use, free, and not usable because others use the cores"},
		helpRow{full + m.g.badBar + m.g.othersBar, "the run: succeeded, failed, canceled or skipped"})
}

var hostHelp = [][2]string{
	{hostUp, "jobs run there; held: it is up and starts nothing, the row says why"},
	{hostSuspect, "no heartbeat for 15 s: nothing more is started there"},
	{hostLost, "given up: its jobs are queued again"},
	{hostConnecting, "being connected to"},
	{hostBackingOff, "could not be reached, or fails everything: tried again later"},
	{hostDraining, "what runs there finishes, nothing more starts"},
	{hostDisabled, "stopped by a person, or of no use: the row says why"},
	{hostCreating, "an instance of a provider whose create command runs"},
	{hostStarting, "an instance that has not answered yet"},
	{hostTerminating, "an instance that gets no more jobs; its outputs are fetched first"},
}

// phaseWords say of a job how it stands, and what that means.
var phaseWords = [runview.Phases]struct{ stands, help string }{
	runview.Ending:    {"is being canceled already", "runs, and is being canceled"},
	runview.Running:   {"runs", "runs"},
	runview.Away:      {"runs on a host that cannot be reached now", "runs on a host that cannot be reached now"},
	runview.Handed:    {"has been handed to a host", "sent to its host, which starts it when a slot is free there"},
	runview.Retry:     {"waits for its next try", "failed or lost, waits for its next try"},
	runview.Failed:    {"has failed", "failed, and has no try left"},
	runview.TimedOut:  {"has timed out", "ended because it ran longer than it may"},
	runview.Queued:    {"is queued", "waits for a slot"},
	runview.Waits:     {"waits for other jobs", "waits for other jobs"},
	runview.Succeeded: {"has succeeded", "succeeded"},
	runview.Canceled:  {"is canceled", "canceled by a person"},
	runview.Skipped:   {"was skipped", "skipped: as hard as one that timed out, or what it waits for failed"},
}
