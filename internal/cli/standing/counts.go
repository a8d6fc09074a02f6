package standing

import (
	"fmt"
	"slices"
	"time"

	"dcs-tui/internal/cli/console"
	"dcs-tui/jobs"
	"dcs-tui/jobs/results"
	"dcs-tui/jobs/runview"
)

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
			a := runview.OpenAttempt(j)
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
