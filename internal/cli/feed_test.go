package cli

import (
	"testing"

	"dcs-tui/dispatch/sched"
	"dcs-tui/jobs"
)

// A run that was drained or stopped before all its jobs were submitted has jobs
// left: its exit code is 4, whatever became of those that were.
func TestUnsubmittedJobsAreLeft(t *testing.T) {
	var specs []*jobs.Spec
	for id := jobs.ID(1); id <= 5; id++ {
		specs = append(specs, &jobs.Spec{ID: id, Command: "true", Options: jobs.NoOptions})
	}
	for accepted := range 6 {
		table := &jobs.Table{Specs: specs[:accepted:accepted]}
		if err := jobs.Fold(table, &jobs.Record{Kind: jobs.KindAccepted, Job: 1, Count: accepted}); err != nil {
			t.Fatal(err)
		}
		for i := range accepted {
			if err := jobs.Fold(table, &jobs.Record{Kind: jobs.KindJob, Job: jobs.ID(i + 1), Next: jobs.Cancelled, Seq: int64(i + 1)}); err != nil {
				t.Fatal(err)
			}
		}
		s := &session{table: table, waiting: specs}
		s.countWaiting()
		if len(table.Jobs) != 5 || table.Counts[jobs.Queued] != 5-accepted {
			t.Errorf("%d accepted: %d jobs, %d queued", accepted, len(table.Jobs), table.Counts[jobs.Queued])
		}
		want := ExitLeft
		if accepted == 5 {
			want = ExitFailed
		}
		if got := exitOf(sched.Drained, table.Counts, false, false); got != want {
			t.Errorf("%d accepted: exit %d, want %d", accepted, got, want)
		}
	}
}
