package results_test

import (
	"testing"

	"dcs-tui/jobs"
	"dcs-tui/jobs/results"
)

// TestCauseNamesFullDisk checks that the cause of a job that failed on a full disk names the disk,
// whatever else the outcome contains.
func TestCauseNamesFullDisk(t *testing.T) {
	for want, o := range map[string]jobs.Outcome{
		"exit 1, its disk was full":    {Exit: 1, DiskFull: true},
		"SIGKILL, its disk was full":   {Signal: "SIGKILL", DiskFull: true},
		"timed out, its disk was full": {Signal: "SIGTERM", TimedOut: true, DiskFull: true},
		"exit 1":                       {Exit: 1},
	} {
		if got := results.Cause(jobs.Failed, "", &o); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
