package tui

import (
	"fmt"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"dcs-tui/jobs/live"
)

// The states of a host as live.Host has them (DESIGN 2).
const (
	hostUp         = "up"
	hostSuspect    = "suspect"
	hostLost       = "lost"
	hostConnecting = "connecting"
	hostBackingOff = "backing_off"
	hostDraining   = "draining"
	hostDisabled   = "disabled"

	// Of instances of a provider.
	hostCreating    = "creating"
	hostStarting    = "starting"
	hostTerminating = "terminating"
)

// works says that jobs can run on a host.
func works(h *live.Host) bool { return h.State == hostUp || h.State == hostDraining }

// takes says that a host starts jobs.
func takes(h *live.Host) bool { return h.State == hostUp && h.Reason == "" }

// worry orders hosts by how much they want to be looked at: 0 is all well.
func worry(h *live.Host) int {
	switch h.State {
	case hostLost:
		return 6
	case hostBackingOff:
		return 5
	case hostSuspect:
		return 4
	case hostConnecting, hostCreating, hostStarting:
		return 2
	case hostDisabled:
		if !h.Stopped && h.Reason != "" { // nobody asked for it
			return 5
		}
		return 1
	case hostDraining, hostTerminating:
		return 1
	case hostUp:
		if h.Reason != "" { // it is up and starts nothing
			return 3
		}
		return 0
	}
	return 3
}

// hostWord is the state in a word of at most eleven letters.
func hostWord(h *live.Host) string {
	switch {
	case h.State == hostBackingOff:
		return "waits"
	case h.State == hostUp && h.Reason != "":
		return "held"
	}
	return h.State
}

// stateText is the state of a host in its row: of an idle instance, also for how long.
func (m *model) stateText(h *live.Host) string {
	if h.State == hostUp && h.Idle > 0 {
		return "idle " + clock(h.Idle+m.since())
	}
	return m.clean(hostWord(h))
}

// hostGlyph is the mark of a host's state; hosts that are up show their load in its
// place where there is only one cell.
func (m *model) hostGlyph(h *live.Host) string {
	g := m.g.host
	switch h.State {
	case hostUp:
		return g.up
	case hostSuspect:
		return g.suspect
	case hostLost:
		return g.lost
	case hostConnecting, hostCreating, hostStarting:
		return g.connecting
	case hostBackingOff:
		return g.waits
	case hostDraining, hostTerminating:
		return g.draining
	case hostDisabled:
		return g.disabled
	}
	return m.g.question
}

func hostStyle(h *live.Host) ink {
	switch h.State {
	case hostUp:
		if h.Reason != "" {
			return styleWarn
		}
		return styleGood
	case hostLost:
		return styleBad
	case hostDisabled:
		return styleFaint
	}
	return styleWarn
}

// loadGlyph shows how busy a host is, by everybody; its state where that is not up.
func (m *model) loadGlyph(h *live.Host) string {
	if h.State != hostUp {
		return hostStyle(h).with(styleBold).Render(m.hostGlyph(h))
	}
	return styleBusy.Render(m.level(busyShare(h), 1))
}

// busyShare is the share of a host's cores that are busy; of its slots where it has
// not said how many cores it has.
func busyShare(h *live.Host) float64 {
	switch {
	case h.Cores > 0:
		return h.Busy / float64(h.Cores)
	case h.Slots > 0:
		return float64(h.Running) / float64(h.Slots)
	}
	return 0
}

// trouble says in words what is the matter with a host, at length and in short; "" when
// it is nothing.
func (m *model) trouble(h *live.Host) (long, short string) {
	if worry(h) == 0 {
		return "", ""
	}
	name := m.clean(h.Name)
	reason, word := m.clean(h.Reason), m.clean(hostWord(h))
	if reason == "" {
		reason = word
	}
	reason = strings.TrimPrefix(strings.TrimPrefix(reason, name+": "), name+" ")
	long, short = name+" "+reason, name+" "+word
	if wait := m.again(h); wait != "" {
		long, short = long+", "+wait, short+" "+strings.TrimPrefix(wait, "again in ")
	}
	return long, short
}

// again says when a host that is away is tried again.
func (m *model) again(h *live.Host) string {
	if h.RetryIn <= 0 || works(h) || m.over() {
		return ""
	}
	if wait := h.RetryIn - m.since(); wait > 0 {
		return "again in " + clock(wait)
	}
	return "being tried"
}

// slotsRow tells slots and hosts in one row, however many hosts there are: each with
// its load where they fit, else how many are in which state and the odd ones; what
// troubles the worst of them in words at the right.
func (m *model) slotsRow() string {
	if m.pic == nil {
		return ""
	}
	p := m.pic
	if m.over() { // nobody knows how they are
		return m.sides(" "+plural(len(p.Hosts), "host"), "kept in "+m.cutLeft(m.clean(p.Run.Dir), m.w*3/4)+" ", m.w)
	}
	if len(p.Hosts) == 0 {
		return fmt.Sprintf(" slots %s/%s  no hosts", thousands(p.SlotsBusy), thousands(p.Slots))
	}
	left, where := m.slotsWords()
	long, short := m.worst()
	each, few := m.eachHost(), m.oddHosts()
	numbers, _, _ := strings.Cut(few, "  ")
	for _, try := range [][2]string{{each, long}, {each, short}, {few, long}, {few, short}, {numbers, long}, {numbers, short}, {"", long}} {
		for _, left := range []string{left + where, left} { // the marks of the hosts say where, too
			if width(left)+2+width(try[0])+2+width(try[1]) < m.w {
				return m.sides(left+"  "+try[0], styleWarn.Render(try[1])+" ", m.w)
			}
		}
	}
	short = m.cut(short, m.w/3)
	return m.sides(left+"  "+m.cut(few, max(0, m.w-width(left)-width(short)-6)), styleWarn.Render(short)+" ", m.w)
}

// slotsWords are the slots in use, of all that can be: a host that starts nothing has no
// more than those that are; and which hosts that are, when it is not all.
func (m *model) slotsWords() (slots, where string) {
	p := m.pic
	all, n := p.Slots, len(p.Hosts)
	for i := range p.Hosts {
		if h := &p.Hosts[i]; !takes(h) {
			all, n = all-max(0, h.Slots-h.Running), n-1
		}
	}
	if n < len(p.Hosts) {
		where = fmt.Sprintf(" on %s of %s", thousands(n), plural(len(p.Hosts), "host"))
	}
	return fmt.Sprintf(" slots %s/%s", thousands(p.SlotsBusy), thousands(max(p.SlotsBusy, all))), where
}

// worst says what troubles the host that is worst off, and how many others there are.
func (m *model) worst() (long, short string) {
	var worst *live.Host
	bad := 0
	up, connecting := m.usable()
	for i := range m.pic.Hosts {
		h := &m.pic.Hosts[i]
		if worry(h) > 1 {
			bad++
		}
		if worst == nil || worry(h) > worry(worst) {
			worst = h
		}
	}
	if connecting > 0 && connecting+up == len(m.pic.Hosts) {
		return fmt.Sprintf("connecting to %s: %s up", plural(len(m.pic.Hosts), "host"), thousands(up)), "connecting"
	}
	long, short = m.trouble(worst)
	if bad > 1 {
		more := fmt.Sprintf(" +%d", bad-1)
		return long + more, short + more
	}
	return long, short
}

// eachHost is every host's short name with its load.
func (m *model) eachHost() string {
	if len(m.pic.Hosts)*3 > m.w {
		return strings.Repeat(" ", m.w) // there is no room for that
	}
	names := m.shortNames()
	var b strings.Builder
	for i := range m.pic.Hosts {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(names[i] + m.loadGlyph(&m.pic.Hosts[i]))
	}
	return b.String()
}

// oddHosts counts the hosts by state and names those that are not simply up.
func (m *model) oddHosts() string {
	count := map[string]int{}
	var words []string
	var odd []string
	names := m.shortNames()
	for i := range m.pic.Hosts {
		h := &m.pic.Hosts[i]
		word := hostWord(h)
		if count[word]++; count[word] == 1 {
			words = append(words, word)
		}
		if worry(h) > 0 && len(odd) < m.w/3 {
			odd = append(odd, names[i]+m.loadGlyph(h))
		}
	}
	for i, w := range words {
		words[i] = fmt.Sprintf("%s %s", thousands(count[w]), m.clean(w))
	}
	return m.most(append([]string{strings.Join(words, ", ") + " "}, odd...), " ", m.w*2/3)
}

// shortNames are the last two digits of the hosts' names, or as much as is needed to
// tell them apart.
func (m *model) shortNames() []string {
	hosts := m.pic.Hosts
	names := make([]string, len(hosts))
	if len(hosts) <= 3 { // there is room
		for i := range hosts {
			names[i] = m.cut(m.clean(hosts[i].Name), 16) + " "
		}
		return names
	}
	for _, short := range []func(string) string{
		func(s string) string { return lastDigits(s, 2) },
		func(s string) string { return lastDigits(s, 9) },
		func(s string) string { return ansi.TruncateWc(s, 1, "") + lastDigits(s, 4) },
		func(s string) string { return s },
	} {
		seen := map[string]bool{}
		unique := true
		for i := range hosts {
			names[i] = m.cut(short(m.clean(hosts[i].Name)), 8)
			unique = unique && !seen[names[i]]
			seen[names[i]] = true
		}
		if unique {
			break
		}
	}
	return names
}

// lastDigits are the last n digits that a name ends in; the whole name when it ends in
// none.
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

// byTrouble are the hosts' positions, those that want to be looked at first.
func byTrouble(hosts []live.Host) []int {
	order := make([]int, len(hosts))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return worry(&hosts[b]) - worry(&hosts[a]) })
	return order
}
