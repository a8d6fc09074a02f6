package sched

import (
	"fmt"
	"iter"
	"slices"

	"dcs-tui/jobs"
)

// dependencies holds the jobs that depend on others (after=). A job may name a later job of the
// file. Whether that job exists is known when the last job has been submitted.
type dependencies struct {
	waits                []wait // by job id - 1; may be shorter
	numWaiting           int    // number of jobs that wait
	children             map[jobs.ID]childList
	all                  []child // the elements of the lists; the first one is not used
	unused               uint32  // the first unused element, or 0
	generation           uint32
	hasForwardReferences bool // some job names a later one, so cycles and gaps are possible
}

// wait is the wait of a job for others. The zero value means that it does not wait.
type wait struct {
	numLeft    uint32 // number of jobs that it still waits for
	generation uint32 // a child with another one is stale
}

// childList is a list of the jobs that wait for an unfinished job: indexes of dependencies.all.
type childList struct{ first, last uint32 }

type child struct {
	id         queuedID
	generation uint32
	next       uint32 // index of the next element, or 0
	condition  jobs.Condition
}

func newDependencies() dependencies {
	return dependencies{children: make(map[jobs.ID]childList), all: make([]child, 1)}
}

// waitOf returns the wait of a job.
func (d *dependencies) waitOf(id jobs.ID) wait {
	if int(id) > len(d.waits) {
		return wait{}
	}
	return d.waits[id-1]
}

// endWait forgets that a job waits.
func (d *dependencies) endWait(id jobs.ID) {
	d.waits[id-1] = wait{}
	d.numWaiting--
}

// addChild adds a job to those that wait for a parent.
func (d *dependencies) addChild(parent jobs.ID, k child) {
	i := d.unused
	if i > 0 {
		d.unused = d.all[i].next
		d.all[i] = k
	} else {
		i = uint32(len(d.all))
		d.all = append(d.all, k)
	}
	list := d.children[parent]
	if list.last > 0 {
		d.all[list.last].next = i
	} else {
		list.first = i
	}
	list.last = i
	d.children[parent] = list
}

// childrenOf yields the jobs that wait for a parent.
func (d *dependencies) childrenOf(parent jobs.ID) iter.Seq[child] {
	return func(yield func(child) bool) {
		for i := d.children[parent].first; i > 0 && yield(d.all[i]); i = d.all[i].next {
		}
	}
}

// takeChildren removes the jobs that wait for a parent, and returns them.
func (d *dependencies) takeChildren(parent jobs.ID) []child {
	kids := slices.Collect(d.childrenOf(parent))
	if list := d.children[parent]; list.last > 0 {
		d.all[list.last].next, d.unused = d.unused, list.first
		delete(d.children, parent)
	}
	return kids
}

// registerWait makes a queued job wait for its dependencies, and reports whether it must. If the
// job can never run, the reason is set, with the state that the job gets.
func (c *Core) registerWait(id jobs.ID) (blocked bool, state jobs.JobState, reason string) {
	d := &c.dependencies
	d.generation++
	left := uint32(0)
	for dep, on := range c.table.Job(id).Spec.After().All() {
		switch p, ok := c.stateOf(dep); {
		case dep == id:
			return false, jobs.Failed, "it comes after itself"
		case !ok && (dep < 1 || c.allSubmitted):
			return false, jobs.Failed, fmt.Sprintf("it comes after job %d, and there is no such job", dep)
		case ok && on.IsMet(p):
		case ok && p.Terminal():
			return false, jobs.Skipped, whySkippedAfter(dep, on, p)
		default:
			left++
			d.addChild(dep, child{id: queuedID(id), generation: d.generation, condition: on})
			d.hasForwardReferences = d.hasForwardReferences || dep > id
		}
	}
	if left == 0 {
		return false, 0, ""
	}
	if n := c.table.NumJobs() - len(d.waits); n > 0 {
		d.waits = append(d.waits, make([]wait, n)...)
	}
	d.waits[id-1] = wait{left, d.generation}
	d.numWaiting++
	return true, 0, ""
}

// stateOf returns the state of a job without unpacking its row. ok is false if there is none.
func (c *Core) stateOf(id jobs.ID) (state jobs.JobState, ok bool) {
	if id < 1 || int(id) > c.table.NumJobs() {
		return 0, false
	}
	return c.table.State(id), true
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
			for _, k := range c.dependencies.takeChildren(id) {
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
	id := jobs.ID(k.id)
	w := c.dependencies.waitOf(id)
	if w.generation != k.generation {
		return
	}
	if !k.condition.IsMet(state) {
		c.emit(jobs.Record{Kind: jobs.KindJob, Job: id, Next: jobs.Skipped,
			Reason: whySkippedAfter(parent, k.condition, state)})
		return
	}
	w.numLeft--
	if w.numLeft > 0 {
		c.dependencies.waits[id-1] = w
		return
	}
	c.removeFromQueue(id)
	c.enqueue(id)
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
	d := &c.dependencies
	left := make([]uint32, c.table.NumJobs())
	var free []jobs.ID
	for i := range left {
		id := jobs.ID(i + 1)
		left[i] = d.waitOf(id).numLeft
		if left[i] == 0 && d.children[id].first > 0 {
			free = append(free, id)
		}
	}
	for len(free) > 0 {
		id := free[len(free)-1]
		free = free[:len(free)-1]
		for k := range d.childrenOf(id) {
			if d.waitOf(jobs.ID(k.id)).generation == k.generation {
				left[k.id-1]--
				if left[k.id-1] == 0 {
					free = append(free, jobs.ID(k.id))
				}
			}
		}
	}
	for i := range left {
		id := jobs.ID(i + 1)
		if left[i] == 0 || d.waitOf(id).numLeft == 0 {
			continue // it can run, or was skipped in the meantime, because it depends on one of those
		}
		why := "its dependencies form a cycle"
		for dep := range c.table.Job(id).Spec.After().All() {
			if _, ok := c.stateOf(dep); !ok {
				why = fmt.Sprintf("it comes after job %d, and there is no such job", dep)
			}
		}
		c.emit(jobs.Record{Kind: jobs.KindJob, Job: id, Next: jobs.Failed, Reason: why})
	}
	c.handleDependents()
}
