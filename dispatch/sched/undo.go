package sched

import (
	"slices"

	"dcs-tui/jobs"
)

// Effect gathers what a Cancel does, from the records that Core.See (or Ring.See) shows
// while its Step lasts, so that it can be undone.
type Effect struct {
	over   []jobs.ID // ended by it
	ending []jobs.ID // being ended
}

// See takes a record in.
func (e *Effect) See(r *jobs.Record) {
	switch {
	case r.Kind == jobs.KindCancelling:
		e.ending = append(e.ending, r.Job)
	case r.Kind == jobs.KindJob && (r.Next == jobs.Cancelled || r.Next == jobs.Skipped):
		e.over = append(e.over, r.Job)
	}
}

// Undo returns the jobs that a Requeue has to name to bring back everything that the
// Cancel ended, is about to end, and will have skipped because it comes after those.
func (c *Core) Undo(e *Effect) []jobs.ID {
	all := slices.Concat(e.over, e.ending)
	seen := make([]bool, len(c.table.Jobs)+1) // by job: a map took thirty times as long for a million
	for _, id := range all {
		seen[id] = true
	}
	for i := 0; i < len(all); i++ {
		for _, k := range c.after.children[all[i]] {
			if w, ok := c.after.waits[k.id]; ok && w.gen == k.gen && !seen[k.id] {
				seen[k.id] = true
				all = append(all, k.id)
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

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
