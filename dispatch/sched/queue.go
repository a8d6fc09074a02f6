package sched

import (
	"container/heap"
	"time"

	"dcs-tui/jobs"
)

// spot is where a job stands in the queue; noSpot for jobs that are not queued.
type spot uint8

const (
	noSpot      spot = iota
	ready            // may be launched
	retrying         // waits for its next try
	afterOthers      // waits for other jobs
	overtaken        // waits for an attempt of an earlier round to be over
)

// queue holds every queued job at a cost of a few bytes: a spot, and a place in
// a run of consecutive ids (bucket.go) of its class (class.go).
type queue struct {
	spots    []spot // job id - 1
	ready    int    // jobs at ready
	classes  map[classKey]*class
	list     []*class                  // those with ready jobs, in no meaningful order
	epoch    int                       // of the hosts' capacities; a class then computes again where it fits
	due      map[jobs.ID]time.Duration // when the timer of a job fires: it ends the wait for the next try, or for another host
	anywhere map[jobs.ID]bool          // ready jobs that have waited long enough for a host where they have not failed
	timers   timers
	lastOpts *jobs.Options // the class of the last job asked about: neighbours mostly share it
	lastKey  classKey
	edits    bool // some job was edited: what a class remembers of it may not be true any more
}

func newQueue() queue {
	return queue{classes: make(map[classKey]*class), due: make(map[jobs.ID]time.Duration), anywhere: make(map[jobs.ID]bool)}
}

func (q *queue) grow(n int) {
	if more := n - len(q.spots); more > 0 {
		q.spots = append(q.spots, make([]spot, more)...)
	}
}

// capacityChanged says that a host has told what it has.
func (q *queue) capacityChanged() { q.epoch++ }

// enqueue finds the spot of a job that is queued and stands nowhere.
func (c *Core) enqueue(id jobs.ID) {
	q := &c.queue
	j := c.table.Job(id)
	if j.State != jobs.Queued || q.spots[id-1] != noSpot {
		return
	}
	c.hasDeadline(id, j)
	c.looksAgain(id, j)
	if len(j.Attempts) > 0 && otherOpen(j, 0) {
		q.spots[id-1] = overtaken
		return
	}
	if j.Spec.Damage != "" {
		c.emit(jobs.Record{Kind: jobs.KindJob, Job: id, Next: jobs.Failed, Reason: j.Spec.Damage})
		return
	}
	if len(j.Spec.After) > 0 {
		blocked, state, reason := c.blocked(id)
		if reason != "" {
			c.emit(jobs.Record{Kind: jobs.KindJob, Job: id, Next: state, Reason: reason})
			return
		}
		if blocked {
			q.spots[id-1] = afterOthers
			return
		}
	}
	cl := c.classOf(j)
	if cl.never != "" {
		c.emit(jobs.Record{Kind: jobs.KindJob, Job: id, Next: jobs.Failed, Reason: cl.never})
		return
	}
	if wait := j.Retry.Sub(c.now.Wall); j.Retry != 0 && wait > 0 {
		q.spots[id-1] = retrying
		q.setTimer(id, c.now.Mono+min(wait, c.longestDelay(j)))
		return
	}
	c.makeReady(id, j)
}

// makeReady puts a job that has no spot into the ready queue.
func (c *Core) makeReady(id jobs.ID, j *jobs.Job) {
	q := &c.queue
	q.spots[id-1] = ready
	q.ready++
	cl := c.classOf(j)
	cl.add(c, id, j)
	if cl.avoid != nil {
		q.setTimer(id, c.now.Mono+c.patience(j))
	}
}

func (q *queue) setTimer(id jobs.ID, at time.Duration) {
	q.due[id] = at
	heap.Push(&q.timers, timer{at, id})
}

// leave takes a job from its spot. What it leaves behind in heaps and runs is
// recognised as stale when it comes up.
func (c *Core) leave(id jobs.ID) {
	q := &c.queue
	if int(id) > len(q.spots) {
		return
	}
	switch q.spots[id-1] {
	case ready:
		q.ready--
		c.classOf(c.table.Job(id)).remove(c, id)
		delete(q.due, id)
		delete(q.anywhere, id)
	case retrying:
		delete(q.due, id)
	case afterOthers:
		delete(c.after.waits, id)
	}
	q.spots[id-1] = noSpot
}

// wake moves jobs whose wait is over to the ready queue, or lets them be launched on
// any host.
func (c *Core) wake() {
	q := &c.queue
	for len(q.timers) > 0 && q.timers[0].at <= c.now.Mono {
		t := heap.Pop(&q.timers).(timer)
		if at, ok := q.due[t.id]; ok && at == t.at {
			waited := q.spots[t.id-1] == ready // for another host
			c.leave(t.id)
			if waited {
				q.anywhere[t.id] = true
			}
			j := c.table.Job(t.id)
			if cl := c.classOf(j); cl.never != "" {
				c.emit(jobs.Record{Kind: jobs.KindJob, Job: t.id, Next: jobs.Failed, Reason: cl.never})
				continue
			}
			c.makeReady(t.id, j)
		}
	}
}

// timer ends the wait of a job at an instant.
type timer struct {
	at time.Duration
	id jobs.ID
}

type timers []timer

func (t timers) Len() int { return len(t) }
func (t timers) Less(i, j int) bool {
	return t[i].at < t[j].at || t[i].at == t[j].at && t[i].id < t[j].id
}
func (t timers) Swap(i, j int) { t[i], t[j] = t[j], t[i] }
func (t *timers) Push(x any)   { *t = append(*t, x.(timer)) }
func (t *timers) Pop() any {
	old := *t
	x := old[len(old)-1]
	*t = old[:len(old)-1]
	return x
}
