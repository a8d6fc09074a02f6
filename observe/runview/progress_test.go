package runview

import (
	"strings"
	"testing"
	"time"

	"dcs-tui/jobs"
	"dcs-tui/jobs/journal"
	"dcs-tui/jobs/results"
)

// TestProgressIsALine checks the words for the progress of a run: the numbers of jobs by state, what
// keeps jobs from being launched, and when the run ends.
func TestProgressIsALine(t *testing.T) {
	counts := [jobs.Skipped + 1]int{jobs.Succeeded: 1200, jobs.Failed: 2, jobs.TimedOut: 1, jobs.Canceled: 3,
		jobs.Running: 16, jobs.Queued: 31}
	const numbers = "1,200 of 1,253 ok, 2 failed, 1 timed out, 3 canceled, "
	for _, c := range []struct {
		name    string
		change  func(*RunProgress)
		want    string
		further []string
	}{
		{"it runs", func(*RunProgress) {}, "12 running, 4 sent, 31 queued, ETA 4 min, 8/s", nil},
		{"its input is open", func(p *RunProgress) { p.More = true },
			"12 running, 4 sent, 31 queued, ETA 4 min, more may come, 8/s", nil},
		{"the end is not known", func(p *RunProgress) { p.ETA, p.Rate = 0, 0 }, "12 running, 4 sent, 31 queued", nil},
		{"all jobs were only sent", func(p *RunProgress) { p.Sent = 16 },
			"16 sent, 31 queued, 8/s", nil},
		{"a person uses a host", func(p *RunProgress) { p.Suspended = 5 },
			"7 running, 5 suspended, 4 sent, 31 queued, ETA 4 min, 8/s", nil},
		{"no job makes progress", func(p *RunProgress) { p.Suspended = 12 },
			"12 suspended, 4 sent, 31 queued, 8/s", nil},
		{"it is paused", func(p *RunProgress) { p.Paused = true }, "12 running, 4 sent, 31 queued, paused", nil},
		{"it is paused and drained", func(p *RunProgress) { p.Paused, p.Draining = true, "a person asked for it" },
			"12 running, 4 sent, 31 queued, paused, draining", nil},
		{"nothing can be recorded", func(p *RunProgress) { p.Paused, p.Problem = true, "the disk is full" },
			"12 running, 4 sent, 31 queued, launching nothing: the disk is full", nil},
		{"nobody dispatches it", func(p *RunProgress) { p.Status, p.Requests = StatusCrashed, 1 },
			"16 may run, 31 queued, 1 request for the next resume", nil},
		{"something follows", func(p *RunProgress) { p.Paused = true },
			"12 running, 4 sent, 31 queued, paused, and more", []string{"", "and more"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := RunProgress{Rate: 8, ETA: 4 * time.Minute, Spread: 20 * time.Second}
			p.Count(counts, results.Idle{Sent: 4})
			c.change(&p)
			if got := p.Line(c.further...); got != numbers+c.want {
				t.Errorf("got  %s\nwant %s", got, numbers+c.want)
			}
		})
	}
}

// TestProgressOfARunThatHasEnded checks how a run has ended that nobody dispatches.
func TestProgressOfARunThatHasEnded(t *testing.T) {
	left := &jobs.Table{Counts: [jobs.Skipped + 1]int{jobs.Queued: 1}}
	closed := &jobs.Table{Counts: left.Counts, Epoch: 2, Closed: jobs.Closing{How: jobs.ClosedStopped,
		Reason: "asked to stop"}}
	ended := &jobs.Table{Counts: [jobs.Skipped + 1]int{jobs.Succeeded: 1}}
	died, silent := &journal.Reader{Owner: &journal.Owner{}, Liveness: journal.Dead},
		&journal.Reader{Owner: &journal.Owner{}, Liveness: journal.Unsure, Silent: true}
	for _, c := range []struct {
		name  string
		table *jobs.Table
		r     *journal.Reader
		want  RunStatus
		end   string // of the sentence about its end
	}{
		{"all jobs are over", ended, died, StatusFinished, "has died; the jobs that it started continue"},
		{"nobody ever dispatched it", left, nil, StatusStopped, "no dispatcher has started it"},
		{"the owner file is missing", &jobs.Table{Counts: left.Counts, Epoch: 1}, nil, StatusSilent,
			"its owner file is missing; the jobs that its last dispatcher started continue"},
		{"its dispatcher left", left, &journal.Reader{Owner: &journal.Owner{Left: true}, Liveness: journal.Dead},
			StatusStopped, "the dispatcher has ended"},
		{"its dispatcher recorded the end", closed, died, StatusStopped, "the dispatcher was stopped: asked to stop"},
		{"its dispatcher died", left, died, StatusCrashed, "has died; the jobs that it started continue"},
		{"its dispatcher is silent", left, silent, StatusSilent, "no heartbeat; the jobs that it started continue"},
		{"its dispatcher may be alive", left, &journal.Reader{Owner: &journal.Owner{}, Liveness: journal.Unsure},
			StatusRunning, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := ProgressOf(c.table, c.r)
			if p.Status != c.want || !strings.HasSuffix(p.End, c.end) || (p.End == "") != p.Status.IsDispatched() {
				t.Errorf("got %d, %q; want %d, %q", p.Status, p.End, c.want, c.end)
			}
		})
	}
}
