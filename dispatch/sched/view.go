package sched

import (
	"time"

	"dcs-tui/hosts"
)

// HostState is where a host stands.
type HostState uint8

// The host states of DESIGN section 2.
const (
	Connecting HostState = iota
	Up
	Suspect
	Lost
	BackingOff
	Draining
	Disabled
)

var hostStateNames = [...]string{"connecting", "up", "suspect", "lost", "backing_off", "draining", "disabled"}

// String returns the word used in JSON and on the screen.
func (s HostState) String() string { return hostStateNames[s] }

// HostView is what a screen may know of a host: a copy, safe to keep.
type HostView struct {
	Name     string
	State    HostState
	Slots    int           // as the rule gives, or as a person gave it
	Given    int           // the latter; 0: nobody did
	Usable   float64       // slots less what others use (the formula of DESIGN 7)
	Running  int           // slots in use by running attempts
	Buffered int           // attempts handed over and not known to have started
	Failures int           // connection failures in a row
	RetryAt  time.Duration // Time.Mono of the next connection attempt; 0: none
	LastBeat time.Duration // Time.Mono; 0: never
	Beat     hosts.Beat
	Hello    *hosts.Hello // nil before the first connection
	Reason   string       // why it is not up, or why it starts nothing though it is
	Done     int          // jobs finished there
	Failed   int

	Draining bool          // asked for by a person, whatever State is
	Paused   bool          // it is up and starts nothing: Reason says why
	Down     time.Duration // Time.Mono since when it has not been usable; 0: it is
}

// Hosts returns a view of every host, in inventory order.
func (c *Core) Hosts() []HostView {
	views := make([]HostView, 0, len(c.hosts))
	for _, h := range c.hosts {
		state, reason := h.shown()
		views = append(views, HostView{
			Name: h.spec.Name, State: state, Reason: reason,
			Slots: h.slots(), Usable: h.usable, Running: h.running, Buffered: h.buffered(),
			Failures: h.failures, RetryAt: h.retryAt, LastBeat: h.beatAt, Beat: h.beat, Hello: h.hello,
			Done: h.done, Failed: h.failed, Given: h.given, Draining: h.draining,
			Paused: h.linked && (h.hold != notHeld || !h.takes()), Down: h.downAt,
		})
	}
	return views
}

// shown returns the state that a person wants to know and the reason for it.
func (h *host) shown() (HostState, string) {
	switch {
	case !h.linked:
		return h.state, h.reason
	case h.doubted():
		return h.state, "its helper says hello and then nothing more"
	case h.draining:
		return Draining, "draining"
	case h.barred != "":
		return Disabled, h.barred
	case h.quiet:
		return h.state, h.restsUntil()
	case h.rest.resting:
		return BackingOff, h.rest.why
	}
	return h.state, h.holdWhy()
}

// buffered counts the attempts handed over and not known to have started.
func (h *host) buffered() int {
	if h.occupied == h.running {
		return 0
	}
	n := 0
	for f := h.head; f != nil; f = f.next {
		if !f.started {
			n++
		}
	}
	return n
}
