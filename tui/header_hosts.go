package tui

import (
	"fmt"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"dcs-tui/internal/text"
	"dcs-tui/jobs/live"
	"dcs-tui/observe/runview"
)

// slotsRow describes slots and hosts in one row. It shows each host with its load if they fit, else
// only their loads, and else the number of hosts by state, and those that are not simply up. The trouble of
// the worst host is at the right.
func (m *model) slotsRow() string {
	if m.snap == nil {
		return ""
	}
	snap := m.snap
	if m.isUndispatched() { // their states are unknown
		return m.justify(" "+text.Plural(len(snap.Hosts), "host"), "kept in "+m.cutLeft(m.clean(snap.Run.Dir), m.w*3/4)+
			" ", m.w)
	}
	if len(snap.Hosts) == 0 {
		return fmt.Sprintf(" slots %s/%s  no hosts", text.Thousands(snap.SlotsBusy), text.Thousands(snap.Slots))
	}
	left, where := m.slotsText()
	long, short := m.describeWorstHost()
	each, strip, few := m.hostLoads(m.shortNames(), " "), m.hostLoads(nil, ""), m.hostsByState()
	numbers, _, _ := strings.Cut(few, "  ")
	for _, try := range [][2]string{{each, long}, {each, short}, {strip, long}, {strip, short}, {few, long},
		{few, short}, {numbers, long}, {numbers, short}, {"", long}} {
		// The marks of the hosts contain the same information.
		for _, left := range []string{left + where, left} {
			if width(left)+2+width(try[0])+2+width(try[1]) < m.w {
				return m.justify(left+"  "+try[0], styleWarn.Render(try[1])+" ", m.w)
			}
		}
	}
	short = m.cut(short, m.w/3)
	return m.justify(left+"  "+m.cut(few, max(0, m.w-width(left)-width(short)-6)), styleWarn.Render(short)+" ", m.w)
}

// slotsText describes the slots in use and the usable slots, and on how many hosts these are, if
// not on all. A host that starts no jobs has no usable slots besides those in use.
func (m *model) slotsText() (slots, where string) {
	snap := m.snap
	all, n := snap.Slots, len(snap.Hosts)
	for _, h := range m.allHosts() {
		if !h.StartsJobs() {
			all -= max(0, h.Slots-h.Running)
			if h.Running == 0 {
				n--
			}
		}
	}
	if n < len(snap.Hosts) {
		where = fmt.Sprintf(" on %s of %s", text.Thousands(n), text.Plural(len(snap.Hosts), "host"))
	}
	return fmt.Sprintf(" slots %s/%s", text.Thousands(snap.SlotsBusy), text.Thousands(max(snap.SlotsBusy, all))), where
}

// groupTrouble groups the hosts in trouble by cause, if their reasons have changed. No host of a
// run without a dispatcher is in trouble: nothing is known of it.
func (m *model) groupTrouble() {
	var texts []runview.HostText
	for _, h := range m.allHosts() {
		if m.isUndispatched() || urgency(h) <= 1 || h.Reason == "" {
			continue
		}
		// Bounded, because they are searched.
		texts = append(texts, runview.HostText{Host: prefix(h.Name, 200), Text: prefix(h.Reason, 1000)})
	}
	if !slices.Equal(texts, m.troubleTexts) {
		m.troubleTexts, m.troubleGroups = texts, runview.GroupHosts(texts)
	}
}

// commonCauses returns at most n causes that several hosts share, one line each, for the end of the
// list of hosts.
func (m *model) commonCauses(n, w int) []string {
	var out []string
	for i := range m.troubleGroups {
		if g := &m.troubleGroups[i]; len(g.Hosts) > 1 && len(out) < n {
			out = append(out, " "+styleWarn.Render(m.glyphs.warn)+" "+
				m.cutWords(m.clean(g.Title()+": "+g.Text), w-2-width(m.glyphs.warn)))
		}
	}
	return out
}

// describeWorstHost describes the trouble of the worst host, and the number of others in trouble.
func (m *model) describeWorstHost() (long, short string) {
	var worst *live.Host
	bad := 0
	up, connecting, _ := m.countUsable()
	for _, h := range m.allHosts() {
		if urgency(h) > 1 {
			bad++
		}
		if worst == nil || urgency(h) > urgency(worst) {
			worst = h
		}
	}
	if connecting > 0 && connecting+up == len(m.snap.Hosts) {
		return fmt.Sprintf("connecting to %s: %s up", text.Plural(len(m.snap.Hosts), "host"), text.Thousands(up)),
			"connecting"
	}
	long, short = m.describeTrouble(worst)
	for i := range m.troubleGroups { // hosts with the same cause are named together
		if g := &m.troubleGroups[i]; len(g.Hosts) > 1 && slices.Contains(g.Hosts, prefix(worst.Name, 200)) {
			long, short = m.clean(g.Title()+": "+g.Text), text.Thousands(len(g.Hosts))+" "+m.clean(worst.Word())
			bad -= len(g.Hosts) - 1
		}
	}
	if bad > 1 {
		more := fmt.Sprintf(" +%d", bad-1)
		return long + more, short + more
	}
	return long, short
}

// hostLoads returns one cell per host, after its name if there are names.
func (m *model) hostLoads(names []string, between string) string {
	if len(m.snap.Hosts) > m.w {
		return strings.Repeat(" ", m.w) // there is not enough space
	}
	cells := make([]string, len(m.snap.Hosts))
	for i, h := range m.allHosts() {
		cells[i] = textAt(names, i) + m.loadGlyph(h)
	}
	return strings.Join(cells, between)
}

// hostsByState counts the hosts by state and names those that are not simply up.
func (m *model) hostsByState() string {
	count := map[string]int{}
	var words, odd []string
	names := m.shortNames()
	for i, h := range m.allHosts() {
		word := h.Word()
		count[word]++
		if count[word] == 1 {
			words = append(words, word)
		}
		if urgency(h) > 0 && len(odd) < m.w/3 {
			odd = append(odd, names[i]+m.loadGlyph(h))
		}
	}
	for i, w := range words {
		words[i] = fmt.Sprintf("%s %s", text.Thousands(count[w]), m.clean(w))
	}
	return m.joinFitting(append([]string{strings.Join(words, ", ") + " "}, odd...), " ", m.w*2/3)
}

// shortNames returns the last two digits of the hosts' names, or as much as is needed to
// distinguish them.
func (m *model) shortNames() []string {
	names := text.Each(m.hostNames(), m.clean)
	if len(names) <= 3 { // there is enough space
		return text.Each(names, func(s string) string { return m.cut(s, 16) + " " })
	}
	var out []string
	for _, short := range []func(string) string{
		func(s string) string { return lastDigits(s, 2) },
		func(s string) string { return lastDigits(s, 9) },
		func(s string) string { return ansi.TruncateWc(s, 1, "") + lastDigits(s, 4) },
		func(s string) string { return s },
	} {
		out = text.Each(names, func(s string) string { return m.cut(short(s), 8) })
		if sorted := slices.Sorted(slices.Values(out)); len(slices.Compact(sorted)) == len(out) {
			break
		}
	}
	return out
}

// lastDigits returns the last n digits at the end of a name, or the whole name if it does not end
// in digits.
func lastDigits(s string, n int) string {
	i := len(s)
	for i > 0 && len(s)-i < n && s[i-1] >= '0' && s[i-1] <= '9' {
		i--
	}
	if i == len(s) {
		return s
	}
	return s[i:]
}
