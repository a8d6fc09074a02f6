package standing

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"dcs-tui/internal/cli/console"
	"dcs-tui/jobs"
	"dcs-tui/jobs/results"
	"dcs-tui/jobs/runview"
)

// queueCount is how a queue of a run stands (K3).
type queueCount struct {
	Name     string         `json:"name"` // "": that of jobs which name none
	Jobs     map[string]int `json:"jobs"` // by state, those that there are
	Total    int            `json:"total"`
	Seconds  float64        `json:"run_seconds"` // of all finished attempts, in slots
	Share    int            `json:"share"`
	Priority int            `json:"priority"`

	counts [jobs.Skipped + 1]int
	busy   time.Duration
}

// queuesIn counts the queues of a run, in the order in which they come.
func queuesIn(t *jobs.Table) []*queueCount {
	list := []*queueCount{}
	of := map[string]*queueCount{}
	var last *jobs.Options
	var q *queueCount
	for i := range t.Jobs {
		j := &t.Jobs[i]
		o := j.Spec.Options
		if o == nil {
			o = jobs.NoOptions
		}
		if o != last {
			if last, q = o, of[o.Queue]; q == nil {
				q = &queueCount{Name: o.Queue, Share: 1, Jobs: map[string]int{}}
				of[o.Queue], list = q, append(list, q)
			}
			if o.Share > 0 { // the newest job counts, as when they are dispatched
				q.Share = o.Share
			}
			if o.QueuePriority != nil {
				q.Priority = *o.QueuePriority
			}
		}
		q.Total++
		q.counts[j.State]++
		for _, a := range j.Attempts {
			if a.Outcome != nil && a.Outcome.Started != 0 {
				q.busy += a.Outcome.Elapsed() * time.Duration(j.Spec.SlotCount())
			}
		}
	}
	for _, q := range list {
		q.Seconds = q.busy.Seconds()
		for st, n := range q.counts {
			if n > 0 {
				q.Jobs[jobs.JobState(st).String()] = n
			}
		}
	}
	return list
}

// maxQueues bounds the list of queues.
const maxQueues = 20

// queueLines say how each of several queues stands.
func queueLines(t *jobs.Table, dispatched bool) []string {
	list := queuesIn(t)
	if len(list) < 2 {
		return nil
	}
	lines := []string{"queues"}
	width := 0
	for _, q := range list[:min(len(list), maxQueues)] {
		width = max(width, utf8.RuneCountInString(q.title()))
	}
	for i, q := range list {
		if i == maxQueues {
			return append(lines, fmt.Sprintf("  and %d more", len(list)-maxQueues))
		}
		title := q.title()
		lines = append(lines, "  "+title+strings.Repeat(" ", width-utf8.RuneCountInString(title))+"  "+q.text(dispatched))
	}
	return lines
}

func (q *queueCount) title() string {
	if q.Name == "" {
		return "(no name)"
	}
	return console.ShortenTo(console.CleanLine(q.Name), 40)
}

// Text says how it stands: "12 jobs: 10 succeeded, 2 queued; 3m 20s of run time; share 2".
func (q *queueCount) text(dispatched bool) string {
	var parts []string
	for _, st := range []jobs.JobState{jobs.Succeeded, jobs.Failed, jobs.TimedOut, jobs.Cancelled, jobs.Skipped, jobs.Running, jobs.Queued} {
		n := q.counts[st]
		switch {
		case n == 0:
		case st == jobs.Running:
			parts = append(parts, runview.RunningText(n, 0, dispatched))
		default:
			parts = append(parts, fmt.Sprintf("%d %s", n, strings.ReplaceAll(st.String(), "_", " ")))
		}
	}
	text := jobs.Plural(q.Total, "job") + ": " + strings.Join(parts, ", ")
	if q.busy > 0 {
		text += "; " + results.HumanDuration(q.busy) + " of run time"
	}
	if q.Share != 1 {
		text += fmt.Sprintf("; share %d", q.Share)
	}
	if q.Priority != 0 {
		text += fmt.Sprintf("; priority %d", q.Priority)
	}
	return text
}
