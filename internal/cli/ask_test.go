package cli

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"dcs-tui/jobs"
	"dcs-tui/jobs/jobstest"
	"dcs-tui/jobs/journal"
	"dcs-tui/jobs/rundir"
)

// A command waits for the answer of a dispatcher on another machine as long as that one
// gives signs of life, bounded, and finds out that it is dead (K9, DESIGN 8).
func TestAwaitAnswer(t *testing.T) {
	cancelling := []jobs.Record{{Kind: jobs.KindCancelling, Job: 1, Reason: "x"}, {Kind: jobs.KindCancelling, Job: 2, Reason: "x"}}
	over := func(id jobs.ID, seq int64, next jobs.JobState) jobs.Record {
		return jobs.Record{Kind: jobs.KindJob, Job: id, Next: next, Seq: seq}
	}
	type moment struct {
		at   time.Duration
		recs []jobs.Record
		left bool
	}
	for _, c := range []struct {
		name   string
		beats  time.Duration // for how long it gives signs of life
		does   []moment
		gone   bool
		taken  bool
		still  int
		others int
		after  time.Duration // from when it was asked, at least; a second of polls on top
	}{
		{name: "answered", beats: time.Hour, taken: true, others: 1, after: 8 * time.Second, does: []moment{
			{at: 3 * time.Second, recs: append(cancelling, jobs.Record{Kind: jobs.KindRequest, Count: 2})},
			{at: 5 * time.Second, recs: []jobs.Record{over(1, 1, jobs.Cancelled)}},
			{at: 8 * time.Second, recs: []jobs.Record{over(2, 2, jobs.Skipped)}}}},
		{name: "one does not end", beats: time.Hour, taken: true, still: 1, after: 3*time.Second + endPatience, does: []moment{
			{at: 3 * time.Second, recs: append(cancelling, jobs.Record{Kind: jobs.KindRequest, Count: 2}, over(1, 1, jobs.Cancelled))}}},
		{name: "no answer", beats: time.Hour, after: answerAway},
		{name: "dead", gone: true, after: journal.StaleAfter},
		{name: "it leaves without an answer", beats: time.Hour, gone: true, after: 4 * time.Second, does: []moment{{at: 4 * time.Second, left: true}}},
		{name: "it leaves with its last words", beats: time.Hour, taken: true, after: 4 * time.Second, does: []moment{
			{at: 4 * time.Second, recs: []jobs.Record{{Kind: jobs.KindRequest, Count: 2}}, left: true}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			run := emptyRun(t)
			if err := run.AppendSpecs(jobstest.Specs(3)); err != nil {
				t.Fatal(err)
			}
			j, _, _, err := journal.Take(context.Background(), run, journal.TakeOptions{})
			if err != nil {
				t.Fatal(err)
			}
			defer j.Close()
			elsewhere(t, run, nil)
			synctest.Test(t, func(t *testing.T) {
				owner, err := journal.ReadOwner(run)
				if err != nil {
					t.Fatal(err)
				}
				e, err := ask(run, rundir.DoCancel, []jobs.ID{1, 2})
				if err != nil {
					t.Fatal(err)
				}
				over := make(chan struct{})
				go func() { // that dispatcher
					left := false
					for at := time.Duration(0); ; at += time.Second {
						for _, m := range c.does {
							if m.at != at {
								continue
							}
							for _, r := range m.recs {
								if r.Kind == jobs.KindRequest {
									r.Request = e.name
								}
								j.Append([]jobs.Record{r})
							}
							j.Sync()
							left = left || m.left
						}
						if at <= c.beats {
							elsewhere(t, run, func(o map[string]any) { beats(o); o["left"] = left })
						}
						select {
						case <-over:
							return
						case <-time.After(time.Second):
						}
					}
				}()
				began := time.Now()
				gone := e.await(owner)
				took := time.Since(began)
				close(over)
				if gone != c.gone || e.taken != c.taken || len(e.open) != c.still || e.otherwise != c.others {
					t.Errorf("gone %v, %+v", gone, e)
				}
				if took < c.after || took > c.after+time.Second {
					t.Errorf("it took %s, want %s", took, c.after)
				}
			})
		})
	}
}
