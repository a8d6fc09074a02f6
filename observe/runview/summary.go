package runview

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"dcs-tui/internal/text"
	"dcs-tui/jobs"
	"dcs-tui/jobs/rundir"
)

// QueueCount holds counts of the jobs of a queue.
type QueueCount struct {
	Name  string         `json:"name"` // "": the queue of jobs that name none
	Jobs  map[string]int `json:"jobs"` // by state, without zeros
	Total int            `json:"total"`
	// Run time of all finished attempts, multiplied by their slots.
	Seconds  float64 `json:"run_seconds"`
	Share    int     `json:"share"`
	Priority int     `json:"priority"`
	Slots    int     `json:"slots,omitempty"` // maximum that its jobs occupy; 0: no limit

	Counts [jobs.Skipped + 1]int `json:"-"` // the same as Jobs
	Busy   time.Duration         `json:"-"` // the same as Seconds
}

// CountQueues counts the queues of a run, in the order of their first jobs.
func CountQueues(t *jobs.Table) []*QueueCount {
	list := []*QueueCount{}
	byName := map[string]*QueueCount{}
	var last *jobs.Options
	var q *QueueCount
	for j := range t.RowsWithOptions() {
		o := cmp.Or(j.Spec.Options, jobs.NoOptions)
		if o != last {
			last, q = o, byName[o.Queue]
			if q == nil {
				q = &QueueCount{Name: o.Queue, Share: 1, Jobs: map[string]int{}}
				byName[o.Queue], list = q, append(list, q)
			}
			if o.Share > 0 { // the newest job's share counts, as in the scheduler
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

// DeadlineCounts counts the jobs that have a deadline.
type DeadlineCounts struct {
	Met    int
	Missed int // including jobs that ended without success
	Late   int // jobs that can no longer meet their deadlines
	Open   int
}

// CountDeadlines counts the deadlines that were met, missed, or can no longer be met.
func CountDeadlines(t *jobs.Table, now time.Time) (n DeadlineCounts) {
	if !t.AnyOptions(func(o *jobs.Options) bool { return !o.Deadline.IsZero() }) {
		return n
	}
	var reader jobs.RowReader
	for i := range t.NumJobs() {
		id := jobs.ID(i + 1)
		if o := t.OptionsOf(id); o == nil || o.Deadline.IsZero() {
			continue
		}
		j := reader.Job(t, id)
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

// LastOutcome returns the outcome of the attempt that counts. If that has none, or none counts, it
// returns the outcome of the newest attempt that has one, or nil.
func LastOutcome(j *jobs.Job) *jobs.Outcome {
	if a := j.CountedAttempt(); a != nil && a.Outcome != nil {
		return a.Outcome
	}
	for _, a := range slices.Backward(j.Attempts) {
		if a.Outcome != nil {
			return a.Outcome
		}
	}
	return nil
}

// HostCount holds counts of the attempts on a host.
type HostCount struct {
	Running int `json:"running"` // open attempts
	Sent    int `json:"sent"`    // of Running, those that are not known to have started
	Ended   int `json:"ended"`   // attempts with an outcome
	// Those of Ended that failed. One that was ended on request did not fail.
	Failed int `json:"failed"`

	Succeeded int `json:"-"` // neither failed nor to be run again later
	Slots     int `json:"-"` // of the attempts that have started and not ended
}

// CountHosts counts the attempts on each host, by its name.
func CountHosts(t *jobs.Table) map[string]*HostCount {
	counts := map[string]*HostCount{}
	for j := range t.RowsWithOptions() {
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
					h.Sent++
				} else {
					h.Slots += j.Spec.SlotCount()
				}
			case a.Outcome != nil:
				h.Ended++
				if a.Failed() {
					h.Failed++
				} else if a.State == jobs.AttemptExited && !a.Postponed() {
					h.Succeeded++
				}
			}
		}
	}
	return counts
}

// HostEvent is the last event of a host.
type HostEvent struct {
	At         jobs.Stamp
	Text       string // as it was recorded
	ReasonKind jobs.ReasonKind
	WasUp      bool // the host has been up
}

// After returns the HostEvent that follows w when the host has a newer event.
func (w HostEvent) After(at jobs.Stamp, text string, kind jobs.ReasonKind) HostEvent {
	return HostEvent{at, text, kind, w.WasUp || kind == jobs.ReasonHostUp}
}

// AddHostEvent updates the last events of hosts from a record.
func AddHostEvent(events map[string]HostEvent, r *jobs.Record) {
	switch {
	case r.Kind == jobs.KindEpoch:
		clear(events) // what an earlier dispatcher knew of hosts is outdated
	case r.Host != "" && r.Job == 0 && r.Reason != "":
		events[r.Host] = events[r.Host].After(r.At, r.Reason, jobs.ReasonKind(r.How))
	}
}

// maxTrouble bounds the number of sentences of UselessHosts.
const maxTrouble = 5

// minFailures is how many attempts must have failed on a host before it is compared
// with the others.
const minFailures = 3

// isMostlyFailing reports whether most attempts on the host have failed.
func (c *HostCount) isMostlyFailing() bool { return c.Failed >= minFailures && 2*c.Failed > c.Ended }

// UselessHosts describes in a sentence each the hosts that were useless to a run: those that were
// never up, and those where attempts failed much more often than on other hosts. A run that
// succeeded in the end hides both, but it took longer. Texts are not cleaned.
func UselessHosts(t *jobs.Table, events map[string]HostEvent) []string {
	had, good := CountHosts(t), HostCount{}
	for _, c := range had {
		if !c.isMostlyFailing() { // so that bad hosts do not excuse each other
			good.Ended, good.Failed = good.Ended+c.Ended, good.Failed+c.Failed
		}
	}
	var lines []string
	var idle []HostText
	for _, name := range slices.Sorted(maps.Keys(events)) {
		_, instance := t.Instances[name]
		// An instance that was up was not needed.
		if w := events[name]; had[name] == nil && w.Text != "" && !w.WasUp && !instance {
			idle = append(idle, HostText{Host: name, Text: w.Text})
		}
	}
	for _, g := range GroupHosts(idle) {
		lines = append(lines, g.Title()+" ran nothing: "+text.Clean(g.Text, 100))
	}
	for name, c := range had {
		if c.isMostlyFailing() && 4*good.Failed < good.Ended {
			lines = append(lines, fmt.Sprintf("%s failed %d of %s, the others %d of %d: "+
				"check that it has what the jobs need%s",
				name, c.Failed, text.Plural(c.Ended, "attempt"), good.Failed, good.Ended, forgiveHint(t, name)))
		}
	}
	slices.Sort(lines)
	if more := len(lines) - maxTrouble; more > 0 {
		lines = append(lines[:maxTrouble], fmt.Sprintf("and %d more like these", more))
	}
	return lines
}

// forgiveHint names the flag with which jobs with a single try that failed on a bad host would have
// run again. It returns "" if there are none.
func forgiveHint(t *jobs.Table, host string) string {
	n := 0
	for j := range t.RowsIn(jobs.Failed) {
		if a := j.CountedAttempt(); a != nil && j.Ran() == 1 && a.Host == host && a.Failed() {
			n++
		}
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("; %s only once, there: requeue them, and use --forgive-hosts next time", text.Plural(n, "job")+
		" ran")
}

// InputText describes what is missing of the input of a run.
func InputText(i rundir.Input, t *jobs.Table) string {
	if i.IsKeptOpen {
		return "it was kept open for more jobs; resume waits for them again"
	}
	const maxFault = 60
	why := "its input was not read to its end"
	if i.State == rundir.InputBad {
		why = "its input was read no further than " + text.Clean(i.Fault, maxFault)
	}
	if i.Again && i.State == rundir.InputOpen {
		return "not all of its jobs were made yet: " + DescribeInput(t) + "; resume makes the rest"
	}
	return why + ": " + DescribeInput(t) + "; send the rest to a new run"
}

// DescribeInput describes how many jobs of an input are part of the run.
func DescribeInput(t *jobs.Table) string {
	n := t.NumSpecs()
	if n == 0 {
		return "no job had been read"
	}
	text := text.Plural(n, "job") + " had been read"
	if last := t.Spec(jobs.ID(n)); n > 1 && last.Line > 0 {
		text += fmt.Sprintf(", the last in line %d", last.Line)
	}
	return text
}

// OpenAttempt returns the attempt of a running job to show: the newest that has started, or
// else the newest.
func OpenAttempt(j *jobs.Job) *jobs.Attempt {
	a := j.Last()
	for _, open := range j.Open() {
		if a.State != jobs.AttemptRunning || open.State == jobs.AttemptRunning {
			a = open
		}
	}
	if a == nil { // the journal is damaged
		a = &jobs.Attempt{}
	}
	return a
}

// Copies returns how many attempts of a job are open beside the one that OpenAttempt returns.
func Copies(j *jobs.Job) int { return max(0, len(j.Open())-1) }

// lastAttempts returns the newest attempts of a job, at most maxAttempts.
func lastAttempts(j *jobs.Job) []*jobs.Attempt {
	return slices.Clip(j.Attempts[max(0, len(j.Attempts)-maxAttempts):])
}

// maxAttempts bounds Detail.Attempts.
const maxAttempts = 100
