package tui

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"dcs-tui/jobs/live"
	"dcs-tui/jobs/runview"
)

// hostColumn is a column of the list of hosts.
type hostColumn struct {
	head  string
	w     int
	rank  int // columns with a low one stay when there is little room
	cell  func(m *model, h *live.Host, w int) string
	drawn bool // of blocks: not reversed under the cursor
}

// hostColumns are those for which w cells have room, in order; room that is left goes
// to the history, then to the last note.
func (m *model) hostColumns(w int) []hostColumn {
	fixed := func(f func(h *live.Host) string) func(*model, *live.Host, int) string {
		return func(_ *model, h *live.Host, _ int) string { return f(h) }
	}
	all := []hostColumn{
		{head: "USED", w: usedWidth, rank: 1, cell: fixed(slotsUsed)},
		{head: "SLOTS", w: 10, rank: 2, cell: (*model).slotsBar, drawn: true},
		{head: "LOAD", w: 5, rank: 4, cell: fixed(func(h *live.Host) string { return oneDigit(h.Load[0]) })},
		{head: "BUSY", w: 5, rank: 7, cell: fixed(func(h *live.Host) string { return oneDigit(h.Busy) })},
		{head: "OURS", w: 5, rank: 8, cell: fixed(func(h *live.Host) string { return oneDigit(h.Ours) })},
		{head: "CORES", w: 5, rank: 12, cell: fixed(func(h *live.Host) string { return known(h.Cores > 0, strconv.Itoa(h.Cores)) })},
		{head: "MEM", w: 9, rank: 5, cell: fixed(memory)},
		{head: "DISK", w: 5, rank: 9, cell: fixed(func(h *live.Host) string { return known(h.DiskFree >= 0, size(h.DiskFree)) })},
		{head: "LINK", w: 6, rank: 6, cell: fixed(func(h *live.Host) string { return delay(h.Delay) })},
		{head: "FILES", w: 6, rank: 13, cell: fixed(func(h *live.Host) string { return delay(h.FSDelay) })},
		{head: "OK", w: 7, rank: 10, cell: fixed(func(h *live.Host) string { return short(h.Done) })},
		{head: "FAIL", w: 5, rank: 11, cell: fixed(func(h *live.Host) string { return short(h.Failed) })},
		{head: "5 MIN", w: 12, rank: 3, cell: (*model).history, drawn: true},
	}
	c := &m.hosts.choices
	c.heads = nil
	for i := range all {
		if out, wanted := c.of(all[i].head, false); out {
			all[i].w = far
		} else if wanted {
			all[i].rank = 0
		}
	}
	keep := map[string]bool{}
	for rank := range len(all) + 1 {
		for _, c := range all {
			if c.rank == rank && c.w+1 <= w {
				keep[c.head] = true
				w -= c.w + 1
			}
		}
	}
	c.shown = keep
	some := slices.DeleteFunc(all, func(c hostColumn) bool { return !keep[c.head] })
	if n := len(some); n > 0 && some[n-1].head == "5 MIN" && w > 0 {
		grow := min(w, 60-some[n-1].w)
		some[n-1].w += grow
		w -= grow
	}
	if w > 20 {
		some = append(some, hostColumn{head: "NOTE", w: w - 1, rank: 99, cell: func(m *model, h *live.Host, w int) string { return m.fit(m.clean(h.Note), w) }})
	}
	return some
}

const usedWidth = 7

// slotsUsed are the slots in use of all, and the jobs that wait on the host.
func slotsUsed(h *live.Host) string {
	s := fmt.Sprintf("%d/%d", h.Running, h.Slots)
	if more := fmt.Sprintf("+%d", h.Buffered); h.Buffered > 0 && len(s+more) <= usedWidth {
		return s + more
	}
	return s
}

// slotsBar shows slots in use, free ones, and those that others' work takes.
func (m *model) slotsBar(h *live.Host, w int) string {
	if h.Slots <= 0 {
		return ""
	}
	// What is in use or taken has a cell, however little it is; what is free has one too.
	cells := func(v float64) int {
		if v < 1 {
			return 0
		}
		return max(1, min(w, int(v/float64(h.Slots)*float64(w))))
	}
	used := cells(float64(h.Running))
	if h.Running >= h.Slots {
		used = w
	}
	others := min(w-used, cells(float64(h.Slots)-math.Max(h.Usable, float64(h.Running))))
	full := m.g.bar[len(m.g.bar)-1]
	return styleBusy.Render(strings.Repeat(full, used)) + strings.Repeat(m.g.bar[0], w-used-others) + styleWarn.Render(strings.Repeat(m.g.othersBar, others))
}

// history is the use of the slots over the last five minutes.
func (m *model) history(h *live.Host, w int) string {
	values := make([]float64, len(h.History))
	for i, v := range h.History {
		if values[i] = float64(v); v > 100 {
			values[i] = math.NaN()
		}
	}
	return styleBusy.Render(m.spark(pool(values, w), 100, w))
}

func memory(h *live.Host) string {
	return known(h.MemBytes > 0 && h.MemFree >= 0, size(max(0, h.MemBytes-h.MemFree))+"/"+size(h.MemBytes))
}

func oneDigit(v float64) string {
	if v >= 99.95 {
		return short(int(v + 0.5))
	}
	return strconv.FormatFloat(max(0, v), 'f', 1, 64)
}

func known(yes bool, s string) string {
	if yes {
		return s
	}
	return "-"
}

// hostModal shows all that is known of one host, over the whole screen.
type hostModal struct {
	name string
	page
}

func (p *hostModal) ask(m *model, ask *runview.Ask) {
	ask.Events = &runview.EventsWindow{Filter: "host=" + p.name, All: true, Rows: 200}
}

func (p *hostModal) screen(m *model, w, h int) []string {
	p.lines = p.text(m, w)
	return p.full(m, "Host "+m.clean(p.name), w, h)
}

func (p *hostModal) text(m *model, w int) []string {
	var h *live.Host
	for i := range m.pic.Hosts {
		if m.pic.Hosts[i].Name == p.name {
			h = &m.pic.Hosts[i]
		}
	}
	if h == nil {
		return []string{"It is no longer part of the inventory."}
	}
	var out []string
	add := func(name, text string) {
		for i, l := range m.wrap(text, max(10, w-17)) {
			if i > 0 {
				name = ""
			}
			out = append(out, styleFaint.Render(m.fit(name, 13))+l)
		}
	}
	state := hostStyle(h).Render(m.hostGlyph(h) + " " + m.stateText(h))
	if !works(h) {
		state += "  " + m.downText(h, w)
	} else if h.Reason != "" && h.Reason != h.State {
		state += "  starts nothing: " + strings.TrimPrefix(m.clean(h.Reason), "starts nothing: ")
	}
	add("state", state)
	if h.Note != "" {
		add("last note", m.clean(h.Note))
	}
	usable := h.Usable
	if !takes(h) {
		usable = 0
	}
	add("slots", fmt.Sprintf("%d in use of %d; %s usable now, %s", h.Running, h.Slots, oneDigit(usable), plural(h.Buffered, "job")+" sent in advance"))
	out = append(out, m.fit("", 13)+m.slotsBar(h, min(40, w-17)))
	add("five minutes", "")
	out[len(out)-1] += m.history(h, min(60, w-17))
	add("load", fmt.Sprintf("%s %s %s over 1, 5 and 15 minutes", oneDigit(h.Load[0]), oneDigit(h.Load[1]), oneDigit(h.Load[2])))
	if h.Cores > 0 {
		add("cores", fmt.Sprintf("%d; %s busy, %s of them by our jobs", h.Cores, oneDigit(h.Busy), oneDigit(h.Ours)))
	}
	if h.Users != "" {
		add("users", m.clean(h.Users))
	}
	if h.GPUs > 0 {
		add("GPUs", itoa(h.GPUs))
	}
	if h.MemBytes > 0 && h.MemFree >= 0 {
		add("memory", size(h.MemFree)+" free of "+size(h.MemBytes))
	}
	if h.DiskFree >= 0 {
		add("disk", size(h.DiskFree)+" free")
	}
	if h.Files != "" {
		add("files", m.clean(h.Files))
	}
	add("delay", "link "+delay(h.Delay)+", its file system "+delay(h.FSDelay))
	if h.Beat > 0 {
		add("last sign", span(h.Beat+m.since())+" ago")
	}
	add("attempts", fmt.Sprintf("%s succeeded there, %s failed; canceled ones count as neither", thousands(h.Done), thousands(h.Failed)))
	out = append(out, "", styleBold.Render("What happened there"))
	if m.pic.Events == nil || len(m.pic.Events.Lines) == 0 {
		return append(out, styleFaint.Render("nothing that is still known"))
	}
	for i := len(m.pic.Events.Lines) - 1; i >= 0; i-- {
		e := &m.pic.Events.Lines[i]
		if e.Host == p.name {
			out = append(out, m.eventLine(e, w-2))
		}
	}
	return out
}

// The states of a host as live.Host has them.
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

// works reports whether jobs can run on a host.
func works(h *live.Host) bool { return h.State == hostUp || h.State == hostDraining }

// takes reports whether a host starts jobs.
func takes(h *live.Host) bool { return h.State == hostUp && h.Reason == "" }

// worries are the states of a host by how much they want to be looked at.
var worries = map[string]int{hostLost: 6, hostBackingOff: 5, hostSuspect: 4, hostConnecting: 2, hostCreating: 2, hostStarting: 2, hostDisabled: 1, hostDraining: 1, hostTerminating: 1}

// worry orders hosts by how much they want to be looked at: 0 is all well.
func worry(h *live.Host) int {
	n, known := worries[h.State]
	switch {
	case h.State == hostUp && h.Reason == "":
		return 0
	case !known: // also one that is up and starts nothing
		return 3
	case h.State == hostDisabled && !h.Stopped && h.Reason != "": // nobody asked for it
		return 5
	}
	return n
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
func (m *model) hostGlyph(h *live.Host) string { return cmp.Or(m.g.host[h.State], m.g.question) }

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

// trouble explains in words what is the matter with a host, at length and in short; "" when
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

// again describes when a host that is away is tried again.
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

// seeCauses groups the hosts in trouble by cause, when anything else is said of them.
func (m *model) seeCauses() {
	var texts []runview.HostText
	for i := range m.pic.Hosts {
		if h := &m.pic.Hosts[i]; worry(h) > 1 && h.Reason != "" {
			texts = append(texts, runview.HostText{Host: clip(h.Name, 200), Text: clip(h.Reason, 1000)}) // bounded: they are searched
		}
	}
	if !slices.Equal(texts, m.caused) {
		m.caused, m.causes = texts, runview.GroupHosts(texts)
	}
}

// commonCauses are the causes that several hosts have, a line each, for the end of the list of
// hosts; at most n.
func (m *model) commonCauses(n, w int) []string {
	var out []string
	for i := range m.causes {
		if g := &m.causes[i]; len(g.Hosts) > 1 && len(out) < n {
			out = append(out, m.cut(" "+styleWarn.Render(m.g.warn)+" "+m.clean(g.Title()+": "+g.Text), w))
		}
	}
	return out
}

// worst describes what troubles the host that is worst off, and how many others there are.
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
	for i := range m.causes { // all that have the same are told together
		if g := &m.causes[i]; len(g.Hosts) > 1 && slices.Contains(g.Hosts, clip(worst.Name, 200)) {
			long, short = m.clean(g.Title()+": "+g.Text), thousands(len(g.Hosts))+" "+m.clean(hostWord(worst))
			bad -= len(g.Hosts) - 1
		}
	}
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
