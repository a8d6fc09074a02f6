package sched

import (
	"cmp"
	"slices"
	"time"

	"dcs-tui/dispatch/sched/blame"
	"dcs-tui/dispatch/sched/hardness"
	"dcs-tui/internal/heap"
	"dcs-tui/jobs"
)

// queueState is the reason why a queued job waits. Jobs that may be launched are ready, and belong to
// a class: jobs with the same requirements (class.go), so that a host is chosen for a class and not
// for each job. In a class, jobs of the same rank form a bucket, ordered by id.
type queueState uint8

const (
	stateNotQueued         queueState = iota // not a queued job
	stateReady                               // may be launched
	stateRetrying                            // waits for its next try
	stateWaitingForJobs                      // waits for other jobs (after=)
	stateWaitingForAttempt                   // waits for an attempt of an earlier round to be over
)

// queue holds the queued jobs, at a few bytes each.
type queue struct {
	states  []queueState // by job id - 1
	ready   int          // number of ready jobs
	classes map[classKey]*class
	fits    map[needs]*fits // of the classes, and of some that were dropped
	list    []*class        // classes with ready jobs, in no meaningful order
	// Memory of Core.candidates.
	candidates     candidates
	numClassVisits int // number of visited classes, for tests
	// Version of what all classes depend on besides hosts: pools, providers, whether jobs wait for hosts.
	epoch            int
	checked          fitsVersion      // of the last refuseUnsatisfiable
	hasUnsatisfiable bool             // a class of the list may be unsatisfiable: refuseUnsatisfiable looks
	kinds            blame.KindCounts // of the classes of the list
	numWide          int              // number of classes of the list whose jobs need several slots or GPUs
	// The hosts, each in a column of its own that it keeps as long as it is in the inventory. nil: free.
	columns []*host
	// Columns whose hosts have changed, without the first firstChange ones, which were forgotten.
	changed      []int
	firstChange  int
	numFitChecks int // how often it was computed whether a class could run on a host, for tests
	// When the timer of a job fires, which ends the wait for a retry or for another host.
	timerAt map[jobs.ID]time.Duration
	// Ready jobs that have waited long enough for hosts where they have not failed.
	avoidanceOver   map[jobs.ID]bool
	timers          heap.Heap[timer]
	lastOpts        *jobs.Options // options of the last lookup, which neighbors usually share
	lastKey         classKey
	hasStaleEntries bool // a job was edited, so a class may have entries of jobs that have left it
	// Ready jobs with attempts: their classes depend on the hosts of these (excludedHosts).
	tried map[jobs.ID]bool
}

func (q *queue) grow(n int) {
	if more := n - len(q.states); more > 0 {
		q.states = append(q.states, make([]queueState, more)...)
	}
}

// fitsVersion is the version of all that decides where classes could run.
type fitsVersion struct {
	epoch      int // queue.epoch
	numChanges int // number of changes of hosts (queue.changed)
}

func (q *queue) fitsVersion() fitsVersion {
	return fitsVersion{q.epoch, q.firstChange + len(q.changed)}
}

// addToList adds a class that has its first ready job.
func (q *queue) addToList(cl *class) {
	cl.listIndex = len(q.list)
	q.list = append(q.list, cl)
	q.countInList(cl, 1)
	q.hasUnsatisfiable = q.hasUnsatisfiable || cl.unsatisfiable != ""
}

// removeFromList removes a class that has no ready jobs any more.
func (q *queue) removeFromList(cl *class) {
	last := q.list[len(q.list)-1]
	q.list[cl.listIndex] = last
	last.listIndex = cl.listIndex
	q.list = q.list[:len(q.list)-1]
	cl.listIndex = -1
	q.countInList(cl, -1)
}

// countInList updates what is counted of the classes of the list. n is 1 to add one, or -1 to remove it.
func (q *queue) countInList(cl *class, n int) {
	if cl.isWide() {
		q.numWide += n
	}
	q.kinds.Add(cl.kind, n)
}

// addColumn gives a host that has none a column.
func (q *queue) addColumn(h *host) {
	h.column = slices.Index(q.columns, nil)
	if h.column < 0 {
		h.column = len(q.columns)
		q.columns = append(q.columns, nil)
	}
	q.columns[h.column] = h
	q.capacityChanged(h)
}

// removeColumn frees the column of a host that leaves the inventory.
func (q *queue) removeColumn(h *host) {
	q.capacityChanged(h)
	q.columns[h.column] = nil
	h.column = -1
}

// capacityChanged makes each class compute again whether it could run on the host.
func (q *queue) capacityChanged(h *host) { q.changed = append(q.changed, h.column) }

// maxChanges is the number of changes of hosts that are remembered for classes without ready jobs.
const maxChanges = 1024

// forgetChanges forgets the changes of hosts if there are many. It is called when all classes with
// ready jobs have seen them.
func (q *queue) forgetChanges() {
	if len(q.changed) > maxChanges {
		q.firstChange += len(q.changed)
		q.changed = q.changed[:0]
	}
}

// enqueue puts a queued job into the wait state that applies to it. It ignores other jobs, and jobs
// that have a wait state.
func (c *Core) enqueue(id jobs.ID) {
	q := &c.queue
	j := c.table.Job(id)
	if j.State != jobs.Queued || q.states[id-1] != stateNotQueued {
		return
	}
	c.addDeadline(id, j)
	c.hardness.Recheck(id, j)
	if len(j.Attempts) > 0 && hasOtherOpen(j, 0) {
		q.states[id-1] = stateWaitingForAttempt
		return
	}
	if j.Spec.Damage != "" {
		c.emit(jobs.Record{Kind: jobs.KindJob, Job: id, Next: jobs.Failed, Reason: j.Spec.Damage})
		return
	}
	if on := j.Spec.After(); len(on) > 0 {
		waits, next, reason := c.dependencies.Add(id, on, c.allSubmitted)
		if reason != "" {
			c.emit(jobs.Record{Kind: jobs.KindJob, Job: id, Next: next, Reason: reason})
			return
		}
		if waits {
			q.states[id-1] = stateWaitingForJobs
			return
		}
	}
	cl := c.classOf(j)
	if cl.unsatisfiable != "" {
		c.emit(jobs.Record{Kind: jobs.KindJob, Job: id, Next: jobs.Failed, Reason: cl.unsatisfiable})
		return
	}
	if wait := j.Retry.Sub(c.now.Wall); j.Retry != 0 && wait > 0 {
		q.states[id-1] = stateRetrying
		q.setTimer(id, c.now.Mono+min(wait, c.longestDelay(j)))
		return
	}
	c.makeReady(id, j)
}

// makeReady adds a job that has no wait state to the ready queue.
func (c *Core) makeReady(id jobs.ID, j *jobs.Job) {
	q := &c.queue
	q.states[id-1] = stateReady
	q.ready++
	cl := c.classOf(j)
	cl.add(c, id, j)
	if len(j.Attempts) > 0 {
		q.tried[id] = true
	}
	if cl.key.avoid != "" {
		q.setTimer(id, c.now.Mono+c.avoidanceTime(j))
	}
}

// allowReturn lets a ready job that avoids hosts return to them after avoidanceTime.
func (c *Core) allowReturn(id jobs.ID, j *jobs.Job) {
	if q := &c.queue; q.states[id-1] == stateReady && !q.avoidanceOver[id] {
		q.setTimer(id, c.now.Mono+c.avoidanceTime(j))
	}
}

func (q *queue) setTimer(id jobs.ID, at time.Duration) {
	q.timerAt[id] = at
	q.timers.Push(timer{at, id})
}

// removeFromQueue removes a job from the queue. Its entries in heaps stay until they reach the
// front.
func (c *Core) removeFromQueue(id jobs.ID) {
	q := &c.queue
	if int(id) > len(q.states) {
		return
	}
	switch q.states[id-1] {
	case stateReady:
		q.ready--
		c.classOf(c.peek(id)).remove(c, id)
		delete(q.timerAt, id)
		delete(q.avoidanceOver, id)
		delete(q.tried, id)
	case stateRetrying:
		delete(q.timerAt, id)
	case stateWaitingForJobs:
		c.dependencies.Remove(id)
	}
	q.states[id-1] = stateNotQueued
}

// endWaits ends the waits that are over: a job becomes ready, or a ready job may return to hosts
// where it has failed.
func (c *Core) endWaits() {
	q := &c.queue
	for len(q.timers) > 0 && q.timers[0].at <= c.now.Mono {
		t := q.timers.Pop()
		if at, ok := q.timerAt[t.id]; ok && at == t.at {
			j := c.table.Job(t.id)
			waited := q.states[t.id-1] == stateReady // it waited for another host
			if waited && !c.mayReturn(j) {
				q.setTimer(t.id, c.now.Mono+max(c.avoidanceTime(j), maxAvoidanceTime))
				continue
			}
			c.removeFromQueue(t.id)
			if waited {
				q.avoidanceOver[t.id] = true
			} else if c.endEvidenceTime(t.id, j) {
				continue
			}
			if cl := c.classOf(j); cl.unsatisfiable != "" {
				c.emit(jobs.Record{Kind: jobs.KindJob, Job: t.id, Next: jobs.Failed, Reason: cl.unsatisfiable})
				continue
			}
			c.makeReady(t.id, j)
		}
	}
}

// timer ends the wait of a job at a time.
type timer struct {
	at time.Duration
	id jobs.ID
}

func (t timer) Before(o timer) bool { return t.at < o.at || t.at == o.at && t.id < o.id }

// rank is the order of jobs before their ids.
type rank struct {
	jobs.Urgency
	hardness *hardness.Tuple
}

func (c *Core) rankOf(j *jobs.Job) rank { return rank{jobs.UrgencyOf(j), c.hardness.TupleOf(j.Spec)} }

func (r rank) compare(o rank) int {
	return cmp.Or(r.Urgency.Compare(o.Urgency), r.hardness.Compare(o.hardness))
}

// bucket holds the ready jobs of one class and rank. Entries are hints: the class checks that the
// job is still there.
type bucket struct {
	rank rank
	ids  heap.Heap[queuedID]
}

func (b *bucket) Before(o *bucket) bool { return b.rank.compare(o.rank) < 0 }

// queuedID is the id of a job in half the space.
type queuedID uint32

func (id queuedID) Before(o queuedID) bool { return id < o }
