package sim

import (
	"fmt"

	"dcs-tui/dispatch/sched"
)

// show writes an event for the log: what stands behind its pointers.
func show(ev sched.Event) string {
	switch ev := ev.(type) {
	case sched.HostUp:
		return fmt.Sprintf("{%s up %v boot %s}", ev.Host, ev.Hello.Uptime, ev.Hello.BootID)
	case sched.HostRefused:
		return fmt.Sprintf("{%s %+v}", ev.Host, *ev.Msg)
	case sched.AttemptsStarted:
		return fmt.Sprintf("{%s %+v}", ev.Host, *ev.Msg)
	case sched.AttemptsEnded:
		return fmt.Sprintf("{%s %+v}", ev.Host, *ev.Msg)
	case sched.AttemptsWithdrawn:
		return fmt.Sprintf("{%s %+v}", ev.Host, *ev.Msg)
	case sched.AttemptsProbed:
		return fmt.Sprintf("{%s %+v}", ev.Host, *ev.Msg)
	case sched.HostLooked:
		return fmt.Sprintf("{%s %+v}", ev.Via, *ev.Msg)
	case sched.HostListed:
		return fmt.Sprintf("{%s %+v}", ev.Host, *ev.Msg)
	case sched.Submit:
		return fmt.Sprintf("{%d jobs, last %v}", len(ev.Specs), ev.Last)
	}
	return fmt.Sprintf("%+v", ev)
}
