package dispatch

import (
	"errors"
	"fmt"

	"dcs-tui/dispatch/sched"
	"dcs-tui/hosts"
)

// A dispatcher stops when the run directory shows another one, or the mirror of the run directory
// does. A host that claims to serve another dispatcher proves nothing: it is only a reason to look
// there at once. Until then, and if nothing is found, the host is not used.
//
// There is one exception. If the run directory is a copy or was restored from a backup, only the
// hosts know the later dispatchers. When no host is left that serves this dispatcher, it stops, and
// the next one begins after the epochs that the hosts have named.

// maxEpochsAhead bounds the epochs by which a host may be ahead of this dispatcher. It is as large
// as what a run can skip (journal.SkipTo).
const maxEpochsAhead = 1 << 20

// checkedFence replaces a FencedError whose epoch is not possible by a Broken error.
func (a *agent) checkedFence(err error) error {
	fenced, ok := errors.AsType[*hosts.FencedError](err)
	if ok && (fenced.By <= a.epoch() || fenced.By-a.epoch() > maxEpochsAhead) {
		return &hosts.Error{Host: a.name, Class: hosts.Broken,
			Err: fmt.Errorf("it claims to serve the dispatcher of epoch %d, but this is epoch %d", fenced.By,
				a.epoch())}
	}
	return err
}

// checkFenceClaim returns the event for the core about a host whose link has ended. If the host
// claims that another dispatcher has taken the run over, the run directory is checked.
func (e *engine) checkFenceClaim(ev sched.HostDown) sched.HostDown {
	fenced, ok := errors.AsType[*hosts.FencedError](ev.Err)
	if !ok {
		return ev
	}
	e.fenceClaims[ev.Host] = fenced.By
	e.housekeeping()
	ev.Err = &hosts.Error{
		Host:  ev.Host,
		Class: hosts.Misconfigured,
		Err: fmt.Errorf("it claims that another dispatcher has taken this run over (epoch %d), "+
			"which the run directory does not show", fenced.By),
		Advice: "the host is not used; if the run directory is a copy or was restored, stop this dispatcher " +
			"and resume the run",
	}
	return ev
}

// claimedFence returns the highest epoch that hosts claim to serve if no other host is left, or 0.
func (e *engine) claimedFence() (by int) {
	if len(e.fenceClaims) == 0 {
		return 0
	}
	for name := range e.agents {
		epoch, ok := e.fenceClaims[name]
		if !ok {
			return 0
		}
		by = max(by, epoch)
	}
	return by
}
