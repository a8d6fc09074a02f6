package tui

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"dcs-tui/internal/text"
	"dcs-tui/jobs"
	"dcs-tui/jobs/live"
	"dcs-tui/observe/runview"
)

// canRunJobs reports whether jobs can run on a host.
func canRunJobs(h *live.Host) bool { return h.State == jobs.HostUp || h.State == jobs.HostDraining }

// hostStateInfo is what the screen shows of a state of a host.
type hostStateInfo struct {
	state       jobs.HostState
	utf8, ascii string
	style       textStyle
	urgency     int // how urgently a host in this state needs attention
	help        string
}

var hostStates = []hostStateInfo{
	{jobs.HostUp, "●", "@", styleGood, 3,
		"jobs run there; held: it is up and starts nothing, the row shows the reason"},
	{jobs.HostSuspect, "?", "?", styleWarn, 4, "no heartbeat for suspect_after: nothing more is started there"},
	{jobs.HostLost, "✗", "x", styleBad, 6, "given up: its jobs are queued again"},
	{jobs.HostConnecting, "◌", "c", styleWarn, 2, "being connected to"},
	{jobs.HostBackingOff, "↻", "r", styleWarn, 5, "could not be reached, or refuses jobs: tried again later"},
	{jobs.HostDraining, "↓", "d", styleWarn, 1, "what runs there finishes, nothing more starts"},
	{jobs.HostDisabled, "–", "-", styleFaint, 1, "stopped by a person, or not usable: the row shows the reason"},
	{jobs.HostCreating, "◌", "c", styleWarn, 2, "an instance of a provider whose create command runs"},
	{jobs.HostStarting, "◌", "c", styleWarn, 2, "an instance that has not answered yet"},
	{jobs.HostUnknown, "○", "o", styleFaint, 3, "not connected: nobody dispatches the run, or it has just begun"},
	{jobs.HostTerminating, "↓", "d", styleWarn, 1,
		"an instance that gets no more jobs; its outputs are fetched first"},
}

// hostStateInfoOf returns the description of the state of a host, which a later version may have
// added.
func hostStateInfoOf(h *live.Host) *hostStateInfo {
	for i := range hostStates {
		if s := &hostStates[i]; s.state == h.State {
			return s
		}
	}
	return &hostStateInfo{h.State, "?", "?", styleWarn, 3, ""}
}

// urgency returns how urgently a host needs attention; 0: not at all.
func urgency(h *live.Host) int {
	switch {
	case h.StartsJobs():
		return 0
	case h.State == jobs.HostDisabled && !h.Stopped: // not requested by a user
		return 5
	}
	return hostStateInfoOf(h).urgency
}

// hostStateText describes the state of a host in its row. For an idle instance, it includes how
// long it has been idle.
func (m *model) hostStateText(h *live.Host) string {
	if h.State == jobs.HostUp && h.Idle > 0 {
		return "idle " + text.Clock(h.Idle+m.snapshotAge())
	}
	if h.State == jobs.HostUnknown {
		return "not connected"
	}
	return m.clean(h.Word())
}

// hostGlyph returns the glyph of a host's state.
func (m *model) hostGlyph(h *live.Host) string {
	return m.glyphs.choose(hostStateInfoOf(h).utf8, hostStateInfoOf(h).ascii)
}

func hostStyle(h *live.Host) *textStyle {
	if h.IsHeld() {
		return &styleWarn
	}
	return &hostStateInfoOf(h).style
}

// loadGlyph shows how busy a host is, or its state if it is not up, in one cell.
func (m *model) loadGlyph(h *live.Host) string {
	if h.State != jobs.HostUp {
		return hostStyle(h).with(styleBold).Render(m.hostGlyph(h))
	}
	return styleBusy.Render(m.sparkGlyph(busyShare(h), 1))
}

// busyShare returns the fraction of a host's cores that are busy, or of its slots if the number of
// cores is unknown.
func busyShare(h *live.Host) float64 {
	switch {
	case h.Cores > 0:
		return h.Busy / float64(h.Cores)
	case h.Slots > 0:
		return float64(h.Running) / float64(h.Slots)
	}
	return 0
}

// describeTrouble describes the trouble of a host, at length and in short. It returns "" if there
// is none.
func (m *model) describeTrouble(h *live.Host) (long, short string) {
	if urgency(h) == 0 {
		return "", ""
	}
	name := m.clean(h.Name)
	word := m.clean(h.Word())
	long, short = name+" "+cmp.Or(m.clean(h.Reason), word), name+" "+word
	if wait := m.describeRetry(h); wait != "" {
		long, short = long+", "+wait, short+" "+strings.TrimPrefix(wait, "again in ")
	}
	return long, short
}

// describeRetry describes when the next connection attempt to a host is made. It returns "" if
// there is none.
func (m *model) describeRetry(h *live.Host) string {
	if h.RetryIn <= 0 || canRunJobs(h) || m.isUndispatched() {
		return ""
	}
	if wait := h.RetryIn - m.snapshotAge(); wait > 0 {
		return "again in " + text.Clock(wait)
	}
	return "being tried"
}

// openHost shows everything that is known about a host, over the whole screen.
func (m *model) openHost(name string) tea.Cmd {
	m.modal = &textModal{fullScreen: true, openedBy: m.pressedKey, viewer: viewer{
		title:  "Host " + m.clean(name),
		text:   func(m *model, w int) []string { return m.hostLines(name, w) },
		events: &runview.EventsWindow{Filter: "host=" + name, All: true, Rows: 200},
		host:   name,
	}}
	return nil
}

func (m *model) hostLines(name string, w int) []string {
	i := slices.IndexFunc(m.snap.Hosts, func(h live.Host) bool { return h.Name == name })
	if i < 0 {
		return []string{"It is no longer part of the inventory."}
	}
	h := &m.snap.Hosts[i]
	past := m.snap.Host
	if past != nil && past.Name != name { // of the host that was open before
		past = nil
	}
	var out []string
	add := func(name, text string) {
		if text != "" {
			out = append(
				out, hangingIndent(styleFaint.Render(m.fit(name, factNameWidth)), m.wrap(text, max(10, w-17)))...,
			)
		}
	}
	state := hostStyle(h).Render(m.hostGlyph(h) + " " + m.hostStateText(h))
	if !canRunJobs(h) {
		state += "  " + m.downText(h, w)
	} else if h.Reason != "" {
		state += "  " + m.clean(h.Reason)
	}
	add("state", state)
	add("last note", m.clean(h.Note))
	usable := h.Usable
	if !h.StartsJobs() {
		usable = 0
	}
	isKnown := h.State != jobs.HostUnknown
	if isKnown {
		add("slots", fmt.Sprintf("%d in use of %d; %s usable now, %s", h.Running, h.Slots, oneDigit(usable),
			text.Plural(h.Buffered, "job")+" sent in advance"))
		add("", m.slotsBar(h, min(40, w-17)))
	}
	charts := m.hostCharts(h, past, w)
	out = append(out, charts...)
	add("load", text.If(charts == nil && isKnown, fmt.Sprintf("%s %s %s over 1, 5 and 15 minutes", oneDigit(h.Load[0]),
		oneDigit(h.Load[1]), oneDigit(h.Load[2]))))
	add("cores", text.If(h.Cores > 0, fmt.Sprintf("%d; %s busy, %s of them by our jobs", h.Cores, oneDigit(h.Busy),
		oneDigit(h.Ours))))
	add("users", m.clean(h.Users))
	add("GPUs", text.If(h.GPUs > 0 && charts == nil, itoa(h.GPUs)))
	add("memory", text.If(h.MemBytes > 0 && h.MemFree >= 0 &&
		charts == nil, text.Size(h.MemFree)+" free of "+text.Size(h.MemBytes)))
	add("disk", text.If(h.DiskFree >= 0, text.Size(h.DiskFree)+" free"))
	add("files", m.clean(h.Files))
	add("delay", text.If(isKnown, "link "+formatLatency(h.Delay)+", its file system "+formatLatency(h.FSDelay)))
	add("last sign", text.If(h.Heartbeat > 0, text.Span(h.Heartbeat+m.snapshotAge())+" ago"))
	add("attempts", fmt.Sprintf("%s succeeded there, %s failed; canceled ones count as neither", text.Thousands(h.Done),
		text.Thousands(h.Failed)))
	if lines := m.slotTimeline(h, past, w); lines != nil {
		out = append(out, "", styleBold.Render("Timeline of the slots"))
		out = append(out, lines...)
	}
	out = append(out, "", styleBold.Render("What happened there"))
	if m.snap.Events == nil || len(m.snap.Events.Lines) == 0 {
		return append(out, styleFaint.Render("nothing that is still known"))
	}
	for i := len(m.snap.Events.Lines) - 1; i >= 0; i-- {
		e := &m.snap.Events.Lines[i]
		if e.Host == name {
			out = append(out, m.eventLine(e, w-2))
		}
	}
	return out
}
