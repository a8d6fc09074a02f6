package sched

import (
	"fmt"
	"slices"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/internal/text"
	"dcs-tui/jobs"
)

// Allocations are instances of a batch system: one host for each node. They may wait in their
// cluster's queue for a long time, and they have an end. A job is started on an allocation only if
// it would end before the allocation does.

// linkInstancesWithHosts links each instance with its hosts.
func (c *Core) linkInstancesWithHosts() {
	if len(c.provisions.instances) == 0 {
		return
	}
	for _, in := range c.provisions.instances {
		in.hosts = in.hosts[:0]
	}
	for h := range c.everyHost() {
		if in := c.instanceOf(h.spec.Name); h.instance != in {
			h.instance = in
			c.queue.capacityChanged(h)
		}
		if h.instance != nil && c.byName[h.spec.Name] == h {
			h.instance.hosts = append(h.instance.hosts, h)
		}
	}
}

// updateAllocation stores what a list contains about an instance: why it is pending, or "", and the
// time until its end, or 0 if that is not known.
func (c *Core) updateAllocation(in *instance, pending string, left time.Duration) {
	in.pending = pending
	if pending != "" {
		in.lastPending = c.now.Mono
		if pending != in.reportedPending &&
			(in.reportedPending == "" || c.now.Mono-in.pendingReportedAt > pendingInterval) {
			in.reportedPending, in.pendingReportedAt = pending, c.now.Mono
			c.logf(in.name, 0, "pending: %s", pending)
		}
	}
	in.endsAt = 0
	if left > 0 {
		in.endsAt = c.now.Mono + left
	}
}

// isAllocationOver reports whether the allocation of an instance has ended, or ends within
// stopBeforeEnd.
func (c *Core) isAllocationOver(in *instance) bool {
	return in.endsAt > 0 && c.now.Mono+stopBeforeEnd >= in.endsAt
}

// pendingInterval is the shortest time between two reports of why an allocation is pending.
const pendingInterval = 5 * time.Minute

const allocationEnds = "its allocation ends"

// allocationEndText describes when an allocation ends.
func (c *Core) allocationEndText(in *instance) string {
	return allocationEnds + " in " + text.Span(max(0, in.endsAt-c.now.Mono))
}

// vacateAllocation withdraws the jobs that wait on an allocation and would not end before it does.
// In its last moments the running jobs are stopped and queued again, without charging a try. They
// thus end for a known reason before the batch system kills them.
func (c *Core) vacateAllocation(in *instance) {
	if in.endsAt == 0 {
		return
	}
	for _, h := range in.hosts {
		if h.numOpen > 0 && c.isAllocationOver(in) {
			c.endAttempts(h, allocationEnds)
		}
		if c.cfg.WarnTime > 0 && c.now.Mono+stopBeforeEnd+c.cfg.WarnTime >= in.endsAt {
			h.warnAttempts()
		}
		for f := h.oldest; f != nil; f = f.nextOnHost {
			if f.isWaiting() && !c.hasTimeFor(h, c.roundedMaxRunTime(c.table.Job(f.id.Job).Spec)) {
				h.withdraw(f)
			}
		}
	}
}

// hasTimeFor reports whether a job that runs for at most that long would end before the host's
// allocation does. If that time is not known (0), the provider's margin counts.
func (c *Core) hasTimeFor(h *host, lasts time.Duration) bool {
	in := h.instance
	if in == nil || in.endsAt == 0 {
		return true
	}
	if s := in.provider.spec.Slurm; lasts == 0 && s != nil {
		lasts = s.Margin
	}
	return c.now.Mono+lasts+stopBeforeEnd <= in.endsAt
}

// whyTooLongFor explains that jobs of the class are longer than the provider's allocations, or
// returns "".
func (cl *class) whyTooLongFor(p *hosts.Provider) string {
	if most := p.MaxTime(); most > 0 && cl.key.maxRunTime+stopBeforeEnd > most {
		return fmt.Sprintf("its timeout or estimate of about %s does not fit into the allocations "+
			"of provider %s (time = %s)", text.Span(cl.key.maxRunTime), p.Name, text.Span(most))
	}
	return ""
}

// roundedMaxRunTime returns the longest run time of a job by its timeout and its estimate. It is
// rounded up, by at most a sixteenth, so that there are few classes. It is 0 if neither is given,
// or if no provider has allocations that end.
func (c *Core) roundedMaxRunTime(s *jobs.Spec) time.Duration {
	if !slices.ContainsFunc(c.provisions.providers, func(p *provider) bool { return p.spec.MaxTime() > 0 }) {
		return 0
	}
	most := c.timeout(s)
	if s.Estimate > 0 && (most == 0 || s.Estimate < most) {
		most = s.Estimate
	}
	n := (most + time.Second - 1) / time.Second
	step := time.Duration(1)
	for n/step >= 32 {
		step *= 2
	}
	return (n + step - 1) / step * step * time.Second
}

// describeStartingInstance describes the first instance that is being started.
func (c *Core) describeStartingInstance() string {
	for _, in := range c.provisions.instances {
		if c.isStarting(in) && in.pending != "" {
			return "the allocation " + in.name + " is pending: " + in.pending
		}
	}
	return "an instance of a provider is starting"
}

// whyNoInstance explains why no provider creates an instance for the class, in words that follow
// another sentence. It returns "" if a provider may create one.
func (c *Core) whyNoInstance(cl *class) string {
	for _, p := range c.provisions.providers {
		if why := cl.whyTooLongFor(p.spec); why != "" && !c.hasProviderFor(cl) {
			return ", and " + why
		}
	}
	return ""
}

// mayBePreempted reports whether Slurm may have ended the job: it first sends SIGTERM to everything
// in an allocation that is preempted, canceled, or over. If a job ends like this again and again,
// it does so by itself.
func (c *Core) mayBePreempted(h *host, j *jobs.Job, o *jobs.Outcome) bool {
	if h.instance == nil || h.instance.provider.spec.Slurm == nil || o.TimedOut || !isSIGTERM(o) {
		return false
	}
	before := numAttempts(j, func(a *jobs.Attempt) bool {
		return a.Outcome != nil && a.State == jobs.AttemptCanceled && isSIGTERM(a.Outcome)
	})
	return before+1 < c.maxDeaths(h)
}

func isSIGTERM(o *jobs.Outcome) bool {
	return o.Signal == "SIGTERM" || o.Signal == "" && o.Error == "" && o.Exit == 128+15
}
