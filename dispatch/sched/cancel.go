package sched

import (
	"math"

	"dcs-tui/jobs"
)

// cancel ends jobs (K9). A queued one is over at once; one with open attempts is
// over when they are, and stays marked until then, through lost links as well.
func (c *Core) cancel(e Cancel) {
	why := reasonOr(e.Why, "cancelled")
	if e.All {
		c.sweep = sweep{from: 1, to: jobs.ID(len(c.table.Jobs)), why: why}
		return
	}
	for _, id := range e.Jobs {
		c.cancelJob(id, why)
	}
}

// mostAStep bounds the records of one step: a million at once would take more
// memory than a million queued jobs do.
const mostAStep = 20_000

// sweep is a cancel of all jobs that there were, some of them each step. Nothing
// is launched until it is through.
type sweep struct {
	from, to jobs.ID // still to do; none when from > to or to is 0
	why      string
}

func (s *sweep) pending() bool { return s.to > 0 && s.from <= s.to }

func (c *Core) cancelSome() {
	s := &c.sweep
	for n := 0; s.pending() && n < mostAStep; n++ {
		c.cancelJob(s.from, s.why)
		s.from++
	}
}

func (c *Core) cancelJob(id jobs.ID, why string) {
	j := c.table.Job(id)
	delete(c.again, id)
	if j == nil || j.State.Terminal() || c.cancelled(id) {
		return
	}
	if j.State == jobs.Queued {
		c.emit(jobs.Record{Kind: jobs.KindJob, Job: id, Next: jobs.Cancelled, Reason: why})
		return
	}
	if !c.emit(jobs.Record{Kind: jobs.KindCancelling, Job: id, Reason: why}) {
		return
	}
	for _, a := range j.Attempts {
		if f := c.flights[a.ID]; f != nil {
			c.killFlight(f, why)
		}
	}
}

// cancelled says whether a cancel of the job waits for an attempt to end.
func (c *Core) cancelled(id jobs.ID) bool {
	_, ok := c.table.Cancels[id]
	return ok
}

// requeue opens a new round for terminal jobs. One that is being ended begins it when it
// is over.
func (c *Core) requeue(ids []jobs.ID) {
	c.atOnce(func() {
		for _, id := range ids {
			j := c.table.Job(id)
			if j != nil && c.cancelled(id) && !j.State.Terminal() {
				c.again[id] = true
			}
			if j != nil && j.State.Terminal() {
				c.finished = c.finished && c.drain != ""
				c.emit(jobs.Record{Kind: jobs.KindRound, Job: id, Reason: "requeued"})
			}
		}
	})
}

func (c *Core) setPriority(e SetPriority) {
	p := min(max(e.Priority, math.MinInt32), math.MaxInt32)
	for _, id := range e.Jobs {
		j := c.table.Job(id)
		if j != nil && int(j.Priority) != p {
			c.emit(jobs.Record{Kind: jobs.KindPriority, Job: id, Priority: p})
		}
	}
}
