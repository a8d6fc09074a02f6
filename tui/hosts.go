package tui

import (
	"slices"
	"strings"

	"dcs-tui/jobs/live"
	"dcs-tui/jobs/runview"
)

// hostsPane is the list of hosts. Its cursor sticks to a host's name.
type hostsPane struct {
	cursor  string
	pos     int // of the cursor in the list, when it was last drawn
	slip    slip
	trouble bool // those in trouble first; else as in the inventory
	filter  string
	top, h  int
}

func newHostsPane() *hostsPane { return &hostsPane{} }

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
	var order []int
	if p.trouble {
		order = byTrouble(m.pic.Hosts)
	} else {
		order = make([]int, len(m.pic.Hosts))
		for i := range order {
			order[i] = i
		}
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
	p.h = h - 1
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
	return out
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

// downText says why a host is not up, for how long, and when it is tried again; when w
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

// waitingWord says what an empty pane waits for.
func (m *model) waitingWord(none string) string {
	switch {
	case m.pic == nil && m.lookErr != nil:
		return " no answer from the dispatcher: " + m.clean(m.lookErr.Error())
	case m.pic == nil:
		return " waiting for the dispatcher"
	}
	return " " + none
}
