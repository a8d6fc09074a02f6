package sched

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"dcs-tui/dispatch/sched/blame"
	"dcs-tui/jobs"
)

// Copies of running jobs. If a slot is free, another attempt of a straggler is launched on a
// second host. If no job waits for the slot, other running jobs are copied, too (CopyWhenIdle), or
// jobs that are launched get all their attempts at once (CopyAtSubmit). The first success counts.
// The other attempts are then ended, and use up no try. A job with several attempts is decided by
// the last of them that is open (completeFailure, stateWithoutResult), so no other code knows of
// copies.

// CopyAt is when a job gets copies that is neither a straggler nor on a silent host. Those jobs
// are copied as soon as a slot is free.
type CopyAt uint8

// The times of copies.
const (
	CopyWhenIdle CopyAt = iota // while slots are idle, the job with the most work left first
	CopyAtSubmit               // with its first attempt, if that many more slots are idle than jobs wait
)

var copyAtNames = []string{"idle", "submit"}

// String returns the name of the time.
func (a CopyAt) String() string { return copyAtNames[a] }

// ParseCopyAt parses the name of a time.
func ParseCopyAt(name string) (CopyAt, error) {
	if i := slices.Index(copyAtNames, name); i >= 0 {
		return CopyAt(i), nil
	}
	return 0, fmt.Errorf("unknown time %q (use idle or submit)", name)
}

// CopyOn is which hosts may run another attempt of a job.
type CopyOn uint8

// The hosts for copies.
const (
	CopyOnOthers CopyOn = iota // hosts without an attempt of the job
	CopyOnAny                  // those first, and then also a host that runs an attempt of it
)

var copyOnNames = []string{"others", "any"}

// String returns the name of the choice.
func (o CopyOn) String() string { return copyOnNames[o] }

// ParseCopyOn parses the name of a choice.
func ParseCopyOn(name string) (CopyOn, error) {
	if i := slices.Index(copyOnNames, name); i >= 0 {
		return CopyOn(i), nil
	}
	return 0, fmt.Errorf("unknown hosts %q (use others or any)", name)
}

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

// waitingCopies returns the kinds of the stragglers that wait for a free slot while jobs are queued. Hosts that take
// jobs of these kinds then get nothing ahead of need, or no slot would become free.
func (c *Core) waitingCopies() blame.Kinds {
	if c.cfg.Copies < 2 || c.queue.ready == 0 || c.now.Mono < c.copyCheckAt {
		return 0
	}
	return c.numStragglers.Set
}

// launchCopies launches copies on free slots. While jobs wait in the queue, only stragglers get a
// slot, before those jobs. Otherwise the order is: jobs of hosts that do not respond, stragglers,
// and then the jobs with the longest expected remaining time.
func (c *Core) launchCopies() {
	if c.cfg.Copies < 2 || c.now.Mono < c.copyCheckAt || c.isLaunchingClosed() || !c.hasFreeSlot() {
		return
	}
	queued := c.queue.ready > 0
	if queued && c.nodes[1].open&c.numStragglers.Set == 0 || !queued && c.hasBacklog() {
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
		if !c.hasFreeSlot() || c.hasLaunchedMost() {
			return
		}
		// It may have been copied a moment ago, from another of its attempts.
		if j := c.table.Job(x.attempt.id.Job); c.mayCopy(j) {
			c.launchCopy(j, x.why)
		}
	}
}

// launchCopy launches another attempt of a job if a host has space for it, and reports whether one
// has.
func (c *Core) launchCopy(j *jobs.Job, why string) bool {
	cl := c.ownClassOf(j)
	h := c.chooseHost(cl)
	if h == nil && c.cfg.CopyOn == CopyOnAny && cl.key.excluded != "" {
		cl.excluded = c.orphanHosts(j)
		h = c.chooseHost(cl)
	}
	if h == nil {
		return false
	}
	id := j.Spec.ID
	c.logf(h.spec.Name, id, "job %d runs on %s too: %s", id, h.spec.Name, why)
	c.launch(id, h)
	c.launchAfter = c.now.Mono + c.cfg.LaunchDelay
	return true
}

// copySubmitted launches the copies of jobs that this Step has launched from the queue, with
// CopyAtSubmit. A job gets them if as many slots as it may have attempts are idle beside those that
// all jobs of the queue have taken. So no job waits because of a copy.
func (c *Core) copySubmitted() {
	if c.cfg.Copies < 2 || c.queue.ready > 0 {
		return
	}
	for _, id := range c.submitted {
		j := c.table.Job(id)
		kind, need := c.kinds.KindOf(j.Spec), c.cfg.Copies*j.Spec.SlotCount()
		if c.numFreeSlots(kind) < need || c.slots.limit >= 0 && c.slots.limit-c.slots.used < need {
			continue
		}
		for n := 1; n < c.cfg.Copies && c.mayCopy(j) && c.hasFreeSlot() && !c.hasLaunchedMost(); n++ {
			if !c.launchCopy(j, "more slots are free than jobs wait") {
				break
			}
		}
	}
}

// hasBacklog reports whether a job waits on a host that has no slot for it. Moving it to another
// host is better than a copy.
func (c *Core) hasBacklog() bool {
	return c.anyHost(func(h *host) bool {
		return h.state == jobs.HostUp && h.occupiedSlots > h.limit && h.surplus() > 0
	})
}

// asCopyCandidate reports whether the job of an attempt may be copied, with its priority.
func (c *Core) asCopyCandidate(f *inFlight) (copyCandidate, bool) {
	j, h := c.table.Job(f.id.Job), f.host
	if f.killed || f.hasOutcome || j.State != jobs.Running || !c.mayCopy(j) {
		return copyCandidate{}, false
	}
	if h.state == jobs.HostSuspect || !h.linked && c.now.Mono-h.lastReceivedAt >= h.heartbeatInterval {
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
	return copyCandidate{f, 2, left, "slots are free"}, c.cfg.CopyAt == CopyWhenIdle
}

// mayCopy reports whether a job may have one more attempt: within the run's number of copies, and
// within its tries even if all of them fail.
func (c *Core) mayCopy(j *jobs.Job) bool {
	if j.Spec.NoCopies || c.isCancelPending(j.Spec.ID) || c.hardness.IsTooHard(j) {
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
