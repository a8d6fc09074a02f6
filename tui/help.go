package tui

import (
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"dcs-tui/internal/text"
	"dcs-tui/jobs"
	"dcs-tui/jobs/live"
	"dcs-tui/observe/runview"
)

// helpRow is a name and its meaning. Without a meaning it is a heading.
type helpRow struct{ name, text string }

// openHelp shows, over the whole screen, the keys that work where the focus was, the
// commands of the command line, and the language of the filter.
func (m *model) openHelp() tea.Cmd {
	rows := slices.Concat(m.helpKeys(), helpCommands(), m.helpSigns(), helpFilter)
	m.modal = &textModal{fullScreen: true, openedBy: m.pressedKey,
		viewer: viewer{title: "Help", text: func(m *model, w int) []string { return m.helpLines(rows, w-2) }}}
	return nil
}

// helpLines formats the rows in w cells. The meanings are beside the names, whose column is as wide
// as the widest name under the same heading.
func (m *model) helpLines(rows []helpRow, w int) []string {
	var out []string
	column := 0
	for i, r := range rows {
		if r.text == "" {
			column = 0
			if i > 0 {
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
		name := "  " + styleBold.Render(m.fit(r.name, column)) + "  "
		out = append(out, hangingIndent(name, m.wrap(r.text, max(10, w-column-4)))...)
	}
	return out
}

// helpKeys returns the bindings that work now by groups: those of the focused pane, and the general
// ones that it does not replace.
func (m *model) helpKeys() []helpRow {
	own := m.withKeys(m.focus().keys())
	taken := map[string]bool{}
	for _, b := range own {
		taken[b.keys[0]] = true
	}
	all := slices.Clone(own)
	for _, b := range m.withKeys(m.generalKeys()) {
		if b.isOffered(m) && !taken[b.keys[0]] {
			all = append(all, b)
		}
	}
	all = slices.DeleteFunc(all, func(b binding) bool { return b.help == "" }) // aliases of other bindings
	var out []helpRow
	for len(all) > 0 {
		group := all[0].group
		out = append(out, helpRow{name: group})
		for _, b := range all {
			if b.group == group {
				out = append(out, helpRow{m.keyName(strings.Join(b.keys, " ")),
					b.help + text.If(!b.isOffered(m), " (not now)")})
			}
		}
		all = slices.DeleteFunc(all, func(b binding) bool { return b.group == group })
	}
	return out
}

func helpCommands() []helpRow {
	out := []helpRow{{name: "Commands"}}
	for _, c := range commands {
		out = append(out, helpRow{strings.TrimSpace(":" + c.name + " " + c.args), c.help})
	}
	return out
}

// helpFilter describes the filter language (jobs/query).
var helpFilter = []helpRow{
	{name: "Filter"},
	{"text", "name, command or parameters contain it, in upper or lower case"},
	{`"two words"`, "quotes keep spaces together"},
	{"C=0.1 C>=1", "the parameter C; also != < <=, and 1 <= C < 10; C=\"0.10\" is exactly that text"},
	{"host=ws* name~^train", "* ? [a-z] stand for other characters with = and !=; ~ and !~ are regular expressions"},
	{"and or not ( )", "state=fail (host=ws1 or host=ws2) not resnet; a space and a comma are `and`"},
	{
		"state=fail",
		"also run, away, sent, retry, timeout, queue, waits, ok, cancel, skip, ending; open, done, and bad are several",
	},
	{"exit=137 signal=SIGKILL", "how it ended"},
	{"time>2h mem>1.5G cpu<1m", "how long it ran, its memory, its CPU time"},
	{
		"queue= tags~ try= prio=",
		"its queue, the tags that it asks for, which try it is at, its priority; also job, command, failures, progress",
	},
	{"straggler=yes", "it runs far longer than others of its queue"},
	{"acc>0.9 acc=nan", "in Results: a metric, and all other columns of results; among groups acc_mean>0.9, solved>2"},
	{"C * gamma < 10", "arithmetic, with spaces around + - * / %"},
}

// helpSigns describes the signs in the lists.
func (m *model) helpSigns() []helpRow {
	out := []helpRow{{name: "Signs"}}
	for p := range runview.Phases {
		out = append(out, helpRow{m.sign(p) + " " + p.String(), phases[p].help})
	}
	out = append(out, helpRow{name: "Signs of hosts"})
	for _, s := range hostStates {
		h := live.Host{HostStatus: jobs.HostStatus{State: s.state}}
		out = append(out, helpRow{m.hostGlyph(&h) + " " + m.hostStateText(&h), s.help})
	}
	full := m.glyphs.bar[len(m.glyphs.bar)-1]
	return append(out,
		helpRow{m.sparkline([]float64{1, 3, 6, 8}, 8, 4),
			"before ETA: how many jobs ended, in each of the last minutes"},
		helpRow{"next slot 2 min",
			"before ETA: a slot is due for " +
				"the jobs that wait; " + m.keyFor("why") + " on such a job shows where and from whom"},
		helpRow{"2/4+1", "of a host: 2 of its 4 slots in use, 1 job sent to it in advance"},
		helpRow{"0:42?", "run time, if the job still runs: its host cannot be reached"},
		helpRow{
			"TRY 2/3",
			"at the second of three tries; an attempt that a host gave back, or that was lost with it, uses up none",
		},
		helpRow{m.glyphs.spark[0] + " " + m.glyphs.spark[len(m.glyphs.spark)-1],
			"up, in the header: how busy its cores are, by everybody"},
		helpRow{full + m.glyphs.bar[0] + m.glyphs.othersBar,
			"slots: in use, free, and not usable because others use the cores"},
		helpRow{full + m.glyphs.badBar + m.glyphs.othersBar, "the run: succeeded, failed, canceled or skipped"})
}
