package sched

import (
	"fmt"

	"dcs-tui/jobs"
)

// dependencies holds the jobs that depend on others (after=). A job may name a later job of the
// file. Whether that job exists is known when the last job has been submitted.
type dependencies struct {
	waits    map[jobs.ID]wait
	children map[jobs.ID][]child // jobs that wait for an unfinished job
	gen      uint32
	forward  bool // some job names a later one, so cycles and gaps are possible
}

type wait struct {
	left int    // number of jobs that it still waits for
	gen  uint32 // an entry of children with another gen is stale
}

type child struct {
	id  jobs.ID
	gen uint32
	on  jobs.Condition
}

func newDependencies() dependencies {
	return dependencies{waits: make(map[jobs.ID]wait), children: make(map[jobs.ID][]child)}
}

// blocked reports whether a queued job with dependencies must wait for them, and registers it if
// so. If the job can never run, the reason is set, with the state that the job gets.
func (c *Core) blocked(id jobs.ID) (blocked bool, state jobs.JobState, reason string) {
	spec := c.table.Job(id).Spec
	d := &c.after
	d.gen++
	left := 0
	for i, dep := range spec.After {
		on := spec.AfterCondition(i)
		switch p := c.table.Job(dep); {
		case dep == id:
			return false, jobs.Failed, "it comes after itself"
		case p == nil && (dep < 1 || c.last):
			return false, jobs.Failed, fmt.Sprintf("it comes after job %d, and there is no such job", dep)
		case p != nil && on.IsMet(p.State):
		case p != nil && p.State.Terminal():
			return false, jobs.Skipped, unmetBy(dep, on, p.State)
		default:
			left++
			d.children[dep] = append(d.children[dep], child{id, d.gen, on})
			d.forward = d.forward || dep > id
		}
	}
	if left == 0 {
		return false, 0, ""
	}
	d.waits[id] = wait{left, d.gen}
	return true, 0, ""
}

// endedJob is a job that has just become terminal, with the name of the request that caused it.
type endedJob struct {
	id      jobs.ID
	request string
}

// handleDependents handles the jobs that wait for ended jobs. The consequences of a request carry
// its name.
func (c *Core) handleDependents() {
	defer func(cause string) { c.cause = cause }(c.cause)
	for len(c.settled) > 0 {
		ended := c.settled
		c.settled = nil
		for _, e := range ended {
			id := e.id
			c.cause = e.request
			if c.reopenIfWanted(id) {
				continue
			}
			j := c.table.Job(id)
			if !j.State.Terminal() {
				continue // requeued in the meantime, so its children still wait
			}
			kids := c.after.children[id]
			delete(c.after.children, id)
			for _, k := range kids {
				c.parentEnded(k, id, j.State)
			}
		}
	}
}

// unmetBy explains why a job is skipped because of a job that it depends on.
func unmetBy(parent jobs.ID, on jobs.Condition, state jobs.JobState) string {
	if on == jobs.AfterFailure {
		return fmt.Sprintf("job %d, which it comes after if that fails, %s", parent, describeState(state))
	}
	return fmt.Sprintf("job %d, which it comes after, %s", parent, describeState(state))
}

func (c *Core) parentEnded(k child, parent jobs.ID, state jobs.JobState) {
	w, ok := c.after.waits[k.id]
	if !ok || w.gen != k.gen {
		return
	}
	if !k.on.IsMet(state) {
		c.emit(jobs.Record{Kind: jobs.KindJob, Job: k.id, Next: jobs.Skipped, Reason: unmetBy(parent, k.on, state)})
		return
	}
	if w.left--; w.left > 0 {
		c.after.waits[k.id] = w
		return
	}
	c.removeFromQueue(k.id)
	c.enqueue(k.id)
}

// refuseImpossibleOrder fails the jobs that depend on a job that does not exist, and those in a
// dependency cycle. It is called when no more jobs are expected.
func (c *Core) refuseImpossibleOrder() {
	c.handleDependents()
	if !c.after.forward {
		return
	}
	c.after.forward = false
	// Simulate the end of every job that can end. The jobs that still wait then can never run.
	left := make(map[jobs.ID]int, len(c.after.waits))
	var free []jobs.ID
	for i := range c.table.Jobs {
		id := jobs.ID(i + 1)
		if w, ok := c.after.waits[id]; ok {
			left[id] = w.left
		} else if len(c.after.children[id]) > 0 {
			free = append(free, id)
		}
	}
	for len(free) > 0 {
		id := free[len(free)-1]
		free = free[:len(free)-1]
		for _, k := range c.after.children[id] {
			if w, ok := c.after.waits[k.id]; ok && w.gen == k.gen {
				if left[k.id]--; left[k.id] == 0 {
					free = append(free, k.id)
				}
			}
		}
	}
	for i := range c.table.Jobs {
		id := jobs.ID(i + 1)
		if left[id] == 0 {
			continue
		}
		if _, ok := c.after.waits[id]; !ok {
			continue // skipped in the meantime, because it depends on one of those
		}
		why := "it waits in a circle for jobs that come after each other"
		for _, dep := range c.table.Jobs[i].Spec.After {
			if c.table.Job(dep) == nil {
				why = fmt.Sprintf("it comes after job %d, and there is no such job", dep)
			}
		}
		c.emit(jobs.Record{Kind: jobs.KindJob, Job: id, Next: jobs.Failed, Reason: why})
	}
	c.handleDependents()
}
