package sched

import (
	"cmp"
	"container/heap"
	"fmt"
	"math"
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
// a run of consecutive ids (queue.go) of its class (class.go).
type queue struct {
	spots    []spot // job id - 1
	ready    int    // jobs at ready
	classes  map[classKey]*class
	list     []*class                  // those with ready jobs, in no meaningful order
	epoch    int                       // of the hosts' capacities; a class then computes again where it fits
	due      map[jobs.ID]time.Duration // when the timer of a job fires: it ends the wait for the next try, or for another host
	anywhere map[jobs.ID]bool          // ready jobs that have waited long enough for a host where they have not failed
	timers   timers
	lastOpts *jobs.Options // the class of the last job asked about: neighbors mostly share it
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

// capacityChanged records that a host has told what it has.
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

// rank is what orders jobs before their ids do: jobs of failed hosts first,
// then priority, then deadline (B6), then hardness (E2).
type rank struct {
	calm     bool // not urgent
	priority int32
	deadline int64 // ns since the Unix epoch
	hard     *tuple
}

func (c *Core) rankOf(j *jobs.Job) rank {
	r := rank{calm: !j.Urgent, priority: j.Priority, deadline: math.MaxInt64, hard: c.tupleOf(j.Spec)}
	if !j.Spec.Deadline.IsZero() {
		r.deadline = j.Spec.Deadline.UnixNano()
	}
	return r
}

func (r rank) compare(o rank) int { return cmp.Or(r.presses(o), r.hard.compare(o.hard)) }

// presses compares all but the hardness.
func (r rank) presses(o rank) int {
	if r.calm != o.calm {
		if o.calm {
			return -1
		}
		return 1
	}
	return cmp.Or(cmp.Compare(r.priority, o.priority), cmp.Compare(r.deadline, o.deadline))
}

// bucket holds the ready jobs of one class and rank, lowest id first. Jobs arrive
// mostly in the order of their ids, so that runs of ids hold them; the others,
// jobs that come back, are in a heap. Entries are hints: the class checks that
// the job is still there.
type bucket struct {
	rank  rank
	runs  []run
	first int // in runs
	odd   ids
}

type run struct{ from, to uint32 } // both included

func (b *bucket) add(id jobs.ID) {
	n := uint32(id)
	if b.first == len(b.runs) {
		b.runs, b.first = append(b.runs[:0], run{n, n}), 0
		return
	}
	switch last := &b.runs[len(b.runs)-1]; {
	case n == last.to+1:
		last.to = n
	case n > last.to:
		b.runs = append(b.runs, run{n, n})
	default:
		heap.Push(&b.odd, n)
	}
}

// head returns the lowest id; false when the bucket is empty.
func (b *bucket) head() (jobs.ID, bool) {
	inRuns := b.first < len(b.runs)
	switch {
	case len(b.odd) > 0 && (!inRuns || b.odd[0] <= b.runs[b.first].from):
		return jobs.ID(b.odd[0]), true
	case inRuns:
		return jobs.ID(b.runs[b.first].from), true
	}
	return 0, false
}

// drop removes what head returned.
func (b *bucket) drop() {
	inRuns := b.first < len(b.runs)
	if len(b.odd) > 0 && (!inRuns || b.odd[0] <= b.runs[b.first].from) {
		heap.Pop(&b.odd)
		return
	}
	if r := &b.runs[b.first]; r.from < r.to {
		r.from++
		return
	}
	b.first++
	if b.first > 1024 && b.first > len(b.runs)/2 {
		b.runs = b.runs[:copy(b.runs, b.runs[b.first:])]
		b.first = 0
	}
}

// ids is a heap of job ids.
type ids []uint32

func (h ids) Len() int           { return len(h) }
func (h ids) Less(i, j int) bool { return h[i] < h[j] }
func (h ids) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *ids) Push(x any)        { *h = append(*h, x.(uint32)) }
func (h *ids) Pop() any {
	old := *h
	x := old[len(old)-1]
	*h = old[:len(old)-1]
	return x
}

// buckets is a heap of them, most urgent first.
type buckets []*bucket

func (h buckets) Len() int           { return len(h) }
func (h buckets) Less(i, j int) bool { return h[i].rank.compare(h[j].rank) < 0 }
func (h buckets) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *buckets) Push(x any)        { *h = append(*h, x.(*bucket)) }
func (h *buckets) Pop() any {
	old := *h
	x := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return x
}

// Deadlines. Among equal priorities the earliest goes first (queue.go); a job that
// cannot meet its own any more is reported, once in a round, whoever dispatches, and runs all the same.

const (
	deadlineEvery = 5 * time.Second
	deadlinesMost = 10_000 // jobs that one look is at
)

// deadlines are the open jobs that have one and of which nothing was said yet.
type deadlines struct {
	jobs  []jobs.ID
	known map[jobs.ID]bool // they are among jobs
	next  int              // in jobs
	at    time.Duration    // of the next look
}

// hasDeadline handles a job that is open.
func (c *Core) hasDeadline(id jobs.ID, j *jobs.Job) {
	d := &c.deadlines
	if j.Spec.Deadline.IsZero() || j.State.Terminal() || d.known[id] || c.table.Late[id] == j.Round {
		return
	}
	if d.known == nil {
		d.known = map[jobs.ID]bool{}
	}
	d.jobs = append(d.jobs, id)
	d.known[id] = true
}

// watchDeadlines reports which of some jobs cannot meet their deadlines.
func (c *Core) watchDeadlines() {
	d := &c.deadlines
	if len(d.jobs) == 0 || c.now.Mono < d.at {
		return
	}
	d.at = c.now.Mono + deadlineEvery
	for n := min(len(d.jobs), deadlinesMost); n > 0 && len(d.jobs) > 0; n-- {
		if d.next >= len(d.jobs) {
			d.next = 0
		}
		id := d.jobs[d.next]
		j := c.table.Job(id)
		if j.State.Terminal() {
			d.drop(id) // a new round brings it back
			continue
		}
		why := c.late(c.now, j)
		if why == "" {
			d.next++
			continue
		}
		d.drop(id)
		c.emit(jobs.Record{Kind: jobs.KindEvent, Job: id, Count: int(j.Round), Reason: fmt.Sprintf("job %d cannot meet its deadline: %s", id, why)})
	}
}

// drop takes the present one out.
func (d *deadlines) drop(id jobs.ID) {
	delete(d.known, id)
	last := len(d.jobs) - 1
	d.jobs[d.next] = d.jobs[last]
	d.jobs = d.jobs[:last]
}

// late explains why an open job cannot be over by its deadline, "" if it can or has none.
func (c *Core) late(now Time, j *jobs.Job) string {
	if j.Spec.Deadline.IsZero() || j.State.Terminal() {
		return ""
	}
	left := j.Spec.Deadline.Sub(now.Wall.Time())
	if left <= 0 {
		return "that was " + short(-left) + " ago"
	}
	takes := j.Spec.Estimate
	if takes == 0 {
		if st := c.stats[j.Spec.Queue]; st != nil {
			mean, _, _ := st.moments(0)
			takes = seconds(mean)
		}
	}
	if f := c.flightOf(j); f != nil && f.started {
		takes -= f.age(now.Mono)
	}
	if takes <= left {
		return ""
	}
	return fmt.Sprintf("it needs %s, as far as is known, and %s are left", short(takes), short(left))
}
