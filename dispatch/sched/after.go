package sched

import (
	"fmt"

	"dcs-tui/jobs"
)

// dependencies holds the jobs that depend on others (after=). A job may name a later job of the
// file. Whether that job exists is known when the last job has been submitted.
type dependencies struct {
	waits                map[jobs.ID]wait
	children             map[jobs.ID][]child // jobs that wait for an unfinished job
	generation           uint32
	hasForwardReferences bool // some job names a later one, so cycles and gaps are possible
}

type wait struct {
	numLeft    int    // number of jobs that it still waits for
	generation uint32 // an entry of children with another gen is stale
}

type child struct {
	id         jobs.ID
	generation uint32
	condition  jobs.Condition
}

func newDependencies() dependencies {
	return dependencies{waits: make(map[jobs.ID]wait), children: make(map[jobs.ID][]child)}
}

// registerWait makes a queued job wait for its dependencies, and reports whether it must. If the
// job can never run, the reason is set, with the state that the job gets.
func (c *Core) registerWait(id jobs.ID) (blocked bool, state jobs.JobState, reason string) {
	spec := c.table.Job(id).Spec
	d := &c.dependencies
	d.generation++
	left := 0
	for i, dep := range spec.After {
		on := spec.AfterCondition(i)
		switch p := c.table.Job(dep); {
		case dep == id:
			return false, jobs.Failed, "it comes after itself"
		case p == nil && (dep < 1 || c.allSubmitted):
			return false, jobs.Failed, fmt.Sprintf("it comes after job %d, and there is no such job", dep)
		case p != nil && on.IsMet(p.State):
		case p != nil && p.State.Terminal():
			return false, jobs.Skipped, whySkippedAfter(dep, on, p.State)
		default:
			left++
			d.children[dep] = append(d.children[dep], child{id, d.generation, on})
			d.hasForwardReferences = d.hasForwardReferences || dep > id
		}
	}
	if left == 0 {
		return false, 0, ""
	}
	d.waits[id] = wait{left, d.generation}
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
	for len(c.ended) > 0 {
		ended := c.ended
		c.ended = nil
		for _, e := range ended {
			id := e.id
			c.cause = e.request
			if c.reopenIfRequested(id) {
				continue
			}
			j := c.table.Job(id)
			if !j.State.Terminal() {
				continue // requeued in the meantime, so its children still wait
			}
			kids := c.dependencies.children[id]
			delete(c.dependencies.children, id)
			for _, k := range kids {
				c.handleParentEnd(k, id, j.State)
			}
		}
	}
}

// whySkippedAfter explains why a job is skipped because of a job that it depends on.
func whySkippedAfter(parent jobs.ID, on jobs.Condition, state jobs.JobState) string {
	if on == jobs.AfterFailure {
		return fmt.Sprintf("job %d, which it comes after if that fails, %s", parent, describeState(state))
	}
	return fmt.Sprintf("job %d, which it comes after, %s", parent, describeState(state))
}

func (c *Core) handleParentEnd(k child, parent jobs.ID, state jobs.JobState) {
	w, ok := c.dependencies.waits[k.id]
	if !ok || w.generation != k.generation {
		return
	}
	if !k.condition.IsMet(state) {
		c.emit(jobs.Record{Kind: jobs.KindJob, Job: k.id, Next: jobs.Skipped,
			Reason: whySkippedAfter(parent, k.condition, state)})
		return
	}
	w.numLeft--
	if w.numLeft > 0 {
		c.dependencies.waits[k.id] = w
		return
	}
	c.removeFromQueue(k.id)
	c.enqueue(k.id)
}

// failImpossibleDependencies fails the jobs that depend on a job that does not exist, and those in
// a dependency cycle. It is called when no more jobs are expected.
func (c *Core) failImpossibleDependencies() {
	c.handleDependents()
	if !c.dependencies.hasForwardReferences {
		return
	}
	c.dependencies.hasForwardReferences = false
	// Simulate the end of every job that can end. The jobs that still wait then can never run.
	left := make(map[jobs.ID]int, len(c.dependencies.waits))
	var free []jobs.ID
	for i := range c.table.Jobs {
		id := jobs.ID(i + 1)
		if w, ok := c.dependencies.waits[id]; ok {
			left[id] = w.numLeft
		} else if len(c.dependencies.children[id]) > 0 {
			free = append(free, id)
		}
	}
	for len(free) > 0 {
		id := free[len(free)-1]
		free = free[:len(free)-1]
		for _, k := range c.dependencies.children[id] {
			if w, ok := c.dependencies.waits[k.id]; ok && w.generation == k.generation {
				left[k.id]--
				if left[k.id] == 0 {
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
		if _, ok := c.dependencies.waits[id]; !ok {
			continue // skipped in the meantime, because it depends on one of those
		}
		why := "its dependencies form a cycle"
		for _, dep := range c.table.Jobs[i].Spec.After {
			if c.table.Job(dep) == nil {
				why = fmt.Sprintf("it comes after job %d, and there is no such job", dep)
			}
		}
		c.emit(jobs.Record{Kind: jobs.KindJob, Job: id, Next: jobs.Failed, Reason: why})
	}
	c.handleDependents()
}
