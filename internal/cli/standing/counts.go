package standing

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"dcs-tui/internal/cli/console"
	"dcs-tui/jobs"
	"dcs-tui/jobs/results"
)

// HandedOver counts the jobs that count as running, and of which no attempt is
// known to have started: they wait on a host for a slot.
func HandedOver(t *jobs.Table) int {
	n := 0
	for i := range t.Jobs {
		if j := &t.Jobs[i]; j.State == jobs.Running && OpenAttempt(j).State == jobs.AttemptLaunching {
			n++
		}
	}
	return n
}

// OpenAttempt is the attempt of a running job to show: one that has started, else
// the newest.
func OpenAttempt(j *jobs.Job) *jobs.Attempt {
	a := j.Last()
	for _, open := range j.Open() {
		if a = open; a.State == jobs.AttemptRunning {
			break
		}
	}
	if a == nil { // of a damaged journal
		a = &jobs.Attempt{}
	}
	return a
}

// runningText says how many jobs run and how many are only handed over. Of a run that
// nobody dispatches nobody knows.
func runningText(running, handed int, dispatched bool) string {
	switch {
	case !dispatched:
		return fmt.Sprintf("%d may run", running)
	case handed == 0:
		return fmt.Sprintf("%d running", running)
	case handed >= running:
		return fmt.Sprintf("%d handed over", handed)
	}
	return fmt.Sprintf("%d running, %d handed over", running-handed, handed)
}

// Counts says how many jobs are in each state, of a run that somebody dispatches or
// nobody.
func Counts(t *jobs.Table, dispatched bool) string {
	parts := []string{fmt.Sprintf("%d of %d ok", t.Counts[jobs.Succeeded], len(t.Jobs))}
	for _, st := range []jobs.JobState{jobs.Failed, jobs.TimedOut, jobs.Cancelled, jobs.Skipped, jobs.Running, jobs.Queued} {
		switch n := t.Counts[st]; {
		case n == 0:
		case st == jobs.Running:
			parts = append(parts, runningText(n, HandedOver(t), dispatched))
		default:
			parts = append(parts, fmt.Sprintf("%d %s", n, strings.ReplaceAll(st.String(), "_", " ")))
		}
	}
	return strings.Join(parts, ", ")
}

// maxOpen bounds the list of running jobs.
const maxOpen = 20

// openLines lists the jobs that run and then those handed over; of a run that nobody
// dispatches those that may, with the time when they began: no clock of ours says how long
// they ran.
func openLines(t *jobs.Table, dispatched bool) []string {
	var lines []string
	title, handed, running := "running", "handed over", "running"
	if !dispatched {
		title, handed, running = "may run: nobody watches them", "may have begun", "has begun"
	}
	for _, state := range []jobs.AttemptState{jobs.AttemptRunning, jobs.AttemptLaunching} {
		for i := range t.Jobs {
			j := &t.Jobs[i]
			if j.State != jobs.Running {
				continue
			}
			a := OpenAttempt(j)
			if (a.State == jobs.AttemptLaunching) != (state == jobs.AttemptLaunching) {
				continue
			}
			if len(lines) == 0 {
				lines = append(lines, title)
			}
			if len(lines) > maxOpen {
				return append(lines, fmt.Sprintf("  and %d more", t.Counts[jobs.Running]-maxOpen))
			}
			since := handed
			switch {
			case state == jobs.AttemptLaunching:
			case a.Started == 0:
				since = running
			case dispatched:
				since = results.HumanDuration(time.Since(a.Started.Time()))
			default:
				since = "since " + a.Started.Time().Local().Format("2006-01-02 15:04:05")
			}
			lines = append(lines, fmt.Sprintf("  %-6s  %s  %s  %s", a.ID, console.CleanLine(a.Host), since, console.Shorten(console.CleanLine(j.Spec.Title()))))
		}
	}
	return lines
}

// LastOutcome is the newest outcome that a job has.
func LastOutcome(j *jobs.Job) *jobs.Outcome {
	for _, a := range slices.Backward(j.Attempts) {
		if a.Outcome != nil {
			return a.Outcome
		}
	}
	return nil
}

func AllSucceeded(t *jobs.Table) bool { return t.Counts[jobs.Succeeded] == len(t.Jobs) }
