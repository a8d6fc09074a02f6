package sched

import (
	"errors"
	"slices"

	"dcs-tui/jobs"
)

// Edit changes jobs (TUI.md key e): a queued one is changed, with all its tries again;
// one that is over is changed and begins a new round; one that runs, or of which an
// attempt may be alive, is left alone.
type Edit struct {
	Jobs   []jobs.ID
	Change jobs.Change
}

func (Edit) event() {}

// edit tells counted, if that is not nil, of each job whether it was changed.
func (c *Core) edit(e *Edit, by *jobs.Changer, counted func(bool)) {
	var wrong error // the first reason for leaving a job alone that a person should hear of
	c.atOnce(func() {
		for _, id := range e.Jobs {
			did, err := c.editJob(id, &e.Change, by)
			if wrong == nil {
				wrong = err
			}
			if counted != nil {
				counted(did)
			}
		}
	})
	if wrong != nil {
		c.say("", 0, "not changed: %v", wrong)
	}
}

func (c *Core) editJob(id jobs.ID, change *jobs.Change, by *jobs.Changer) (bool, error) {
	j := c.table.Job(id)
	switch {
	case j == nil || !c.editable(j):
		return false, nil
	case c.reconcileBy > 0: // what is found would count, whatever it ran
		return false, errors.New("the hosts have not listed their attempts of this run yet; try again in a moment")
	}
	s, err := by.Apply(change, j.Spec)
	if err != nil {
		return false, err
	}
	over, round := j.State.Terminal(), int(j.Round)
	if over {
		round++
	}
	if !over && s.Same(j.Spec) {
		return true, nil // asked for twice
	}
	c.queue.edits = true
	if !c.emit(jobs.Record{Kind: jobs.KindEdited, Job: id, Spec: s, Count: round, Reason: "edited"}) {
		return false, nil
	}
	if over {
		c.finished = c.finished && c.drain != ""
	}
	return true, nil
}

// editable says that nothing of the job is alive as far as we know.
func (c *Core) editable(j *jobs.Job) bool {
	return j.State != jobs.Running && !otherOpen(j, 0)
}

// atOnce queues what do makes ready only when all of it is known, so that a job and
// the one it comes after may be named in any order.
func (c *Core) atOnce(do func()) {
	c.settle()
	c.holding = true
	do()
	c.holding = false
	slices.Sort(c.held)
	for _, id := range c.held {
		c.enqueue(id)
	}
	c.held = c.held[:0]
	if c.last {
		c.refuseImpossibleOrder()
	}
}
