package dispatch

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"dcs-tui/dispatch/sched"
	"dcs-tui/jobs"
	"dcs-tui/jobs/jobstest"
)

// TestUnacknowledgedResultsAreDeliveredAgain checks that a resumed run delivers the unacknowledged
// results in order (promises 1 and 5).
func TestUnacknowledgedResultsAreDeliveredAgain(t *testing.T) {
	type result struct {
		seq   int64
		job   jobs.ID
		state jobs.JobState
	}
	for _, c := range []struct {
		name    string
		damaged bool
		records []jobs.Record
		want    []result
	}{
		{"including the result of a round that a user ended by requesting the next one", false, []jobs.Record{
			{Kind: jobs.KindLaunching, Job: 1, N: 1, Host: "a"},
			{Kind: jobs.KindExited, Job: 1, N: 1, Host: "a", Next: jobs.Succeeded, Seq: 1,
				Outcome: &jobs.Outcome{Started: 1, Ended: 2}},
			{Kind: jobs.KindJob, Job: 2, Next: jobs.Canceled, Seq: 2},
			{Kind: jobs.KindRound, Job: 1},
			{Kind: jobs.KindJob, Job: 1, Next: jobs.Canceled, Seq: 3},
		}, []result{{1, 1, jobs.Succeeded}, {2, 2, jobs.Canceled}, {3, 1, jobs.Canceled}}},
		{"whose numbers skip far ahead after damage, without taking memory", true, []jobs.Record{
			{Kind: jobs.KindJob, Job: 2, Next: jobs.Canceled, Seq: 1 << 20},
			{Kind: jobs.KindJob, Job: 1, Next: jobs.Canceled, Seq: 1 << 60},
		}, []result{{1 << 20, 2, jobs.Canceled}, {1 << 60, 1, jobs.Canceled}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := idleRig(t, time.Second)
				table := &jobs.Table{Damaged: c.damaged, Specs: jobstest.Specs(2)}
				r.fold(table, jobs.Record{Kind: jobs.KindAccepted, Job: 1, Count: 2})
				r.fold(table, c.records...)
				r.start(table, "a").submit(0)
				var got []result
				for _, x := range r.drain() {
					got = append(got, result{x.Seq, x.Job, x.State})
				}
				if !slices.Equal(got, c.want) {
					t.Errorf("results %v, want %v", got, c.want)
				}
				r.close(sched.AllDone)
			})
		})
	}
}

// TestResultsToDeliverAgainTakeLittleMemory checks that a resumed run holds few results at a time,
// however many it delivers again, and that all are delivered, in their order (promises 1 and 5). A
// round that begins in the meantime changes none of them.
func TestResultsToDeliverAgainTakeLittleMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 5*maxMade + 1
		r := idleRig(t, time.Second)
		table := &jobs.Table{Specs: jobstest.Specs(n)}
		r.fold(table, jobs.Record{Kind: jobs.KindAccepted, Job: 1, Count: n})
		for i := range n {
			r.fold(table, jobs.Record{Kind: jobs.KindJob, Job: jobs.ID(n - i), Next: jobs.Canceled, Seq: int64(i + 1)})
		}
		r.start(table, "a").submit(0)
		r.d.Do(sched.Request{Name: "again", Do: []sched.Event{sched.Requeue{Jobs: []jobs.ID{1}}}})
		time.Sleep(time.Minute)
		for seq := int64(1); seq <= n; seq++ {
			x, err := r.d.Next(t.Context())
			if err != nil || x.Seq != seq || x.Job != jobs.ID(n+1-seq) || x.State != jobs.Canceled {
				t.Fatalf("result %d is %+v, %v", seq, x, err)
			}
			if held := len(r.d.results.made) + len(r.d.results.queue); held > maxMade {
				t.Fatalf("%d results are held after result %d", held, seq)
			}
		}
		if last := r.drain(); len(last) != 1 || last[0].Seq != n+1 || last[0].State != jobs.Succeeded {
			t.Errorf("then came %+v", last)
		}
		r.close(sched.AllDone)
	})
}
