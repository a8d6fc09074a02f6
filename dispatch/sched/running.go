package sched

import (
	"time"

	"dcs-tui/jobs"
)

// RunningView is what the table does not hold of the open attempts: a copy, safe to keep.
type RunningView struct {
	Stragglers []jobs.ID // as of Straggler
	Ending     []jobs.ID // running jobs that are being ended
	Progress   []ProgressView
}

// ProgressView is the progress that a running attempt last reported.
type ProgressView struct {
	Attempt jobs.AttemptID
	Text    string
	At      time.Duration // Time.Mono
}

// Running returns a view of the open attempts, in no order. A job with several attempts
// may be listed twice. Its cost is that of the open attempts, whatever the number of jobs.
func (c *Core) Running() RunningView {
	var v RunningView
	n := 0
	for _, h := range c.hosts {
		n += len(h.beat.Progress)
	}
	v.Progress = make([]ProgressView, 0, n)
	for _, h := range c.everyHost() {
		for f := h.head; f != nil; f = f.next {
			if f.straggles {
				v.Stragglers = append(v.Stragglers, f.id.Job)
			}
			if f.said.text != "" && !f.over {
				v.Progress = append(v.Progress, ProgressView{f.id, f.said.text, f.said.at})
			}
			if j := c.table.Job(f.id.Job); j != nil && j.State == jobs.Running && (c.cancelled(f.id.Job) || c.tooHard(j)) {
				v.Ending = append(v.Ending, f.id.Job)
			}
		}
	}
	return v
}

// QueueView is how long the jobs of a queue take.
type QueueView struct {
	Name            string
	Mean, Deviation time.Duration
}

// Queues returns the queues whose run times are known, at most limit of them. Those with
// jobs that wait come first.
func (c *Core) Queues(limit int) []QueueView {
	var views []QueueView
	for _, waiting := range []bool{true, false} {
		for _, st := range c.queues {
			if (st.queued > 0) != waiting || len(views) == limit {
				continue
			}
			if mean, dev, ok := st.moments(0); ok {
				views = append(views, QueueView{st.turn.name, seconds(mean), seconds(dev)})
			}
		}
	}
	return views
}
