package tui

import (
	"strings"

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
