package sched

import (
	"strings"

	"dcs-tui/jobs"
)

// became says what has become of a job, to follow its name.
func became(s jobs.JobState) string {
	switch s {
	case jobs.Succeeded, jobs.Failed:
		return "has " + s.String()
	case jobs.TimedOut:
		return "has timed out"
	case jobs.Cancelled, jobs.Skipped:
		return "was " + s.String()
	}
	return "is " + s.String()
}

// withoutName takes a host's name off the front of a reason that follows the name
// anyway: errors of links begin with it.
func withoutName(reason, name string) string {
	return strings.TrimPrefix(reason, name+": ")
}
