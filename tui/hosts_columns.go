package tui

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

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
		state += "  starts nothing: " + m.clean(h.Reason)
	}
	add("state", state)
	if h.Note != "" {
		add("last note", m.clean(h.Note))
	}
	usable := h.Usable
	if !takes(h) {
		usable = 0
	}
	add("slots", fmt.Sprintf("%d in use of %d; %s usable now, %s", h.Running, h.Slots, oneDigit(usable), plural(h.Buffered, "job")+" handed over in advance"))
	out = append(out, m.fit("", 13)+m.slotsBar(h, min(40, w-17)))
	add("five minutes", "")
	out[len(out)-1] += m.history(h, min(60, w-17))
	add("load", fmt.Sprintf("%s %s %s over 1, 5 and 15 minutes", oneDigit(h.Load[0]), oneDigit(h.Load[1]), oneDigit(h.Load[2])))
	if h.Cores > 0 {
		add("cores", fmt.Sprintf("%d; %s busy, %s of them by our jobs", h.Cores, oneDigit(h.Busy), oneDigit(h.Ours)))
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
