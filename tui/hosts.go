package tui

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"dcs-tui/internal/text"
	"dcs-tui/jobs"
	"dcs-tui/jobs/action"
	"dcs-tui/jobs/live"
	"dcs-tui/jobs/query"
)

// hostsPane is the list of hosts. The keys of its rows are the hosts' names.
type hostsPane struct {
	noPane
	table[string]
	troubleFirst bool // otherwise in inventory order
	filter       string
	choices      columnChoices
}

func (p *hostsPane) columnChoices() *columnChoices { return &p.choices }

func (p *hostsPane) title(m *model) string {
	if m.snap == nil {
		return "Hosts"
	}
	if m.isUndispatched() {
		return "Hosts " + m.tabCount(tabHosts)
	}
	return "Hosts " + m.tabCount(tabHosts) + " up"
}

func (p *hostsPane) filterAndOrder(m *model) string {
	s := "sort:inventory"
	if p.troubleFirst {
		s = "sort:trouble"
	}
	return m.describeList(p.filter, s, nil)
}

// hosts returns the hosts and their names in display order.
func (p *hostsPane) hosts(m *model) (hosts []*live.Host, names []string) {
	if m.snap == nil {
		return nil, nil
	}
	fits, err := m.hostFilter(p.filter)
	for _, h := range m.allHosts() {
		if err != nil || fits(h) { // a wrong filter is still being typed
			hosts = append(hosts, h)
		}
	}
	if p.troubleFirst {
		slices.SortStableFunc(hosts, func(a, b *live.Host) int { return urgency(b) - urgency(a) })
	}
	return hosts, text.Each(hosts, func(h *live.Host) string { return h.Name })
}

// onSnapshot detects that the host under the cursor has gone from the run or from the filter.
func (p *hostsPane) onSnapshot(m *model) {
	_, names := p.hosts(m)
	if gone := p.key; !p.moveToKey(names) && gone != "" {
		p.slip = slip{from: m.clean(gone), gone: true, replaced: true, at: m.now()}
		p.moveTo(names, p.cursorRow)
	}
}

func (p *hostsPane) newestSlip(m *model) (*slip, string) {
	if h := p.currentHost(m); h != nil {
		return &p.slip, m.clean(h.Name)
	}
	return &p.slip, ""
}

// currentHost returns the host under the cursor, or nil if there is none.
func (p *hostsPane) currentHost(m *model) *live.Host {
	hosts, names := p.hosts(m)
	if len(hosts) == 0 {
		return nil
	}
	p.moveToKey(names)
	return hosts[p.cursorRow]
}

func (p *hostsPane) move(m *model, by int) {
	_, names := p.hosts(m)
	p.moveToKey(names)
	p.table.move(m, names, by)
}

func (p *hostsPane) click(m *model, row int) {
	_, keys := p.hosts(m)
	p.table.click(keys, row)
}

func (p *hostsPane) textToCopy(m *model) (what, text string) {
	if h := p.currentHost(m); h != nil {
		return "the host", strings.TrimSpace(h.Name + "  " + h.Word() + "  " + h.Reason)
	}
	return "", ""
}

func (p *hostsPane) draw(m *model, w, h int, focused bool) []string {
	causes := m.commonCauses(min(3, h/5), w)
	p.h = h - 1 - len(causes)
	hosts, names := p.hosts(m)
	switch {
	case len(hosts) == 0 && m.snap != nil && len(m.snap.Hosts) > 0:
		return []string{" no host matches " + m.clean(p.filter) + ": " + m.keyFor("back") + " shows all"}
	case len(hosts) == 0:
		return []string{m.waitingText("no hosts yet")}
	}
	p.moveToKey(names)
	p.moveTo(names, p.cursorRow) // the cursor stays on the item that the user sees under it
	cols := p.columns(m, w-2)
	out := append([]string{heading(m, cols, 1, w)}, p.drawRows(len(hosts), func(i int) string {
		l := rowBuilder{isCursor: i == p.cursorRow && focused}
		l.addText(glyphIf(i == p.cursorRow, m.glyphs.cursor), nil)
		p.drawHost(m, &l, hosts[i], cols, w-1)
		return l.String()
	})...)
	return append(out, causes...)
}

// drawHost draws one host in w cells. If the host is not up, its row has the reason and the time
// until it is up instead of measurements.
func (p *hostsPane) drawHost(m *model, l *rowBuilder, h *live.Host, cols []hostColumn, w int) {
	rest := func(text string) { l.addText(m.fit("  "+m.cutWords(text, max(0, w-2)), w), nil) }
	for i, c := range cols {
		text, style := c.cell(m, h, c.w)
		switch {
		case i == 2 && !canRunJobs(h):
			rest(m.downText(h, w-2))
			return
		case i >= 4 && h.Reason != "": // why it starts nothing matters more than the rest
			rest(m.clean(h.Reason))
			return
		case i > 0:
			l.addText(" ", nil)
			w--
		}
		if i == 1 && !canRunJobs(h) { // it has space for its state
			c.w = max(c.w, 2+min(13, len(m.hostStateText(h))))
		}
		text = c.align(m, text)
		if c.hasBar {
			l.addBar(text, style, "")
		} else {
			l.addText(text, style)
		}
		w -= c.w
	}
	l.addText(strings.Repeat(" ", max(0, w)), nil)
}

// downText describes why a host is not up, for how long, and when the next attempt is. If w cells
// are not enough, it begins with the next attempt.
func (m *model) downText(h *live.Host, w int) string {
	if h.State == jobs.HostUnknown && m.isUndispatched() { // the reason is in the header
		return text.Thousands(h.Done) + " succeeded there, " + text.Thousands(h.Failed) + " failed" +
			text.If(h.Running > 0, ", "+text.Plural(h.Running, "slot")+" may be in use")
	}
	reason, wait := m.clean(h.Reason), m.describeRetry(h)
	all := text.Join(", ", reason, text.If(h.Down > 0, "down "+text.Clock(h.Down+m.snapshotAge())), wait,
		text.If(h.Running > 0, text.Plural(h.Running, "job")+" there"))
	if wait != "" && width(all) > w {
		return wait + ": " + reason
	}
	return all
}

func (p *hostsPane) keys() []binding {
	some := func(m *model) bool { return p.currentHost(m) != nil }
	awake := func(m *model, h *live.Host) bool { return !m.willRest(h) }
	shell := func(m *model, h *live.Host) tea.Cmd { return m.openShell(h.Name) }
	const notNow = "there is no host under the cursor, or nobody dispatches the run"
	return append(withGroup("Hosts",
		key("open", "details", "everything that is known of the host, and its events",
			func(m *model) tea.Cmd { return m.openHost(p.currentHost(m).Name) }).onlyIf(some),
		key("drain", "drain", "drain: what runs there finishes, nothing more starts",
			p.hostAction(action.DrainHost)).onlyIf(p.whenHost(awake)).thatActs(),
		key("drain", "use again", "use a drained or stopped host again",
			p.hostAction(action.UseHost)).onlyIf(p.whenHost((*model).willRest)).orSay(notNow).thatActs(),
		key("stop", "stop now", "stop now: its jobs are ended and queued again (asks first)",
			p.unlessSlipped(stopHost)).onlyIf(p.whenHost(func(_ *model, h *live.Host) bool {
			return h.State != jobs.HostDisabled
		})).
			orSay("there is no host to stop, or nobody dispatches the run").thatActs(),
		key("more", "slots", "one slot more: one more job may run there at once",
			p.slotsAction(1)).onlyIf(p.whenHost(nil)).orSay(notNow).thatActs(),
		key("less", "", "one slot fewer: running jobs continue, and one fewer starts",
			p.slotsAction(-1)).onlyIf(p.whenHost(func(_ *model, h *live.Host) bool { return h.Slots > 0 })).
			orSay("there is no slot to remove, or nobody dispatches the run").thatActs(),
		key("add-host", "add", "add a host to the run: its name, and options such as slots=4 tags=gpu",
			func(m *model) tea.Cmd { return m.openCommand("add ") }).onlyIf(func(m *model) bool {
			return !m.isUndispatched()
		}).
			orSay("no host can be added from here: nobody dispatches the run"),
		key("list", "its jobs", "the jobs of the host: the list of jobs, filtered",
			func(m *model) tea.Cmd { return m.showMatchingJobs("host=" + p.currentHost(m).Name) }).onlyIf(some),
		key("find", "", "only hosts with a text in name, state or reason, or by columns: load>4", p.openFilter),
		key("shell", "shell", "a shell on the host, with the ssh options of the run",
			p.unlessSlipped(shell)).onlyIf(func(m *model) bool { return some(m) && m.opt.Shell != nil }).thatActs(),
		key("sort", "sort", "those in trouble first, or as in the inventory",
			screenAction(func() { p.troubleFirst = !p.troubleFirst })).onlyIf(some),
	), moveKeys(func() int { return p.h }, p.move)...)
}

// isResting reports whether a host starts nothing because a user requested that.
func isResting(h *live.Host) bool {
	return h.State == jobs.HostDraining || h.State == jobs.HostDisabled
}

// hostAction is a drain, a stop, or a use of a host that was asked for on this screen.
type hostAction struct {
	verb       action.Name
	answeredAt time.Time // zero: not answered yet
}

// maxSnapshotDelay bounds how long a snapshot may still show a host as it was before an action.
const maxSnapshotDelay = 3 * time.Second

// noteHostAnswer records that an action on a host was answered. After an error, the host is as the
// snapshots show it.
func (m *model) noteHostAnswer(q action.Request, err error) {
	switch a, ok := m.hostActions[q.Host]; {
	case !ok || a.verb != q.Do:
	case err != nil:
		delete(m.hostActions, q.Host)
	default:
		a.answeredAt = m.now()
		m.hostActions[q.Host] = a
	}
}

// willRest reports whether a host starts nothing because a user requested that, also if the newest
// snapshot does not show it yet.
func (m *model) willRest(h *live.Host) bool {
	a, ok := m.hostActions[h.Name]
	if !ok || !a.answeredAt.IsZero() && m.now().Sub(a.answeredAt) > maxSnapshotDelay {
		return isResting(h)
	}
	return a.verb != action.UseHost
}

// isSilent reports whether a host that had answered cannot be reached.
func isSilent(h *live.Host) bool { return !h.Linked && h.Down > 0 }

// whenHost returns a condition on the host under the cursor. It is false for a run without a
// dispatcher.
func (p *hostsPane) whenHost(f func(*model, *live.Host) bool) func(*model) bool {
	return func(m *model) bool {
		h := p.currentHost(m)
		return h != nil && !m.isUndispatched() && (f == nil || f(m, h))
	}
}

// unlessSlipped returns an action on the host under the cursor. It does nothing if the cursor has
// just slipped to that host.
func (p *hostsPane) unlessSlipped(do func(*model, *live.Host) tea.Cmd) func(*model) tea.Cmd {
	return func(m *model) tea.Cmd {
		if m.warnIfSlipped() {
			return nil
		}
		return do(m, p.currentHost(m))
	}
}

func (p *hostsPane) hostAction(verb action.Name) func(*model) tea.Cmd {
	return p.unlessSlipped(func(m *model, h *live.Host) tea.Cmd {
		if a, ok := m.hostActions[h.Name]; ok && a.answeredAt.IsZero() {
			return nil // the opposite could overtake it
		}
		return m.startAction(action.Request{Do: verb, Host: h.Name})
	})
}

// slotsAction returns the action that changes the number of jobs that may run on the host.
func (p *hostsPane) slotsAction(by int) func(*model) tea.Cmd {
	return p.unlessSlipped(func(m *model, h *live.Host) tea.Cmd {
		return m.startAction(action.Request{Do: action.Slots, Host: h.Name, Number: by, Relative: true})
	})
}

// stopHost asks before it ends the jobs of a host.
func stopHost(m *model, host *live.Host) tea.Cmd {
	h := *host
	warning := "nothing of ours runs there; nothing more will start"
	switch {
	case h.Running > 0 && isSilent(&h):
		warning = "it cannot be reached: " + text.Plural(h.Running, "job") +
			" there may still run, and will be queued again after lost_after"
	case h.Running > 0:
		warning = text.Plural(h.Running, "job") +
			" running there will be ended and queued again: what they have done so far is lost"
	}
	m.modal = newConfirmation("Stop "+h.Name+" now?", warning, h.Running,
		func(m *model) tea.Cmd { return m.startAction(action.Request{Do: action.StopHost, Host: h.Name}) })
	return nil
}

// hostFilter returns a predicate for a filter. A word must occur in the name, the state, or the
// reason for the state; a comparison names a column of the list of hosts. An empty filter matches
// every host.
func (m *model) hostFilter(text string) (func(*live.Host) bool, error) {
	q, err := query.ParseSearch(text)
	if q == nil || err != nil {
		return func(*live.Host) bool { return true }, err
	}
	return query.Compile(q, query.Fields[*live.Host](hostField), func(word string) func(*live.Host) bool {
		has := query.Contains(word)
		return func(h *live.Host) bool {
			return has(h.Name) || has(h.Word()) || has(m.clean(h.Reason))
		}
	})
}

// hostMeasure is a column of the list of hosts whose number a filter can compare. A negative number is
// unknown.
type hostMeasure struct {
	heading string
	w, rank int
	kind    query.Type
	number  func(h *live.Host) float64
	text    func(h *live.Host) string // nil: a bar is drawn
}

var hostMeasures = []hostMeasure{
	{"USED", usedWidth, 1, query.NumberType, func(h *live.Host) float64 { return float64(h.Running) }, slotsUsedText},
	{"SLOTS", 10, 2, query.NumberType, func(h *live.Host) float64 { return float64(h.Slots) }, nil},
	{"LOAD", 5, 4, query.NumberType, func(h *live.Host) float64 { return h.Load[0] },
		func(h *live.Host) string { return oneDigit(h.Load[0]) }},
	{"BUSY", 5, 7, query.NumberType, func(h *live.Host) float64 { return h.Busy },
		func(h *live.Host) string { return oneDigit(h.Busy) }},
	{"OURS", 5, 8, query.NumberType, func(h *live.Host) float64 { return h.Ours },
		func(h *live.Host) string { return oneDigit(h.Ours) }},
	{"CORES", 5, 12, query.NumberType, func(h *live.Host) float64 { return float64(h.Cores) },
		func(h *live.Host) string { return orDash(h.Cores > 0, strconv.Itoa(h.Cores)) }},
	{"MEM", 9, 5, query.SizeType, func(h *live.Host) float64 {
		if h.MemBytes <= 0 || h.MemFree < 0 {
			return -1
		}
		return float64(max(0, h.MemBytes-h.MemFree))
	}, memoryText},
	{"DISK", 5, 9, query.SizeType, func(h *live.Host) float64 { return float64(h.DiskFree) },
		func(h *live.Host) string { return orDash(h.DiskFree >= 0, text.ShortSize(h.DiskFree)) }},
	{"LINK", 6, 6, query.DurationType, func(h *live.Host) float64 { return h.Delay.Seconds() },
		func(h *live.Host) string { return formatLatency(h.Delay) }},
	{"FILES", 6, 13, query.DurationType, func(h *live.Host) float64 { return h.FSDelay.Seconds() },
		func(h *live.Host) string { return formatLatency(h.FSDelay) }},
	{"OK", 7, 10, query.NumberType, func(h *live.Host) float64 { return float64(h.Done) },
		func(h *live.Host) string { return text.ShortNumber(h.Done) }},
	{"FAIL", 5, 11, query.NumberType, func(h *live.Host) float64 { return float64(h.Failed) },
		func(h *live.Host) string { return text.ShortNumber(h.Failed) }},
}

// hostTexts are the other columns that a filter can compare.
var hostTexts = map[string]func(h *live.Host) string{
	"HOST":  func(h *live.Host) string { return h.Name },
	"STATE": func(h *live.Host) string { return h.Word() },
	"NOTE":  func(h *live.Host) string { return h.Note },
}

// hostField finds a column by its heading, which is not case-sensitive.
func hostField(name string) (*query.Field[*live.Host], error) {
	f := &query.Field[*live.Host]{Name: strings.ToLower(name), Fact: true, Type: query.TextType}
	if text := hostTexts[strings.ToUpper(name)]; text != nil {
		f.Value = func(h *live.Host) query.Value { return query.TextValue(text(h)) }
		return f, nil
	}
	known := slices.Sorted(maps.Keys(hostTexts))
	for _, x := range hostMeasures {
		known = append(known, x.heading)
		if !strings.EqualFold(x.heading, name) {
			continue
		}
		f.Type, f.Value = x.kind, func(h *live.Host) query.Value {
			if n := x.number(h); n >= 0 {
				return query.NumberValue(n)
			}
			return query.Value{}
		}
		return f, nil
	}
	err := query.Unknown("column", name, text.Each(known, strings.ToLower))
	return nil, fmt.Errorf("%w; quotes make it a text", err)
}

// moveToHost moves the cursor to a host and clears the filter.
func (p *hostsPane) moveToHost(name string) { p.filter, p.key = "", name }

func (p *hostsPane) clearSelectionOrFilter(*model) bool {
	had := p.filter != ""
	p.filter = ""
	return had
}

// openFilter opens the filter line. The list is filtered during typing.
func (p *hostsPane) openFilter(m *model) tea.Cmd {
	set := func(_ *model, s string) tea.Cmd { p.filter = strings.TrimSpace(s); return nil }
	m.modal = &inputLine{prompt: "filter hosts: /", text: newEditableText(p.filter), onChange: set,
		onConfirm: func(m *model, s string) (tea.Cmd, error) {
			_, err := m.hostFilter(s)
			return set(m, s), err
		},
		onCancel: func(m *model) tea.Cmd { return set(m, "") }}
	return nil
}

type hostColumn = column[*live.Host]

// columns returns the columns for w cells. Remaining space goes to the history of the slots, then
// to the last note.
func (p *hostsPane) columns(m *model, w int) []hostColumn {
	drawn := func(f func(m *model, h *live.Host, w int) string) func(*model, *live.Host, int) (string, *textStyle) {
		return func(m *model, h *live.Host, w int) (string, *textStyle) { return f(m, h, w), nil }
	}
	name, state := len("HOST"), len("STATE")
	for _, h := range m.allHosts() {
		name = max(name, min(16, width(m.clean(h.Name))))
		if canRunJobs(h) { // measurements are beside it
			state = max(state, 2+len(m.hostStateText(h)))
		}
	}
	var chosen []hostColumn
	for _, x := range hostMeasures {
		c := hostColumn{heading: x.heading, w: x.w, rank: x.rank, alignRight: true,
			cell: func(_ *model, h *live.Host, _ int) (string, *textStyle) { return x.text(h), nil }}
		if x.text == nil {
			c.hasBar, c.cell = true, drawn((*model).slotsBar)
		}
		chosen = append(chosen, c)
	}
	const history = 12
	chosen = applyChoices(&p.choices, append(chosen,
		hostColumn{heading: "5 MIN", w: history, maxExtra: 60 - history, rank: 3, alignRight: true, hasBar: true,
			cell: drawn((*model).slotsSparkline)},
		hostColumn{heading: "NOTE", w: 20, maxExtra: maxMove, rank: optionalRank, nameCells: 60 - history,
			alignRight: true,
			cell:       drawn(func(m *model, h *live.Host, w int) string { return m.fit(m.clean(h.Note), w) })},
	))
	return recordShown(&p.choices, fitColumns(append([]hostColumn{
		{heading: "HOST", w: name,
			cell: func(m *model, h *live.Host, _ int) (string, *textStyle) { return m.clean(h.Name), nil }},
		{heading: "STATE", w: state, cell: hostStateCell},
	}, chosen...), w, true))
}

func hostStateCell(m *model, h *live.Host, w int) (string, *textStyle) {
	return m.hostGlyph(h) + " " + m.hostStateText(h), hostStyle(h)
}

const usedWidth = 7

// slotsUsedText returns the slots in use, all slots, and the number of jobs sent in advance.
func slotsUsedText(h *live.Host) string {
	s := fmt.Sprintf("%d/%d", h.Running, h.Slots)
	if more := fmt.Sprintf("+%d", h.Buffered); h.Buffered > 0 && len(s+more) <= usedWidth {
		return s + more
	}
	return s
}

// slotsBar draws slots in use, free slots, and slots that are unusable because of others' load.
func (m *model) slotsBar(h *live.Host, w int) string {
	if h.Slots <= 0 {
		return ""
	}
	// Each of the three has at least one cell if it is not zero.
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
	full := m.glyphs.bar[len(m.glyphs.bar)-1]
	return styleBusy.Render(strings.Repeat(full, used)) + strings.Repeat(m.glyphs.bar[0], w-used-others) +
		styleWarn.Render(strings.Repeat(m.glyphs.othersBar, others))
}

// slotsSparkline draws the use of the slots over the last five minutes.
func (m *model) slotsSparkline(h *live.Host, w int) string {
	values := make([]float64, len(h.History))
	for i, v := range h.History {
		values[i] = float64(v)
		if v > 100 {
			values[i] = math.NaN()
		}
	}
	return styleBusy.Render(m.sparkline(downsample(values, w), 100, w))
}

func memoryText(h *live.Host) string {
	return orDash(h.MemBytes > 0 && h.MemFree >= 0, text.ShortSize(max(0, h.MemBytes-h.MemFree))+"/"+
		text.ShortSize(h.MemBytes))
}

func oneDigit(v float64) string {
	if v >= 99.95 {
		return text.ShortNumber(int(v + 0.5))
	}
	return strconv.FormatFloat(max(0, v), 'f', 1, 64)
}

func orDash(yes bool, s string) string {
	if yes {
		return s
	}
	return "-"
}
