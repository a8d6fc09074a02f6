package cli

import (
	"slices"

	"dcs-tui/hosts"
	"dcs-tui/internal/text"
	"dcs-tui/jobs"
	"dcs-tui/jobs/action"
	"dcs-tui/jobs/rundir"
)

// admit returns an error if the next resume of a run that nobody dispatches could do nothing with
// one of the requests.
func (a *app) admit(run *rundir.Run, table *jobs.Table, requests []*action.Request) error {
	if table == nil {
		var err error
		if table, err = replayTable(run); err != nil {
			return err
		}
	}
	target, err := run.UndispatchedTarget(table)
	if err != nil {
		return err
	}
	why, advice, err := a.whyNotAdmitted(run, table, target, requests)
	if err != nil || why == "" {
		return err
	}
	refused := text.Errorf("%s", text.Line(why))
	if advice != "" {
		return refused.WithAdvice("%s", advice)
	}
	return refused
}

// whyNotAdmitted returns why the next resume could do nothing with one of the requests, and what to
// do instead; why is "" if it could. The names of hosts are checked as a dispatcher does.
func (a *app) whyNotAdmitted(run *rundir.Run, table *jobs.Table, target action.Target,
	requests []*action.Request) (why, advice string, err error) {
	for _, q := range requests {
		if q.EffectOn(target) == action.IsRefused {
			if q.EffectOn(action.Target{}) != action.IsRefused {
				ref := refTo(run)
				advice = "dcs-tui requeue " + ref + " JOBS or dcs-tui submit " + ref +
					" FILE gives the run jobs; dcs-tui resume " + ref + " then runs them"
			}
			return q.WhyRefused(target), advice, nil
		}
		target.IsFinished = target.IsFinished && !q.AddsJobs()
		if q.Host != "" {
			if why, err := a.whyNotHost(run, table, q); err != nil || why != "" {
				return why, "", err
			}
		}
	}
	return "", "", nil
}

// whyNotHost returns why a dispatcher would refuse the host of a request, or "".
func (a *app) whyNotHost(run *rundir.Run, table *jobs.Table, q *action.Request) (string, error) {
	inv, err := a.storedInventory(run)
	if now, _, _ := currentInventory(run); now != nil {
		inv, err = now, nil
	}
	if err != nil {
		return "", err
	}
	list, _ := inv.With(table.Inventory, nil)
	names := text.Each(list, func(h *hosts.Host) string { return h.Name })
	_, isInstance := table.Instances[q.Host]
	isKnown := isInstance || slices.Contains(names, q.Host)
	switch {
	case q.Do == action.AddHost && isKnown:
		return q.Host + " is in use already", nil
	case q.Do == action.AddHost:
		if _, err := inv.Add(q.Host, q.Options); err != nil {
			return err.Error(), nil
		}
	case !isKnown && table.Inventory[q.Host].Removed:
		return q.Host + " was removed from the run", nil
	case !isKnown:
		return hosts.UnknownText(q.Host, names), nil
	}
	return "", nil
}
