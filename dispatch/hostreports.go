package dispatch

import (
	"dcs-tui/dispatch/sched"
	"dcs-tui/hosts"
)

// handleReport turns a host report into an event. Host reports are not trusted: hosts.Bound has limited them.
func (a *agent) handleReport(m hosts.Message) {
	name := a.name
	switch m := m.(type) {
	case *hosts.Heartbeat:
		ping := m.Seq // the core owns m from now on
		a.sendEvent(sched.HostHeartbeat{Host: name, Heartbeat: m})
		a.handleHeartbeat(ping)
	case *hosts.Started:
		a.sendEvent(sched.AttemptsStarted{Host: name, Msg: m})
	case *hosts.Exits:
		a.fetchReturned(m)
		if len(m.Jobs) == 0 {
			break
		}
		a.sendEvent(sched.AttemptsEnded{Host: name, Msg: m})
	case *hosts.Withdrawn:
		a.sendEvent(sched.AttemptsWithdrawn{Host: name, Msg: m})
	case *hosts.Refused:
		if m.FencedBy > a.epoch() { // only a higher epoch counts
			a.handleLinkDown(a.checkedFence(&hosts.FencedError{Host: name, By: m.FencedBy}))
			return
		}
		m.FencedBy = 0
		a.sendEvent(sched.HostRefused{Host: name, Msg: m})
	case *hosts.Probed:
		a.fetchProbed(m.Jobs)
		a.sendEvent(sched.AttemptsProbed{Host: name, Msg: m})
	case *hosts.Listed:
		a.fetchProbed(m.Jobs)
		a.sendEvent(sched.HostListed{Host: name, Msg: m})
	case *hosts.Inspected:
		a.d.returns.dropUnfetched(m)
		a.sendEvent(sched.HostInspected{Via: name, Msg: m})
	case *hosts.Trouble:
		a.sendTrouble(m.Attempt, m.Text)
	case *hosts.Chunk:
		if reads := a.reads.Load(); reads != nil {
			reads.Answer(m)
		}
	case *hosts.Want:
		a.serve(m)
	}
}
