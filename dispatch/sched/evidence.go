package sched

import (
	"slices"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// A host is believed about its own attempts only, and otherwise only if it was asked. admit is the
// one place that decides what counts of a report. Whatever a host sends, the policies behind admit
// see only attempts that the journal assigns to it. There are two exceptions, both in answer to a
// question of this core: a host that lists its attempts may have some that no record assigns to
// anybody, and a host may read the files of another one from a directory that both share.

// admit removes from a report what its host may not report on, bounds the times of the rest, and
// reports whether anything of it counts. Events that are no reports of hosts pass.
func (c *Core) admit(ev Event) bool {
	switch ev := ev.(type) {
	case AttemptsStarted:
		ev.Msg.Jobs = without(ev.Msg.Jobs,
			func(s hosts.StartedJob) bool { return !c.isAuthoritative(ev.Host, s.Attempt) })
		for i := range ev.Msg.Jobs {
			s := &ev.Msg.Jobs[i]
			s.At = c.boundedTime(c.table.Attempt(s.Attempt), s.At)
		}
	case AttemptsEnded:
		ev.Msg.Jobs = without(ev.Msg.Jobs,
			func(x hosts.ExitedJob) bool { return !c.isAuthoritative(ev.Host, x.Attempt) })
		c.boundExitTimes(ev.Msg.Jobs)
	case AttemptsProbed:
		ev.Msg.Jobs = without(ev.Msg.Jobs, func(p hosts.ProbedJob) bool { return !c.IsAssigned(ev.Host, p.Attempt) })
		c.boundProbedTimes(ev.Msg.Jobs)
	case AttemptsWithdrawn:
		ev.Msg.Attempts = c.ownOnly(ev.Host, ev.Msg.Attempts)
	case HostRefused:
		ev.Msg.Attempts = c.ownOnly(ev.Host, ev.Msg.Attempts)
	case HostListed:
		c.boundProbedTimes(ev.Msg.Jobs)
		h := c.byName[ev.Host]
		return h != nil && h.linked && h.listsAwaited > 0
	case HostInspected:
		return c.admitInspection(ev)
	}
	return true
}

// without returns the elements of a list that del does not select. It changes nothing in the list,
// because records point into it.
func without[T any](list []T, del func(T) bool) []T {
	if !slices.ContainsFunc(list, del) {
		return list
	}
	return slices.DeleteFunc(slices.Clone(list), del)
}

// ownOnly returns the attempts that a host has.
func (c *Core) ownOnly(name string, ids []jobs.AttemptID) []jobs.AttemptID {
	return without(ids, func(id jobs.AttemptID) bool { return !c.isAuthoritative(name, id) })
}

// IsAssigned reports whether the journal names a host, and the machine that answers under its name,
// as that of an attempt.
func (c *Core) IsAssigned(name string, id jobs.AttemptID) bool {
	a, h := c.table.Attempt(id), c.byName[name]
	return a != nil && h != nil && h.owns(a)
}

// isAuthoritative is IsAssigned. It reports, once for each host, a report about an attempt of
// another host.
func (c *Core) isAuthoritative(name string, id jobs.AttemptID) bool {
	if c.IsAssigned(name, id) {
		return true
	}
	a, h := c.table.Attempt(id), c.byName[name]
	if a != nil && a.Host != name && h != nil && !h.misreportLogged {
		h.misreportLogged = true
		c.logf(name, id.Job,
			"%s reports on attempt %s, which is on %s: its reports about attempts of other hosts are ignored",
			name, id, a.Host)
	}
	return false
}

// inspected returns the absent host about which an inspection was requested and this is the answer,
// or nil.
func (c *Core) inspected(ev HostInspected) *host {
	all := c.allHosts()
	i := slices.IndexFunc(all, func(h *host) bool {
		return h.spec.Name == ev.Msg.Host && !h.linked && h.sharedDir.isAwaited && h.sharedDir.inspector == ev.Via
	})
	if i < 0 {
		return nil // the host responds itself, or no inspection was requested
	}
	return all[i]
}

// admitInspection is admit for what a shared directory shows of an absent host. Another host that
// has read the directory must know the id of that host's machine, which only the directory and the
// machine itself tell. Otherwise a host would only have to claim that its directory is the same. If our
// directory names another machine, a tombstone proves nothing: that machine may have made it, and the
// attempt may run on one that has a directory of its own.
func (c *Core) admitInspection(ev HostInspected) bool {
	h := c.inspected(ev)
	if h == nil {
		return false
	}
	if !c.isMachineOf(h, ev.Msg.Machine) {
		if ev.Via != "" {
			return false
		}
		if ev.Msg.Machine != "" && h.machine != 0 {
			ev.Msg.Never = nil
		}
	}
	others := func(id jobs.AttemptID) bool {
		a := c.table.Attempt(id)
		return a == nil || !h.owns(a)
	}
	ev.Msg.Jobs = without(ev.Msg.Jobs, func(x hosts.ExitedJob) bool { return others(x.Attempt) })
	ev.Msg.Never = without(ev.Msg.Never, others)
	ev.Msg.Runs = without(ev.Msg.Runs, others)
	c.boundExitTimes(ev.Msg.Jobs)
	return true
}

// isMachineOf reports whether id is that of the machine behind a host's name.
func (c *Core) isMachineOf(h *host, id string) bool {
	return id != "" && h.machine != 0 && c.table.Machines[jobs.Machine{Host: h.spec.Name, ID: id}] == h.machine
}
