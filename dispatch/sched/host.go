package sched

import (
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
	beaten       bool      // a beat came over the present link
	failures     int       // connection failures in a row (B1)
	retryAt      time.Duration
	mute         int           // links in a row that ended without a beat (mute.go)
	seen         time.Duration // last beat, or when it came up
	heard        time.Duration // the same, hellos of a mute helper aside: lost_after counts from it
	beatAt       time.Duration // last beat; 0: never
	cutAt        time.Duration // when the last link was cut: no beat was taken in since
	inherited    bool          // it was not linked yet: an earlier dispatcher may still extend its lease
	leasedBefore time.Duration // when the leases of earlier dispatchers have run out; 0: not longer than ours
	away         time.Duration // since when it has given no beat over a link that worked
	outage       int           // the shared outage it went away in (outage.go); 0: none
	grace        time.Duration // until when it may follow those that are back from there
	reason       string        // why it is not up
	looks        looks         // what the shared directory shows of it while it is away (look.go)
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
	missing []jobs.AttemptID // given up as lost; the host may know better
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
	excess    float64 // cores our jobs use beyond one a slot, smoothed
	peak      int     // most slots we had busy since the last beat
	usable    float64
	limit     int           // whole slots that may be busy
	told      int           // the limit the helper knows; -1: none
	toldShare hosts.Share   // what the helper knows that we want; Weight 0: nothing
	shareAt   time.Duration // when it was told
	given     int           // slots that a person gave it (slots_set.go); 0: by its rule

	// Why nothing may start there (hold.go, quiet.go).
	measured  bool  // a beat came over the present link, be it the early one
	diskFree  int64 // bytes, last known over the present link; -1: not known
	blind     bool  // it has min_mem_free and its free memory is unknown; reported once
	hold      hold
	holdSaid  hold          // as it was last told
	holdAt    time.Duration // when; 0: never
	quiet     bool
	quietEnd  string        // local time of the host; "": it has no end
	quietTurn time.Duration // when quiet hours begin or end next

	// What is there (flight.go).
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
	rest     rest   // blackhole.go
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

// takes says whether new work may go to the host at all now.
func (h *host) takes() bool {
	return !h.leaving && h.answers() && h.state == Up && !h.draining && !h.rest.resting && !h.quiet && !h.removed && h.next == nil
}

// onFirstDial reports whether the first connection attempt to the host is under way: it
// may come up at any moment.
func (h *host) onFirstDial() bool { return h.dialing && !h.known && h.failures == 0 }

// free returns the whole slots that nothing of ours occupies.
func (h *host) free() int { return h.limit - h.occupied }

// learn keeps what a hello says of the machine.
func (h *host) learn(m *hosts.Hello) {
	m = boundedHello(h.spec, m)
	h.hello = m
	h.setGPUs(h.spec.GPUNumbers(m))
}
