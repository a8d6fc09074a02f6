package sched

import (
	"fmt"
	"strings"

	"dcs-tui/jobs"
)

// count writes a number of things: "1 GPU", "3 GPUs".
func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// have returns the verb for so many.
func have(n int) string {
	if n == 1 {
		return "has"
	}
	return "have"
}

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
