package sched

import "dcs-tui/jobs"

// revives says that a person wants a job again that is still being ended, and opens its
// next round now that it is over.
func (c *Core) revives(id jobs.ID) bool {
	if !c.again[id] {
		return false
	}
	delete(c.again, id)
	if c.table.Job(id).State != jobs.Cancelled {
		return false
	}
	return c.emit(jobs.Record{Kind: jobs.KindRound, Job: id, Reason: "requeued"})
}
