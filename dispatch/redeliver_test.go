package dispatch

import (
	"testing"
	"testing/synctest"
	"time"

	"dcs-tui/dispatch/sched"
	"dcs-tui/jobs"
)

// TestResultsOfPastRoundsAreDeliveredAgain checks that a resumed run delivers the unacknowledged
// results in order, including the result of a round that a user ended by requesting the next one
// (promise 1).
func TestResultsOfPastRoundsAreDeliveredAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ok := &jobs.Outcome{Started: 1, Ended: 2}
		table := &jobs.Table{}
		for i, s := range specs(2) {
			s.ID = jobs.ID(i + 1)
			table.Specs = append(table.Specs, s)
		}
		for _, r := range []jobs.Record{
			{Kind: jobs.KindAccepted, Job: 1, Count: 2},
			{Kind: jobs.KindLaunching, Job: 1, N: 1, Host: "a"},
			{Kind: jobs.KindExited, Job: 1, N: 1, Host: "a", Next: jobs.Succeeded, Seq: 1, Outcome: ok},
			{Kind: jobs.KindJob, Job: 2, Next: jobs.Canceled, Seq: 2},
			{Kind: jobs.KindRound, Job: 1},
			{Kind: jobs.KindJob, Job: 1, Next: jobs.Canceled, Seq: 3},
		} {
			if err := jobs.Fold(table, &r); err != nil {
				t.Fatal(err)
			}
		}
		r := &rig{t: t, journal: &fakeJournal{t: t}}
		r.hosts = newFakeHosts(t, r.journal, time.Second)
		r.start(table, "a")
		if err := r.d.Submit(nil, true); err != nil {
			t.Fatal(err)
		}
		res := r.drain()
		want := []jobs.JobState{jobs.Succeeded, jobs.Canceled, jobs.Canceled}
		if len(res) != len(want) {
			t.Fatalf("%d results, want %d", len(res), len(want))
		}
		for i, x := range res {
			if x.Seq != int64(i+1) || x.State != want[i] {
				t.Errorf("result %d is number %d of job %d: %s", i+1, x.Seq, x.Job, x.State)
			}
		}
		r.close(sched.AllDone)
	})
}

// TestResultsWithHugeNumbersAreDeliveredAgain checks result numbers that skip far ahead after
// damage. Pending results are sorted by number, and a huge number takes no memory (promises 1 and
// 5).
func TestResultsWithHugeNumbersAreDeliveredAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := &jobs.Table{Damaged: true}
		for i, s := range specs(2) {
			s.ID = jobs.ID(i + 1)
			table.Specs = append(table.Specs, s)
		}
		for _, r := range []jobs.Record{
			{Kind: jobs.KindAccepted, Job: 1, Count: 2},
			{Kind: jobs.KindJob, Job: 2, Next: jobs.Canceled, Seq: 1 << 20},
			{Kind: jobs.KindJob, Job: 1, Next: jobs.Canceled, Seq: 1 << 60},
		} {
			if err := jobs.Fold(table, &r); err != nil {
				t.Fatal(err)
			}
		}
		r := &rig{t: t, journal: &fakeJournal{t: t}}
		r.hosts = newFakeHosts(t, r.journal, time.Second)
		r.start(table, "a")
		if err := r.d.Submit(nil, true); err != nil {
			t.Fatal(err)
		}
		res := r.drain()
		if len(res) != 2 || res[0].Job != 2 || res[1].Seq != 1<<60 {
			t.Errorf("%d results: %+v", len(res), res)
		}
		r.close(sched.AllDone)
	})
}
