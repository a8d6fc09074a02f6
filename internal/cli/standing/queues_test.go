package standing

import (
	"strings"
	"testing"
	"time"

	"dcs-tui/jobs"
)

// K3: the summary says how each of several queues stands, with the share and the
// priority that its newest job gave it; of one queue it says nothing.
func TestQueueLines(t *testing.T) {
	ran := func(d time.Duration) []*jobs.Attempt {
		return []*jobs.Attempt{{State: jobs.AttemptExited, Outcome: &jobs.Outcome{Started: 1, Ended: 1 + jobs.Stamp(d)}}}
	}
	job := func(st jobs.JobState, o jobs.Options, a []*jobs.Attempt) jobs.Job {
		return jobs.Job{Spec: &jobs.Spec{Options: &o}, State: st, Attempts: a}
	}
	table := &jobs.Table{Jobs: []jobs.Job{
		job(jobs.Succeeded, jobs.Options{Queue: "a", QueuePriority: new(-1), Slots: 2}, ran(30*time.Second)),
		job(jobs.TimedOut, jobs.Options{Queue: "a", Share: 2}, ran(time.Minute)),
	}}
	if lines := queueLines(table, true); lines != nil {
		t.Errorf("of a single queue: %q", lines)
	}
	table.Jobs = append(table.Jobs,
		job(jobs.Queued, jobs.Options{}, nil),
		job(jobs.Running, jobs.Options{Queue: "late\x1b[31m"}, nil),
		job(jobs.Queued, jobs.Options{Queue: "a", QueuePriority: new(0)}, nil))
	want := []string{
		"queues",
		"  a          3 jobs: 1 succeeded, 1 timed out, 1 queued; 2m 00s of run time; share 2",
		"  (no name)  1 job: 1 queued",
	}
	lines := queueLines(table, true)
	if got := strings.Join(lines[:3], "\n"); got != strings.Join(want, "\n") || strings.Contains(lines[3], "\x1b") || !strings.HasSuffix(lines[3], "1 job: 1 running") {
		t.Errorf("%s\n%q", got, lines[3])
	}
	if lines := queueLines(table, false); !strings.HasSuffix(lines[3], "1 job: 1 may run") {
		t.Errorf("%q", lines)
	}
}
