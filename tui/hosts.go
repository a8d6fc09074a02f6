package tui

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"dcs-tui/jobs/live"
	"dcs-tui/jobs/query"
	"dcs-tui/jobs/runview"
)

// hostsPane is the list of hosts. Its cursor sticks to a host's name.
type hostsPane struct {
	cursor  string
	pos     int // of the cursor in the list, when it was last drawn
	slip    slip
	trouble bool // those in trouble first; else as in the inventory
	filter  string
	choices choices
	top, h  int
}

func (p *hostsPane) choose() *choices { return &p.choices }

func (p *hostsPane) title(m *model) string {
	if m.pic == nil {
		return "Hosts"
	}
	if m.over() {
		return "Hosts " + m.tabCount(tabHosts)
	}
	return "Hosts " + m.tabCount(tabHosts) + " up"
}

// state is what the tabs row says of the list.
func (p *hostsPane) state(m *model) string {
	s := "sort:inventory"
	if p.trouble {
		s = "sort:trouble"
	}
	if p.filter != "" {
		s = "/" + m.cut(m.clean(p.filter), 24) + "  " + s
	}
	return s
}

func (p *hostsPane) ask(*model, *runview.Ask) {}

// order are the positions of the hosts in the order in which they are shown.
func (p *hostsPane) order(m *model) []int {
	if m.pic == nil {
		return nil
	}
	hosts := m.pic.Hosts
	order := make([]int, len(hosts))
	for i := range order {
		order[i] = i
	}
	if p.trouble {
		slices.SortStableFunc(order, func(a, b int) int { return worry(&hosts[b]) - worry(&hosts[a]) })
	}
	fits, err := m.hostFilter(p.filter)
	if err != nil { // the filter is still being typed
		return order
	}
	return slices.DeleteFunc(order, func(i int) bool { return !fits(&m.pic.Hosts[i]) })
}

// see notes when the host under the cursor has gone, from the run or from the filter.
func (p *hostsPane) see(m *model) {
	order := p.order(m)
	gone := p.cursor != ""
	for _, i := range order {
		gone = gone && m.pic.Hosts[i].Name != p.cursor
	}
	if gone {
		p.slip = slip{from: m.clean(p.cursor), gone: true, at: m.now()}
		if len(order) > 0 {
			p.cursor = m.pic.Hosts[order[min(p.pos, len(order)-1)]].Name
		}
	}
}

func (p *hostsPane) slipped(m *model) (*slip, string) {
	if h := p.host(m); h != nil {
		return &p.slip, m.clean(h.Name)
	}
	return &p.slip, ""
}

// at is the place of the cursor in an order.
func (p *hostsPane) at(m *model, order []int) int {
	for i, k := range order {
		if m.pic.Hosts[k].Name == p.cursor {
			return i
		}
	}
	return 0
}

// host is the one under the cursor.
func (p *hostsPane) host(m *model) *live.Host {
	order := p.order(m)
	if len(order) == 0 {
		return nil
	}
	return &m.pic.Hosts[order[p.at(m, order)]]
}

func (p *hostsPane) move(m *model, by int) {
	order := p.order(m)
	if len(order) > 0 {
		p.cursor = m.pic.Hosts[order[min(len(order)-1, max(0, p.at(m, order)+by))]].Name
	}
}

// click puts the cursor on a row of the screen, of which 0 is the heading.
func (p *hostsPane) click(m *model, row int) {
	if order := p.order(m); row > 0 {
		p.move(m, p.top+row-1-p.at(m, order))
	}
}

func (p *hostsPane) draw(m *model, w, h int, focused bool) []string {
	causes := m.commonCauses(min(3, h/5), w)
	p.h = h - 1 - len(causes)
	order := p.order(m)
	switch {
	case len(order) == 0 && m.pic != nil && len(m.pic.Hosts) > 0:
		return []string{" no host matches " + m.clean(p.filter) + ": esc shows all"}
	case len(order) == 0:
		return []string{m.waitingWord("no hosts yet")}
	}
	at := p.at(m, order)
	p.pos = at
	p.cursor = m.pic.Hosts[order[at]].Name // what is seen under the cursor is what it sticks to
	p.top = window(p.top, at, len(order), p.h)
	name := p.nameWidth(m)
	state := p.stateWidth(m)
	columns := m.hostColumns(w - 3 - name - state)
	out := []string{p.head(m, name, state, columns)}
	for i := p.top; i < min(len(order), p.top+p.h); i++ {
		l := cursorLine{here: i == at && focused}
		l.text(mark(i == at, m.g.cursor), nil)
		p.row(m, &l, &m.pic.Hosts[order[i]], w, name, state, columns)
		out = append(out, l.String())
	}
	return append(out, causes...)
}

// nameWidth is the room for the hosts' names.
func (p *hostsPane) nameWidth(m *model) int {
	n := 4
	for i := range m.pic.Hosts {
		n = max(n, width(m.clean(m.pic.Hosts[i].Name)))
		if n >= 16 {
			return 16
		}
	}
	return n
}

// stateWidth is the room for the states of the hosts that have measurements beside it.
func (p *hostsPane) stateWidth(m *model) int {
	n := len("STATE")
	for i := range m.pic.Hosts {
		if h := &m.pic.Hosts[i]; works(h) {
			n = max(n, 2+len(m.stateText(h)))
		}
	}
	return n
}

func (p *hostsPane) head(m *model, name, state int, columns []hostColumn) string {
	s := " " + m.fit("HOST", name) + " " + m.fit("STATE", state)
	for _, c := range columns {
		s += " " + m.right(c.head, c.w)
	}
	return styleFaint.Render(s)
}

// row draws one host. Of one that is not up it says why and until when, in place of
// measurements.
func (p *hostsPane) row(m *model, l *cursorLine, h *live.Host, w, name, state int, columns []hostColumn) {
	style := hostStyle(h)
	text := m.stateText(h)
	word := m.fit(m.hostGlyph(h)+" "+text, max(state, 2+min(11, len(text))))
	l.text(m.fit(m.clean(h.Name), name)+" ", nil)
	l.text(word, &style)
	rest := w - 2 - name - width(word) // cells that are left
	if !works(h) {
		l.text(m.fit("  "+m.cut(m.downText(h, rest-2), max(0, rest-2)), rest), nil)
		return
	}
	for i, c := range columns {
		if h.Reason != "" && h.Reason != h.State && i >= 2 { // why it starts nothing matters more than the rest
			l.text(m.fit("  "+m.cut(m.clean(h.Reason), max(0, rest-2)), rest), nil)
			return
		}
		l.text(" ", nil)
		if text := m.right(c.cell(m, h, c.w), c.w); c.drawn {
			l.drawn(text, nil, "")
		} else {
			l.text(text, nil)
		}
		rest -= 1 + c.w
	}
	l.text(strings.Repeat(" ", max(0, rest)), nil)
}

// downText explains why a host is not up, for how long, and when it is tried again; when w
// cells are not enough for that, the last before the first.
func (m *model) downText(h *live.Host, w int) string {
	var parts []string
	if r := m.clean(h.Reason); r != "" {
		parts = append(parts, r)
	}
	if h.Down > 0 {
		parts = append(parts, "down "+clock(h.Down+m.since()))
	}
	if wait := m.again(h); wait != "" {
		parts = append(parts, wait)
	}
	if h.Running > 0 {
		parts = append(parts, plural(h.Running, "job")+" there")
	}
	text := strings.Join(parts, ", ")
	if wait := m.again(h); wait != "" && width(text) > w {
		return wait + ": " + m.clean(h.Reason)
	}
	return text
}

// waitingWord describes what an empty pane waits for.
func (m *model) waitingWord(none string) string {
	switch {
	case m.pic == nil && m.lookErr != nil:
		return " no answer from the dispatcher: " + m.clean(m.lookErr.Error())
	case m.pic == nil:
		return " waiting for the dispatcher"
	}
	return " " + none
}

// keys are what can be done with a host.
func (p *hostsPane) keys() []binding {
	return append([]binding{
		{keys: []string{"enter"}, show: "enter", word: "details", group: "Hosts", help: "all that is known of the host, and what happened there",
			when: p.some, do: func(m *model) tea.Cmd { m.modal = &hostModal{name: p.host(m).Name}; return nil }},
		{keys: []string{"d"}, show: "d", word: "drain", group: "Hosts", help: "drain: what runs there finishes, nothing more starts",
			when: p.when(func(h *live.Host) bool { return !resting(h) }), do: p.do(runview.DrainHost)},
		{keys: []string{"d"}, show: "d", word: "use again", group: "Hosts", help: "use a drained or stopped host again",
			when: p.when(resting), do: p.do(runview.UseHost)},
		{keys: []string{"x"}, show: "x", word: "stop now", group: "Hosts", help: "stop now: its jobs are ended and queued again (asks first)",
			when: p.when(func(h *live.Host) bool { return h.State != hostDisabled }), do: p.firm(stopHost)},
		{keys: []string{"+", "="}, show: "+", word: "slots", group: "Hosts", help: "one slot more: one more job may run there at once",
			when: p.when(nil), do: p.slots(1)},
		{keys: []string{"-"}, show: "-", group: "Hosts", help: "one slot less: what runs there goes on, one fewer starts",
			when: p.when(func(h *live.Host) bool { return h.Slots > 0 }), do: p.slots(-1)},
		{keys: []string{"a"}, show: "a", word: "add", group: "Hosts", help: "add a host to the run: its name, and options such as slots=4 tags=gpu",
			when: func(m *model) bool { return !m.over() }, do: func(m *model) tea.Cmd { return m.openCommand("add ") }},
		{keys: []string{"f"}, show: "f", word: "its jobs", group: "Hosts", help: "the jobs of the host: the list of jobs, filtered",
			when: p.some, do: func(m *model) tea.Cmd { return m.showJobs("host=" + p.host(m).Name) }},
		{keys: []string{"/"}, show: "/", group: "Hosts", help: "only hosts with a text in name, state or reason, or by columns: load>4", do: p.openFilter},
		{keys: []string{"s"}, show: "s", word: "shell", group: "Hosts", help: "a shell on the host, with the ssh options of the run",
			when: func(m *model) bool { return p.some(m) && m.opt.Shell != nil }, do: p.firm(func(m *model, h *live.Host) tea.Cmd { return m.shellOn(h.Name) })},
		{keys: []string{"S"}, show: "S", word: "sort", group: "Hosts", help: "those in trouble first, or as in the inventory",
			when: p.some, do: func(*model) tea.Cmd { p.trouble = !p.trouble; return nil }},
	}, moving(func() int { return p.h }, p.move)...)
}

// resting reports whether a host starts nothing because a person wants that.
func resting(h *live.Host) bool { return h.State == hostDraining || h.State == hostDisabled }

func (p *hostsPane) some(m *model) bool { return p.host(m) != nil }

// when is a condition on the host under the cursor, of a run that is dispatched.
func (p *hostsPane) when(f func(*live.Host) bool) func(*model) bool {
	return func(m *model) bool {
		h := p.host(m)
		return h != nil && !m.over() && (f == nil || f(h))
	}
}

// firm does something to the host under the cursor, unless the cursor has just slid there.
func (p *hostsPane) firm(do func(*model, *live.Host) tea.Cmd) func(*model) tea.Cmd {
	return func(m *model) tea.Cmd {
		if m.slid() {
			return nil
		}
		return do(m, p.host(m))
	}
}

func (p *hostsPane) do(verb runview.Verb) func(*model) tea.Cmd {
	return p.firm(func(m *model, h *live.Host) tea.Cmd { return m.act(runview.Action{Do: verb, Host: h.Name}) })
}

// slots changes how many jobs may run on a host, and says what that means.
func (p *hostsPane) slots(by int) func(*model) tea.Cmd {
	return p.firm(func(m *model, h *live.Host) tea.Cmd {
		return m.act(runview.Action{Do: runview.Slots, Host: h.Name, Number: by, Relative: true})
	})
}

// stop asks before the jobs of a host are ended.
func stopHost(m *model, host *live.Host) tea.Cmd {
	h := *host
	text := "nothing of ours runs there; nothing more will start"
	if h.Running > 0 {
		text = plural(h.Running, "job") + " running there will be ended and queued again: what they have done so far is lost"
	}
	m.modal = newConfirmation("Stop "+h.Name+" now?", text, h.Running, func(m *model) tea.Cmd { return m.act(runview.Action{Do: runview.StopHost, Host: h.Name}) })
	return nil
}

// hostFilter returns a predicate for a filter. A word must occur in the name, the state,
// or the reason for the state; a comparison names a column of the list of hosts. An empty
// filter matches every host.
func (m *model) hostFilter(text string) (func(*live.Host) bool, error) {
	q, err := query.ParseSearch(text)
	if q == nil || err != nil {
		return func(*live.Host) bool { return true }, err
	}
	return query.Compile(q, query.Fields[*live.Host](hostField), func(word string) func(*live.Host) bool {
		has := query.Contains(word)
		return func(h *live.Host) bool {
			return has(h.Name) || has(hostWord(h)) || has(m.clean(h.Reason))
		}
	})
}

// hostTexts and hostNumbers are the columns of the list of hosts by their headings. A
// negative number is unknown.
var (
	hostTexts = map[string]func(h *live.Host) string{
		"host": func(h *live.Host) string { return h.Name }, "state": hostWord, "note": func(h *live.Host) string { return h.Note },
	}
	hostNumbers = map[string]func(h *live.Host) float64{
		"used":  func(h *live.Host) float64 { return float64(h.Running) },
		"slots": func(h *live.Host) float64 { return float64(h.Slots) },
		"load":  func(h *live.Host) float64 { return h.Load[0] },
		"busy":  func(h *live.Host) float64 { return h.Busy },
		"ours":  func(h *live.Host) float64 { return h.Ours },
		"cores": func(h *live.Host) float64 { return float64(h.Cores) },
		"ok":    func(h *live.Host) float64 { return float64(h.Done) },
		"fail":  func(h *live.Host) float64 { return float64(h.Failed) },
		"disk":  func(h *live.Host) float64 { return float64(h.DiskFree) },
		"link":  func(h *live.Host) float64 { return h.Delay.Seconds() },
		"files": func(h *live.Host) float64 { return h.FSDelay.Seconds() },
		"mem": func(h *live.Host) float64 {
			if h.MemBytes <= 0 || h.MemFree < 0 {
				return -1
			}
			return float64(max(0, h.MemBytes-h.MemFree))
		},
	}
	hostTypes = map[string]query.Type{"mem": query.SizeType, "disk": query.SizeType, "link": query.DurationType, "files": query.DurationType}
)

// hostField finds a column by its heading, which is not case-sensitive.
func hostField(name string) (*query.Field[*live.Host], error) {
	f := &query.Field[*live.Host]{Name: strings.ToLower(name), Fact: true, Type: query.TextType}
	if text := hostTexts[f.Name]; text != nil {
		f.Value = func(h *live.Host) query.Value { return query.TextValue(text(h)) }
		return f, nil
	}
	number := hostNumbers[f.Name]
	if number == nil {
		known := slices.Sorted(maps.Keys(hostNumbers))
		return nil, fmt.Errorf("%w; quotes make it a text", query.Unknown("column", name, slices.AppendSeq(known, maps.Keys(hostTexts))))
	}
	if f.Type = hostTypes[f.Name]; f.Type == query.AnyType {
		f.Type = query.NumberType
	}
	f.Value = func(h *live.Host) query.Value {
		if n := number(h); n >= 0 {
			return query.NumberValue(n)
		}
		return query.Value{}
	}
	return f, nil
}

// show puts the cursor on a host, whatever the filter is.
func (p *hostsPane) show(name string) { p.filter, p.cursor = "", name }

// clear takes the filter away; false: there was none.
func (p *hostsPane) clear() bool {
	had := p.filter != ""
	p.filter = ""
	return had
}

// openFilter opens the line of the filter; the list follows what is typed.
func (p *hostsPane) openFilter(m *model) tea.Cmd {
	set := func(_ *model, s string) tea.Cmd { p.filter = strings.TrimSpace(s); return nil }
	m.modal = &input{prompt: "filter hosts: /", text: newEdited(p.filter), changed: set,
		done: func(m *model, s string) (tea.Cmd, error) {
			_, err := m.hostFilter(s)
			return set(m, s), err
		},
		left: func(m *model) tea.Cmd { return set(m, "") }}
	return nil
}
