package sched

import (
	"cmp"
	"container/heap"
	"math"

	"dcs-tui/jobs"
)

// rank is what orders jobs before their ids do: jobs of failed hosts first (E6),
// then priority (K2), then deadline (B6), then hardness (E2).
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
