package sched

import (
	"fmt"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// Allocations: instances of a batch system, which are one host for each node, may wait in
// its queue for long, and have an end. A job is started on one only if it would end before.

// findInstances finds the hosts that each instance is.
func (c *Core) findInstances() {
	if len(c.provisions.instances) == 0 {
		return
	}
	for _, in := range c.provisions.instances {
		in.hosts = in.hosts[:0]
	}
	for _, h := range c.hosts {
		if h.instance = c.instanceOf(h.spec.Name); h.instance != nil && c.byName[h.spec.Name] == h {
			h.instance.hosts = append(h.instance.hosts, h)
		}
	}
}

// allocated handles what a list says of an instance: why it is pending, "" if it is not,
// and how long it is until its end, 0 if none is known.
func (c *Core) updateAllocation(in *instance, pending string, left time.Duration) {
	if in.pending = pending; pending != "" {
		in.lastPending = c.now.Mono
		if pending != in.reportedPending && (in.reportedPending == "" || c.now.Mono-in.pendingReportedAt > pendingInterval) {
			in.reportedPending, in.pendingReportedAt = pending, c.now.Mono
			c.logf(in.name, 0, "pending: %s", pending)
		}
	}
	in.endsAt = 0
	if left > 0 {
		in.endsAt = c.now.Mono + left
	}
}

// isOver reports whether the allocation of an instance is over or is in its last moments.
func (c *Core) isOver(in *instance) bool { return in.endsAt > 0 && c.now.Mono+lastMoments >= in.endsAt }

// pendingEvery is the least time between two reports that the reason has changed for which an allocation
// is pending.
const pendingInterval = 5 * time.Minute

const allocationEnds = "its allocation ends"

// endText describes for people when an allocation ends.
func (c *Core) endText(in *instance) string {
	return allocationEnds + " in " + short(max(0, in.endsAt-c.now.Mono))
}

// vacate asks back what waits on an allocation and would not end before it does. In the last
// moments it stops what runs there: it is queued again without charging a try, and the end
// is known before the batch system kills it.
func (c *Core) vacate(in *instance) {
	if in.endsAt == 0 {
		return
	}
	for _, h := range in.hosts {
		if h.open > 0 && c.isOver(in) {
			c.endAttempts(h, allocationEnds)
		}
		if c.cfg.Warn > 0 && c.now.Mono+lastMoments+c.cfg.Warn >= in.endsAt {
			h.warnAttempts()
		}
		for f := h.head; f != nil; f = f.next {
			if f.isWaiting() && !c.hasTimeFor(h, c.lastsStep(c.table.Job(f.id.Job).Spec)) {
				h.withdraw(f)
			}
		}
	}
}

// hasTimeFor reports whether a job that lasts so long would end before the host's allocation
// does. 0: it is not known how long; then the margin counts.
func (c *Core) hasTimeFor(h *host, lasts time.Duration) bool {
	in := h.instance
	if in == nil || in.endsAt == 0 {
		return true
	}
	if s := in.p.spec.Slurm; lasts == 0 && s != nil {
		lasts = s.Margin
	}
	return c.now.Mono+lasts+lastMoments <= in.endsAt
}

// neverEnds explains that a job of the class is longer than the provider's allocations; "": it is not.
func (cl *class) tooLongFor(p *hosts.Provider) string {
	if most := p.MaxTime(); most > 0 && cl.key.maxRunTime+lastMoments > most {
		return fmt.Sprintf("its timeout or estimate of about %s does not fit into the allocations of provider %s (time = %s)", short(cl.key.maxRunTime), p.Name, short(most))
	}
	return ""
}

// lastsStep returns how long a job runs at most, as its timeout and its estimate say,
// rounded up by a sixteenth at most, so that there are few classes; 0: neither is given, or
// no host has an end.
func (c *Core) lastsStep(s *jobs.Spec) time.Duration {
	most, allocations := c.timeout(s), false
	for _, p := range c.cfg.Providers {
		allocations = allocations || p.MaxTime() > 0
	}
	if !allocations {
		return 0
	}
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

// whatComes describes the first instance that is on its way.
func (c *Core) whatIsComing() string {
	for _, in := range c.provisions.instances {
		if c.isComing(in) && in.pending != "" {
			return "the allocation " + in.name + " is pending: " + in.pending
		}
	}
	return "an instance of a provider is starting"
}

// whyNoInstance says, to follow another sentence, why no provider creates an instance for
// the class; "" if one may.
func (c *Core) whyNoInstance(cl *class) string {
	for _, p := range c.cfg.Providers {
		if why := cl.tooLongFor(p); why != "" && !c.anyProviderCouldRun(cl) {
			return ", and " + why
		}
	}
	return ""
}

// preempts reports whether an outcome is that of a job which Slurm has ended, with the
// signal that it sends first to everything in an allocation that is preempted, canceled, or
// over. A job that ends so again and again does it by itself.
func (c *Core) preempts(h *host, j *jobs.Job, o *jobs.Outcome) bool {
	if h.instance == nil || h.instance.p.spec.Slurm == nil || o.TimedOut || !ofAllocation(o) {
		return false
	}
	n := 1
	for _, a := range j.Attempts {
		if a.Round == j.Round && a.Outcome != nil && a.State == jobs.AttemptCanceled && ofAllocation(a.Outcome) {
			n++
		}
	}
	return n < c.maxDeaths(h)
}

func ofAllocation(o *jobs.Outcome) bool {
	return o.Signal == "SIGTERM" || o.Signal == "" && o.Error == "" && o.Exit == 128+15
}
