package jobs_test

import (
	"testing"

	"dcs-tui/jobs"
)

// TestFoldPlaceIsNamed: an attempt whose launch was lost to damage gets its host from the
// next record that tells of it: open without a host, nobody could be asked about it, and
// another would start beside it (promise 2).
func TestFoldPlaceIsNamed(t *testing.T) {
	for _, kind := range []jobs.Kind{jobs.KindRunning, jobs.KindExited, jobs.KindSuperseded} {
		table := fold(t, []jobs.Record{accepted(1)})
		table.Damaged = true
		later := launching(1, 2)
		later.Host = "b"
		told := jobs.Record{Kind: kind, Job: 1, N: 1, Host: "a", Next: jobs.Running, Outcome: ok}
		for _, r := range []jobs.Record{later, told} {
			if err := jobs.Fold(table, &r); err != nil {
				t.Fatalf("%s: %v", kind, err)
			}
		}
		if a := table.Job(1).Attempts; a[0].Host != "a" || a[1].Host != "b" {
			t.Errorf("%s: on hosts %q and %q", kind, a[0].Host, a[1].Host)
		}
	}
}
