package tui

import (
	"fmt"

	"dcs-tui/jobs/live"
	"dcs-tui/jobs/runview"
)

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
