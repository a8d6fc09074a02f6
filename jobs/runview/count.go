package runview

import (
	"cmp"
	"slices"
	"time"

	"dcs-tui/jobs"
)

// QueueCount is what a run has of a queue.
type QueueCount struct {
	Name     string         `json:"name"` // "": the queue of jobs that name none
	Jobs     map[string]int `json:"jobs"` // by state, those that there are
	Total    int            `json:"total"`
	Seconds  float64        `json:"run_seconds"` // of all finished attempts, times their slots
	Share    int            `json:"share"`
	Priority int            `json:"priority"`
	Slots    int            `json:"slots,omitempty"` // that its jobs occupy at most; 0: there is no limit

	Counts [jobs.Skipped + 1]int `json:"-"` // the same as Jobs
	Busy   time.Duration         `json:"-"` // the same as Seconds
}

// CountQueues counts the queues of a run, in the order of their first jobs.
func CountQueues(t *jobs.Table) []*QueueCount {
	list := []*QueueCount{}
	byName := map[string]*QueueCount{}
	var last *jobs.Options
	var q *QueueCount
	for j := range t.Rows() {
		o := j.Spec.Options
		if o == nil {
			o = jobs.NoOptions
		}
		if o != last {
			if last, q = o, byName[o.Queue]; q == nil {
				q = &QueueCount{Name: o.Queue, Share: 1, Jobs: map[string]int{}}
				byName[o.Queue], list = q, append(list, q)
			}
			if o.Share > 0 { // the newest job counts, as when they are dispatched
				q.Share = o.Share
			}
			if o.QueuePriority != nil {
				q.Priority = *o.QueuePriority
			}
			q.Slots = cmp.Or(o.QueueSlots, q.Slots)
		}
		q.Total++
		q.Counts[j.State]++
		for _, a := range j.Attempts {
			if a.Outcome != nil && a.Outcome.Started != 0 {
				q.Busy += a.Outcome.Elapsed() * time.Duration(j.Spec.SlotCount())
			}
		}
	}
	for _, q := range list {
		q.Seconds = q.Busy.Seconds()
		for st, n := range q.Counts {
			if n > 0 {
				q.Jobs[jobs.JobState(st).String()] = n
			}
		}
	}
	return list
}

// DeadlineCounts says how many jobs have met their deadlines.
type DeadlineCounts struct {
	Met    int
	Missed int // also by jobs that ended without success
	Late   int // cannot be met any more
	Open   int
}

// CountDeadlines counts what became of deadlines.
func CountDeadlines(t *jobs.Table, now time.Time) (n DeadlineCounts) {
	for j := range t.Rows() {
		if j.Spec.Options == nil || j.Spec.Deadline.IsZero() {
			continue
		}
		left, ran := j.Spec.Deadline.Sub(now), time.Duration(0)
		if a := j.Last(); a != nil && a.State == jobs.AttemptRunning {
			ran = max(0, now.Sub(a.Launched.Time()))
		}
		switch o := LastOutcome(j); {
		case j.State == jobs.Succeeded && (o == nil || !o.Ended.Time().After(j.Spec.Deadline)):
			n.Met++
		case j.State.Terminal() || left <= 0:
			n.Missed++
		case j.Spec.Estimate-ran > left:
			n.Late++
		default:
			n.Open++
		}
	}
	return n
}

// LastOutcome returns the newest outcome of a job; nil if there is none.
func LastOutcome(j *jobs.Job) *jobs.Outcome {
	for _, a := range slices.Backward(j.Attempts) {
		if a.Outcome != nil {
			return a.Outcome
		}
	}
	return nil
}

// HostCount is what a host has had of a run.
type HostCount struct {
	Running int `json:"running"`     // open attempts
	Handed  int `json:"handed_over"` // of Running, those that are not known to have started
	Ended   int `json:"ended"`       // attempts with an outcome
	Failed  int `json:"failed"`      // of Ended, those that failed; one that was ended on request did not fail
}

// CountHosts returns what each host has had of a run, by its name.
func CountHosts(t *jobs.Table) map[string]*HostCount {
	counts := map[string]*HostCount{}
	for j := range t.Rows() {
		for _, a := range j.Attempts {
			if a.Host == "" {
				continue // a number left free after damage to the journal
			}
			h := counts[a.Host]
			if h == nil {
				h = new(HostCount)
				counts[a.Host] = h
			}
			switch {
			case a.State.Open():
				h.Running++
				if a.State == jobs.AttemptLaunching {
					h.Handed++
				}
			case a.Outcome != nil:
				h.Ended++
				if a.Failed() {
					h.Failed++
				}
			}
		}
	}
	return counts
}
