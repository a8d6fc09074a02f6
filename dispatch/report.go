package dispatch

import (
	"math"
	"time"

	"dcs-tui/dispatch/sched"
	"dcs-tui/hosts"
	"dcs-tui/internal/text"
	"dcs-tui/jobs"
)

// handleReport turns a host report into an event. Host reports are not trusted, so numbers and
// texts are limited first.
func (a *agent) handleReport(m hosts.Message) {
	name := a.name
	switch m := m.(type) {
	case *hosts.Heartbeat:
		limitHeartbeat(m)
		a.sendEvent(sched.HostHeartbeat{Host: name, Heartbeat: m})
	case *hosts.Started:
		for i := range m.Jobs {
			m.Jobs[i].Slot = boundedSlot(m.Jobs[i].Slot)
		}
		a.sendEvent(sched.AttemptsStarted{Host: name, Msg: m})
	case *hosts.Exits:
		limitExited(m.Jobs)
		a.fetchReturned(m)
		if len(m.Jobs) == 0 {
			break
		}
		a.sendEvent(sched.AttemptsEnded{Host: name, Msg: m})
	case *hosts.Withdrawn:
		m.Why = truncate(m.Why)
		a.sendEvent(sched.AttemptsWithdrawn{Host: name, Msg: m})
	case *hosts.Refused:
		m.Why = truncate(m.Why)
		if m.FencedBy > a.epoch() { // only a higher epoch counts
			a.handleLinkDown(a.checkedFence(&hosts.FencedError{Host: name, By: m.FencedBy}))
			return
		}
		m.FencedBy = 0
		m.GPUs = boundedGPUs(m.GPUs)
		a.sendEvent(sched.HostRefused{Host: name, Msg: m})
	case *hosts.Probed:
		limitProbed(m.Jobs)
		a.fetchProbed(m.Jobs)
		a.sendEvent(sched.AttemptsProbed{Host: name, Msg: m})
	case *hosts.Listed:
		limitProbed(m.Jobs)
		a.fetchProbed(m.Jobs)
		m.Why = truncate(m.Why)
		a.sendEvent(sched.HostListed{Host: name, Msg: m})
	case *hosts.Inspected:
		limitExited(m.Jobs)
		m.Why, m.Heartbeat, m.Machine = truncate(m.Why), truncate(m.Heartbeat), truncate(m.Machine)
		a.d.returns.dropUnfetched(m)
		a.sendEvent(sched.HostInspected{Via: name, Msg: m})
	case *hosts.Trouble:
		a.sendTrouble(m.Attempt, truncate(m.Text))
	case *hosts.Chunk:
		a.handleChunk(m)
	case *hosts.Want:
		a.serve(m)
	}
}

func limitExited(es []hosts.ExitedJob) {
	for i := range es {
		es[i].Slot = boundedSlot(es[i].Slot)
		limitOutcome(&es[i].Outcome)
	}
}

func limitProbed(ps []hosts.ProbedJob) {
	for i := range ps {
		j := &ps[i]
		j.Slot, j.Why = boundedSlot(j.Slot), truncate(j.Why)
		if j.Outcome != nil {
			limitOutcome(j.Outcome)
		} else if j.Answer == hosts.HasExited || j.Answer > hosts.Dead {
			j.Answer = hosts.Unknown
		}
	}
}

// maxText is the maximum length of each text in a host report, in bytes.
const maxText = 1000

func limitHello(h *hosts.Hello) {
	h.Machine = truncate(h.Machine)
	h.Cores = min(max(1, h.Cores), jobs.MaxSlots)
	h.Slots = min(max(1, h.Slots), jobs.MaxSlots)
	h.GPUs = min(max(0, h.GPUs), jobs.MaxGPUs)
	h.GPUIDs, h.LockedGPUs, h.HalfGPUs = boundedGPUs(h.GPUIDs), boundedGPUs(h.LockedGPUs), boundedGPUs(h.HalfGPUs)
	h.Owner.Who = truncate(h.Owner.Who)
	h.MemBytes = max(0, h.MemBytes)
	limitSharing(h.Sharing)
	h.Warnings = h.Warnings[:min(len(h.Warnings), 20)]
	for i := range h.Warnings {
		h.Warnings[i] = truncate(h.Warnings[i])
	}
}

func limitHeartbeat(b *hosts.Heartbeat) {
	for _, f := range []*float64{&b.Load[0], &b.Load[1], &b.Load[2], &b.Busy, &b.Ours} {
		if !(*f >= 0) || math.IsInf(*f, 0) { // also NaN
			*f = 0
		}
		*f = min(*f, jobs.MaxSlots)
	}
	b.LockedGPUs, b.HalfGPUs = boundedGPUs(b.LockedGPUs), boundedGPUs(b.HalfGPUs)
	b.Files, b.Owner.Who = truncate(b.Files), truncate(b.Owner.Who)
	limitSharing(b.Sharing)
	b.MemFree, b.DiskFree = max(-1, b.MemFree), max(-1, b.DiskFree)
	b.Running, b.Buffered = max(0, b.Running), max(0, b.Buffered)
}

// limitSharing limits a host's report of other users to valid values.
func limitSharing(s *hosts.Sharing) {
	if s == nil {
		return
	}
	s.Memory = max(0, s.Memory)
	s.Users = s.Users[:min(len(s.Users), hosts.MaxSharedUsers)]
	for i := range s.Users {
		u := &s.Users[i]
		u.Name, u.Slots, u.Memory, u.GPUs = truncate(u.Name), boundedSlot(u.Slots), max(0, u.Memory), boundedGPUs(u.GPUs)
		u.Runs = u.Runs[:min(len(u.Runs), hosts.MaxSharedUsers)]
		for k := range u.Runs {
			u.Runs[k] = truncate(u.Runs[k])
		}
	}
}

// boundedGPUs bounds the length of a list of devices.
func boundedGPUs(list []int) []int { return list[:min(len(list), jobs.MaxGPUs)] }

func boundedSlot(n int) int {
	if n < 0 || n > jobs.MaxSlots {
		return 0
	}
	return n
}

func limitOutcome(o *jobs.Outcome) {
	o.Exit = min(max(0, o.Exit), 255)
	o.CPU, o.MaxRSSBytes, o.Suspended = max(0, o.CPU), max(0, o.MaxRSSBytes), max(0, o.Suspended)
	o.LeftChildren, o.Files = min(max(0, o.LeftChildren), 1<<20), min(max(0, o.Files), 1<<30)
	if end := o.Started + jobs.Stamp(100*365*24*time.Hour); o.Started < 0 || o.Ended < o.Started || o.Ended > end {
		o.Ended = o.Started
	}
	o.Signal, o.Error, o.LastLine = truncate(o.Signal), truncate(o.Error), truncate(o.LastLine)
}

// truncate shortens a text to maxText bytes.
func truncate(s string) string { return text.ShortenBytes(s, maxText) }
