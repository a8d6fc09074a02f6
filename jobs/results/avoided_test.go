package results

import (
	"strings"
	"testing"
	"time"

	"dcs-tui/jobs"
)

// TestSummaryOfAvoided checks that the summary counts the jobs that a timeout avoided, including
// those that were stopped, but not jobs that were skipped for another reason.
func TestSummaryOfAvoided(t *testing.T) {
	late := &jobs.Spec{ID: 7, Name: "variant=bnb n=10", Options: jobs.NoOptions}
	why := jobs.TooHard(late, 2*time.Second)
	if want := "it is at least as hard as job 7, which timed out after 2s: variant=bnb n=10"; why != want {
		t.Errorf("%q, want %q", why, want)
	}
	if got := Cause(jobs.Skipped, why, &jobs.Outcome{Stopped: true}); got != why {
		t.Errorf("a job that was stopped says %q", got)
	}
	stopped := &jobs.Attempt{Host: "a", State: jobs.AttemptCanceled, Outcome: &jobs.Outcome{Stopped: true, Started: second, Ended: 2 * second}}
	s := Summarize(table(
		jobs.Job{State: jobs.Skipped, Reason: why},
		jobs.Job{State: jobs.Skipped, Reason: why, Attempts: []*jobs.Attempt{stopped}},
		jobs.Job{State: jobs.Skipped, Reason: "job 3, which it comes after, has failed"},
		jobs.Job{State: jobs.Canceled, Reason: why},
	))
	if s.Avoided != 2 {
		t.Errorf("%d avoided, want 2", s.Avoided)
	}
	var b strings.Builder
	if err := s.WriteText(&b, 80); err != nil {
		t.Fatal(err)
	}
	if want := "\n2 jobs avoided: at least as hard as one that had timed out\n"; !strings.Contains(b.String(), want) {
		t.Errorf("%q lacks %q", b.String(), want)
	}
}
