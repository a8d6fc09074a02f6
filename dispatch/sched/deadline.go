package sched

import (
	"fmt"
	"time"

	"dcs-tui/internal/text"
	"dcs-tui/jobs"
)

const (
	deadlineInterval    = 5 * time.Second
	maxDeadlinesChecked = 10_000 // jobs that one check handles
)

// deadlines holds the open jobs with a deadline that were not reported as late.
type deadlines struct {
	jobs    []jobs.ID
	known   map[jobs.ID]bool // set of the elements of jobs
	next    int              // index into jobs
	checkAt time.Duration    // time of the next check
}

// addDeadline adds an open job that has a deadline.
func (c *Core) addDeadline(id jobs.ID, j *jobs.Job) {
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

// checkDeadlines reports which jobs cannot meet their deadlines. Each job is reported once per
// round, even across dispatchers, and runs nevertheless.
func (c *Core) checkDeadlines() {
	d := &c.deadlines
	if len(d.jobs) == 0 || c.now.Mono < d.checkAt {
		return
	}
	d.checkAt = c.now.Mono + deadlineInterval
	for n := min(len(d.jobs), maxDeadlinesChecked); n > 0 && len(d.jobs) > 0; n-- {
		if d.next >= len(d.jobs) {
			d.next = 0
		}
		id := d.jobs[d.next]
		j := c.table.Job(id)
		if j.State.Terminal() {
			d.remove(id) // a new round adds it again
			continue
		}
		why := c.whyLate(c.now, j)
		if why == "" {
			d.next++
			continue
		}
		d.remove(id)
		c.emit(jobs.Record{Kind: jobs.KindEvent, Job: id, Count: int(j.Round),
			Reason: fmt.Sprintf("job %d cannot meet its deadline: %s", id, why)})
	}
}

// remove removes the job at next.
func (d *deadlines) remove(id jobs.ID) {
	delete(d.known, id)
	last := len(d.jobs) - 1
	d.jobs[d.next] = d.jobs[last]
	d.jobs = d.jobs[:last]
}

// whyLate explains why an open job cannot end by its deadline. It returns "" if it can, or if it
// has no deadline.
func (c *Core) whyLate(now Time, j *jobs.Job) string {
	if j.Spec.Deadline.IsZero() || j.State.Terminal() {
		return ""
	}
	left := j.Spec.Deadline.Sub(now.Wall.Time())
	if left <= 0 {
		return "that was " + text.Span(-left) + " ago"
	}
	takes := j.Spec.Estimate
	if takes == 0 {
		if st := c.stats[j.Spec.Queue]; st != nil {
			mean, _, _ := st.Moments()
			takes = durationOfSeconds(mean)
		}
	}
	if f := c.inFlightOf(j); f != nil && f.started {
		takes -= f.age(now.Mono)
	}
	if takes <= left {
		return ""
	}
	return fmt.Sprintf("it needs %s, as far as is known, and %s are left", text.Span(takes), text.Span(left))
}
