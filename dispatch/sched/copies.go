package sched

import (
	"cmp"
	"slices"
	"time"

	"dcs-tui/jobs"
)

// Copies of running jobs. If a slot is free, another attempt of a straggler is launched on a
// second host. If no job waits for the slot, other running jobs are copied, too. The first success
// counts. The other attempts are then ended, and use up no try. A job with several attempts is
// decided by the last of them that is open (completeFailure, stateWithoutResult), so no other code
// knows of copies.

const (
	// minCopyAge is the age below which a job is not copied unless its host is silent:
	// most jobs as short as that end before a copy has begun.
	minCopyAge = time.Second
	// copyInterval is the interval at which all running jobs are checked for this.
	copyInterval = time.Second
	// stragglerCopyDelay is added to copyInterval while jobs wait. From then on no jobs are sent
	// ahead of need until a slot is free.
	stragglerCopyDelay = 4 * time.Second
	// redundantTimeout is how long a run that has all results waits for a silent host with a
	// redundant attempt. copyLease bounds the leases of such a run, because jobs that were sent to
	// the host must not start later.
	redundantTimeout = 10 * time.Second
	copyLease        = redundantTimeout
)

// copyCandidate is an attempt whose job may be copied.
type copyCandidate struct {
	attempt *inFlight
	rank    int           // smaller goes first
	left    time.Duration // expected remaining time; the longest goes first
	why     string
}

// hasWaitingCopies reports whether a straggler waits for a free slot while jobs are queued. Hosts
// then get nothing ahead of need, or no slot would become free.
func (c *Core) hasWaitingCopies() bool {
	return c.cfg.Copies >= 2 && c.numStragglers > 0 && c.queue.ready > 0 && c.now.Mono >= c.copyCheckAt
}

// launchCopies launches copies on free slots. While jobs wait in the queue, only stragglers get a
// slot, before those jobs. Otherwise the order is: jobs of hosts that do not respond, stragglers,
// and then the jobs with the longest expected remaining time.
func (c *Core) launchCopies() {
	if c.cfg.Copies < 2 || c.now.Mono < c.copyCheckAt || c.isLaunchingClosed() || !c.hasFreeSlot() {
		return
	}
	queued := c.queue.ready > 0
	if queued && c.numStragglers == 0 || !queued && c.hasBacklog() {
		return
	}
	c.copyCheckAt = c.now.Mono + copyInterval
	if queued {
		c.copyCheckAt += stragglerCopyDelay
	}
	var list []copyCandidate
	for _, h := range c.allHosts() {
		for f := h.oldest; f != nil; f = f.nextOnHost {
			if queued && !f.isStraggler {
				continue
			}
			if x, ok := c.asCopyCandidate(f); ok {
				list = append(list, x)
			}
		}
	}
	slices.SortStableFunc(list, func(a, b copyCandidate) int {
		return cmp.Or(a.rank-b.rank, cmp.Compare(b.left, a.left))
	})
	for _, x := range list[:min(len(list), maxPerStep)] {
		j := c.table.Job(x.attempt.id.Job)
		if !c.hasFreeSlot() || c.hasLaunchedMost() {
			return
		}
		if !c.mayCopy(j) {
			continue // copied a moment ago, from another of its attempts
		}
		cl := c.newClass(j)
		c.updateFits(cl)
		if h := c.chooseHost(cl); h != nil {
			c.logf(h.spec.Name, x.attempt.id.Job, "job %d runs on %s too: %s", x.attempt.id.Job, h.spec.Name, x.why)
			c.launch(x.attempt.id.Job, h)
			c.launchAfter = c.now.Mono + c.cfg.LaunchDelay
		}
	}
}

// hasBacklog reports whether a job waits on a host that has no slot for it. Moving it to another
// host is better than a copy.
func (c *Core) hasBacklog() bool {
	return c.anyHost(func(h *host) bool { return h.state == jobs.HostUp && h.occupiedSlots > h.limit && h.surplus() > 0 })
}

// asCopyCandidate reports whether the job of an attempt may be copied, with its priority.
func (c *Core) asCopyCandidate(f *inFlight) (copyCandidate, bool) {
	j, h := c.table.Job(f.id.Job), f.host
	if f.killed || f.hasOutcome || j.State != jobs.Running || !c.mayCopy(j) {
		return copyCandidate{}, false
	}
	if h.state == jobs.HostSuspect || !h.linked && c.now.Mono-h.lastReceivedAt >= HeartbeatInterval {
		return copyCandidate{attempt: f, why: h.spec.Name + " does not answer"}, true
	}
	age := f.age(c.now.Mono)
	if !f.hasMeaningfulAge() || age < minCopyAge {
		return copyCandidate{}, false
	}
	// A job that has run longer than expected, or has no expected end, counts as half done.
	left := age
	if d, ok := f.expectedRunTime(age); ok && d > age {
		left = d - age
	}
	if f.isStraggler {
		return copyCandidate{f, 1, left, "it is a straggler on " + h.spec.Name}, true
	}
	return copyCandidate{f, 2, left, "slots are free"}, true
}

// mayCopy reports whether a job may have one more attempt: within the run's number of copies, and
// within its tries even if all of them fail.
func (c *Core) mayCopy(j *jobs.Job) bool {
	if j.Spec.NoCopies || c.isCancelPending(j.Spec.ID) || c.isTooHard(j) {
		return false
	}
	open := 0
	for _, a := range j.Attempts {
		if a.State.Open() {
			open++
			if a.Round != j.Round {
				return false
			}
		}
	}
	return open < c.cfg.Copies && int(j.Failures)+open < c.maxTries(j)
}

// giveUpRedundant gives up attempts on silent hosts whose jobs have their results from copies. It
// is called when every job has a result, so the outcomes of those attempts cannot count.
func (c *Core) giveUpRedundant() {
	if c.cfg.Copies < 2 {
		return
	}
	for _, h := range c.allHosts() {
		if h.linked || c.now.Mono-h.lastReceivedAt < redundantTimeout {
			continue
		}
		for f, next := h.oldest, (*inFlight)(nil); f != nil; f = next {
			next = f.nextOnHost
			if c.canGiveUp(h, f, false, false) {
				c.loseAttempt(f, "its job has a result, and "+h.spec.Name+" does not answer: "+c.silenceText(h))
			}
		}
	}
}
