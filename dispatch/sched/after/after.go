// Package after determines which jobs wait for others (after=), when each of them may run, and which can
// never run. A job may name a later job of the file. Whether that job exists is known when the last
// job has been submitted.
//
// The core reports the jobs that begin to wait and those that have ended (sched/after.go).
package after

import (
	"fmt"
	"iter"
	"slices"

	"dcs-tui/jobs"
)

// Index holds the jobs that wait for others, at a few bytes each. How jobs have ended is in the table.
type Index struct {
	table                *jobs.Table
	waits                []wait // by job id - 1; may be shorter
	numWaiting           int
	dependents           map[jobs.ID]list // by the job that they wait for
	all                  []dependent      // the elements of the lists; the first one is not used
	unused               uint32           // the first unused element, or 0
	generation           uint32
	hasForwardReferences bool // some job names a later one, so cycles and gaps are possible
}

// wait is the wait of a job for others. The zero value means that it does not wait.
type wait struct {
	numLeft    uint32 // number of jobs that it still waits for
	generation uint32 // of the elements of lists that belong to this wait; others are stale
}

// list is a list of indexes of Index.all.
type list struct{ first, last uint32 }

// dependent is a job that waits for another one.
type dependent struct {
	id         uint32 // of the job, in half the space
	generation uint32
	next       uint32 // index of the next element, or 0
	condition  jobs.Condition
}

// New returns an index in which no job waits.
func New(t *jobs.Table) *Index {
	return &Index{table: t, dependents: make(map[jobs.ID]list), all: make([]dependent, 1)}
}

// Add makes a job wait for those that it depends on, and reports whether it must. If it can never run,
// reason is why, and next is the state that it gets. isComplete is whether all jobs were submitted.
func (x *Index) Add(id jobs.ID, on jobs.Dependencies, isComplete bool) (waits bool, next jobs.JobState, reason string) {
	x.generation++
	left := uint32(0)
	for dep, condition := range on.All() {
		switch state, ok := x.state(dep); {
		case dep == id:
			return false, jobs.Failed, "it comes after itself"
		case !ok && (dep < 1 || isComplete):
			return false, jobs.Failed, whyNoSuchJob(dep)
		case ok && condition.IsMet(state):
		case ok && state.Terminal():
			return false, jobs.Skipped, whySkipped(dep, condition, state)
		default:
			left++
			x.append(dep, dependent{id: uint32(id), generation: x.generation, condition: condition})
			x.hasForwardReferences = x.hasForwardReferences || dep > id
		}
	}
	if left == 0 {
		return false, 0, ""
	}
	if n := x.table.NumJobs() - len(x.waits); n > 0 {
		x.waits = append(x.waits, make([]wait, n)...)
	}
	x.waits[id-1] = wait{left, x.generation}
	x.numWaiting++
	return true, 0, ""
}

// Remove ends the wait of a job, for whatever reason.
func (x *Index) Remove(id jobs.ID) {
	x.waits[id-1] = wait{}
	x.numWaiting--
}

// NumWaiting returns the number of jobs that wait.
func (x *Index) NumWaiting() int { return x.numWaiting }

// Unmet returns the jobs that have not yet ended as the dependencies require.
func (x *Index) Unmet(on jobs.Dependencies) (ids []jobs.ID) {
	for dep, condition := range on.All() {
		if state, ok := x.state(dep); !ok || !condition.IsMet(state) {
			ids = append(ids, dep)
		}
	}
	return ids
}

// End handles the end of a job. It yields the jobs that need not wait any more: those that may run
// now, and, with the reason, those that must be skipped. The caller removes each before the next one.
func (x *Index) End(id jobs.ID) iter.Seq2[jobs.ID, string] {
	return func(yield func(jobs.ID, string) bool) {
		state := x.table.State(id)
		for _, d := range x.take(id) {
			w, reason := x.waitOf(d), ""
			switch {
			case w.numLeft == 0:
				continue
			case !d.condition.IsMet(state):
				reason = whySkipped(id, d.condition, state)
			case w.numLeft > 1:
				x.waits[d.id-1].numLeft--
				continue
			}
			if !yield(jobs.ID(d.id), reason) {
				return
			}
		}
	}
}

// Impossible yields the jobs that can never run, with the reason: those that depend on a job that does
// not exist, and those in a dependency cycle. It is called when all jobs were submitted.
func (x *Index) Impossible() iter.Seq2[jobs.ID, string] {
	return func(yield func(jobs.ID, string) bool) {
		if !x.hasForwardReferences {
			return
		}
		x.hasForwardReferences = false
		for i, left := range x.leftAtTheEnd() {
			if id := jobs.ID(i + 1); left > 0 && !yield(id, x.whyImpossible(id)) {
				return
			}
		}
	}
}

// leftAtTheEnd returns, by job id - 1, for how many jobs each job waits after every job that can end
// has ended.
func (x *Index) leftAtTheEnd() []uint32 {
	left := make([]uint32, x.table.NumJobs())
	for i, w := range x.waits {
		left[i] = w.numLeft
	}
	var ended []jobs.ID
	for i := range left {
		if id := jobs.ID(i + 1); left[i] == 0 && x.dependents[id].first > 0 {
			ended = append(ended, id)
		}
	}
	for len(ended) > 0 {
		last := len(ended) - 1
		id := ended[last]
		ended = ended[:last]
		for d := range x.dependentsOf(id) {
			if x.waitOf(d).numLeft > 0 {
				left[d.id-1]--
				if left[d.id-1] == 0 {
					ended = append(ended, jobs.ID(d.id))
				}
			}
		}
	}
	return left
}

func (x *Index) whyImpossible(id jobs.ID) string {
	why := "its dependencies form a cycle"
	for dep := range x.table.Spec(id).After().All() {
		if _, ok := x.state(dep); !ok {
			why = whyNoSuchJob(dep)
		}
	}
	return why
}

func whyNoSuchJob(id jobs.ID) string {
	return fmt.Sprintf("it comes after job %d, and there is no such job", id)
}

// whySkipped explains why a job is skipped because of the end of another one.
func whySkipped(after jobs.ID, condition jobs.Condition, state jobs.JobState) string {
	if condition == jobs.AfterFailure {
		return fmt.Sprintf("job %d, which it comes after if that fails, %s", after, state.Clause())
	}
	return fmt.Sprintf("job %d, which it comes after, %s", after, state.Clause())
}

// state returns the state of a job. ok is false if there is none.
func (x *Index) state(id jobs.ID) (state jobs.JobState, ok bool) {
	if id < 1 || int(id) > x.table.NumJobs() {
		return 0, false
	}
	return x.table.State(id), true
}

// waitOf returns the wait to which an element of a list belongs, or the zero value if that is over.
func (x *Index) waitOf(d dependent) wait {
	if int(d.id) > len(x.waits) || x.waits[d.id-1].generation != d.generation {
		return wait{}
	}
	return x.waits[d.id-1]
}

// append adds an element to the list of a job.
func (x *Index) append(to jobs.ID, d dependent) {
	i := x.unused
	if i > 0 {
		x.unused = x.all[i].next
		x.all[i] = d
	} else {
		i = uint32(len(x.all))
		x.all = append(x.all, d)
	}
	l := x.dependents[to]
	if l.last > 0 {
		x.all[l.last].next = i
	} else {
		l.first = i
	}
	l.last = i
	x.dependents[to] = l
}

// dependentsOf yields the list of a job.
func (x *Index) dependentsOf(id jobs.ID) iter.Seq[dependent] {
	return func(yield func(dependent) bool) {
		for i := x.dependents[id].first; i > 0 && yield(x.all[i]); i = x.all[i].next {
		}
	}
}

// take removes and returns the list of a job.
func (x *Index) take(id jobs.ID) []dependent {
	taken := slices.Collect(x.dependentsOf(id))
	if l := x.dependents[id]; l.last > 0 {
		x.all[l.last].next, x.unused = x.unused, l.first
		delete(x.dependents, id)
	}
	return taken
}
