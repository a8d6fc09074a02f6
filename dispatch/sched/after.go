package sched

import "dcs-tui/jobs"

// endedJob is a job that has just become terminal, with the name of the request that caused it.
type endedJob struct {
	id      jobs.ID
	request string
}

// handleDependents handles the jobs that wait for ended jobs. The consequences of a request carry
// its name.
func (c *Core) handleDependents() {
	defer func(cause string) { c.cause = cause }(c.cause)
	for len(c.ended) > 0 {
		ended := c.ended
		c.ended = nil
		for _, e := range ended {
			id := e.id
			c.cause = e.request
			if c.reopenIfRequested(id) {
				continue
			}
			if !c.table.State(id).Terminal() {
				continue // requeued in the meantime, so its dependents still wait
			}
			for dependent, reason := range c.dependencies.End(id) {
				if reason != "" {
					c.emit(jobs.Record{Kind: jobs.KindJob, Job: dependent, Next: jobs.Skipped, Reason: reason})
					continue
				}
				c.removeFromQueue(dependent)
				c.enqueue(dependent)
			}
		}
	}
}

// failImpossibleDependencies fails the jobs that can never run because of what they depend on. It is
// called when no more jobs are expected.
func (c *Core) failImpossibleDependencies() {
	c.handleDependents()
	for id, reason := range c.dependencies.Impossible() {
		c.emit(jobs.Record{Kind: jobs.KindJob, Job: id, Next: jobs.Failed, Reason: reason})
	}
	c.handleDependents()
}
