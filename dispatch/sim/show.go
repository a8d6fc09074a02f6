package sim

import (
	"fmt"
	"strings"

	"dcs-tui/dispatch/sched"
	"dcs-tui/hosts"
)

// show writes an event for the log: what stands behind its pointers.
func show(ev sched.Event) string {
	switch ev := ev.(type) {
	case sched.HostUp:
		return fmt.Sprintf("{%s up %v boot %s %s}", ev.Host, ev.Hello.Uptime, ev.Hello.BootID, ev.Hello.Machine)
	case sched.HostRefused:
		return fmt.Sprintf("{%s %+v}", ev.Host, *ev.Msg)
	case sched.AttemptsStarted:
		return fmt.Sprintf("{%s %+v}", ev.Host, *ev.Msg)
	case sched.AttemptsEnded:
		return fmt.Sprintf("{%s %+v}", ev.Host, *ev.Msg)
	case sched.AttemptsWithdrawn:
		return fmt.Sprintf("{%s %+v}", ev.Host, *ev.Msg)
	case sched.AttemptsProbed:
		return fmt.Sprintf("{%s %s}", ev.Host, answers(ev.Msg.Jobs))
	case sched.HostLooked:
		return fmt.Sprintf("{%s %+v}", ev.Via, *ev.Msg)
	case sched.HostListed:
		return fmt.Sprintf("{%s %s last %v %s}", ev.Host, answers(ev.Msg.Jobs), ev.Msg.Last, ev.Msg.Why)
	case sched.Edit:
		return fmt.Sprintf("{%v %s}", ev.Jobs, &ev.Change)
	case sched.Request:
		var b strings.Builder
		for _, do := range ev.Do {
			fmt.Fprintf(&b, " %T%s", do, show(do))
		}
		return "{" + ev.Name + b.String() + "}"
	case sched.Submit:
		return fmt.Sprintf("{%d jobs, last %v}", len(ev.Specs), ev.Last)
	case sched.SetProviders:
		return fmt.Sprintf("{%d}", len(ev.Providers))
	case sched.SetHosts:
		names := make([]string, len(ev.Hosts))
		for i, h := range ev.Hosts {
			names[i] = h.Name
		}
		return fmt.Sprintf("{%s}", strings.Join(names, " "))
	}
	return fmt.Sprintf("%+v", ev)
}

func answers(ps []hosts.ProbedJob) string {
	var b strings.Builder
	for _, p := range ps {
		fmt.Fprintf(&b, "%s: %s %s; ", p.Attempt, p.Answer, p.Why)
	}
	return b.String()
}

// showOrder does the same for an order.
func showOrder(o sched.Order) string {
	if c, ok := o.(sched.Configure); ok {
		return "configure " + c.Host
	}
	l, ok := o.(sched.Launch)
	if !ok {
		return fmt.Sprintf("%T%+v", o, o)
	}
	var b strings.Builder
	for _, p := range l.Jobs {
		fmt.Fprintf(&b, " %s", p.Attempt)
	}
	return "launch on " + l.Host + ":" + b.String()
}
