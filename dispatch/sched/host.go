package sched

import (
	"fmt"
	"strings"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// host is what the core knows of one machine. Instants are Time.Mono.
type host struct {
	spec *hosts.Host
	idx  int // in Core.hosts; -1: not in the inventory

	// The set of hosts (inventory.go).
	machine int32         // of Table.Machines, on which its attempts are; 0: not known
	removed bool          // not wanted any more: it leaves when nothing is open there
	leaveBy time.Duration // … or when lost attempts have not been settled by then
	next    *hosts.Host   // its specification as soon as nothing is open at the present address; nil: spec stays
	leased  time.Duration // the longest lost_after that it has had: leases may run so long

	// The link (connect.go, lost.go).
	state        HostState // Connecting, Up, Suspect, Lost, BackingOff or Disabled
	linked       bool      // a helper answers
	dialing      bool      // a Connect has no answer yet
	known        bool      // it was up, or attempts of ours may be there
	beaten       bool      // a heartbeat came over the present link
	failures     int       // connection failures in a row
	retryAt      time.Duration
	mute         int           // links in a row that ended without a heartbeat (lost.go)
	seen         time.Duration // last beat, or when it came up
	heard        time.Duration // the same, hellos of a mute helper aside: lost_after counts from it
	beatAt       time.Duration // last beat; 0: never
	cutAt        time.Duration // when the last link was cut: no beat was taken in since
	inherited    bool          // it was not linked yet: an earlier dispatcher may still extend its lease
	leasedBefore time.Duration // when the leases of earlier dispatchers have run out; 0: not longer than ours
	away         time.Duration // since when it has given no beat over a link that worked
	outage       int           // the shared outage it went away in (lost.go); 0: none
	grace        time.Duration // until when it may follow those that are back from there
	reason       string        // why it is not up
	looks        looks         // what the shared directory shows of it while it is away (probe.go)
	hello        *hosts.Hello
	beat         hosts.Beat
	lied         bool          // it spoke of another host's attempts; said once
	barred       string        // the helper answers, but jobs cannot run there: why
	draining     bool          // a person took it out of use …
	stopped      bool          // … and had ended what ran there
	warnBy       time.Duration // … which happens then: what runs there was warned before
	inst         *instance     // of a provider; nil: it is no instance
	leaving      bool          // the instance gets no more jobs

	// Probing (probe.go).
	missing []jobs.AttemptID // declared lost; the host may know better
	again   []jobs.AttemptID // answered "unknown"
	probeAt time.Duration
	listed  bool          // it has listed the attempts that were asked for (reconcile.go)
	listBy  time.Duration // until when launching waits for that
	listAt  time.Duration // when to ask for that again; 0: not
	listWhy string        // why its last list was not whole; "": it was
	unclear bool          // a piece of the list under way has an attempt that cannot be read
	downAt  time.Duration // since when it has not been usable, as its State tells; 0: it is
	oddAt   time.Duration // since when it says that it has fewer attempts than we think; 0: it does not

	// Capacity (slots.go).
	others    float64 // cores used by others, smoothed
	excess    float64 // cores our jobs use beyond one per slot, smoothed
	peak      int     // most slots we had busy since the last beat
	usable    float64
	limit     int           // whole slots that may be busy
	told      int           // the limit the helper knows; -1: none
	toldShare hosts.Share   // what the helper knows that we want; Weight 0: nothing
	shareAt   time.Duration // when it was told
	given     int           // slots that a person gave it (slots.go); 0: by its rule

	// Why nothing may start there (hold.go, hold.go).
	measured  bool  // a heartbeat came over the present link, be it the early one
	diskFree  int64 // bytes, last known over the present link; -1: not known
	blind     bool  // it has min_mem_free and its free memory is unknown; reported once
	hold      hold
	holdSaid  hold          // as it was last told
	holdAt    time.Duration // when; 0: never
	quiet     bool
	quietEnd  string        // local time of the host; "": it has no end
	quietTurn time.Duration // when quiet hours begin or end next

	// What is there (attempt.go).
	head, tail *flight
	open       int
	occupied   int // slots of all open attempts
	running    int // slots of those known to have started
	special    int // open attempts that are not single
	mem        int64
	gpus       []gpu // in the order of their numbers
	vagueGPUs  int   // open attempts whose devices are not known
	foreign    foreignGPUs

	reserved *class // kept free for it (reserve.go)
	rest     rest   // probation.go
	out      outbox

	succeeded, failed int // attempts that ended there; those that were ended on request count as neither
}

func newHost(s *hosts.Host, idx int) *host {
	h := &host{spec: s, idx: idx, told: -1, leased: s.LostAfterOrDefault()}
	h.setGPUs(s.GPUNumbers(nil))
	return h
}

// slots returns how many slots the host has: as it was given, or by its rule.
func (h *host) slots() int {
	if h.given > 0 {
		return h.given
	}
	return h.rule()
}

// rule returns how many slots it has by its rule; 0 when that depends on its cores and
// it has never answered.
func (h *host) rule() int {
	switch {
	case h.hello != nil && h.hello.Slots > 0:
		return h.hello.Slots
	case h.hello != nil:
		return h.spec.Slots.Count(h.hello.Cores)
	}
	return max(0, h.spec.Slots.Fixed)
}

// takes reports whether new work may go to the host at all now.
func (h *host) takes() bool {
	return !h.leaving && h.answers() && h.state == Up && !h.draining && !h.rest.resting && !h.quiet && !h.removed && h.next == nil
}

// onFirstDial reports whether the first connection attempt to the host is under way: it
// may come up at any moment.
func (h *host) onFirstDial() bool { return h.dialing && !h.known && h.failures == 0 }

// free returns the whole slots that nothing of ours occupies.
func (h *host) free() int { return h.limit - h.occupied }

// learn stores what a hello contains about the machine.
func (h *host) learn(m *hosts.Hello) {
	m = boundedHello(h.spec, m)
	h.hello = m
	h.setGPUs(h.spec.GPUNumbers(m))
}

// HostState is where a host stands.
type HostState uint8

// The host states.
const (
	Connecting HostState = iota
	Up
	Suspect
	Lost
	BackingOff
	Draining
	Disabled
	Creating    // an instance of a provider whose create command runs
	Starting    // an instance that has not answered yet
	Terminating // an instance that gets no more jobs
)

var hostStateNames = [...]string{"connecting", "up", "suspect", "lost", "backing_off", "draining", "disabled", "creating", "starting", "terminating"}

// String returns the word used in JSON and on the screen.
func (s HostState) String() string { return hostStateNames[s] }

// HostView is what a screen may know of a host: a copy, safe to keep.
type HostView struct {
	Name     string
	State    HostState
	Slots    int           // as the rule gives, or as a person gave it
	Given    int           // the latter; 0: nobody did
	Usable   float64       // slots less what others use (the formula); 0: it takes no new jobs
	Running  int           // slots in use by running attempts
	Buffered int           // attempts sent to a host and not known to have started
	Failures int           // connection failures in a row
	RetryAt  time.Duration // Time.Mono of the next connection attempt; 0: none
	LastBeat time.Duration // Time.Mono; 0: never
	Beat     hosts.Beat
	Hello    *hosts.Hello // nil before the first connection
	Reason   string       // without the name: why it is not up, or why it starts nothing though it is
	Done     int          // attempts that succeeded there
	Failed   int          // attempts that failed there, without those that were ended on request

	Draining bool          // a person took it out of use, whatever State is
	Stopped  bool          // … and had ended what ran there: State is then Disabled
	Paused   bool          // it is up and starts nothing: Reason says why
	Down     time.Duration // Time.Mono since when it has not been usable; 0: it is
	Idle     time.Duration // how long an instance that is up has had no work; 0: it has, or is no instance
}

// Hosts returns a view of every host, in inventory order, and of instances that are no
// hosts yet or no longer.
func (c *Core) Hosts() []HostView {
	views := make([]HostView, 0, len(c.hosts))
	for _, h := range c.hosts {
		state, reason := h.shown()
		views = append(views, HostView{
			Name: h.spec.Name, State: state, Reason: withoutName(reason, h.spec.Name),
			Slots: h.slots(), Usable: h.usableNow(), Running: h.running, Buffered: h.buffered(),
			Failures: h.failures, RetryAt: h.retryAt, LastBeat: h.beatAt, Beat: h.beat, Hello: h.hello,
			Done: h.succeeded, Failed: h.failed, Given: h.given, Draining: h.draining, Stopped: h.stopped,
			Paused: h.linked && (h.hold != notHeld || !h.takes()), Down: h.downAt, Idle: c.idle(h),
		})
	}
	return c.addInstanceViews(views)
}

// Why a host is out of use that a person took out of it.
const (
	drainingWhy = "a person asked for it: what runs there finishes, nothing more starts"
	stoppedWhy  = "stopped by a person: what ran there was ended, nothing more starts"
)

// usableNow is usable of a host that takes new jobs, and 0 of any other.
func (h *host) usableNow() float64 {
	if !h.takes() {
		return 0
	}
	return h.usable
}

// shown returns the state that a person wants to know and the reason for it.
func (h *host) shown() (HostState, string) {
	switch {
	case !h.linked:
		return h.state, h.reason
	case h.doubted():
		return h.state, "its helper connects, but never sends heartbeats"
	case h.stopped:
		return Disabled, stoppedWhy
	case h.removed:
		return Draining, h.leavingWhy()
	case h.next != nil:
		return Draining, movingWhy
	case h.draining:
		return Draining, drainingWhy
	case h.barred != "":
		return Disabled, h.barred
	case h.quiet:
		return h.state, h.restsUntil()
	case h.rest.resting:
		return BackingOff, h.rest.why
	}
	return h.state, h.holdWhy()
}

// mostNamed bounds the hosts that Stuck names.
const mostNamed = 3

// Stuck explains why no host starts a job though jobs are ready, in a sentence to follow
// "nothing can start: "; "" if one may, if nothing is ready, or if nothing is to be
// launched at all. What goes wrong by itself comes before what a person asked for.
func (c *Core) Stuck() string {
	if c.closed() || c.queue.ready == 0 {
		return ""
	}
	var wrong, asked []string
	for _, h := range c.hosts {
		switch {
		case h.takes() && h.hold == notHeld, h.state == Connecting && !h.known: // or it may soon
			return ""
		case h.linked && (h.draining || h.removed || h.next != nil):
			asked = append(asked, h.spec.Name+" "+h.standsText())
		default:
			wrong = append(wrong, h.spec.Name+" "+h.standsText())
		}
	}
	why := append(wrong, asked...)
	if more := len(why) - mostNamed; more > 0 {
		why = append(why[:mostNamed], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(why, "; ")
}

// standsText describes what keeps a host from taking jobs, to follow its name.
func (h *host) standsText() string {
	state, reason := h.shown()
	if state == Up {
		return reason
	}
	text := "is " + strings.ReplaceAll(state.String(), "_", " ")
	if reason = withoutName(reason, h.spec.Name); reason != "" {
		text += " (" + reason + ")"
	}
	return text
}

// buffered counts the attempts sent to a host and not known to have started.
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
