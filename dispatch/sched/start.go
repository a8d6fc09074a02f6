package sched

import (
	"maps"
	"slices"

	"dcs-tui/jobs"
)

// takeOverTable takes over the table. The fate of attempts that may be alive is unknown until their
// hosts have been probed, and waiting jobs are queued. With an empty table it only connects to the
// hosts.
func (c *Core) takeOverTable() {
	c.hasBegun = true
	c.lastPossibleAt, c.claims.startedAt = c.now.Mono, c.now.Mono
	if c.table.Epoch > 1 {
		c.claims.ownUntil = c.now.Mono + c.LongestLease()
	}
	for h := range c.everyHost() {
		h.lastSeenAt, h.lastReceivedAt, h.cutAt, h.awaySince = c.now.Mono, c.now.Mono, c.now.Mono, c.now.Mono
		h.inherited = true
		c.connect(h)
	}
	c.beginProviding()
	c.updateHosts()
	c.applyHostRequests()
	if n := c.table.NumSpecs() - c.table.NumJobs(); n > 0 && c.table.Epoch > 1 {
		// These jobs were stored by a dispatcher that died before it accepted them. If
		// only the record of their acceptance is missing, hosts may have attempts of
		// them.
		c.emit(jobs.Record{Kind: jobs.KindAccepted, Job: jobs.ID(c.table.NumJobs() + 1), Count: n})
	}
	c.queue.grow(c.table.NumJobs())
	for i := range c.cfg.Found {
		if f := &c.cfg.Found[i]; !c.table.Damaged && c.isUnrecorded(f.ProbedJob) {
			c.recordUnrecorded(f.Host, f.Attempt)
		}
	}
	c.leaveSeqsFree()
	c.learnTimes()
	c.learnRecords()
	c.learnUsage()
	for s := range c.table.SpecsWithOptions() {
		c.applyQueueOptions(s)
	}
	for j := range c.table.RowsWithOptions() {
		id := j.Spec.ID
		if !j.State.Terminal() || hasOtherOpen(j, 0) {
			j = c.table.Job(id) // it changes, or its Spec is kept
		}
		c.addDeadline(id, j)
		open := false
		for _, a := range j.Attempts {
			switch {
			case a.State.Open():
				open = true
				h := c.hostOf(a.Host, a.Machine)
				h.wasUsed = true
				f := c.track(h, a.ID, j.Spec)
				f.started = a.State == jobs.AttemptRunning
				f.startedAt, f.earlierRunTime = c.now.Mono, c.ranBefore(a) // an upper bound
				// Ended again when the host reports it.
				f.killed, f.runElsewhere = h.isStopped(), h.isStopped()
				// An upper bound: no host has reported its memory yet.
				f.mem = grownLimit(j.Spec.MemBytes, c.cfg.MemGrowth, j)
				if f.started {
					c.chargeStarted(f, f.earlierRunTime)
				}
				h.addUse(f, 1)
			case a.State == jobs.AttemptLost:
				// The host knows whether the attempt is dead or was only given up.
				if a.Host != "" {
					c.recordOrphan(c.hostOf(a.Host, a.Machine), a.ID)
				}
			}
		}
		c.addWaiting(j, 1)
		c.hardness.Add(id, j)
		switch {
		case j.State == jobs.Running && !open && c.isCancelPending(id):
			c.emit(jobs.Record{Kind: jobs.KindJob, Job: id, Next: jobs.Canceled, Reason: c.table.Cancels[id].Reason})
		case j.State == jobs.Running && !open:
			c.emit(jobs.Record{Kind: jobs.KindJob, Job: id, Next: jobs.Queued,
				Reason: "no attempt of it is open any more"})
		case j.State == jobs.Queued:
			c.enqueue(id)
		}
		c.table.PackIdle()
	}
	for _, id := range slices.Sorted(maps.Keys(c.table.Requeues)) {
		c.reopenIfRequested(id) // the last dispatcher ended between the two records
	}
	c.startReconciling()
	c.resumeTrials()
}

// apply adds new jobs. Their ids follow those in the table. A gap is a bug of the caller, and the
// jobs after it are dropped.
func (e Submit) apply(c *Core) {
	first := jobs.ID(c.table.NumJobs() + 1)
	n := 0
	for _, s := range e.Specs {
		if s.ID != first+jobs.ID(n) {
			c.Defects++
			c.logf("", 0, "internal error: job %d was submitted where job %d was expected", s.ID, first+jobs.ID(n))
			break
		}
		if int(s.ID) > c.table.NumSpecs() {
			c.table.AddSpec(s)
		}
		n++
	}
	if e.Last {
		c.allSubmitted = true
	}
	if n > 0 {
		c.finished = false
		c.emit(jobs.Record{Kind: jobs.KindAccepted, Job: first, Count: n})
		c.queue.grow(c.table.NumJobs())
		for i := range n {
			id := first + jobs.ID(i)
			j := c.table.Job(id)
			c.applyQueueOptions(j.Spec)
			c.addWaiting(j, 1)
			c.hardness.Add(id, j)
			c.enqueue(id)
			c.table.PackIdle()
		}
	}
	if c.allSubmitted {
		c.failImpossibleDependencies()
	}
}
