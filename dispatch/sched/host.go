package sched

import (
	"time"

	"dcs-tui/dispatch/sched/blame"
	"dcs-tui/hosts"
	"dcs-tui/internal/text"
	"dcs-tui/jobs"
)

// host holds what the core knows about one host. Its parts are declared in the files of the
// policies that use them. Instants are Time.Mono.
type host struct {
	spec   *hosts.Host
	index  int                 // in Core.hosts; -1: not in the inventory
	column int                 // in queue.columns; -1: not in the inventory
	hello  *hosts.Hello        // bounded; nil before the first connection
	parts  []hosts.NetworkPart // that lead to it (outage.go)

	fleetState // fleet.go
	membership // hostset.go
	linkState  // link.go
	absence    // lost.go
	sharedDir  sharedDirView
	probing    // probe.go
	listing    // reconcile.go
	hostRequest
	capacity  // slots.go
	holdState // hold.go
	hostAttempts
	gpuState  // gpus.go
	probation probation
	records   map[*queueStats]*blame.Record
	outbox    outbox

	instance *instance // instance to which the host belongs; nil: it is not from a provider
	retiring bool      // its instance gets no more jobs
	reserved *class    // the only class that may use the host; nil: any (reserve.go)

	misreportLogged bool // it reported on another host's attempts; logged once
	// Attempts that ended there; those that were ended on request count as neither.
	succeeded, failed int
}

func newHost(s *hosts.Host, index int) *host {
	h := &host{spec: s, index: index, column: -1, parts: s.NetworkParts()}
	h.state = jobs.HostConnecting
	h.sentLimit, h.maxLostAfter = -1, s.LostAfterOrDefault()
	h.setHeartbeat(s)
	h.setGPUs(s.GPUNumbers(nil))
	return h
}

// slots returns the number of slots of the host: by a person's request, or by its rule.
func (h *host) slots() int {
	return h.allowedSlots(orDefault(int(h.asked.Slots), h.ruleSlots()))
}

// allowedSlots returns n, or the number of slots that the administrators of the host allow.
func (h *host) allowedSlots(n int) int {
	if h.hello != nil && h.hello.MaxSlots > 0 {
		return min(n, h.hello.MaxSlots)
	}
	return n
}

// ruleSlots returns the number of slots of the host by its rule. It is 0 if that depends on its
// cores and the host has never responded.
func (h *host) ruleSlots() int {
	switch {
	case h.hello != nil && h.hello.Slots > 0:
		return h.hello.Slots
	case h.hello != nil:
		return h.spec.Slots.Count(h.hello.Cores)
	}
	return max(0, h.spec.Slots.Fixed)
}

// acceptsJobs reports whether new jobs may go to the host.
func (h *host) acceptsJobs() bool {
	return h.isAnswering() && h.state == jobs.HostUp && !h.isClosed() && !h.probation.paused
}

// isClosed reports whether the host starts nothing because of a person, its quiet hours, or a change of the
// hosts of the run. Jobs that wait there are withdrawn.
func (h *host) isClosed() bool {
	return h.isDrained() || h.isQuiet || h.removed || h.retiring || h.nextSpec != nil
}

// isFirstDial reports whether the first connection attempt to the host is still in progress, so
// that it may come up at any moment.
func (h *host) isFirstDial() bool { return h.dialing && !h.wasUsed && h.failures == 0 }

// isPreparing reports whether the host lacks only a measurement, a lease, or files, all of which
// come soon.
func (h *host) isPreparing() bool {
	return h.hold == jobs.HeldUnmeasured || h.hold == jobs.HeldUnleased || h.hold == jobs.HeldReceivingFiles
}

// freeSlots returns how many whole slots our attempts do not occupy.
func (h *host) freeSlots() int { return h.limit - h.occupiedSlots }

// storeHello stores what a hello reports about the machine.
func (h *host) storeHello(m *hosts.Hello) {
	m = boundedHello(h.spec, m)
	h.hello = m
	h.setGPUs(h.spec.GPUNumbers(m))
}

// HostView is a copy of the state of a host for display.
type HostView struct {
	Name string
	jobs.HostStatus
	Slots         int              // by its rule, or by a person's request
	Asked         jobs.HostSetting // what people asked of it, whatever State is
	Usable        float64          // slots less what others use (see usableSlots); 0: it accepts no jobs
	Running       int              // slots in use by running attempts
	Buffered      int              // attempts sent to a host and not known to have started
	RetryAt       time.Duration    // Time.Mono of the next connection attempt; 0: none
	LastHeartbeat time.Duration    // Time.Mono; 0: never
	Heartbeat     hosts.Heartbeat
	Hello         *hosts.Hello // nil before the first connection
	Done          int          // attempts that succeeded there
	Failed        int          // attempts that failed there, without those that were ended on request

	Down time.Duration // Time.Mono since when it has not been usable; 0: it is
	// Jobs failed there that succeeded on other hosts; it gets one job at a time, or none.
	OnProbation bool
	// How long an instance that is up has had no work; 0: it is busy, or is no instance.
	Idle time.Duration
}

// Hosts returns a view of every host, in the order of the inventory, and of instances that have no
// host.
func (c *Core) Hosts() []HostView {
	views := make([]HostView, 0, len(c.hosts))
	for h := range c.everyHost() {
		status := h.status()
		if why := c.whyOnTrial(h); why != "" && status.State == jobs.HostUp {
			status.Reason, status.Hold = why, jobs.HeldOnTrial
		}
		views = append(views, HostView{
			Name: h.spec.Name, HostStatus: status,
			Slots: h.slots(), Usable: h.usableNow(), Running: h.runningSlots, Buffered: h.numBuffered(),
			RetryAt: h.retryAt, LastHeartbeat: h.heartbeatAt,
			Heartbeat: h.heartbeat, Hello: h.hello,
			Done: h.succeeded, Failed: h.failed, Asked: h.asked,
			Down: h.downSince, OnProbation: h.probation.onProbation, Idle: c.idleTime(h),
		})
	}
	return c.addInstanceViews(views)
}

// The reasons of a host that a person took out of use.
const (
	whyDraining = "a person drained it: what runs there finishes, nothing more starts"
	whyStopped  = "stopped by a person: what ran there was ended, nothing more starts"
)

// usableNow returns the usable slots of a host that accepts jobs, and 0 for any other.
func (h *host) usableNow() float64 {
	if !h.acceptsJobs() {
		return 0
	}
	return h.usable
}

// setState sets the state of the host and the reason why it is not up.
func (h *host) setState(state jobs.HostState, reason string) {
	h.state, h.reason, h.silent = state, reason, false
}

// status returns the state that is shown to people.
func (h *host) status() jobs.HostStatus {
	s := jobs.HostStatus{State: h.state, Reason: text.WithoutSubject(h.reason, h.spec.Name)}
	switch {
	case !h.linked:
		return s
	case h.isSilent():
		s.Hold, s.Reason = jobs.HeldMute, "its helper connects, but never sends heartbeats"
	case h.isStopped():
		s.State, s.Reason = jobs.HostDisabled, whyStopped
	case h.removed:
		s.State, s.Reason = jobs.HostDraining, h.whyLeaving()
	case h.nextSpec != nil:
		s.State, s.Reason = jobs.HostDraining, whyMoving
	case h.isDrained():
		s.State, s.Reason = jobs.HostDraining, whyDraining
	case h.ineligible != "":
		s.State, s.Reason = jobs.HostDisabled, h.ineligible
	case h.isQuiet:
		s.Hold, s.Reason = jobs.HeldQuiet, h.quietText
	case h.probation.paused:
		s.State, s.Reason = jobs.HostBackingOff, h.probation.why
	default:
		s.Hold, s.Reason = h.publicHold(), h.whyHeld()
	}
	if s.State != jobs.HostUp {
		s.Hold = jobs.NotHeld
	}
	if h.suspendsJobs() {
		s.Suspended = h.numInFlight((*inFlight).isSuspended)
	}
	return s
}

// maxNamed is the number of hosts that a reason names.
const maxNamed = 3

// WhyStuck explains why no host starts a job although jobs are ready, as a continuation of "nothing
// can start: ". It returns "" if a host may start one, if no job is ready, or if nothing may be
// launched at all. Failures take precedence over requests of people.
func (c *Core) WhyStuck() string {
	switch {
	case c.queue.ready == 0:
		return ""
	case c.holders == HoldFiles && c.drain == nil && len(c.inFlight) == 0:
		return whyFiles
	case c.isLaunchingClosed():
		return ""
	}
	var wrong, asked []string
	for h := range c.everyHost() {
		accepts := h.acceptsJobs() && h.hold == jobs.NotHeld
		switch {
		case accepts && h.probation.isResting(c.queue.kinds.Set, c.now.Mono) && !c.isBeingTried(h):
			wrong = append(wrong, h.spec.Name+" "+c.whyOnTrial(h))
		// It may accept jobs soon.
		case accepts, h.state == jobs.HostConnecting && !h.wasUsed:
			return ""
		case h.linked && (h.isDrained() || h.removed || h.nextSpec != nil):
			asked = append(asked, h.spec.Name+" "+h.status().Clause())
		default:
			wrong = append(wrong, h.spec.Name+" "+h.status().Clause())
		}
	}
	return joinNamed(append(wrong, asked...))
}

// numBuffered returns how many attempts were sent to the host and are not known to have started.
func (h *host) numBuffered() int {
	if h.occupiedSlots == h.runningSlots {
		return 0
	}
	return h.numInFlight(func(f *inFlight) bool { return !f.started })
}
